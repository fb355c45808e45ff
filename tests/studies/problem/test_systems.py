"""Smoke as an observation, time series of a body, and the motion reflected in depth."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from studies.api import simulate
from studies.fitting.solve import mirrored
from studies.problem.making import make_problem
from studies.scene.reading import scene_from_dict
from studies.scene.series import Series
from tests.studies.problem import scenes


def test_a_film_of_smoke_has_the_gradient_of_its_velocity(tmp_path):
    y, x = np.mgrid[:16, :16]
    density = np.exp(-((x - 6) ** 2 + (y - 8) ** 2) / 8.0)

    def write(path, picture):
        Image.fromarray((255 * picture).astype(np.uint8)).convert("RGB").save(path)

    write(tmp_path / "d.png", density)
    (tmp_path / "film").mkdir()
    for k in range(4):
        write(tmp_path / f"film/{k:03d}.png", np.roll(density, k, axis=1))
    tables = {
        "bodies": {"s": {"kind": "smoke", "density": "d.png", "steps_per_second": 20.0}},
        "observations": {"film": {"video": "film", "fps": 10.0, "downsample": 1}},
        "free": {"s.velocity": {"start": 0.0}},
    }
    problem = make_problem(scene_from_dict(tables, tmp_path)).problem
    rng = np.random.default_rng(0)
    theta = problem.parameters.start + 0.05 * rng.standard_normal(problem.parameters.size)
    loss, gradient = problem.loss_and_gradient(theta)
    assert loss > 0.0
    assert np.linalg.norm(gradient) > 0.0
    tan = rng.standard_normal(theta.size) / np.sqrt(theta.size)
    ahead, behind = (problem.loss_at(theta + sign * 1e-5 * tan) for sign in (1.0, -1.0))
    assert (ahead - behind) / 2e-5 == pytest.approx(gradient @ tan, rel=1e-5)
    pushed, adj = (
        problem.residuals_jvp(theta, tan),
        rng.standard_normal(len(problem.residuals(theta))),
    )
    assert pushed @ adj == pytest.approx(tan @ problem.residuals_vjp(theta, adj), rel=1e-9)


def test_a_series_is_interpolated_at_every_step():
    times = np.array([0.0, 1.0])
    scalar = Series(times, np.array([0.0, 2.0])).course(0.25)
    vector = Series(times, np.array([[0.0, 1.0], [4.0, 1.0]])).course(0.25)
    assert scalar.sample(5) == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0])
    expected = np.array([[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]])
    assert vector.sample(5) == pytest.approx(expected)


def test_a_pendulum_is_driven_by_its_torque(tmp_path):
    (tmp_path / "t.csv").write_text("time,torque\n0,0\n1,2\n")
    pendulum = {"kind": "pendulum", "length": [0.5], "angle": [0.0], "torque": "t.csv"}
    times = [0.0, 0.1, 0.2]
    scene = scene_from_dict({"bodies": {"p": pendulum}}, tmp_path)
    moved = simulate(scene, times).surfaces["p"]
    assert np.abs(moved[2] - moved[0]).max() > 1e-3


def test_an_actuated_body_swells_over_time(tmp_path):
    scenes.write_film(tmp_path)
    (tmp_path / "a.csv").write_text("time,a\n0,0\n0.3,1.5\n")
    bodies = scenes.tables()["bodies"]
    bodies["cube"] |= {"actuation": "a.csv", "E": 2e3}
    actuated = scenes.problem_of(tmp_path, bodies=bodies, obstacles={})
    plain = scenes.problem_of(tmp_path, obstacles={})

    def spread(problem):
        return np.ptp(problem.motion_at(problem.parameters.start).run().x[-1], axis=0).prod()

    assert spread(actuated) > 1.1 * spread(plain)


def test_reflection_turns_depth_and_twice_is_nothing(tmp_path):
    scenes.write_film(tmp_path)
    free = {"cube.velocity": {"start": [0.3, 0.2, 0.1]}, "cube.spin": {"start": [1.0, 2.0, 3.0]}}
    ahead = {"front": {"eye": [0.0, 0.13, 1.0], "target": [0.0, 0.13, 0.0], "fov_y": 30.0}}
    problem = scenes.problem_of(tmp_path, free=free, cameras=ahead)
    (observer,) = problem.observers
    # the fit to the first frame may have turned the camera a little: look along -z again
    straight = SimpleNamespace(pose=lambda: (np.zeros(3), np.diag([1.0, 1.0, -1.0])))
    problem = scenes.replace(problem, observers=(scenes.replace(observer, camera=straight),))
    theta = problem.parameters.start
    there = mirrored(problem, theta)
    values = problem.parameters.values(there)
    assert values["cube.velocity"] == pytest.approx([0.3, 0.2, -0.1])
    assert values["cube.spin"] == pytest.approx([-1.0, -2.0, 3.0])
    assert mirrored(problem, there) == pytest.approx(theta)
    along_y = SimpleNamespace(pose=lambda: (np.zeros(3), np.diag([1.0, 1.0, -1.0])[[2, 0, 1]]))
    aside = scenes.replace(observer, camera=along_y)
    both = scenes.replace(problem, observers=(*problem.observers, aside))
    assert mirrored(both, theta) is None  # the second film shows depth
    objects = {"cube_second": observer.scene.objects["cube"]}
    of_other = scenes.replace(aside, scene=scenes.replace(observer.scene, objects=objects))
    two_takes = scenes.replace(problem, observers=(*problem.observers, of_other))
    assert mirrored(two_takes, theta) == pytest.approx(there)  # it shows that of another take
    only_E = scenes.problem_of(tmp_path)
    assert mirrored(only_E, only_E.parameters.start) is None
