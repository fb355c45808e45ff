"""A sphere that becomes a shape: what is measured of it, and what its study leaves."""

import csv

import numpy as np
import pytest

from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from render.harmonics import harmonics
from render.orbit_camera import OrbitCamera
from studies import running
from studies.run_folder import RunFolder
from studies.shape import (
    APART,
    EVEN,
    MEASURES,
    UNEVEN,
    colored_sky,
    evenly,
    start_mesh,
    stretched_and_turned,
)
from studies.shape_measures import POINTS, chamfer, floor, overlap, silhouettes, surface_points
from studies.view import drawing_problem, view_run


TINY = (
    'mesh.shapes=["cube"]',
    "mesh.stretch=[1.0, 1.0]",
    "mesh.turn=[0.0, 0.0]",
    "start.shells=2",
    "start.radius=0.5",
    "penalty.laplacian=0.05",
    "camera.views=4",
    "image.height=16",
    "image.width=16",
    "optimizer.softness=[2.0, 1.0]",
    "optimizer.max_evaluations=20",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Run the study once, tiny."""
    folder, job = running.start("shape", TINY, tmp_path_factory.mktemp("shape") / "run", {})
    return folder, job.run(folder)


def test_points_lie_evenly_on_a_surface():
    mesh = shape("cube")
    points = surface_points(mesh, 4000)
    side = np.abs(mesh.points).max()
    np.testing.assert_allclose(np.abs(points).max(axis=1), side, rtol=1e-12)
    # each of six sides has a sixth: a binomial of 4000, within five standard deviations
    on_top = (points[:, 1] > side * (1.0 - 1e-9)).sum()
    assert abs(on_top - 4000 / 6) < 5 * np.sqrt(4000 * 5 / 36)


def test_the_distance_of_shifted_planes_is_their_shift():
    grid = np.stack(np.meshgrid([0.0, 1.0], [0.0, 1.0], [0.0]), -1).reshape(-1, 3)
    assert chamfer(grid, grid + np.array([0.0, 0.0, 0.3])) == pytest.approx(0.3)
    # of two points to one of them: there 0 and 1, back 0
    two, one = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]), np.zeros((1, 3))
    assert chamfer(two, one) == pytest.approx(0.25)


def test_the_floor_of_the_distance_is_that_of_points_drawn_twice():
    mesh = shape("cube")
    area = 6.0 * (2.0 * np.abs(mesh.points).max()) ** 2
    # mean distance to the nearest of n even points on a plane; edges change it by a few percent
    assert floor(mesh) == pytest.approx(0.5 * np.sqrt(area / POINTS), rel=0.1)


def test_a_silhouette_overlaps_itself_and_not_its_neighbour():
    mesh = shape("cube", 0.5)
    cameras = [OrbitCamera(4.0, 20.0, azimuth) for azimuth in (0.0, 120.0)]
    mine = silhouettes(mesh, cameras, (20, 20))
    higher = TriangleMesh(mesh.points + np.array([0.0, 1.2, 0.0]), mesh.faces)
    away = silhouettes(higher, cameras, (20, 20))
    assert mine.any(axis=(1, 2)).all()
    assert overlap(mine, mine) == 1.0
    assert overlap(mine, away) < 0.2
    assert overlap(mine & False, mine & False) == 0.0


def test_the_sky_gives_each_axis_a_colour_of_its_own():
    normal = np.array([0.48, -0.6, 0.64])
    shade = np.array(harmonics(tuple(normal))) @ colored_sky()
    np.testing.assert_allclose(shade, EVEN + UNEVEN * normal, rtol=1e-12)


def test_the_start_is_a_closed_sphere_and_nearly_even(rng):
    table = {"shells": 3, "radius": 0.7, "roughness": 0.0}
    mesh = start_mesh(table, rng)
    mesh.require_closed("start")
    np.testing.assert_allclose(np.linalg.norm(mesh.points, axis=1), 0.7, rtol=1e-12)
    shift = start_mesh(table | {"roughness": 0.01}, rng).points - mesh.points
    # 276 normal numbers: their spread is within five standard errors
    assert shift.std() == pytest.approx(0.007, rel=5 / np.sqrt(2 * shift.size))


def test_a_hidden_mesh_is_stretched_and_turned_within_its_bounds(rng):
    table = {"stretch": [0.8, 1.2], "turn": [0.0, 180.0], "radius": 0.7}
    mesh = shape("cube", 0.7)
    drawn = [stretched_and_turned(mesh, table, rng).points for _ in range(8)]
    edges = np.array([[0, 1], [0, 2], [0, 4]])  # of the cube, along z, y and x
    lengths = np.array([np.linalg.norm(np.diff(x[edges], axis=1)[:, 0], axis=1) for x in drawn])
    assert (lengths.max(axis=1) / lengths.min(axis=1) <= 1.2 / 0.8).all()
    assert len(np.unique(lengths.round(6), axis=0)) == 8
    for x in drawn:
        assert np.linalg.norm(x, axis=1).max() == pytest.approx(0.7)
        np.testing.assert_allclose(x.min(axis=0), -x.max(axis=0), atol=1e-12)
    as_it_is = {"stretch": [1.0, 1.0], "turn": [0.0, 0.0], "radius": 0.7}
    same = stretched_and_turned(mesh, as_it_is, rng)
    np.testing.assert_allclose(same.points, mesh.points, atol=1e-12)


def test_numbers_are_chosen_with_both_ends():
    assert evenly(3, 10).tolist() == [0, 1, 2]
    assert evenly(101, 5).tolist() == [0, 25, 50, 75, 100]


def test_the_sphere_comes_nearer_and_is_certified(finished):
    folder, text = finished
    result = folder.read_json("result.json")
    rows = {row["name"]: row for row in result["parameters"]}
    assert set(rows) == set(MEASURES)
    for row in rows.values():
        assert row["estimate"] < row["start"]
    assert rows[APART]["estimate"] < 0.15
    assert folder.read_json("certificate.json")["passed"]
    assert "surface distance = " in text


def test_the_report_shows_the_shapes_and_what_they_feel(finished):
    folder, _ = finished
    text = folder.file("report.html").read_text()
    for part in ("The shapes", "How far the shapes are apart", "Which faces feel the loss"):
        assert part in text
    rows = folder.read_json("result.json")["diagnosis"]
    assert [row["pictures"] for row in rows] == ["4 of 4", "4 of 4"]


def test_the_way_of_the_mesh_can_be_viewed(finished, tmp_path):
    folder, _ = finished
    arrays = folder.read_npz("trajectory.npz")
    assert len(arrays["vertices.mesh"]) == len(arrays["times"]) > 2
    if drawing_problem(on_screen=False):
        pytest.skip("VTK cannot draw here")
    view_run(RunFolder.open(folder.path), tmp_path / "shape.png")
    assert (tmp_path / "shape.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("mesh.stretch=[0.0, 1.0]", "`mesh.stretch` must be positive"),
        ("mesh.stretch=[1.2, 0.8]", r"`mesh.stretch` must be \[low, high\]"),
        ("mesh.turn=[0.0]", r"`mesh.turn` must have shape \(2,\)"),
        ("start.shells=0", "`start.shells` must be positive"),
        ("start.radius=0.0", "`start.radius` must be positive"),
        ("start.roughness=-1.0", "`start.roughness` must not be negative"),
        ("penalty.laplacian=-1.0", "`penalty.laplacian` must not be negative"),
        ("optimizer.method=gauss-newton", "`optimizer.method` must not be gauss-newton here"),
        ("optimizer.starts=2", "Unknown key `optimizer.starts`"),
        ("camera.distance=0.0", "`camera.distance` must be more than `mesh.radius`"),
        ("image.height=0", "`image.height` must be positive"),
    ],
)
def test_a_bad_setting_is_named(override, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        running.start("shape", (*TINY, override), tmp_path / "run", {})
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unpainted")
def test_instances_are_told_by_measures_that_are_no_relative_errors(tmp_path):
    overrides = (*TINY, "instances=2", "optimizer.max_evaluations=3")
    folder, job = running.start("shape", overrides, tmp_path / "run", {})
    text = job.run(folder)
    assert "measures over 2 instances:\n  surface distance: median" in text
    head = next(csv.reader(folder.file("instances.csv").read_text().splitlines()))
    assert head[-4:] == [*MEASURES, "reason"]
    assert "relative error" not in text
