"""A body that touches a floor while its velocity is free: the gradient may be no slope."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from studies.answer.intervals import intervals, no_intervals
from studies.fitting import solve as solving, trying
from studies.fitting.fit import make_fit
from studies.fitting.local_search import LocalSearch
from studies.fitting.trying import Tried
from studies.optimizers.problem import Result, Status
from studies.problem.parameters import FreeParameter, Log, Parameters
from studies.runs.folder import RunFolder
from studies.runs.options import RunOptions
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from studies.scene.reading import scene_from_dict
from tests.studies.toy import Decay


VELOCITY = (-0.35, -0.3, 0.14)
FRAMES = 8


def scene(noise=0.0, **floor):
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
                "film": {
                    "simulate": {
                        "height": 24, "width": 32, "frames": FRAMES, "duration": 0.3,
                        "noise": noise, "seed": 1,
                    }
                }
            },
            "free": {"ball.velocity": {"start": [-0.3, -0.2, 0.1]}},
            "search": {"coarse": 0},
        }
    )  # fmt: skip


def answer(tmp_path, capsys, **settings):
    job = make_fit(scene(**settings), RunOptions(certificate=False), title="")
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


def test_where_all_frames_have_no_slope_the_first_ones_answer(tmp_path, capsys, monkeypatch):
    real = solving.try_result

    def rough_with_all(problem, result, local, **options):
        tried = real(problem, result, local, **options)
        if problem.n_frames == FRAMES and tried.trial is not None:
            tried = replace(tried, trial=replace(tried.trial, lower=result.theta))
        return tried

    monkeypatch.setattr(solving, "try_result", rough_with_all)
    result, error, said = answer(tmp_path, capsys, noise=0.01)
    assert "fitting the first 5 frames alone" in said
    assert result["verdict"]["kind"] == "found"
    assert "rests on the first 5 of 8 frames" in result["verdict"]["reason"]
    assert result["frames"] == 5
    assert error < 0.02


def test_a_local_search_whose_loss_stays_hopeless_is_given_up(tmp_path):
    class Steady(Decay):
        parameters = SimpleNamespace(with_short_turns=lambda theta: theta)

        def with_stable_steps(self, _theta):
            return self

        def steps_are_long(self, _theta):
            return False

        def steps_are_short(self, _theta):
            return False

    spent = []
    for number, hopeless in enumerate((np.inf, 1e-30)):
        with (
            RunFolder.create(tmp_path / str(number)) as folder,
            EvaluationProgress(200) as progress,
        ):
            search = LocalSearch(Search(tolerance=1e-12), folder, progress)
            problem: Any = Steady(noise=0.05)
            search.run(problem, np.zeros(3), log="a.jsonl", stage="a", hopeless=hopeless)
            spent.append(search.spent)
    assert spent[1] < spent[0]


def test_an_interval_counts_the_errors_of_other_sources(rng):
    J = rng.standard_normal((60, 2))
    r = 0.01 * rng.standard_normal(60)
    parameters = Parameters(
        [FreeParameter(name, np.array(2.0), (0.01, 100.0), Log()) for name in "ab"]
    )
    theta, step = parameters.start, np.array([0.1, 0.0])
    known = intervals(parameters, theta, r, J, frames=np.repeat(np.arange(10), 6))
    before = Tried(Result(theta, 1.0, Status.CONVERGED, 1), known, None)
    after = before.with_errors(parameters, {"mesh": step}).intervals
    expected = np.sqrt(known.half_width**2 + step**2)
    np.testing.assert_allclose(after.half_width, expected, rtol=1e-12)
    assert before.with_errors(parameters, {}).intervals.half_width.tolist() == (
        known.half_width.tolist()
    )


def test_an_answer_whose_gradient_hides_all_others_is_tried_alone(monkeypatch):
    """A chaotic motion has a Jacobian of 1e13, beside which a camera leaves no trace."""
    free = [FreeParameter(path, np.array(1.0), (0.1, 10.0), Log()) for path in ("ball.E", "other")]
    bounds = (np.full(2, -2.0), np.full(2, 2.0))
    problem: Any = SimpleNamespace(parameters=Parameters(tuple(free)), answers=(0,), bounds=bounds)
    monkeypatch.setattr(
        trying,
        "residuals_at",
        lambda _problem, thetas: [np.array([10.0 * theta[0], 1.0]) for theta in thetas],
    )
    no_trace = no_intervals(2, "a direction of theta leaves no trace in the images")

    def tried(at: float, *singular_values: float) -> Tried:
        result = Result(np.array([at, 0.0]), 1.0, Status.CONVERGED, 1)
        values = np.array(singular_values)
        hidden = replace(no_trace, singular_values=values, directions=np.eye(2))
        return trying._tried(problem, result, hidden)

    wild, smooth = tried(0.1, 1e13, 10.0), tried(0.0, 10.0, 1e-20)
    assert wild.trial is not None
    assert wild.trial.is_rough
    assert wild.trial.lower is not None  # where the search goes on without gradients
    assert wild.intervals.reason == smooth.intervals.reason == no_trace.reason
    assert smooth.trial is None
    assert smooth.evaluations > 0
