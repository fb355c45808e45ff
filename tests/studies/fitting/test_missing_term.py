"""A scene that lacks a force: its trace is named, and the wrong answer is not found."""

import csv
import json
import tomllib

import numpy as np
import pytest

from studies.answer.verdict import Kind
from studies.fitting import missing_term
from studies.fitting.local_search import LocalSearch
from studies.fitting.solve import solve
from studies.optimizers.minimize import minimize
from studies.problem.making import make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.reading import scene_from_dict


AT = {"a": [0.05, 0.0, 0.0], "b": [-0.05, 0.02, 0.0], "c": [0.0, -0.05, 0.03]}
CUBE = {"kind": "rigid", "mesh": "box", "size": [0.1, 0.1, 0.1], "mass": 0.1,
        "velocity": [2.0, 3.0, -0.5], "spin": [1.0, 0.5, 0.0],
        "scale_error": 0.0, "position_error": 0.0}  # fmt: skip
FREE = {"cube.velocity": {"start": [1.8, 2.8, -0.4]}, "cube.spin": {"start": [0.9, 0.6, 0.1]}}


def scene(drag, observed):
    bodies = {"cube": CUBE | {"drag_rate": drag}}
    world = {"gravity_error": 0.0}
    return {"bodies": bodies, "observations": {"marks": observed}, "free": FREE, "world": world}


def write_tracks(path, drag, rng):
    """Write where three points of a cube are that is thrown through air, with 0.2 mm of noise."""
    observed = {"body": "cube", "at": AT, "simulate": {"frames": 25, "duration": 0.5}}
    made = make_problem(scene_from_dict(scene(drag, observed) | {"free": {"cube.velocity": {}}}))
    (observer,) = made.everything.observers
    rows = observer.targets().reshape(len(observer.times), len(AT), 3)
    rows = rows + 2e-4 * rng.standard_normal(rows.shape)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["time", "point", "x", "y", "z"])
        for time, points in zip(observer.times, rows, strict=True):
            for name, place in zip(AT, points, strict=True):
                writer.writerow([time, name, *place])


def solved(folder, drag):
    observed = {"file": str(folder / "marks.csv"), "body": "cube", "at": AT, "error": 1e-3}
    file = scene_from_dict(scene(drag, observed) | {"search": {"coarse": 0}})
    with EvaluationProgress(file.search.max_evaluations) as progress:
        return solve(make_problem(file), file.search, RunFolder(folder / f"run-{drag}"), progress)


@pytest.fixture
def tracks(tmp_path, rng):
    write_tracks(tmp_path / "marks.csv", 0.8, rng)
    return tmp_path


def test_drag_that_the_scene_lacks_is_named_and_the_answer_is_not_found(tracks):
    solution = solved(tracks, 0.0)
    assert solution.verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert "One more number explains what is left: with cube.drag_rate" in solution.verdict.reason
    assert solution.verdict.numbers["path"] == "cube.drag_rate"
    assert solution.verdict.numbers["value"] == pytest.approx(0.8, rel=0.1)
    line = solution.verdict.reason.partition("under [free] of the scene file: ")[2]
    assert tomllib.loads(f"[free]\n{line}")["free"]["cube.drag_rate"]["start"] > 0.7


def test_a_scene_that_lacks_nothing_is_found(tracks):
    solution = solved(tracks, 0.8)
    assert solution.verdict.kind is Kind.FOUND
    value = solution.problem.parameters.values(solution.result.theta)
    np.testing.assert_allclose(value["cube.velocity"], CUBE["velocity"], atol=0.01)


@pytest.mark.parametrize("promised", [0.5, 1.0])
def test_a_shape_moves_with_a_term_whose_score_promises_much(tmp_path, monkeypatch, promised):
    monkeypatch.setattr(missing_term, "EXPLAINS", promised)
    bar = {"kind": "soft", "mesh": "box", "size": [0.2, 0.04, 0.04], "cells": [4, 1, 1],
           "E": 2e4, "shape_error": 5e-4, "shape_cells": 1,
           "held": {"plane": {"point": [-0.099, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}}}  # fmt: skip
    at = {"tip": [0.1, 0.0, 0.0], "above": [0.05, 0.02, 0.0], "beside": [0.08, 0.0, 0.02]}
    marks = {"body": "bar", "at": at, "error": 1e-4, "simulate": {"frames": 25, "duration": 0.6}}
    file = scene_from_dict({
        "bodies": {"bar": bar}, "observations": {"marks": marks}, "blind": True,
        "truth": {"bodies.bar.drag_rate": 3.0}, "free": {"bar.E": {}, "bar.shape": {}},
    })  # fmt: skip
    made = make_problem(file)
    problem = made.everything.with_steps_for(made.everything.parameters.start)
    theta = minimize(problem, problem.parameters.start, file.search, log=None).theta
    linear = problem.residuals_and_jacobian(theta)
    with EvaluationProgress(file.search.max_evaluations) as progress:
        local = LocalSearch(file.search, RunFolder(tmp_path / "run"), progress)
        term = missing_term.find_missing_term(
            problem, theta, linear, terms=made.terms, looks=[theta], local=local
        )
    line = (tmp_path / "run" / "iterations-term-1.jsonl").read_text().partition("\n")[0]
    count = len(json.loads(line)["theta"])
    if promised == 1.0:
        assert count == 2  # E and the drag
    else:
        assert count == len(theta) + 1
        assert term.path == "bar.drag_rate"
        assert term.value == pytest.approx(3.0, rel=0.05)
        assert term.change.shape == theta.shape
