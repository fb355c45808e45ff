"""The solvers of the test films against closed forms, their drawing, and the table."""

import copy
import json
import tomllib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import pyvista
import tomlkit

from benchmarks.films import (
    drawing,
    hulls,
    making,
    meshes,
    pulling,
    shape_cover,
    solver_bounces,
    solver_cloth,
    solver_rigid,
    solver_soft,
    touching,
    views,
    wrong,
)
from benchmarks.films.films import FILMS, variations
from benchmarks.films.making import make, misjudged, scene_file
from benchmarks.films.pulling import make_pulled
from benchmarks.films.small import CASES, make_case
from benchmarks.films.solver_bricks import Bricks, bricks
from benchmarks.films.table import rows_of, table
from studies.problem.carving import hull
from studies.runs.media import write_video
from studies.scene.reading import read_scene


G = np.array([0.0, -9.81, 0.0])
UP = np.array([0.0, 1.0, 0.0])
OMEGA = np.pi / 2 / 0.4 * np.sqrt(1e5 / 1000.0)  # of the bar's first mode [rad/s]


def bar(energy="log", **more):
    points, tets = meshes.box((0.4, 0.05, 0.05), (12, 1, 1))
    held = points[:, 0] < -0.199
    values = {"E": 1e5, "nu": 0.0, "density": 1000.0, "energy": energy, **more}
    return solver_soft.Solid(points=points, tets=tets, held=held, **values)


def ringing(solid):
    """Return the velocities of the first mode along the bar, 2 cm/s at its tip."""
    return 0.02 * np.sin(np.pi / 2 * (solid.points[:, :1] + 0.2) / 0.4) * [1.0, 0.0, 0.0]


def tip(solid, frames):
    end = np.argmax(solid.points[:, 0])
    return frames[:, end, 0] - solid.points[end, 0]


def sheet(bending=None, n=12, **more):
    points, triangles = meshes.sheet((0.3, 0.1), (n, 4))
    values = {"E": 1e5, "nu": 0.3, "thickness": 2e-3, "density": 500.0, "bending": bending, **more}
    return solver_cloth.Sheet(
        points=points, triangles=triangles, held=points[:, 0] < -0.14, **values
    )


def slopes(energy, x, direction, eps=1e-6):
    return (energy(x + eps * direction) - energy(x - eps * direction)) / (2 * eps)


@pytest.mark.parametrize("energy", solver_soft.ENERGIES)
def test_forces_of_a_solid_are_the_slopes_of_its_energy(energy):
    rng = np.random.default_rng(1)
    solid = bar(energy, nu=0.3)
    x = solid.points + 0.005 * rng.normal(size=solid.points.shape)
    direction = rng.normal(size=x.shape)
    forces = solid.forces()(x, np.zeros_like(x))
    slope = slopes(lambda y: solver_soft.energy(solid, y), x, direction)
    assert (forces * direction).sum() == pytest.approx(-slope, rel=1e-6)


@pytest.mark.parametrize(
    ("energy", "consistent"), [("log", False), ("volume", True), ("stvk", False)]
)
def test_a_bar_rings_with_the_frequency_of_its_wave(energy, consistent):
    solid, times = bar(energy, consistent=consistent), np.linspace(0.0, 0.2, 101)
    frames = solver_soft.simulate(solid, solid.points, ringing(solid), times, gravity=0 * G)
    expected = 0.02 / OMEGA * np.sin(OMEGA * times)
    assert abs(tip(solid, frames) - expected).max() < 0.03 * 0.02 / OMEGA


def test_a_solid_that_slides_on_the_floor_stops_where_coulomb_says():
    points, tets = meshes.box((0.1, 0.04, 0.1), (2, 1, 2))
    held = np.zeros(len(points), bool)
    solid = solver_soft.Solid(points=points, tets=tets, E=1e5, nu=0.3, density=1e3, held=held)
    x, v = points + 0.02 * UP, np.broadcast_to([0.8, 0.0, 0.0], points.shape)
    times = np.linspace(0.0, 0.5, 11)
    touch = partial(touching.hit_floor, height=0.0, friction=0.3)
    frames = solver_soft.simulate(solid, x, v.copy(), times, gravity=G, touch=touch)
    assert (frames[-1] - x)[:, 0].mean() == pytest.approx(0.8**2 / (2 * 0.3 * 9.81), rel=0.03)
    assert frames[..., 1].min() > -1e-9


def test_a_sheet_that_meets_a_sphere_stays_on_it_and_slides_where_it_is_smooth():
    points, triangles = meshes.sheet((0.1, 0.1), (4, 4))
    cloth = solver_cloth.Sheet(
        points=points, triangles=triangles, E=2e4, nu=0.3, thickness=2e-3, density=200.0,
        held=np.zeros(len(points), bool),
    )  # fmt: skip
    x, times = points + np.array([0.05, 0.21, 0.0]), np.linspace(0.0, 0.2, 11)
    ways = []
    for friction in (0.0, 1.0):
        touch = partial(touching.hit_sphere, center=0 * G, radius=0.2, friction=friction)
        frames = solver_soft.simulate(cloth, x, 0 * x, times, gravity=G, touch=touch)
        assert np.linalg.norm(frames, axis=2).min() > 0.2 - 1e-4
        ways.append((frames[-1] - x)[:, 0].mean())
    assert ways[1] < 0.3 * ways[0]


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_balls_that_collide_keep_their_momentum_and_do_not_go_through_each_other(friction):
    points, tets = meshes.ball()
    n, held = len(points), np.zeros(len(points), bool)
    balls = solver_soft.Solids(
        [
            solver_soft.Solid(points=points, tets=tets, E=E, nu=0.3, density=1e3, held=held)
            for E in (5e4, 1e5)
        ]
    )
    x = np.concatenate([points, points + np.array([0.21, 0.06, 0.0])])
    v = np.repeat([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], n, axis=0)
    mass, faces = balls.masses(), meshes.skin(tets)
    touch = touching.Surfaces((faces, n + faces), 1 / mass, friction)
    times = np.linspace(0.0, 0.1, 11)
    frames = solver_soft.simulate(balls, x, v, times, gravity=0 * G, touch=touch)
    assert mass @ frames[-1] == pytest.approx(mass @ x, abs=1e-12)
    moves = np.diff(frames, axis=0) / 0.01
    assert moves[-1, :n, 0].mean() < -0.2  # they bounce
    gaps = touching.nearest(frames[5], np.unique(faces), n + faces, np.inf)[3]
    assert -1e-3 < gaps.min() < 1e-3


def test_the_nearest_point_of_a_triangle_is_found_in_each_region():
    a, b, c = np.array([0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    for at, expected in (
        ((-1.0, -1.0, 0.5), (1, 0, 0)),
        ((2.0, -0.5, 0.0), (0, 1, 0)),
        ((-0.5, 3.0, 1.0), (0, 0, 1)),
        ((0.25, -1.0, 0.0), (0.75, 0.25, 0)),
        ((-1.0, 0.25, 0.0), (0.75, 0, 0.25)),
        ((1.0, 1.0, 0.0), (0, 0.5, 0.5)),
        ((0.25, 0.25, 1.0), (0.5, 0.25, 0.25)),
    ):
        assert touching.on_triangle(np.array(at), a, b, c) == pytest.approx(expected)


def test_viscosity_damps_a_bar():
    solid, times = bar(viscosity=400.0), np.linspace(0.0, 0.2, 101)
    frames = solver_soft.simulate(solid, solid.points, ringing(solid), times, gravity=0 * G)
    rate = 400.0 / 1000.0 * (np.pi / 2 / 0.4) ** 2
    omega = np.sqrt(OMEGA**2 - rate**2)
    expected = 0.02 / omega * np.exp(-rate * times) * np.sin(omega * times)
    assert abs(tip(solid, frames) - expected).max() < 0.03 * 0.02 / OMEGA


def test_forces_of_a_sheet_are_the_slopes_of_its_energy():
    rng = np.random.default_rng(2)
    cloth = sheet(bending=1e-3)
    x = cloth.points + 0.002 * rng.normal(size=cloth.points.shape)
    direction = rng.normal(size=x.shape)
    slope = slopes(cloth.energy, x, direction, 1e-7)
    assert (cloth.forces(x) * direction).sum() == pytest.approx(-slope, rel=1e-5)


def test_a_rolled_sheet_has_the_bending_energy_of_a_cylinder():
    cloth = sheet(bending=2e-3, n=30)
    radius, along = 0.2, cloth.points[:, 0]
    x = cloth.points.copy()
    x[:, 0], x[:, 1] = radius * np.sin(along / radius), radius * (1 - np.cos(along / radius))
    bent = cloth.rigidity / 2 * (x * (cloth.bending_matrix @ x)).sum()
    inner = (0.3 - 0.3 / 30) * 0.1  # there is no curvature at the boundary
    assert bent == pytest.approx(2e-3 / 2 / radius**2 * inner, rel=0.03)


def test_a_hanging_sheet_keeps_its_energy():
    cloth = sheet(bending=2e-3)
    times = np.linspace(0.0, 0.3, 61)
    frames = solver_soft.simulate(
        cloth, cloth.points, np.zeros_like(cloth.points), times, gravity=G
    )
    v = (frames[2:] - frames[:-2]) / (times[2] - times[0])
    mass = cloth.masses()
    kinetic = (mass[:, None] * v**2).sum((1, 2)) / 2
    total = kinetic - mass @ frames[1:-1] @ G + [cloth.energy(x) for x in frames[1:-1]]
    assert np.ptp(total) < 0.02 * kinetic.max()


def test_mass_properties_of_a_box():
    points, tets = meshes.box((0.2, 0.1, 0.4), (1, 1, 1))
    volume, centre, inertia = solver_rigid.mass_properties(
        points + np.arange(1.0, 4.0), meshes.skin(tets)
    )
    assert volume == pytest.approx(0.008)
    assert centre == pytest.approx([1, 2, 3])
    assert inertia == pytest.approx(0.008 / 12 * np.diag([0.17, 0.2, 0.05]), abs=1e-12)


def test_a_thrown_body_flies_on_a_parabola_and_precesses():
    inertia, times = np.diag([2.0, 2.0, 1.0]), np.linspace(0.0, 2.0, 5)
    start = {"velocity": np.array([1.0, 2.0, 0.0]), "spin": np.array([0.5, 0.0, 3.0])}
    way, turns = solver_rigid.throw(inertia, start, times, G)
    assert way[-1] == pytest.approx([2.0, 4.0 - 2 * 9.81, 0.0])
    momentum = inertia @ start["spin"]
    axis = np.array([turn.apply([0.0, 0.0, 1.0]) for turn in turns])
    rate = np.linalg.norm(momentum) / 2.0  # the axis goes around the momentum at |L|/I
    direction = momentum / np.linalg.norm(momentum)
    along = axis[0] @ direction * direction
    across = axis[0] - along
    phase = rate * times[:, None]
    around = np.cos(phase) * across + np.sin(phase) * np.cross(direction, across)
    assert axis == pytest.approx(along + around, abs=1e-7)


def test_a_box_slides_to_rest_where_coulomb_says():
    points, tets = meshes.box((0.1, 0.02, 0.1), (1, 1, 1))
    volume, _, inertia = solver_rigid.mass_properties(points, meshes.skin(tets))
    x = points + 0.01 * UP
    centre = 0.01 * UP
    start = {"centre": centre, "velocity": np.array([0.6, 0.0, 0.0]), "spin": np.zeros(3)}
    times = np.linspace(0.0, 0.3, 4)
    kinds = {"gravity": G, "floor": 0.0, "friction": 0.3}
    frames = solver_rigid.slide(x, inertia / volume, start, times, **kinds)
    assert (frames[-1] - x)[:, 0] == pytest.approx(0.6**2 / (2 * 0.3 * 9.81), rel=0.01)
    assert (frames[-1] - x)[:, 1] == pytest.approx(0.0, abs=1e-4)


def test_pendula_swing_with_their_periods_and_keep_their_energy():
    undamped = {"mass": np.ones(1), "damping": np.zeros(1)}
    times = np.array([0.0, np.pi * np.sqrt(0.5 / 9.81)])
    half = solver_rigid.pendulum(np.array([0.5]), np.array([0.01]), times, **undamped)
    assert half[1, 0] == pytest.approx(-0.01, rel=1e-4)
    length, mass = np.array([0.3, 0.2]), np.array([0.2, 0.1])
    times = np.linspace(0.0, 1.0, 2001)
    q = solver_rigid.pendulum(length, np.array([1.0, 0.2]), times, mass=mass, damping=np.zeros(2))
    links = length[:, None] * np.stack([np.sin(q), -np.cos(q)], 1).transpose(0, 2, 1)
    places = np.cumsum(links.reshape(-1, 2, 2), axis=1)
    v = (places[2:] - places[:-2]) / (times[2] - times[0])
    energy = (mass[:, None] * v**2).sum((1, 2)) / 2 + 9.81 * places[1:-1, :, 1] @ mass
    assert np.ptp(energy) < 1e-4


BAR = (np.array([0.15, 0.0]), np.array([0.3, 0.0]), np.array([0.15, 0.0]))  # arms of two bars


def test_links_keep_their_energy_and_swing_with_the_period_of_a_bar():
    free = {"viscous": (0.0, 0.0), "dry": (0.0, 0.0)}
    times = np.linspace(0.0, 1.0, 2001)
    masses, inertia = (0.5, 0.3), (0.5 * 0.3**2 / 12, 0.3 * 0.3**2 / 12)
    q = solver_rigid.links(BAR, masses, inertia, times, **free)
    links = 0.15 * np.stack([np.cos(q), np.sin(q)], 2)
    places = np.stack([links[:, 0], 2 * links[:, 0] + links[:, 1]], 1)
    v, rates = ((a[2:] - a[:-2]) / (times[2] - times[0]) for a in (places, q))
    kinetic = (np.array(masses)[:, None] * v**2).sum((1, 2)) + rates**2 @ inertia
    assert np.ptp(kinetic / 2 + 9.81 * places[1:-1, :, 1] @ masses) < 1e-4
    # A bar without a second one falls from the side to the other one in half a period:
    # 4 sqrt(J/(m g c)) K(1/2), of which the half is 2 K sqrt(2 l/(3 g)).
    half = 2 * 1.8540746773 * np.sqrt(0.6 / (3 * 9.81))
    alone = solver_rigid.links(BAR, (0.5, 1e-9), inertia, np.array([0.0, half]), **free)
    assert alone[-1, 0] == pytest.approx(-np.pi, abs=1e-3)


def test_friction_of_hinges_takes_the_energy_that_it_should():
    arms, masses, times = BAR, (0.5, 0.3), np.linspace(0.0, 20.0, 3)
    inertia = (0.5 * 0.3**2 / 12, 0.3 * 0.3**2 / 12)
    rest = solver_rigid.links(arms, masses, inertia, times, viscous=(0.1, 0.0), dry=(0.0, 0.05))[-1]
    # The elbow sticks below what its dry friction can hold, m g c sin(angle).
    assert abs(np.sin(rest[1] + np.pi / 2)) < 0.05 / (0.3 * 9.81 * 0.15) + 1e-3
    assert rest[0] == pytest.approx(-np.pi / 2, abs=0.1)


def test_a_film_shows_a_ball_where_the_camera_sees_it():
    points, tets = meshes.box((0.2, 0.2, 0.2), (2, 2, 2))
    surfaces, looks = [(points[None], meshes.skin(tets))], [{"color": (1.0, 0.0, 0.0)}]
    camera = {"eye": [0.1, 0.0, 2.0], "target": [0.1, 0.0, 0.0], "fov_y": 30.0}
    shot = drawing.Shot(background=(0.0, 0.0, 1.0))
    frame = drawing.draw(surfaces, looks, camera, shot, seed=0)[0]
    rows, columns = np.nonzero(frame[..., 2] < 128)
    pixels = 120 / np.tan(np.deg2rad(15.0)) / 1.9  # a metre at the near face, which is at z = 0.1
    assert np.ptp(rows) + 1 == pytest.approx(0.2 * pixels, abs=1.5)
    assert columns.min() == pytest.approx(160 - 0.2 * pixels, abs=1.5)


def test_a_misjudged_camera_is_off_by_at_most_one_per_cent_and_one_degree():
    camera = {"eye": [0.0, 0.0, 2.0], "target": [0.0, 0.0, 0.0], "fov_y": 30.0}
    for k in range(20):
        off = misjudged(camera, np.random.default_rng(k))
        eye, view = np.array(off["eye"]), np.subtract(off["target"], off["eye"])
        assert 0.005 < np.linalg.norm(eye - camera["eye"]) / 2.0 < 0.0101
        cosine = -view[2] / np.linalg.norm(view)
        assert 0.45 < np.rad2deg(np.arccos(cosine)) < 1.01
        assert 0.004 < abs(off["fov_y"] / 30.0 - 1) < 0.0101


def test_bricks_have_the_stress_of_an_even_strain(rng):
    points, cells = bricks((0.1, 0.04, 0.02), (3, 2, 1))
    F = np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    forces = Bricks(points, cells, 1e6, 0.4).forces(points @ F.T)
    mu, lam = 1e6 / 2.8, 1e6 * 0.4 / (1.4 * 0.2)
    P = mu * F + (lam * np.log(np.linalg.det(F)) - mu) * np.linalg.inv(F).T
    inside = (np.abs(points) < [0.049, 0.019, 0.009]).all(axis=1)
    np.testing.assert_allclose(forces[inside], 0.0, atol=1e-9 * np.abs(forces).max())
    np.testing.assert_allclose(forces.T @ points, P * 0.1 * 0.04 * 0.02, rtol=1e-9)


def test_the_stiffness_of_bricks_is_the_slope_of_their_forces(rng):
    points, cells = bricks((0.1, 0.02, 0.02), (2, 1, 1))
    solid = Bricks(points, cells, 1e6, 0.3)
    x, tan = points + 1e-4 * rng.standard_normal(points.shape), rng.standard_normal(points.shape)
    slope = (solid.forces(x + 1e-7 * tan) - solid.forces(x - 1e-7 * tan)) / 2e-7
    pushed = (solid.stiffness(x) @ tan.ravel()).reshape(-1, 3)
    np.testing.assert_allclose(pushed, slope, atol=1e-7 * np.abs(slope).max())


def test_a_pulled_bar_has_a_scene_file_and_the_force_of_its_strain(tmp_path, monkeypatch):
    monkeypatch.setattr(pulling, "CELLS", (6, 1, 1))
    make_pulled(tmp_path / "pulled-bar")
    _, force = np.loadtxt(tmp_path / "pulled-bar" / "load.csv", delimiter=",", skiprows=1).T
    assert force[0] == pytest.approx(1.2e6 * 0.02**2 * 0.01, rel=0.1)
    assert (np.diff(force, n=2) < 0.1).all()  # it becomes thinner; the noise is 0.05 N
    file = read_scene(tmp_path / "pulled-bar" / "scene.toml")
    assert set(file.free) == set(pulling.TRUTH)
    assert [row.start.tolist() for row in rows_of(tmp_path / "pulled-bar", "scene.toml")] == [
        [file.bodies["bar"].E], [file.bodies["bar"].nu],
    ]  # fmt: skip


def test_there_are_enough_films_and_each_starts_off_the_truth():
    assert len({film.name for film in FILMS}) == len(FILMS) >= 14
    assert len({film.name for film in variations()}) == 50
    for film in FILMS:
        scene = scene_file(film, 0)
        for path, parameter in film.free.items():
            low, high = scene["free"][path]["bounds"]
            assert np.all(
                (np.ravel(parameter["start"]) >= low) & (np.ravel(parameter["start"]) <= high)
            )


@pytest.mark.parametrize("name", ["two-balls", "cloth-sphere", "links"])
def test_films_of_contact_and_joints_have_scene_files_that_are_read(name, tmp_path):
    film = next(film for film in FILMS if film.name == name)
    make(replace(film, shot=replace(film.shot, n_frames=2)), tmp_path)
    scene = read_scene(tmp_path / "scene.toml")
    bodies = read_scene(tmp_path / "positions.toml").observations.values()
    assert [observation.body for observation in bodies] == [*scene.bodies]


def test_a_film_comes_with_all_that_a_user_has(tmp_path):
    film = next(film for film in FILMS if film.name == "rigid-throw")
    make(replace(film, shot=replace(film.shot, n_frames=3)), tmp_path)
    scene = read_scene(tmp_path / "scene.toml")
    assert read_scene(tmp_path / "positions.toml").observations.keys() == {"positions"}
    assert scene.bodies["cuboid"].velocity == (0.3, 1.3, 0.0)
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert truth["parameters"]["cuboid.velocity"] == [0.9, 2.6, 0.2]


def test_the_table_reads_results(tmp_path):
    truth = {"parameters": {"a.E": 10.0, "a.velocity": [1.0, 0.0]}, "law": "same"}
    truth["start"] = {"a.E": 30.0, "a.velocity": [0.0, 0.0]}
    result = {
        "verdict": {"kind": "found", "reason": ""},
        "parameters": [
            {"name": "a.E", "estimate": 10.2, "interval": [9.9, 10.5]},
            {"name": "a.velocity[0]", "estimate": 1.5, "interval": [1.2, 1.8]},
            {"name": "a.velocity[1]", "estimate": 0.0, "interval": [-0.1, 0.1]},
        ],
    }
    run = tmp_path / "film" / "run-scene"
    run.mkdir(parents=True)
    (tmp_path / "film" / "truth.json").write_text(json.dumps(truth))
    (run / "result.json").write_text(json.dumps(result))
    first, second = rows_of(tmp_path / "film", "scene.toml")
    assert first.error == pytest.approx(0.02)
    assert first.covers == [True]
    assert second.error == pytest.approx(0.5)
    assert second.covers == [False, True]
    text = table([first, second])
    assert "0 of 1 films" in text
    assert "more than 20 % off: film." in text
    assert "truth: 2 of 3" in text


def test_wrong_films_declare_one_thing_wrongly(tmp_path):
    for name in wrong.FILMS:
        folder = tmp_path / "films" / name
        folder.mkdir(parents=True)
        body = {"kind": "pendulum" if name == "pendulum" else "soft", "scale": 0.5}
        scene = {
            "bodies": {"it": body},
            "cameras": {"front": {"fov_y": 40.0}},
            "observations": {"film": {"video": "film.mp4"}},
        }
        (folder / "scene.toml").write_text(tomlkit.dumps(scene))
        (folder / "truth.json").write_text('{"parameters": {}}')
        write_video(folder / "film.mp4", np.zeros((3, 16, 16, 3)), fps=25.0)
    names = list(wrong.make_wrong(tmp_path / "films", tmp_path / "wrong"))
    assert len(names) == len(set(names)) == 6 * 6 - 3
    changed = [
        tomllib.loads((tmp_path / "wrong" / name / "scene.toml").read_text()) for name in names
    ]
    scales = [scene["bodies"]["it"]["scale"] for scene in changed]
    rates = [scene["observations"]["film"].get("fps", 25.0) for scene in changed]
    views = [scene["cameras"]["front"]["fov_y"] for scene in changed]
    assert all(
        (scale != 0.5) + (rate != 25.0) + (view != 40.0) == 1
        for scale, rate, view in zip(scales, rates, views, strict=True)
    )


@pytest.mark.parametrize("name", CASES)
def test_in_a_small_case_the_film_or_the_scene_file_differs(name):
    case = CASES[name]
    film = next(film for film in FILMS if film.name == case.film)
    filmed = case.filmed(film)
    scene = scene_file(filmed, 0)
    declared = copy.deepcopy(scene)
    case.scene(declared)
    assert (declared != scene) != (filmed is not film)


def test_a_small_case_has_a_scene_file_that_lacks_what_is_filmed(tmp_path):
    folder = make_case("no-damping", tmp_path)
    scene = read_scene(folder / "scene.toml")
    assert scene.bodies["pendulum"].damping is None
    assert [*scene.free] == ["pendulum.length"]
    truth = json.loads((folder / "truth.json").read_text())
    assert truth["parameters"] == {"pendulum.length": [0.5]}
    assert truth["wrong"] == "no damping"


def test_drag_slows_a_thrown_body():
    start = {"velocity": np.array([1.0, 2.0, 0.0]), "spin": np.zeros(3)}
    times = np.linspace(0.0, 1.0, 20001)
    way, _ = solver_rigid.throw(np.eye(3), start, times, G, drag=0.7)
    v = np.gradient(way, times, axis=0)
    rate = np.gradient(v, times, axis=0)
    assert rate[9:-9] == pytest.approx((G - 0.7 * v)[9:-9], abs=1e-3)


def test_nodes_leave_a_floor_with_part_of_their_speed():
    x, v = np.array([[0.0, 1e-4, 0.0]]), np.array([[0.0, -2.0, 0.0]])
    touching.hit_floor(x, v, 1e-3, height=0.0, friction=0.0, restitution=0.5)
    assert v == pytest.approx(np.array([[0.0, 1.0, 0.0]]))


def test_a_shutter_is_open_from_the_time_of_a_frame_on():
    film = next(film for film in FILMS if film.name == "pendulum")
    shot = replace(film.shot, n_frames=3)
    (sharp,) = making.exposures(replace(film, shot=shot))
    moments = making.exposures(replace(film, shot=replace(shot, shutter=0.5)))
    frames = [moment["pendulum"][0] for moment in moments]
    assert frames[0] == pytest.approx(sharp["pendulum"][0], abs=1e-6)
    finer = replace(shot, fps=4 * shot.fps, n_frames=11)
    every = making.simulate(replace(film, shot=finer))["pendulum"][0]
    assert frames[1] == pytest.approx(every[1::4], abs=1e-6)
    assert frames[2] == pytest.approx(every[2::4], abs=1e-6)
    film = drawing.exposed([np.full((1, 2, 2, 3), n, np.uint8) for n in (0, 100, 200)])
    assert (film == 100).all()


def test_a_ball_bounces_as_high_as_its_restitution_says_and_ends_up_rolling():
    times, e, mu, radius = np.linspace(0.0, 1.5, 3001), 0.6, 0.3, 0.05
    start = {"centre": np.array([0.0, 1.0, 0.0]), "velocity": np.array([1.0, 0.0, 0.0])}
    x = solver_bounces.ball(
        radius, start | {"spin": np.zeros(3)}, times,
        gravity=np.array([0.0, -9.81, 0.0]), floor=0.0, restitution=e, friction=mu,
    )  # fmt: skip
    touch = np.sqrt(2 * (1.0 - radius) / 9.81)
    first = times > touch
    height = x[first & (times < touch + 2 * e * touch), 1].max() - radius
    assert height == pytest.approx(e**2 * (1.0 - radius), rel=1e-4)
    speed = (x[-1, 0] - x[-2, 0]) / (times[-1] - times[-2])
    assert speed == pytest.approx(5 / 7, rel=1e-6)  # it rolls: 2/7 of the speed went into spin


@pytest.mark.parametrize("friction", [0.0, 0.3, 10.0])
def test_a_corner_gives_back_a_part_of_the_work_that_was_done_on_it(friction):
    inverse, arm, e = np.diag([50.0, 60.0, 70.0]), np.array([0.04, -0.05, 0.03]), 0.5
    motion = np.array([[0.5, -2.0, 0.1], [1.0, 2.0, 3.0]])
    after = solver_bounces.struck(motion, arm, (inverse, friction, e))
    before, left = (v + np.cross(w, arm) for v, w in (motion, after))
    energy = [0.5 * v @ v + 0.5 * w @ np.linalg.solve(inverse, w) for v, w in (motion, after)]
    assert energy[1] < energy[0]
    if friction == 0.0:  # along the normal alone: Newton's restitution
        assert left[1] == pytest.approx(-e * before[1], rel=2e-3)
        push = np.array([0.0, after[0, 1] - motion[0, 1], 0.0])
        turned = inverse @ np.cross(arm, push)
        np.testing.assert_allclose(after - motion, [push, turned], atol=1e-9)
    if friction == 10.0:  # it sticks
        assert np.hypot(left[0], left[2]) < 2e-3
    held = after[0] - motion[0]
    assert np.hypot(held[0], held[2]) <= friction * held[1] + 1e-12


def test_a_bar_leaves_a_wall_with_its_restitution():
    times = np.linspace(0.0, 1.2, 12001)
    arm, mass, inertia, wall = np.array([0.13, 0.0]), 0.5, 0.012, -1.6
    angles = solver_bounces.bar(
        arm, mass, inertia, times, wall=wall, restitution=0.5, viscous=0.0, gravity=9.81
    )
    rates = np.diff(angles) / np.diff(times)
    hit = int(np.argmin(angles[:6000]))
    assert angles[hit] == pytest.approx(wall, abs=1e-3)
    fall = np.sqrt(-2 * mass * 9.81 * 0.13 * np.sin(wall) / inertia)
    assert rates[hit - 2] == pytest.approx(-fall, rel=1e-2)
    assert rates[hit + 2] == pytest.approx(0.5 * fall, rel=1e-2)


def test_scene_of_views_has_no_mesh_and_a_film_of_each_camera(tmp_path, monkeypatch):
    monkeypatch.setattr(views, "COUNTS", (3,))
    x = np.array([[0.0, 0.4, 0.0], [0.1, 0.4, 0.0], [0.0, 0.5, 0.0], [0.0, 0.4, 0.1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    frames = np.repeat(x[None], views.SHOT.n_frames, axis=0)
    body = {"density": 1000.0, **views.BODIES["bird"]}
    views.write(tmp_path, "bird", (body, (frames, faces)))
    file = read_scene(tmp_path / "scene-3.toml")
    assert file.bodies["bird"].mesh == "from-views"
    assert [len(list(tmp_path.glob("*.mp4"))), len(file.films), len(file.cameras)] == [3, 3, 3]
    truth = json.loads((tmp_path / "truth.json").read_text())["parameters"]
    assert {*truth, "bird.shape"} == file.free.keys()
    row = dict(zip(hulls.HEADER, hulls.hull_row(tmp_path, "bird", 3), strict=True))
    assert row["views"] == "3"
    assert float(row["in pixels"]) < 3.0


def test_fits_of_views_say_how_far_they_are_off(tmp_path):
    truth = {"parameters": {"bird.E": 1e5, "bird.nu": 0.3},
             "start": {"bird.E": 5e5, "bird.nu": 0.4},
             "law": "same"}  # fmt: skip
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    answers = [("bird.E", 9e4, [8e4, 9.9e4]), ("bird.nu", 0.32, [0.25, 0.35])]
    keys = ("name", "estimate", "interval", "verdict")
    entries = [dict(zip(keys, (*answer, "found"), strict=True)) for answer in answers]
    (tmp_path / "run-scene-3").mkdir()
    result = {"verdict": {"kind": "not determined"}, "parameters": entries}
    (tmp_path / "run-scene-3" / "result.json").write_text(json.dumps(result))
    rows = [dict(zip(hulls.FITS, row, strict=True)) for row in hulls.fit_rows(tmp_path, "bird", 3)]
    assert [(row["number"], row["start"], row["off"], row["holds"]) for row in rows] == [
        ("E", "5e+05", "0.046", "no"), ("nu", "0.4", "0.020", "yes"),
    ]  # fmt: skip
    assert {row["verdict"] for row in rows} == {"found"}


def test_hulls_of_cameras_at_random_are_near_the_body():
    ball = pyvista.Icosphere(radius=0.3, center=(0.1, 0.4, 0.0), nsub=4)
    first, second = (hull(shape_cover._views(ball, 5, seed), 16, "ball") for seed in (0, 1))
    for carved in (first, second):
        assert carved.surface.volume == pytest.approx(ball.volume, rel=0.05)
    assert first.surface.volume != second.surface.volume
