"""How far values may change before a touch moves to another step."""

import numpy as np
import pytest

from adjsim.contact_margins import contact_margins
from adjsim.rollout import rollout
from studies.answer import kinks
from studies.answer.certificate import check_point
from studies.answer.kinks import events_between
from tests.studies.bundled.test_twins import TOYS, made


FLOOR = "floor_ball"


@pytest.fixture(scope="module")
def shown():
    """The problem of a ball that bounces, two touches long."""
    short = ("world.duration=1.6", "observations.film.simulate.frames=4")
    return made("bounce", *TOYS["bounce"], *short).problem


def touching(shown, theta, step, name=FLOOR):
    """Penetration of the points of a contact at a step, by their numbers."""
    motion = shown.motion_at(theta)
    run = rollout(motion.system, motion.state, motion.dt, motion.n_steps, frames=[step])
    margins = contact_margins(motion.system, run)[name]
    return dict(zip(margins.nodes.tolist(), margins.touch[0], strict=True))


def test_theta_may_move_as_far_as_the_nearest_touch_says(shown):
    theta = shown.parameters.start
    touch = kinks.nearest_touch(shown, theta)
    assert touch.force == FLOOR
    assert touch.time == pytest.approx(touch.step * shown.motion_at(theta).dt)

    def depth(there):
        return touching(shown, there, touch.step)[touch.node]

    # The slope of that depth by differences gives the direction in which it is nearest.
    slope = np.array([(depth(theta + e) - depth(theta - e)) / 2e-7 for e in 1e-7 * np.eye(2)])
    way = -np.sign(depth(theta)) * slope / np.linalg.norm(slope) * touch.distance
    assert touch.depth == pytest.approx(abs(depth(theta)), rel=1e-9)
    assert (depth(theta + 0.98 * way) > 0.0) == (depth(theta) > 0.0)
    assert (depth(theta + 1.02 * way) > 0.0) != (depth(theta) > 0.0)
    events = events_between(shown, theta)
    assert events(theta) == 0
    assert events(theta + 1.02 * way) > 0


def test_of_two_bodies_too():
    shown = made("two-balls", *TOYS["two-balls"]).problem
    theta = shown.parameters.start
    touch = kinks.nearest_touch(shown, theta)
    assert touch.force == "touch"

    def depth(there):
        return touching(shown, there, touch.step, "touch")[touch.node]

    slope = np.array([(depth(theta + e) - depth(theta - e)) / 2e-7 for e in 1e-7 * np.eye(2)])
    assert abs(depth(theta)) == pytest.approx(touch.depth, rel=1e-6)
    assert touch.distance == pytest.approx(touch.depth / np.linalg.norm(slope), rel=1e-3)
    way = -np.sign(depth(theta)) * slope / np.linalg.norm(slope) * touch.distance
    events = events_between(shown, theta)
    assert [events(theta + share * way) > 0 for share in (0.0, 0.98, 1.02)] == [False, False, True]


def test_the_certificate_names_it_and_a_long_theta_is_looked_at_in_fewer_directions(
    shown, monkeypatch
):
    theta = shown.parameters.start
    point = check_point(shown, theta, seed=0)
    assert point["nearest_touch"] == kinks.nearest_touch(shown, theta).to_dict()
    assert 0.0 < point["nearest_touch"]["distance"] < 1.0
    monkeypatch.setattr(kinks, "MOST_DIRECTIONS", 1)
    assert kinks._axes(2).shape == (1, 2)
    assert 0.0 < kinks.nearest_touch(shown, theta).distance < np.inf


def test_without_contact_nothing_is_said():
    shown = made("pendulum", *TOYS["pendulum"]).problem
    assert kinks.nearest_touch(shown, shown.parameters.start) is None
