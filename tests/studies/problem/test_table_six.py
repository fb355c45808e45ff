"""Torques of pendula and lengths of springs at rest, free in scene files: gradients, and twins."""

import numpy as np
import pytest

from studies.fitting.solve import solve
from studies.problem.making import make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.reading import scene_from_dict
from tests.studies.problem import scenes


LOOK = {"ambient": 1.0, "diffuse": 0.0, "color": [0.8, 0.4, 0.2]}
CAMERA = {"eye": [0.0, -0.5, 3.0], "target": [0.0, -0.5, 0.0], "fov_y": 45.0}
LINK = {"kind": "pendulum", "length": [0.7], "angle": [20.0], "mass": [0.5], "look": LOOK}
LINKS = {**LINK, "length": [0.5, 0.4], "angle": [20.0, -10.0], "mass": [0.5, 0.3]}
ROPE = {
    "kind": "springs", "mesh": "chain", "size": [0.8], "cells": [3], "stiffness": 30.0,
    "damping": 0.2, "mass": 0.2, "radius": 0.06, "held": {"nodes": [0]}, "look": LOOK,
}  # fmt: skip
# body, path, hidden values, start
CASES = {
    "constant": (LINK, "torque", 0.8, -0.3),
    "of two links": (LINKS, "torque", [0.6, -0.2], 0.1),
    "series": ({**LINK, "torque": "T.csv"}, "torque", [0.5, -1.0, 1.5], 0.1),
    "all springs": (ROPE, "rest_length", 1.3, 1.0),
    "each spring": ({**ROPE, "rest_length": [1.0, 1.0, 1.0]}, "rest_length", [1.3, 0.8, 1.1], 1.0),
}


def twin(folder, name):
    body, key, hidden, start = CASES[name]
    (folder / "T.csv").write_text("time,T\n0,0\n0.3,0\n0.6,0\n")
    film = {"height": 24, "width": 32, "frames": 8, "duration": 0.6}
    tables = {
        "bodies": {"b": body},
        "cameras": {"front": CAMERA},
        "observations": {"film": {"simulate": film, "background": {"color": [0.2, 0.2, 0.2]}}},
        "truth": {f"b.{key}": hidden},
        "free": {f"b.{key}": {"start": start}},
        "search": {"coarse": 0, "held_back": 0.0, "tolerance": 1e-10},
    }
    return scene_from_dict(tables, folder)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_a_difference_and_the_truth_is_found(tmp_path, name):
    file = twin(tmp_path, name)
    made = make_problem(file)
    problem = made.problem
    rng = np.random.default_rng(0)
    theta, tan = scenes.shifted(problem, rng), rng.standard_normal(problem.parameters.size)
    gradient = problem.loss_and_gradient(theta)[1] @ tan
    ahead, behind = (problem.loss_at(theta + sign * 1e-5 * tan) for sign in (1.0, -1.0))
    assert (ahead - behind) / 2e-5 == pytest.approx(gradient, rel=1e-5)
    r, jacobian = problem.residuals_and_jacobian(theta)
    assert 2.0 * (jacobian.T @ r) @ tan == pytest.approx(gradient, rel=1e-9)
    with EvaluationProgress(file.search.max_evaluations) as progress:
        solved = solve(made, file.search, RunFolder(tmp_path / "run"), progress)
    answer = solved.problem.parameters.natural(solved.result.theta)
    assert made.truth.errors((f"b.{CASES[name][1]}",), answer).max() < 1e-9


def test_as_many_lengths_as_springs(tmp_path):
    with pytest.raises(ValueError, match=r"`bodies.b.rest_length` must be one .* 3 springs, got 2"):
        make_problem(
            scene_from_dict(
                {"bodies": {"b": {**ROPE, "rest_length": [1.0, 1.0]}}, "cameras": {"f": CAMERA},
                 "observations": {"film": {"simulate": {"height": 8, "width": 8, "frames": 2,
                                                        "duration": 0.1}}},
                 "free": {"b.mass": {}}},
                tmp_path,
            )
        )  # fmt: skip
