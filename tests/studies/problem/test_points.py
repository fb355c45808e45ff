"""Tracked points, states and residuals of one's own as observations."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from studies.answer.certificate import check_point
from studies.api import OwnResiduals, Problem, fit
from studies.problem.forward import start_surfaces
from studies.problem.making import make_problem
from studies.problem.pixels import to_pixels
from studies.problem.points import PointObserver
from studies.runs.errors import StudyError
from studies.scene.declared import (
    Camera,
    Film,
    Free,
    Held,
    Plane,
    Points,
    Scene,
    Search,
    Simulated,
    SimulatedFilm,
    Soft,
    States,
    World,
)
from studies.scene.reading import scene_from_dict


TIMES = np.linspace(0.0, 0.21, 8)
TRUTH, START = 3e4, 9e4
CORNERS = {"low": (0.3, -0.05, 0.05), "high": (0.3, 0.05, 0.05)}
SEARCH = Search(coarse=5, stages=(1.0,), held_back=0.0)


def beam(stiffness):
    """Return a small beam, held at its left end."""
    held = Held(plane=Plane(point=(0.001, 0.0, 0.0), normal=(1.0, 0.0, 0.0)))
    return Soft(
        mesh="box", size=(0.3, 0.1, 0.1), cells=(4, 1, 1), position=(0.15, 0.0, 0.0),
        E=stiffness, nu=0.3, held=held,
    )  # fmt: skip


def scene(stiffness=START):
    K = ((400.0, 0.0, 159.5), (0.0, 400.0, 119.5), (0.0, 0.0, 1.0))
    camera = Camera(eye=(0.2, 0.2, 1.2), target=(0.15, 0.0, 0.0), K=K, fit=False)
    return Scene(bodies={"beam": beam(stiffness)}, cameras={"front": camera})


@pytest.fixture(scope="module")
def truth():
    """Nodes (n_times, n_nodes, 3) and corners at the true stiffness, and the problem."""
    free = {"beam.E": Free(start=TRUTH, bounds=(1e3, 1e6))}
    residuals = OwnResiduals(TIMES, lambda s: s["beam"].reshape(len(s["beam"]), -1), no_cotangent)
    problem = Problem(scene(TRUTH), {"all": residuals}, free).make().problem
    problem = problem.with_steps_for(problem.parameters.start)
    _, motion, (at,) = problem.moment(problem.parameters.start)
    run = motion.run()
    surface = problem.built.subjects["beam"].vertices(motion, run)
    corners = {
        name: int(np.argmin(np.linalg.norm(surface[0] - place, axis=1)))
        for name, place in CORNERS.items()
    }
    vertices = at.at(surface)
    return at.at(run.x), {name: vertices[:, k] for name, k in corners.items()}, problem


def no_cotangent(surfaces, adj):
    return {"beam": adj.reshape(surfaces["beam"].shape)}


def write_points(path, points, columns):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["time", "point", *columns])
        for name, places in points.items():
            for t, place in zip(TIMES, places, strict=True):
                writer.writerow([t, name, *place])


def in_pixels(points):
    """Return points in the pixels of the camera, by pinhole arithmetic of its own."""
    camera = scene().cameras["front"]
    eye, target = np.array(camera.eye), np.array(camera.target)
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, camera.up)
    right /= np.linalg.norm(right)
    down = np.cross(ahead, right)
    K = np.array(camera.K)
    projected = (points - eye) @ np.stack([right, down, ahead]).T @ K.T
    return projected[..., :2] / projected[..., 2:]


def observations(kind, truth, folder):
    x, corners, _ = truth
    if kind == "space":
        write_points(folder / "p.csv", corners, "xyz")
        return {"marks": Points(file=str(folder / "p.csv"), body="beam")}
    if kind == "pixels":
        pixels = {name: in_pixels(places) for name, places in corners.items()}
        write_points(folder / "p.csv", pixels, "uv")
        file = str(folder / "p.csv")
        return {"marks": Points(file=file, body="beam", camera="front", at=CORNERS)}
    if kind == "states":
        np.savez(folder / "x.npz", times=TIMES, x=x)
        return {"nodes": States(file=str(folder / "x.npz"), body="beam")}
    return {"height": OwnResiduals(TIMES, *height_residuals(truth))}


def height_residuals(truth):
    """Return residuals of the mean height of the surface, and their cotangent."""
    _, _, problem = truth
    _, motion, (at,) = problem.moment(problem.parameters.start)
    heights = at.at(problem.built.subjects["beam"].vertices(motion, motion.run()))
    observed = heights[..., 1].mean(axis=1)

    def residuals(surfaces):
        return ((surfaces["beam"][..., 1].mean(axis=1) - observed) / 1e-3)[:, None]

    def vjp(surfaces, adj):
        out = np.zeros_like(surfaces["beam"])
        out[..., 1] = adj / 1e-3 / out.shape[1]
        return {"beam": out}

    return residuals, vjp


@pytest.mark.parametrize("kind", ["space", "pixels", "states", "own"])
def test_the_stiffness_is_found_from(kind, truth, tmp_path):
    free = {"beam.E": Free(bounds=(1e3, 1e6))}
    tracks = observations(kind, truth, tmp_path)
    answer = fit(Problem(scene(), tracks, free, search=SEARCH))
    assert answer.values["beam.E"] == pytest.approx(TRUTH, rel=1e-3)
    assert answer.verdict.is_found
    low, high = answer.intervals["beam.E"]
    assert low < TRUTH < high


@pytest.mark.parametrize("kind", ["space", "states", "space beside a film"])
def test_the_gradient_certificate_passes_without_pictures_and_beside_them(kind, truth, tmp_path):
    tracks = observations(kind.partition(" ")[0], truth, tmp_path)
    shown = scene()
    if "film" in kind:
        size = SimulatedFilm(height=24, width=32, frames=3, duration=TIMES[-1])
        tracks["film"] = Film(simulate=size)
        small = Camera(eye=(0.2, 0.2, 1.2), target=(0.15, 0.0, 0.0), fov_y=35.0, fit=False)
        shown = replace(shown, cameras={"front": small})
    problem = Problem(shown, tracks, {"beam.E": Free(bounds=(1e3, 1e6))}).make().problem
    point = check_point(problem, problem.parameters.start, seed=0)
    assert point["verdict"] == "passed"
    assert (point["covered_pixels"] is None) == ("film" not in kind)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Problem(scene(), None, {}), "`observations` must be a Mapping, got NoneType"),
        (lambda: Problem(None, {}, {}), "`scene` must be a Scene, got NoneType"),
        (lambda: fit(None), "`problem` must be a Problem, got NoneType"),
    ],
)
def test_what_is_no_problem_is_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_the_gradient_certificate_does_not_pass_on_a_loss_without_a_slope(truth, tmp_path):
    bodies = {"beam": beam(START), "unseen": replace(beam(START), position=(0.15, 0.0, 1.0))}
    tracks = observations("space", truth, tmp_path)
    free = {"unseen.E": Free(bounds=(1e3, 1e6))}
    problem = Problem(Scene(bodies=bodies), tracks, free).make().problem
    assert check_point(problem, problem.parameters.start, seed=0)["verdict"] == "failed"


@pytest.mark.parametrize("kind", ["space", "pixels", "own"])
def test_tangent_and_cotangent_agree(kind, truth, tmp_path):
    free = {
        "beam.E": Free(bounds=(1e3, 1e6)),
        "world.gravity": Free(),
        **{f"observations.{name}.start": Free(start=0.003) for name in ("marks",) if kind != "own"},
    }
    if kind == "pixels":
        free |= {"cameras.front.pose": Free(), "cameras.front.focal": Free()}
    problem = Problem(scene(), observations(kind, truth, tmp_path), free).make().problem
    rng = np.random.default_rng(0)
    theta = problem.parameters.start
    tan = rng.standard_normal(theta.size)
    pushed = problem.residuals_jvp(theta, tan)
    adj = rng.standard_normal(pushed.size)
    assert np.linalg.norm(pushed) > 0.0
    assert pushed @ adj == pytest.approx(tan @ problem.residuals_vjp(theta, adj), rel=1e-8)
    h = 1e-6
    differences = (problem.residuals(theta + h * tan) - problem.residuals(theta - h * tan)) / (
        2 * h
    )
    assert np.linalg.norm(differences - pushed) < 1e-5 * np.linalg.norm(pushed)


@pytest.mark.parametrize("axes", [2, 3])
def test_noise_is_that_of_what_was_measured(axes, rng):
    places = np.zeros((400, 2, axes))
    places[::2, 1] = np.nan  # a quarter of the samples is missing
    times = np.arange(400.0)
    observer = PointObserver(
        "track", 1.0, times, 0.0, times.astype(int), 0.3, places, matrix=None, object="beam"
    )
    rows = np.pad(0.5 * rng.standard_normal((800, axes)), [(0, 0), (0, 4 - axes)])
    r = observer.residuals(rows)
    measured = np.isfinite(places).all(axis=2)
    factors = observer.residuals_jvp(np.ones((800, 4))).reshape(400, 2, 3)[measured]
    expected = np.mean(np.square(0.5 * factors))
    assert observer.noise(rows, r, 0) == pytest.approx(expected, rel=0.15)


def test_pixels_are_those_of_a_pinhole(truth, tmp_path):
    problem = (
        Problem(
            scene(), observations("pixels", truth, tmp_path), {"beam.E": Free(bounds=(1e3, 1e6))}
        )
        .make()
        .problem
    )
    (observer,) = problem.observers
    points = np.random.default_rng(1).uniform(-0.1, 0.1, (5, 3)) + observer.center
    assert to_pixels(observer.camera, points - observer.center, observer.size) == pytest.approx(
        in_pixels(points), abs=1e-9
    )


def test_a_point_away_from_its_body_is_refused(tmp_path):
    write_points(tmp_path / "p.csv", {"far": np.full((8, 3), 60.0)}, "xyz")
    tables = {
        "bodies": {"cube": {"kind": "soft", "mesh": "box", "E": 1e4, "nu": 0.3}},
        "observations": {"marks": {"file": "p.csv", "body": "cube"}},
        "free": {"cube.E": {}},
    }
    with pytest.raises(ValueError, match="must have points on its body"):
        make_problem(scene_from_dict(tables, tmp_path))


@pytest.mark.parametrize(("axis", "is_held"), [(2, False), (2, True), (1, False)])
def test_tracks_that_fall_along_another_axis_are_noticed(axis, is_held, tmp_path):
    places = np.tile([0.0, 0.0, 0.1], (8, 1))
    places[:, axis] -= 0.5 * 9.81 * TIMES**2
    write_points(tmp_path / "p.csv", {"top": places}, "xyz")
    cube = {"kind": "soft", "mesh": "box", "size": [0.2, 0.2, 0.2], "E": 1e4, "nu": 0.3}
    if is_held:
        cube["held"] = {"plane": {"point": [-0.099, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}}
    tables = {
        "bodies": {"cube": cube},
        "observations": {"marks": {"file": "p.csv", "body": "cube"}},
        "free": {"cube.E": {}},
    }
    notes = make_problem(scene_from_dict(tables, tmp_path)).notes
    is_noticed = any("Check which axis points up" in note for note in notes)
    assert is_noticed == (axis == 2 and not is_held)


def test_a_point_that_is_seen_late_must_say_where_it_was_at_the_start(truth, tmp_path):
    _, corners, _ = truth
    write_points(tmp_path / "p.csv", corners, "xyz")
    lines = (tmp_path / "p.csv").read_text().splitlines()
    late = [line for line in lines if ",high," not in line or float(line.split(",")[0]) > 0.1]
    (tmp_path / "p.csv").write_text("\n".join(late))
    free = {"beam.E": Free(bounds=(1e3, 1e6))}
    points = Points(file=str(tmp_path / "p.csv"), body="beam")
    with pytest.raises(ValueError, match=r"'high' is first seen at 0.12 s, .* by `at.high = "):
        Problem(scene(), {"marks": points}, free).make()
    Problem(scene(), {"marks": replace(points, at={"high": CORNERS["high"]})}, free).make()


def carried(kind, at, **keys):
    """Return the observer of points beside a body that is 0.2 x 0.3 x 0.2 m, and its problem."""
    body = {"kind": kind, "mesh": "box", "size": [0.2, 0.3, 0.2], **keys}
    tables = {
        "bodies": {"first": {**body, "position": [1.0, 0.0, 0.0]}, "box": body},
        "observations": {"marks": {"body": "box", "at": at, "simulate": {"frames": 4}}},
        "world": {"duration": 0.2},
        "free": {"world.gravity": {}},
    }
    made = make_problem(scene_from_dict(tables, "."))
    return made.everything, made.notes


STEM = {"stem": (0.0, 0.03, 0.15), "inside": (0.05, 0.0, 0.0), "on": (0.1, 0.0, 0.0)}


@pytest.mark.parametrize("kind", ["soft", "rigid"])
def test_points_beside_a_body_and_in_it_begin_where_they_are(kind):
    keys = {"E": 1e5, "nu": 0.3, "cells": [2, 3, 2]} if kind == "soft" else {"density": 500.0}
    problem, notes = carried(kind, STEM, **keys)
    (observer,) = problem.observers
    x = start_surfaces(problem.built)["box"] if observer.object else problem.built.state.x
    np.testing.assert_allclose(observer.matrix @ x, list(STEM.values()), atol=1e-12)
    assert not any("stiff rod" in note for note in notes)
    turned = x @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(observer.matrix @ turned, [
        (-0.03, 0.0, 0.15), (0.0, 0.05, 0.0), (0.0, 0.1, 0.0)
    ], atol=1e-12)  # fmt: skip


def test_a_point_beside_a_soft_body_moves_as_its_nearest_tetrahedron(truth):
    free = {"beam.E": Free(bounds=(1e3, 1e6))}
    at = {name: (0.28, y, 0.03) for name, y in (("in", 0.049), ("on", 0.05), ("stem", 0.08))}
    points = Points(simulate=Simulated(frames=3, duration=0.2), body="beam", at=at)
    made = Problem(scene(TRUTH), {"marks": points}, free).make()
    inside, on, stem = made.everything.observers[0].places[-1]
    assert np.linalg.norm(stem - at["stem"]) > 0.01
    np.testing.assert_allclose(stem - on, 30.0 * (on - inside), atol=1e-8)


@pytest.mark.parametrize(("kind", "off"), [("soft", 0.15), ("rigid", 0.15)])
def test_a_note_says_that_a_point_stands_far_off(kind, off):
    keys = {"E": 1e5, "nu": 0.3, "cells": [2, 3, 2]} if kind == "soft" else {"density": 500.0}
    _, notes = carried(kind, {"stem": (0.0, 0.0, 0.1 + off)}, **keys)
    assert any("0.15 m off the surface" in note for note in notes)
    with pytest.raises(ValueError, match=r"must have points on its body .* 0\.4 m away"):
        carried(kind, {"stem": (0.0, 0.0, 0.5)}, **keys)


def test_a_point_off_a_thin_body_is_refused():
    with pytest.raises(ValueError, match="must have points on its body"):
        carried("cloth", {"off": (0.0, 0.0, 0.1)}, mesh="sheet", size=[0.2, 0.3], E=1e6)


def test_times_in_milliseconds_are_refused_unless_a_step_is_given(tmp_path):
    rows = [f"{time},low,0.3,-0.05,0.05\n" for time in (0, 33, 67)]
    (tmp_path / "p.csv").write_text("time,point,x,y,z\n" + "".join(rows))
    marks = {"marks": Points(file=str(tmp_path / "p.csv"), body="beam")}
    free = {"beam.E": Free()}
    with pytest.raises(StudyError, match=r"rows are 33.5 s apart\. Divide them by 1000.*`units`"):
        Problem(scene(), marks, free).make()
    slow = replace(scene(), world=World(dt=0.5))
    assert Problem(slow, marks, free).make().problem.n_frames == 3
