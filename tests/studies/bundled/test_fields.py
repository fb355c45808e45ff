"""The bundled rigid bodies, balls, curtain and smoke, small: the truth is found to rounding."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjsim.meshes.shapes import SHAPES
from studies.answer.verdict import Kind
from studies.fitting.solve import solve
from studies.problem.making import make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene, to_toml


FILM = "observations.film.simulate"
SIZE = (f"{FILM}.height=24", f"{FILM}.width=32", "search.levels=3")
BALL = (*SIZE, "bodies.ball.cells=[1]", "world.dt=4e-3", f"{FILM}.frames=8")
TOYS = {
    "rigid-mass": (*SIZE, "world.dt=2e-3", "search.coarse=4"),
    "rigid-contact": (*SIZE, "world.dt=2e-3", "search.coarse=32", f"{FILM}.frames=10"),
    "pushed-cube": (*SIZE, "search.coarse=4"),
    "ball-material": ("bodies.ball.cells=[1]", "bodies.ball.position=[-1.0, 1.02, 0.0]",
                      "truth.ball.mass_factors={between=[0.5, 1.5], shape=[13]}"),
    "ball-stiffness": BALL,
    "cloth-velocity": (f"{FILM}.height=24", f"{FILM}.width=36", "world.dt=2e-3"),
    "smoke-flow": ("bodies.smoke.waves=1", "truth.smoke.waves={normal=0.05, shape=[4, 2]}",
                   "free.smoke.waves.start={normal=0.005, shape=[4, 2]}", f"{FILM}.duration=0.3",
                   f"{FILM}.frames=3", "search.levels=3"),
}  # fmt: skip


def file_of(name, *overrides, instance=0):
    """An instance of a bundled scene."""
    return instance_of(read_scene(BUNDLED / f"{name}.toml", (*TOYS[name], *overrides)), 0, instance)


@pytest.mark.parametrize("name", TOYS)
def test_the_truth_is_found_to_rounding(tmp_path, name):
    file = file_of(name)
    twin = make_problem(file)
    with EvaluationProgress(file.search.max_evaluations) as progress:
        solved = solve(twin, file.search, RunFolder(tmp_path), progress)
    parameters = solved.problem.parameters
    errors = twin.truth.errors(parameters.paths, parameters.natural(solved.result.theta))
    assert errors.max() < 1e-9
    assert twin.truth.errors(parameters.paths, parameters.natural(parameters.start)).max() > 0.1
    assert solved.verdict.kind is Kind.FOUND


def test_an_instance_is_pure_data():
    for name in ("rigid-mass", "ball-stiffness", "cloth-velocity"):
        file = file_of(name, instance=3)
        assert file.draw is None
        assert "draw" not in to_toml(file)
        assert file_of(name, instance=3) == file
        assert file_of(name, instance=4) != file


@pytest.mark.parametrize("instance", [0, 5, 15])
def test_rigid_bodies_are_drawn_as_told(instance):
    names = list(SHAPES)
    for name in ("rigid-mass", "rigid-contact"):
        file = file_of(name, instance=instance)
        body = file.bodies["body"]
        assert body.mesh == f"shape:{names[instance % len(names)]}"
        assert min(body.scale) >= 0.8
        assert max(body.scale) <= 1.2
        problem = make_problem(file).problem
        (hull,) = problem.motion_at(problem.parameters.start).system.bodies.values()
        turned = Rotation.from_rotvec(body.rotation, degrees=True)
        points = np.asarray(body.position) + hull.arms[hull.hull]
        height = 1.0 if name == "rigid-mass" else 0.0
        assert points[:, 1].min() == pytest.approx(height + 0.1, abs=1e-9)
        if name == "rigid-mass":
            (lowest,) = file.pushes["hit"].nodes
            assert np.argmin(points[:, 1]) == lowest
            assert body.velocity == (0.0, 0.0, 0.0)
        else:
            assert 1.0 <= body.velocity[0] <= 2.0
            assert np.abs(turned.inv().apply(body.spin)).max() <= 1.0


def test_without_a_known_force_mass_and_contacts_scale_together():
    twin = make_problem(file_of("rigid-contact", "pushes.wind.force=[0.0, 0.0, 0.0]"))
    theta = twin.problem.parameters.theta(twin.truth.flat(twin.problem.parameters.paths))
    _, jacobian = twin.problem.residuals_and_jacobian(theta)
    _, values, directions = np.linalg.svd(jacobian, full_matrices=False)
    assert values[-1] < 1e-10 * values[0]
    # logarithms of mass, stiffness, damping and slope of friction alike; friction is a ratio
    together = np.array([1.0, 1.0, 1.0, 1.0, 0.0]) / 2.0
    assert abs(directions[-1] @ together) == pytest.approx(1.0, abs=1e-6)


def test_a_curtain_thrown_in_another_way_has_another_film():
    file = file_of("cloth-velocity")
    still = replace(file, truth={"curtain.node_velocity": 0.0})
    films = [make_problem(scene).problem.targets for scene in (file, still)]
    assert np.abs(films[0] - films[1]).max() > 0.1


def test_smoke_drifts_towards_a_picture():
    small = (
        "search.levels=3",
        "bodies.smoke.waves=2",
        "free.smoke.waves.start={normal=0.002, shape=[12, 2]}",
    )
    file = instance_of(
        read_scene(BUNDLED / "smoke.toml", (*small, "observations.picture.start=0.6")), 0
    )
    problem = make_problem(file).problem
    theta = problem.parameters.start
    loss, gradient = problem.loss_and_gradient(theta)
    step = 1e-2 * gradient / np.linalg.norm(gradient)
    assert problem.loss_at(theta - step) < loss
