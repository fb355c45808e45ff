"""A certificate that cannot be made is told as such, and never costs the run its result."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from studies.answer import certificate as certificates
from studies.answer.certificate import (
    Outcome,
    RoughLossError,
    check_point,
    require_smooth,
    taylor_sweeps,
    verdict_of,
)
from studies.cli.rebuilding import rebuild
from studies.fitting.running import start_scene
from studies.reports.certificate import line
from studies.runs.errors import NotFiniteError
from studies.runs.folder import RunFolder
from studies.scene.reading import to_toml
from tests.studies.bundled.test_twins import TOYS, made
from tests.studies.fitting.twins import twin


WHY = "The rollout left the finite numbers in step 7."


def fails_beyond(start, error):
    """Return a test of a point that raises anywhere but at the start."""
    tested = certificates._tested

    def instead(problem, theta, *more):
        if not np.array_equal(theta, start):
            raise error
        return tested(problem, theta, *more)

    return instead


def test_a_run_whose_certificate_diverges_leaves_its_result_and_its_report(tmp_path, monkeypatch):
    (tmp_path / "pendulum.toml").write_text(to_toml(twin()))
    arguments = (tmp_path / "pendulum.toml", [], tmp_path / "run", {})
    folder, job = start_scene(*arguments)
    monkeypatch.setattr(certificates, "_tested", fails_beyond(None, KeyError("of ours")))
    with pytest.raises(KeyError, match="of ours"):
        job.run(folder)
    folder.release()
    monkeypatch.undo()
    monkeypatch.setattr(certificates, "_tested", fails_beyond(None, NotFiniteError(WHY)))
    folder, job = start_scene(*arguments, resume=True)
    text = job.run(folder)
    assert "gradient certificate: could not be made" in text
    assert f"warning: no certificate at the optimum: {WHY}" in text
    made = folder.read_json("certificate.json")
    assert (made["verdict"], made["passed"]) == ("not made", False)
    assert made["points"]["optimum"]["reason"] == WHY
    assert WHY in rebuild(RunFolder.open(tmp_path / "run")).read_text()
    folder.release()


@pytest.mark.parametrize("error", [NotFiniteError(WHY), FloatingPointError(WHY)])
def test_what_is_no_mistake_of_the_program_is_the_reason(monkeypatch, error):
    problem = made("beam", *TOYS["beam"]).problem
    monkeypatch.setattr(certificates, "_tested", fails_beyond(None, error))
    point = check_point(problem, problem.parameters.start, seed=0)
    assert verdict_of(point) is Outcome.NOT_MADE
    assert point["reason"] == WHY
    json.dumps(point, allow_nan=False)
    assert line({"verdict": point["verdict"], "points": {"optimum": point}}) == "could not be made"


def rough(theta):
    """A loss of about 1 whose last digits no step is too short for."""
    return 1.0 + 1e-5 * np.sin(1e14 * theta.sum())


SMOOTH = {
    "parabola": lambda theta: 1.0 + theta @ theta,
    "constant": lambda _: 1.0,
    "steep": lambda theta: 1.0 + 1e8 * theta.sum(),
    "jump": lambda theta: 1.0 + 1e-3 * (theta[0] > 0.3),
    "kink": lambda theta: 1.0 + 1e6 * abs(theta[0] - 0.3),
    "rounding": lambda theta: 1.0 + 1e-9 * np.sin(1e14 * theta.sum()),
}


@pytest.mark.parametrize("n", [1, 3])
def test_only_a_loss_without_any_slope_is_refused(rng, n):
    theta, directions = np.full(n, 0.3), rng.standard_normal((4, n))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for loss_at in SMOOTH.values():
        require_smooth(loss_at, theta, directions)
    with pytest.raises(RoughLossError, match=r"no slope can be read in this loss of 1: a step of"):
        require_smooth(rough, theta, directions)


def test_a_rough_loss_costs_one_sweep_and_every_sweep_that_fails_is_told(monkeypatch):
    problem, messages = made("beam", *TOYS["beam"]).problem, []
    theta = problem.parameters.start
    nothing = np.ones(problem.targets.shape[:-1], bool)
    monkeypatch.setattr(certificates, "smooth_pixels", lambda *_, **__: nothing)
    wrong = (lambda _: 1.0, lambda _: np.ones_like(theta))
    monkeypatch.setattr(certificates, "partial_loss", lambda *_: wrong)
    sweeps = taylor_sweeps(problem, theta, 0, messages.append)
    assert len(sweeps) == len(messages) == 16  # the loss itself is smooth: this is a wrong gradient
    assert messages[0].startswith("Taylor sweep 1 of at most 16, steps of 1e-03: slope 1.0")
    messages.clear()
    monkeypatch.setattr(type(problem), "loss_at", lambda _, theta: rough(theta))
    point = check_point(problem, theta, 0, messages.append)
    assert len(messages) == 1
    assert point["verdict"] == "not made"
    assert "`world.dt` too long for the stiffness reached," in point["reason"]


def test_the_sweep_that_passes_after_others_is_told(monkeypatch):
    outcomes = iter((False, True))

    def sweep(*_):
        reason = "more pixels jump than may be left out"
        return SimpleNamespace(passed=next(outcomes), eps=np.array([1e-3]), reason=reason), 0

    monkeypatch.setattr(certificates, "_sweep", sweep)
    messages, theta = [], np.zeros(1)
    certificates._sweeps(None, theta, [(theta, 1e-3)] * 9, "of at most 9", say=messages.append)
    assert messages == [
        "Taylor sweep 1 of at most 9, steps of 1e-03: more pixels jump than may be left out",
        "Taylor sweep 2 of at most 9, steps of 1e-03: passed",
    ]


def test_a_sweep_draws_each_point_once_if_it_may_keep_its_images(monkeypatch):
    problem, drawn, sweeps = made("beam", *TOYS["beam"]).problem, [], []
    images, theta = type(problem).predicted_rows, problem.parameters.start
    monkeypatch.setattr(
        type(problem),
        "predicted_rows",
        lambda self, at: drawn.append(at.tobytes()) or images(self, at),
    )
    for most in (certificates.MOST_KEPT, 0):
        monkeypatch.setattr(certificates, "MOST_KEPT", most)
        drawn.clear()
        test, left_out = certificates._sweep(problem, theta, np.array([0.6, 0.8]), 1e-3)
        assert (len(set(drawn)) == len(drawn)) == (most > 0)
        sweeps.append((test.to_dict(), left_out))
    assert sweeps[0] == sweeps[1]
    assert sweeps[0][0]["passed"]
