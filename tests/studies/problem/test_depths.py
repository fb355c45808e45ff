"""Depth films as observations: derivatives, twins, E from a film made by another path."""

from dataclasses import replace

import numpy as np
import pytest
import tomlkit
from PIL import Image

from studies.answer.certificate import check_point
from studies.problem.depths import HUBER, DepthObserver, without_edges
from studies.problem.making import make_problem
from studies.reports.preview.showing import preview
from studies.runs.errors import StudyError
from studies.scene.reading import scene_from_dict
from tests.reference import neo_hookean
from tests.reference.rollout import rollout
from tests.studies.command import adjsim
from tests.studies.fitting.test_running import read


ERROR = 2e-3
SIZE = (48, 64)
K = [[80.0, 0.0, 31.5], [0.0, 80.0, 23.5], [0.0, 0.0, 1.0]]
EYE, TARGET = np.array([0.25, 0.6, 0.35]), np.array([0.15, -0.05, 0.0])
TIMES = np.linspace(0.02, 0.16, 8)
STEP = 2e-4  # of the solver in NumPy [s]
CELLS = [8, 2, 2]
FACES = [(1, 2, 3), (0, 3, 2), (0, 1, 3), (0, 2, 1)]  # of a tetrahedron


def tables(**film):
    """Return the tables of a beam that swings, seen from above by a depth camera."""
    held = {"plane": {"point": [0.001, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}}
    beam = {
        "kind": "soft", "mesh": "box", "size": [0.3, 0.1, 0.1], "cells": [4, 1, 1],
        "position": [0.15, 0.0, 0.0], "E": 3e4, "nu": 0.3, "held": held,
    }  # fmt: skip
    front = {"eye": EYE.tolist(), "target": TARGET.tolist(), "K": K, "fit": False}
    height, width = SIZE
    simulate = {"frames": 6, "height": height, "width": width, "noise": ERROR, "duration": 0.15}
    return {
        "bodies": {"beam": beam},
        "cameras": {"front": front},
        "observations": {"film": {"kind": "depth", "simulate": simulate, **film}},
        "free": {"beam.E": {"start": 9e4, "bounds": [1e3, 1e6]}},
    }


def made(**film):
    return make_problem(scene_from_dict(tables(**film), "."))


@pytest.fixture(scope="module")
def twin():
    return made()


def observer_of(problem) -> DepthObserver:
    (observer,) = problem.observers
    return observer


def ray_depths(x, faces, size=SIZE):
    """Return the depths of a surface by rays through the pixels, 0 where they meet nothing."""
    ahead = (TARGET - EYE) / np.linalg.norm(TARGET - EYE)
    right = np.cross(ahead, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(ahead, right), ahead])
    v, u = np.mgrid[: size[0], : size[1]]
    pixels = np.stack([u, v, np.ones_like(u)], axis=-1).astype(float).reshape(-1, 3)
    rays = pixels @ np.linalg.inv(np.array(K)).T @ axes
    out = np.full(len(rays), np.inf)
    for a, b, c in x[faces]:  # the depth z at which eye + z ray is a + s (b - a) + t (c - a)
        matrix = np.stack([np.broadcast_to(a - b, rays.shape), np.broadcast_to(a - c, rays.shape),
                           rays], axis=2)  # fmt: skip
        solvable = np.abs(np.linalg.det(matrix)) > 1e-12
        s, t, z = np.linalg.solve(matrix[solvable], (a - EYE)[:, None])[..., 0].T
        inside = (s >= 0) & (t >= 0) & (s + t <= 1) & (z > 0)
        rows = np.flatnonzero(solvable)[inside]
        out[rows] = np.minimum(out[rows], z[inside])
    return np.where(np.isfinite(out), out, 0.0).reshape(size)


def test_drawn_depths_are_those_of_rays(twin):
    observer = observer_of(twin.problem)
    x = observer.begun["beam"]
    depths = observer._drawn({"beam": x[None]}, {})[0]
    rays = ray_depths(x, np.asarray(observer.scene.objects["beam"].faces))
    both = np.isfinite(depths) & (rays > 0.0)
    assert both.sum() > 200
    assert np.mean(np.isfinite(depths) == (rays > 0.0)) > 0.99  # but for pixels on the outline
    np.testing.assert_allclose(depths[both], rays[both], rtol=1e-9)


def test_tangent_and_cotangent_are_those_of_the_residuals(rng):
    free = {
        "beam.E": {}, "world.gravity": {}, "cameras.front.pose": {},
        "observations.film.start": {"start": 0.003},
    }  # fmt: skip
    problem = make_problem(scene_from_dict({**tables(), "free": free}, ".")).problem
    theta = problem.parameters.start.copy()
    tan = 0.1 * rng.standard_normal(theta.size)
    pushed = problem.residuals_jvp(theta, tan)
    adj = rng.standard_normal(pushed.size)
    assert np.linalg.norm(pushed) > 0.0
    assert pushed @ adj == pytest.approx(tan @ problem.residuals_vjp(theta, adj), rel=1e-10)
    _, J = problem.residuals_and_jacobian(theta)
    np.testing.assert_allclose(J @ tan, pushed, atol=1e-9 * np.abs(pushed).max())
    h = 1e-6
    ahead, behind = (problem.residuals(theta + s * h * tan) for s in (1, -1))
    off = np.abs((ahead - behind) / (2 * h) - pushed) / np.abs(pushed).max()
    # where a pixel changes its face, or is compared on one side alone, there is a kink or jump
    assert np.quantile(off, 0.99) < 1e-6


def test_rows_have_exact_slopes_by_the_vertices(twin, rng):
    observer = observer_of(twin.problem)
    x = np.broadcast_to(observer.begun["beam"], (6, *observer.begun["beam"].shape))
    tan = {"beam": rng.standard_normal(x.shape)}
    record = observer.shown({"beam": x}, {})
    pushed = observer.residuals_jvp(record.jvp(tan, {}))
    h = 1e-6
    slopes = [
        np.subtract(*(
            observer.residuals(observer.shown({"beam": x + s * k * h * tan["beam"]}, {}).rows)
            for s in (1, -1)
        )) / (2 * k * h)
        for k in (1, 2)
    ]  # fmt: skip
    off = np.abs((4 * slopes[0] - slopes[1]) / 3 - pushed) / np.abs(pushed).max()
    there = record.rows[:, 3] > 0.0
    assert there.sum() > 1000
    assert np.quantile(off[there], 0.97) < 1e-9  # others change their face, or turn Huber's corner


def test_residuals_are_means_over_what_is_compared(twin):
    film = observer_of(twin.problem).between(np.arange(6) == 0)
    vertices = {"beam": film.begun["beam"][None]}
    z = film._drawn(vertices, {})
    observer = replace(film, depths=z + ERROR)
    r = observer.residuals(observer.shown(vertices, {}).rows)
    assert r @ r == pytest.approx(1.0, rel=1e-9)
    observer = replace(film, depths=z + 10 * ERROR)
    r = observer.residuals(observer.shown(vertices, {}).rows)
    assert r @ r == pytest.approx(2 * HUBER * 10 - HUBER**2, rel=1e-9)
    holes = z + ERROR
    holes[:, :, 40:] = np.nan
    assert replace(observer, depths=holes).is_measured.sum() < film.count
    rows = replace(observer, depths=holes).shown(vertices, {}).rows
    assert observer.residuals(rows) @ observer.residuals(rows) == pytest.approx(1.0, rel=1e-9)
    assert observer.noise(rows, observer.residuals(rows), 0) > 0.0
    nothing = replace(observer, depths=np.full_like(z, np.nan)).shown(vertices, {}).rows
    assert (observer.residuals(nothing) ** 2).sum() == pytest.approx(HUBER**2 / 2, rel=1e-9)


def test_pixels_about_edges_are_not_compared():
    z = np.ones((1, 12, 12))
    z[0, :, 6:] = 2.0  # a step
    z[0, 1:4, 0:3] = np.nan  # a hole
    z[0, 9, 9] = np.nan  # and one that has no edge
    mask = without_edges(z, jump=0.1)[0]
    assert not mask[:, 4:8].any()
    assert not mask[:6, :4].any()
    assert mask[6:, :4].all()
    assert mask[:, 8:].sum() == 4 * 12 - 1
    slope = np.broadcast_to(1.0 + 0.05 * np.arange(12), (1, 12, 12))
    assert without_edges(slope, jump=0.1).all()


def test_the_expected_noise_is_that_of_a_film_with_holes(twin, rng):
    observer = observer_of(twin.problem)
    x = observer.begun["beam"]
    z = np.repeat(observer._drawn({"beam": x[None]}, {}), 6, axis=0)
    z += ERROR * rng.standard_normal(z.shape)
    z[:3, int(np.quantile(np.nonzero(np.isfinite(z))[1], 0.7)) :] = np.nan
    observer = replace(observer, depths=z)
    rows = observer.shown({"beam": np.repeat(x[None], 6, axis=0)}, {}).rows
    compared = rows[:, 3] > 0.0
    r, expected = observer.residuals(rows), observer.expected_noise(rows)
    assert not expected[~compared].any()
    for half in np.split(np.arange(len(r)), 2):  # of the frames: with holes, and without
        compared_half = half[compared[half]]
        ratio = np.mean(r[compared_half] ** 2 / expected[compared_half])
        assert ratio == pytest.approx(1.0, rel=4 * np.sqrt(2 / len(compared_half)))
    assert expected.max() > 1.3 * expected[compared].min()


def test_the_gradient_certificate_passes(twin):
    assert check_point(twin.problem, twin.problem.parameters.start, seed=0)["verdict"] == "passed"


def test_the_bits_are_the_same_in_every_run(twin):
    theta = twin.problem.parameters.start
    np.testing.assert_array_equal(twin.problem.residuals(theta), twin.problem.residuals(theta))


def write_film(folder, rng):
    """Write 16-bit pictures of the beam by a solver in NumPy and by rays, with noise and holes."""
    scene_tables = tables()
    scene_tables["bodies"]["beam"]["cells"] = CELLS
    built = make_problem(scene_from_dict(scene_tables, ".")).problem.built
    tets, x0 = np.asarray(built.system.forces["beam"].nodes), np.asarray(built.state.x)
    mu, lam = neo_hookean.lame(3e4, 0.3)
    frames = np.rint(TIMES / STEP).astype(int)
    x, _ = rollout(
        x0, np.zeros_like(x0), neo_hookean.density_mass(x0, tets, 1000.0),
        [lambda _, x, v: neo_hookean.forces(x, v, x0, tets, mu, lam)], STEP, frames[-1],
        gravity=(0.0, -9.81, 0.0), pinned=x0[:, 0] < 0.001, frames=frames,
    )  # fmt: skip
    corners, faces = np.sort(tets[:, FACES].reshape(-1, 3)), tets[:, FACES].reshape(-1, 3)
    _, first, count = np.unique(corners, axis=0, return_index=True, return_counts=True)
    folder.mkdir()
    for k, nodes in enumerate(x):
        z = ray_depths(nodes, faces[first[count == 1]])
        z = np.where(z > 0.0, z + ERROR * rng.standard_normal(z.shape), 1.2)  # a table behind it
        z[rng.random(z.shape) < 0.01] = 0.0
        z[20:26, 30:36] = 0.0
        Image.fromarray(np.rint(1e4 * z).astype(np.uint16)).save(folder / f"{k:03d}.png")
    (folder.parent / "times.csv").write_text("\n".join(["time", *map(str, TIMES)]))


def from_file(folder, change=lambda z: z, **film):
    observer = observer_of(made().problem)
    z = change(observer.depths)
    np.savez(folder / "film.npz", times=observer.times, depth=z)
    scene_tables = tables()
    scene_tables["observations"]["film"] = {"kind": "depth", "file": "film.npz", **film}
    return make_problem(scene_from_dict(scene_tables, folder)).problem


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda z: 1e3 * z, "depths of the first frame are 1e[+]03 times those of the bodies"),
        (
            lambda z: np.where(np.arange(64) < 4, 1.0, np.nan) + 0 * np.nan_to_num(z),
            "only 0 pixels",
        ),
    ],
)
def test_depths_that_do_not_fit_the_bodies_are_refused(change, message, tmp_path):
    with pytest.raises(StudyError, match=message):
        from_file(tmp_path, change)


def test_depths_in_millimetres_have_their_scale(tmp_path):
    problem = from_file(tmp_path, lambda z: 1e3 * z, scale=1e-3)
    theta = np.log([3e4])
    assert problem.loss_at(theta) == pytest.approx(made().problem.loss_at(theta), rel=1e-6)


def test_E_is_found_from_a_film_of_another_solver_with_noise_and_holes(rng, tmp_path):
    write_film(tmp_path / "depth", rng)
    scene_tables = tables()
    scene_tables["bodies"]["beam"]["cells"] = CELLS
    film = {"kind": "depth", "file": "depth", "scale": 1e-4, "times": "times.csv"}
    scene_tables["observations"]["film"] = film
    path, run = tmp_path / "beam.toml", tmp_path / "run"
    path.write_text(tomlkit.dumps(scene_tables))
    assert preview(path, tmp_path / "preview.png") == []
    adjsim.done("run", path, "--out", run)
    result = read(run)
    (E,) = result["parameters"]
    assert E["estimate"] == pytest.approx(3e4, rel=0.05)
    assert result["verdict"]["kind"] == "found"
    low, high = E["interval"]
    assert low < 3e4 < high
    assert "Cloud and answer: film" in (run / "report.html").read_text()
