"""The weights of policies as free parameters: their derivatives, and what the time step does."""

import dataclasses

import numpy as np
import pytest

from studies.problem.making import make_problem
from studies.scene.reading import scene_from_dict


BEAT = {"sines": 3, "frequency": 30.0, "scale": 0.2}
BODIES = {
    "cube": {"kind": "soft", "mesh": "box", "size": [0.2, 0.2, 0.2], "cells": [1, 1, 1], "E": 2e4},
    "sheet": {"kind": "cloth", "mesh": "sheet", "cells": [2, 2], "E": 1e6, "bending": 2.0},
}
BODIES["cube"] |= {"nu": 0.3, "viscosity": 5.0, "actuation": BEAT}
BODIES["sheet"] |= {"position": [1.0, 0.0, 0.0], "actuation": BEAT, "bending_actuation": BEAT}
PATHS = ("cube.policy", "sheet.policy", "sheet.bending_policy")


@pytest.fixture
def problem(tmp_path):
    times = np.array([0.1, 0.2])
    for name, n in (("cube", 8), ("sheet", 9)):
        np.savez(tmp_path / f"{name}.npz", times=times, x=np.zeros((2, n, 3)))
    given = {
        "bodies": BODIES,
        "world": {"gravity": [0.0, 0.0, 0.0]},
        "observations": {
            name: {"file": f"{name}.npz", "body": name, "error": 0.1} for name in BODIES
        },
        "free": {path: {} for path in PATHS},
    }
    return make_problem(scene_from_dict(given, tmp_path)).problem


def drawn(problem):
    rng = np.random.default_rng(3)
    return rng.standard_normal(problem.parameters.size), rng.standard_normal(
        problem.parameters.size
    )


def test_tangent_and_gradient_of_the_weights_are_right(problem):
    assert problem.parameters.size == 3 * (5 + 8 + 8)
    theta, tan = drawn(problem)
    h = 1e-6
    ahead, behind = (problem.residuals(theta + side * h * tan) for side in (1.0, -1.0))
    difference, pushed = (ahead - behind) / (2.0 * h), problem.residuals_jvp(theta, tan)
    assert np.linalg.norm(difference - pushed) < 1e-7 * np.linalg.norm(pushed)
    adj = np.random.default_rng(4).standard_normal(len(pushed))
    assert pushed @ adj == pytest.approx(problem.residuals_vjp(theta, adj) @ tan, rel=1e-11)
    loss, gradient = problem.loss_and_gradient(theta)
    parts = np.split(
        gradient, np.cumsum([parameter.start.size for parameter in problem.parameters.free])[:-1]
    )
    assert all(np.linalg.norm(block) > 1e-3 * np.linalg.norm(gradient) for block in parts)
    slope = problem.loss_at(theta + h * tan) - problem.loss_at(theta - h * tan)
    assert slope / (2.0 * h) == pytest.approx(gradient @ tan, rel=1e-6)
    assert loss == pytest.approx(problem.loss_at(theta))


def test_a_policy_is_the_same_in_other_steps(problem):
    theta, _ = drawn(problem)
    steps = problem.steps
    ends = []
    for factor in (1, 4, 16):
        finer = dataclasses.replace(steps, count=factor * steps.count)
        motion = dataclasses.replace(problem, steps=finer).motion_at(theta)
        assert motion.system.forces["cube"].actuation.rate == pytest.approx(30.0 * finer.dt)
        ends.append(motion.run().x[-1])
    first, second = np.abs(ends[0] - ends[2]).max(), np.abs(ends[1] - ends[2]).max()
    assert second < 0.35 * first
    assert second < 0.03 * np.abs(ends[2] - problem.built.state.x).max()
