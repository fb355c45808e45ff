"""How far the values of a study may change before a touch moves to another step."""

import numpy as np
import pytest

from adjsim.contact_margins import contact_margins
from adjsim.rollout import rollout
from studies import config, touches
from studies.certificate import check_point
from studies.registry import STUDIES, RunOptions
from tests.studies.toys import TOYS


def problem(study):
    """The problem of a toy's first instance."""
    settings = config.resolve(study, TOYS[study].overrides).values
    return STUDIES[study].prepare(settings, RunOptions()).problem


def inside(shown, theta):
    """Which states touch at theta, (n_steps,) bool."""
    motion = shown.motion_at(theta)
    n = motion.n_steps
    run = rollout(motion.system, motion.state, motion.dt, n, frames=range(n))
    return contact_margins(motion.system, run)["floor"].touch[:, 0] > 0.0


def test_theta_may_move_as_far_as_the_nearest_touch_says():
    shown = problem("bounce")
    theta = shown.parameters.start
    touch = touches.nearest_touch(shown, theta)
    assert touch.force == "floor"
    assert touch.time == pytest.approx(touch.step * shown.motion.dt)
    # The slope of that depth by differences gives the direction in which it is nearest.
    slope = np.array([
        (depth(shown, theta + e, touch.step) - depth(shown, theta - e, touch.step)) / 2e-7
        for e in 1e-7 * np.eye(len(theta))
    ])  # fmt: skip
    sign = -np.sign(depth(shown, theta, touch.step))
    way = sign * slope / np.linalg.norm(slope) * touch.distance
    assert touch.depth == pytest.approx(abs(depth(shown, theta, touch.step)), rel=1e-9)
    before = inside(shown, theta)
    np.testing.assert_array_equal(inside(shown, theta + 0.98 * way), before)
    assert inside(shown, theta + 1.02 * way)[touch.step] != before[touch.step]


def depth(shown, theta, step):
    """Penetration at a step."""
    motion = shown.motion_at(theta)
    run = rollout(motion.system, motion.state, motion.dt, motion.n_steps, frames=[step])
    return contact_margins(motion.system, run)["floor"].touch[0, 0]


def test_the_certificate_names_it_and_a_long_theta_is_looked_at_in_fewer_directions(monkeypatch):
    shown = problem("bounce")
    theta = shown.parameters.start
    point = check_point(shown, theta, seed=0)
    assert point["nearest_touch"] == touches.nearest_touch(shown, theta).to_dict()
    assert 0.0 < point["nearest_touch"]["distance"] < 1.0
    monkeypatch.setattr(touches, "MOST_DIRECTIONS", 1)
    assert touches._directions(2).shape == (1, 2)
    few = touches.nearest_touch(shown, theta).distance
    assert 0.0 < few < np.inf


def test_without_contact_nothing_is_said():
    shown = problem("pendulum")
    assert touches.nearest_touch(shown, shown.parameters.start) is None
    assert touches.told(None) == ["Nothing comes near a touch."]
