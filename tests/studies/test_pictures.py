"""Pictures of scenes at rest: their derivatives, and what the studies of them say."""

import io

import numpy as np
import pytest
import pyvista
from rich.console import Console

from adjsim.meshes.shapes import shape
from render.losses import Mse, PyramidMse
from render.orbit_camera import OrbitCamera
from render.scene import DirectionalLight, Mesh, Scene
from render.shape_losses import EdgeLength, Laplacian
from render.soft_raster import SoftRasterizer
from studies import config, running
from studies.errors import StudyError
from studies.noise import Noise
from studies.optimizers.problem import Status
from studies.parameters import Parameters, block, positive_block
from studies.picture_problem import PictureProblem
from studies.progress import EvaluationProgress
from studies.registry import STUDIES, RunOptions
from studies.scenery import Scenery
from studies.search.local import search
from studies.subjects import cameras_around, find_mesh, place_colors
from studies.transforms import Identity
from tests.studies.toys import TOYS


SIZE = (12, 14)


def cube_scenery(rng):
    mesh = shape("cube")
    colored = Mesh(mesh.faces, vertex_colors=place_colors(mesh.points))
    cameras = (OrbitCamera(3.0, 20.0, 30.0), OrbitCamera(3.2, -10.0, 160.0))
    points = mesh.points + 0.05 * rng.normal(size=mesh.points.shape)
    scene = Scene({"cube": colored}, {"sun": DirectionalLight((0.3, 1.0, 0.6))})
    return Scenery(scene, cameras, SoftRasterizer(1e-2), {"cube": points}, SIZE)


def cube_problem(rng, loss=None, penalties=True):
    scenery = cube_scenery(rng)
    x = scenery.vertices["cube"]
    faces = scenery.scene.objects["cube"].faces
    free = [
        block(("cube.vertices",), Identity(), [x]),
        positive_block("camera.1.fov_y", 40.0),
        block(("sun.direction",), Identity(), [np.array([0.3, 1.0, 0.6])]),
        block(("cube.ambient",), Identity(), [0.4]),
    ]
    losses = ((0.3, Laplacian(faces)), (0.1, EdgeLength(faces, 0.5)))
    targets = rng.random((2, *SIZE, 3))
    return PictureProblem(
        scenery,
        Parameters(free),
        loss or Mse(),
        targets,
        {"cube.vertices": losses} if penalties else {},
    )


def test_values_by_path_reach_what_they_name(rng):
    scenery = cube_scenery(rng)
    values = {
        "cube.vertices": 2.0 * scenery.vertices["cube"],
        "cube.vertex_colors": np.full((len(scenery.vertices["cube"]), 3), 0.3),
        "cube.ambient": 0.7,
        "sun.color": np.array([0.1, 0.2, 0.3]),
        "camera.1.distance": 5.0,
        "rasterizer.sigma": 2e-3,
    }
    changed = scenery.with_values(values)
    assert np.array_equal(changed.vertices["cube"], values["cube.vertices"])
    assert np.array_equal(changed.scene.objects["cube"].vertex_colors, values["cube.vertex_colors"])
    assert changed.scene.objects["cube"].material.ambient == 0.7
    assert np.array_equal(changed.scene.lights["sun"].color, values["sun.color"])
    assert changed.cameras[1].distance == 5.0
    assert changed.cameras[0] is scenery.cameras[0]
    assert changed.rasterizer.sigma == 2e-3


@pytest.mark.parametrize("loss", [Mse(), PyramidMse(2)])
def test_the_gradient_of_the_whole_loss_agrees_with_differences(rng, loss):
    problem = cube_problem(rng, loss)
    theta = problem.parameters.start
    value, gradient = problem.loss_and_gradient(theta)
    assert value == problem.loss_at(theta)
    assert problem.penalty(theta)[0] > 0.0
    direction = rng.normal(size=theta.size)
    direction /= np.linalg.norm(direction)
    h = 1e-5
    slope = (problem.loss_at(theta + h * direction) - problem.loss_at(theta - h * direction)) / (
        2.0 * h
    )
    # central differences: h^2 of a third derivative over sigma^(3/2), against rounding eps/h
    assert abs(slope - gradient @ direction) <= 1e-6 * np.linalg.norm(gradient)


def test_tangent_and_adjoint_of_residuals_agree(rng):
    problem = cube_problem(rng, penalties=False)
    theta = problem.parameters.start
    direction = rng.normal(size=theta.size)
    tangent = problem.residuals_jvp(theta, direction)
    adj = rng.normal(size=tangent.size)
    back = problem.residuals_vjp(theta, adj)
    size = np.linalg.norm(tangent) * np.linalg.norm(adj)
    assert abs(tangent @ adj - direction @ back) <= 1e-12 * size


def test_the_columns_of_a_jacobian_are_those_of_lone_tangents(rng):
    problem = cube_problem(rng, penalties=False)
    theta = problem.parameters.start
    r, jacobian = problem.residuals_and_jacobian(theta)
    np.testing.assert_array_equal(r, problem.residuals(theta))
    for column, direction in zip(jacobian.T, np.eye(len(theta)), strict=True):
        np.testing.assert_array_equal(column, problem.residuals_jvp(theta, direction))


def test_a_stage_widens_the_edges_and_keeps_the_targets(rng):
    problem = cube_problem(rng)
    soft = problem.at_stage(3.0)
    assert soft.scenery.rasterizer.sigma == pytest.approx(9.0 * problem.scenery.rasterizer.sigma)
    assert soft.targets is problem.targets
    assert problem.at_stage(1.0) is problem
    # sqrt(sigma) = 0.1 of half the 12 rows, three times as wide
    assert problem.name_of_stage(3.0) == "edges 1.8 pixels soft"


def test_a_problem_in_single_precision_draws_in_it(rng):
    problem = cube_problem(rng)
    single = problem.with_dtype("float32")
    assert single.images(problem.parameters.start).dtype == np.float32
    assert single.targets.dtype == np.float32
    assert problem.on_one_thread().scenery.threads == 1


def test_cameras_stand_evenly_and_take_elevations_in_turn():
    table = {"distance": 2.0, "views": 4, "azimuth": 10.0, "elevations": [0.0, 30.0], "fov_y": 40.0}
    cameras = cameras_around(table)
    assert [one.azimuth for one in cameras] == [10.0, 100.0, 190.0, 280.0]
    assert [one.elevation for one in cameras] == [0.0, 30.0, 0.0, 30.0]


def test_a_mesh_comes_from_a_file_around_the_origin(tmp_path):
    box = shape("cube")
    path = tmp_path / "part.stl"
    cells = np.hstack([np.full((len(box.faces), 1), 3), box.faces]).ravel()
    pyvista.PolyData(3.0 * box.points + (1.0, 2.0, 3.0), cells).save(path)
    mesh = find_mesh({"shapes": ["cone", str(path)], "radius": 0.5}, 1)
    assert len(mesh.faces) == len(box.faces)
    np.testing.assert_allclose(mesh.points.min(axis=0), -mesh.points.max(axis=0), atol=1e-6)
    assert np.linalg.norm(mesh.points, axis=1).max() == pytest.approx(0.5)


def test_a_file_that_is_no_whole_mesh_is_told_under_its_key(tmp_path):
    path = tmp_path / "part.obj"
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n")
    with pytest.raises(StudyError, match=r"`mesh\.shapes`: .*part\.obj, line 4: a face must name"):
        find_mesh({"shapes": [str(path)], "radius": 0.5}, 0)


@pytest.mark.usefixtures("unpainted")
def test_a_noisy_camera_gives_intervals_that_hold_the_light(tmp_path):
    noisy = ("noise.level=0.02", "noise.eight_bit=true", "noise.repeats=4")
    folder, job = running.start("light", (*TOYS["light"].overrides, *noisy), tmp_path / "run", {})
    job.run(folder)
    covered = folder.read_json("result.json")["coverage"]["covered"]
    # 27 intervals at 95 % under 4 seeds: fewer than 90 of 108 has a chance below 1e-5
    assert len(covered) == 27
    assert sum(covered.values()) >= 90


def test_wide_edges_bring_a_camera_home_where_sharp_ones_end_in_a_wrong_place(tmp_path):
    small = ("image.height=24", "image.width=24", "loss.levels=3", "optimizer.starts=1")
    missed = {}
    for factors in ("[1.0]", "[3.0, 1.0]"):
        given = ('mesh.shapes=["chair"]', *small, f"optimizer.softness={factors}")
        folder, job = running.start("camera", given, tmp_path / factors, {})
        progress = EvaluationProgress(400, Console(file=io.StringIO()))
        found = search(job.problem, job.search, folder, progress, seed=(0, 0))
        assert found.best.status is Status.CONVERGED
        missed[factors] = job.errors(found.best.theta)["rotation"]["mean"]
    assert missed["[1.0]"] > 0.1  # rad: from there, too, the chair looks much like that
    assert missed["[3.0, 1.0]"] < 1e-8


def test_a_start_out_of_reach_is_diagnosed():
    overrides = (*TOYS["camera"].overrides, "start.shift=[0.9, 0.9]", "bounds.translation=9.0")
    settings = config.resolve("camera", overrides).values
    fit = STUDIES["camera"].prepare(settings, RunOptions(seed=2))
    facts = fit.facts()
    assert facts["diagnosis"][-1]["reason"] != "its gradient is not zero"
    assert facts["advice"]


def test_noise_leaves_clean_images_alone(rng):
    images = rng.random((1, 3, 4, 4))
    assert Noise(0.0, False).apply(images, rng) is images
    rounded = Noise(0.0, True).apply(images, rng)
    assert rounded.shape == (1, 3, 4, 3)
    np.testing.assert_allclose(255.0 * rounded, np.rint(255.0 * images[..., :3]), atol=1e-12)
