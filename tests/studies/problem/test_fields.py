"""Gradients of what acts on single nodes, and of known forces."""

import numpy as np
import pytest

from tests.studies.problem import scenes


PUSHES = {
    "shove": {"body": "cube", "force": [0.2, 0.1, -0.1], "seconds": [0.05, 0.2]},
    "poke": {"body": "die", "force": [0.02, 0.0, 0.01], "seconds": [0.0, 0.1], "nodes": [0, 3]},
}
DIE = {
    "kind": "rigid", "mesh": "box", "size": [0.06, 0.06, 0.06],
    "vertex_mass": [0.01, 0.02, 0.01, 0.015, 0.01, 0.01, 0.02, 0.03], "spin": [3.0, -2.0, 5.0],
    "position": [0.18, 0.2, 0.05], "scale": [1.0, 1.2, 0.9],
}  # fmt: skip
NET = {
    "kind": "springs", "mesh": "sheet", "size": [0.1, 0.1], "cells": [2, 1], "mass": 0.05,
    "stiffness": 50.0, "rest_length": [1.0, 1.1, 0.9, 1.2, 1.0, 1.0, 1.1, 0.9, 1.0],
    "position": [0.05, 0.3, 0.1], "held": {"nodes": [0]},
}  # fmt: skip
FREE = {
    "cube.mass_factors": {"start": 1.1, "bounds": [0.2, 5.0]},
    "cube.node_velocity": {"start": 0.1},
    "pushes.shove.force": {},
    "pushes.poke.force": {},
    "die.vertex_mass": {"start": 0.012},
    "net.rest_length": {},
}


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    bodies = {**scenes.tables()["bodies"], "die": DIE, "net": NET}
    given = {"bodies": bodies, "pushes": PUSHES, "obstacles": {}}
    scenes.write_film(folder, **given)
    return scenes.problem_of(folder, **given, free=FREE)


def test_the_gradient_is_the_transpose_of_the_tangent(problem):
    rng = np.random.default_rng(1)
    theta = scenes.shifted(problem, rng)
    adj = rng.standard_normal(len(problem.residuals(theta)))
    tan = rng.standard_normal(len(theta))
    pushed, pulled = problem.residuals_jvp(theta, tan), problem.residuals_vjp(theta, adj)
    assert pushed @ adj == pytest.approx(tan @ pulled, rel=1e-10)


def test_every_path_is_a_difference(problem):
    theta = scenes.shifted(problem, np.random.default_rng(2))
    rng = np.random.default_rng(3)
    paths = [label.removeprefix("scaled ").removeprefix("log ").partition("[")[0]
             for label in problem.parameters.theta_labels]  # fmt: skip
    assert set(paths) >= set(FREE)
    for path in FREE:
        tan = rng.standard_normal(len(theta)) * [component_path == path for component_path in paths]
        ahead, behind = (problem.residuals(theta + sign * 1e-6 * tan) for sign in (1.0, -1.0))
        pushed = problem.residuals_jvp(theta, tan)
        assert np.linalg.norm(pushed) > 0.0, path
        off = np.linalg.norm((ahead - behind) / 2e-6 - pushed) / np.linalg.norm(pushed)
        assert off < 1e-5, path
