"""Among kinks a right gradient is told from a wrong one, and neither is called judged."""

from dataclasses import fields

import numpy as np
import pytest

from studies.answer.certificate import Outcome, check_point, in_words, verdict_of
from studies.answer.kinks import AGREES, BetweenKinks, compare_sides, events_between, reach
from studies.control.searching import watched_problem
from tests.studies.control.toys import made


N = 40
SPACING, BEND = 1e-9, 1e-12  # of kinks along the sum of theta, and by how much each bends the loss


def bumpy(theta):
    """A parabola with a kink wherever the sum of theta crosses a multiple of the spacing."""
    s = theta.sum() / SPACING
    return 0.5 * theta @ theta + BEND * abs(s - 2.0 * np.floor(s / 2.0 + 0.5))


@pytest.fixture
def theta(rng):
    return rng.standard_normal(N)


def test_among_weak_kinks_differences_to_either_side_give_a_right_gradient(theta):
    between = compare_sides(bumpy, theta, theta, reach=SPACING, seed=0)
    assert between.agrees
    assert between.error < AGREES
    assert between.step > 1e3 * SPACING


@pytest.mark.parametrize("wrong", ["one entry", "size", "sign"])
def test_among_kinks_a_wrong_gradient_disagrees(theta, wrong):
    gradient = {
        "one entry": theta * np.where(np.arange(N) == 3, 1.1, 1.0),
        "size": 1.001 * theta,
        "sign": -theta,
    }[wrong]
    between = compare_sides(bumpy, gradient, theta, reach=SPACING, seed=0)
    assert not between.agrees
    off = np.linalg.norm(gradient - theta) / np.linalg.norm(gradient)
    assert between.error > 0.3 * off  # eight directions know it to a factor of about two


def test_where_no_event_is_near_agreement_is_no_excuse(theta):
    between = compare_sides(bumpy, theta, theta, reach=1e-3, seed=0)
    assert between.error < AGREES
    assert not between.agrees
    assert BetweenKinks(1e-6, np.inf, 0.0).to_dict()["error"] is None


def test_a_sweep_reaches_as_far_as_the_first_event(theta, rng):
    direction = rng.standard_normal(N)
    direction /= np.linalg.norm(direction)
    first = 1.7e-6

    def events(there):
        return int((there - theta) @ direction > first)

    assert first / 2.0 < reach(events, theta, direction) <= first
    assert reach(lambda _: 0, theta, direction) == 1e-3
    assert reach(lambda _: 1, theta, direction) == 0.0


def standing(*overrides):
    """The toy of the walker that stands nearly still: feet slip and stick in every step."""
    return watched_problem(made("control-walker", *overrides, seed=1)[1], "picture").problem


def test_contacts_have_events_and_other_problems_none():
    problem = standing("world.duration=0.03125")
    theta = problem.parameters.start
    events = events_between(problem, theta)
    assert events is not None
    assert events(theta) == 0
    assert events(-theta) > 0


def test_a_right_gradient_among_slips_is_not_judged_and_a_wrong_one_fails(monkeypatch):
    monkeypatch.setattr("studies.answer.certificate.EPS0", (1e-4,))  # all give the same
    monkeypatch.setattr("studies.answer.certificate.DIRECTIONS", 1)
    problem = standing("world.duration=0.78125")
    theta = problem.parameters.start
    point = check_point(problem, theta, seed=0)
    assert point["verdict"] == "between kinks"
    assert not point["passed"]
    assert point["between_kinks"]["error"] < AGREES
    assert point["dot"]["passed"]
    assert in_words(verdict_of(point)) == "between kinks, not judged"

    class Wrong(type(problem)):
        def pull_back(self, theta, judge, **where):
            loss, gradient = super().pull_back(theta, judge, **where)
            gradient[::7] *= 1.01
            return loss, gradient

    settings = {field.name: getattr(problem, field.name) for field in fields(problem)}
    point = check_point(Wrong(**settings), theta, seed=0)
    assert point["verdict"] == "failed"
    assert not point["taylor"]["passed"]
    between = point["between_kinks"]  # None where a slope could be read: that of a wrong gradient
    assert between is None or between["error"] > AGREES


@pytest.mark.parametrize(
    ("waves", "factor", "verdict"),
    [(1e10, 1.0, "not made"), (1e10, 1.01, "failed"), (1.0, 1.0, "failed")],
)
def test_where_no_slope_can_be_read_only_a_rough_loss_is_no_failure(
    monkeypatch, waves, factor, verdict
):
    monkeypatch.setattr("studies.answer.certificate.EPS0", (1e-4,))
    monkeypatch.setattr("studies.answer.certificate.DIRECTIONS", 1)
    problem = standing("world.duration=0.46875")
    kind, theta = type(problem), problem.parameters.start
    loss_at, pulled = kind.loss_at, kind.residuals_vjp

    def rippled(self, at):
        return loss_at(self, at) + 0.1 * loss_at(self, theta) * np.sin(waves * at.sum())

    monkeypatch.setattr(kind, "loss_at", rippled)
    monkeypatch.setattr(kind, "residuals_vjp", lambda *arguments: factor * pulled(*arguments))
    point = check_point(problem, theta, seed=0)
    assert point["verdict"] == verdict
    assert not point["passed"]
    assert ("the motion is chaotic" in point.get("reason", "")) == (verdict == "not made")


def test_verdicts_are_said_in_words():
    assert in_words(Outcome.BETWEEN_KINKS) == "between kinks, not judged"
    assert in_words(Outcome.NOT_MADE) == "could not be made"
    assert in_words(Outcome.FAILED) == "FAILED"
