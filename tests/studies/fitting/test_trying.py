"""A body that touches a floor while its velocity is free: the gradient may be no slope."""

import numpy as np

from studies.answer.intervals import Uncertainty, intervals
from studies.fitting.fit import make_fit
from studies.fitting.trying import Tried
from studies.optimizers.problem import Result, Status
from studies.problem.parameters import Free, Log, Parameters
from studies.runs.folder import RunFolder
from studies.runs.options import RunOptions
from studies.runs.progress import EvaluationProgress
from studies.scene.reading import scene_from_dict


VELOCITY = (-0.35, -0.3, 0.14)


def scene(**floor):
    return scene_from_dict(
        {
            "bodies": {
                "ball": {
                    "kind": "rigid", "mesh": "ball", "size": [0.1], "cells": [2], "density": 500.0,
                    "position": [0.0, 0.16, 0.0], "rotation": [15.0, 10.0, 20.0],
                    "velocity": list(VELOCITY),
                }
            },
            "obstacles": {"floor": floor},
            "cameras": {
                "front": {"eye": [0.4, 0.5, 1.4], "target": [0.0, 0.1, 0.0], "fov_y": 35.0}
            },
            "observations": {
                "film": {"simulate": {"height": 24, "width": 32, "frames": 8, "duration": 0.3}}
            },
            "free": {"ball.velocity": {"start": [-0.3, -0.2, 0.1]}},
            "search": {"coarse": 0},
        }
    )  # fmt: skip


def answer(tmp_path, capsys, **floor):
    job = make_fit(scene(**floor), RunOptions(certificate=False), title="")
    with RunFolder.create(tmp_path / "run") as folder, EvaluationProgress(200) as progress:
        result = job.result(job.solve(folder, progress))
    estimate = np.array([row["estimate"] for row in result["parameters"]])
    error = np.linalg.norm(estimate - VELOCITY) / np.linalg.norm(VELOCITY)
    return result, error, capsys.readouterr().err


def test_with_dissipation_the_velocity_is_found(tmp_path, capsys):
    result, error, said = answer(tmp_path, capsys)
    assert result["verdict"]["kind"] == "found"
    assert error < 2e-3
    assert {row["verdict"] for row in result["parameters"]} == {"found"}
    assert "without gradients" not in said


def test_with_damping_the_search_goes_on_without_gradients_and_no_wrong_answer_is_found(
    tmp_path, capsys
):
    result, error, said = answer(tmp_path, capsys, stiffness=4e6, damping=1500.0)
    assert "going on without gradients" in said
    assert error < 0.1
    if result["verdict"]["kind"] == "found":
        assert error < 0.01


def test_an_interval_counts_twice_the_change_on_a_finer_mesh(rng):
    J = rng.standard_normal((60, 2))
    r = 0.01 * rng.standard_normal(60)
    own = Parameters([Free(name, np.array(2.0), (0.01, 100.0), Log()) for name in "ab"])
    theta, step = own.start, np.array([0.1, 0.0])
    known = intervals(own, theta, r, J, frames=np.repeat(np.arange(10), 6))
    spread = Uncertainty(known, 0.0, np.ones(2), np.eye(2))
    before = Tried(Result(theta, 1.0, Status.CONVERGED, 1), spread, None)
    after = before.with_refinements(own, {"mesh": step}).spread.intervals
    expected = np.sqrt(known.half_width**2 + (2.0 * step) ** 2)
    np.testing.assert_allclose(after.half_width, expected, rtol=1e-12)
    assert before.with_refinements(own, {}).spread.intervals.half_width.tolist() == (
        known.half_width.tolist()
    )
