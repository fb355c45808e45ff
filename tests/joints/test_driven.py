"""Hinges and sliders: what drives them, their limits, and how far they are from these."""

from dataclasses import replace

import numpy as np
import pytest

from adjsim.contact_margins import contact_margins, nearest_touch
from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import frames_at
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.rigid.scenes import box


BLOCK = RigidBodies(box((0.1, 0.1, 0.1), (-0.05, -0.05, -0.05)), mass=2.0)
START = {"block": BodyState([0.0, 0.0, 0.0])}
STIFF = {"stiffness": 1e4, "damping": 50.0, "angular_stiffness": 1e2, "angular_damping": 0.5}


def to_world(kind, axis=(0.0, 0.0, 1.0), gravity=(0.0, 0.0, 0.0), **options):
    """A block in one joint to the world, at its centre."""
    pair = (None, "block")
    joint = kind(pair, **STIFF, **options, **frames_at(pair, START, (0.0, 0.0, 0.0), axis))
    return Model(forces={"joint": joint}, gravity=gravity, bodies={"block": BLOCK})


def test_a_motor_turns_a_hinge_and_viscous_friction_ends_it():
    model = to_world(HingeJoint, motor=0.03, viscous_friction=0.01)
    end = rollout(model, State(bodies=START), 1e-3, 5000)
    assert end.bodies["block"].angular_velocity[-1, 0] == pytest.approx([0, 0, 3.0], abs=1e-3)


def test_dry_friction_stops_a_hinge_after_a_known_time():
    model = to_world(HingeJoint, dry_friction=0.02, friction_width=1e-3)
    inertia = BLOCK.inertias[0, 2]
    turning = {"block": BodyState([0.0] * 3, angular_velocity=[0.0, 0.0, 0.5])}
    dt, rate = 1e-4, 0.02 / inertia  # [rad/s2]
    end = rollout(model, State(bodies=turning), dt, 1000, frames=[500, 1000])
    spin = end.bodies["block"].angular_velocity[:, 0, 2]
    assert spin[0] == pytest.approx(0.5 - rate * 500 * dt, abs=1e-5)
    assert 0.5 - rate * 1000 * dt < 0.0
    assert abs(spin[1]) < 1e-3


def test_a_slider_falls_onto_its_limit_and_rests_there():
    limit = {"limit_stiffness": 500.0, "lower": -0.2, "upper": 0.1, "viscous_friction": 20.0}
    model = to_world(SliderJoint, (0.0, 1.0, 0.0), (0.0, -10.0, 0.0), **limit)
    end = rollout(model, State(bodies=START), 1e-3, 5000)
    assert end.bodies["block"].position[-1, 0] == pytest.approx([0, -0.2 - 20 / 500, 0], abs=1e-6)


def test_a_slider_swings_about_the_rest_of_its_spring():
    model = to_world(SliderJoint, (1.0, 0.0, 0.0), spring_stiffness=200.0, spring_rest=0.1)
    dt = 1e-4
    half = round(np.pi * np.sqrt(2.0 / 200.0) / dt)
    end = rollout(model, State(bodies=START), dt, half)
    assert end.bodies["block"].position[-1, 0] == pytest.approx([0.2, 0.0, 0.0], abs=1e-5)


def test_margins_are_how_far_it_is_beyond_a_limit():
    model = to_world(HingeJoint, limit_stiffness=50.0, lower=-0.3, upper=0.2)
    turning = {"block": BodyState([0.0] * 3, angular_velocity=[0.0, 0.0, 1.0])}
    run = rollout(model, State(bodies=turning), 1e-3, 400, frames=range(400))
    margins = contact_margins(model, run)["joint"]
    q = np.arcsin(
        2 * run.bodies["block"].orientation[:, 0, 2] * run.bodies["block"].orientation[:, 0, 3]
    )
    np.testing.assert_allclose(margins.touch[:, 0], np.maximum(q - 0.2, -0.3 - q), atol=1e-12)
    assert (np.diff(np.sign(margins.touch[:, 0])) > 0).any()
    nearest = nearest_touch(model, run)
    assert nearest is not None
    assert abs(nearest.distance) < 1e-3
    assert np.isfinite(margins.all()).sum() == 400
    free = to_world(HingeJoint)
    assert contact_margins(free, rollout(free, State(bodies=turning), 1e-3, 1)) == {}


def test_margins_of_dry_friction_are_how_fast_it_is_beyond_the_width():
    model = to_world(HingeJoint, dry_friction=0.02, friction_width=0.1, motor=-0.04)
    turning = {"block": BodyState([0.0] * 3, angular_velocity=[0.0, 0.0, 0.5])}
    run = rollout(model, State(bodies=turning), 1e-3, 200, frames=range(200))
    margins = contact_margins(model, run)["joint"]
    w = run.bodies["block"].angular_velocity[:, 0, 2]
    assert w[0] > 0.0 > w[-1]
    np.testing.assert_array_equal(margins.nodes, [0, 0])
    assert np.isnan(margins.touch).all()
    np.testing.assert_allclose(margins.leaving[:, 1], w, atol=1e-12)
    np.testing.assert_allclose(margins.slip[:, 1], np.abs(w) - 0.1, atol=1e-12)
    assert np.isfinite(margins.all()).sum() == 200
    assert nearest_touch(model, run) is None


def test_a_spring_of_a_hinge_jumps_where_its_angle_passes_pi():
    model = to_world(HingeJoint, spring_stiffness=1e-3)
    turning = {"block": BodyState([0.0] * 3, angular_velocity=[0.0, 0.0, 10.0])}
    run = rollout(model, State(bodies=turning), 1e-3, 400, frames=range(400))
    margins = contact_margins(model, run)["joint"]
    angle = np.cumsum(run.bodies["block"].angular_velocity[:, 0, 2]) * 1e-3
    turn = margins.shape[:, 1, 0]
    past = np.flatnonzero((turn[:-1] > 0.0) & (turn[1:] < 0.0))
    assert len(past) == 1
    assert angle[past[0]] == pytest.approx(np.pi, abs=0.02)
    assert np.isnan(turn[angle < 0.49 * np.pi]).all()
    assert contact_margins(to_world(SliderJoint, spring_stiffness=1.0), run) == {}


def test_a_motor_may_have_one_row_per_step_and_no_other_number():
    model = to_world(HingeJoint, motor=np.ones((3, 1)))
    rollout(model, State(bodies=START), 1e-3, 3)
    with pytest.raises(ValueError, match=r"`joint\.motor` has a series of 3 rows"):
        rollout(model, State(bodies=START), 1e-3, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lower": -1.0}, "must be given together, but limit_stiffness is missing"),
        ({"limit_stiffness": 1.0, "lower": 0.5, "upper": 0.5}, "`lower` must be below `upper`"),
        ({"limit_stiffness": 1.0, "lower": -60.0, "upper": 9.0}, "-pi and pi, got -60 to 9"),
        ({"friction_width": 0.1}, "`friction_width` must come with `dry_friction`"),
        ({"spring_rest": 0.1}, "`spring_rest` must come with `spring_stiffness`"),
        ({"dry_friction": 1.0, "friction_width": 0.0}, "`friction_width` must be"),
        ({"motor": np.zeros((2, 2))}, "`motor` must have shape"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        to_world(HingeJoint, **options)


def test_limits_may_be_one_for_all_joints_or_one_for_each():
    ends = {"lower": -1.0, "upper": [1.0, 2.0]}
    joint = HingeJoint(
        [("a", "b"), ("b", "c")], stiffness=1.0, angular_stiffness=1.0, limit_stiffness=1.0, **ends
    )
    assert np.all(joint.upper == [1.0, 2.0])
    with pytest.raises(ValueError, match="-pi and pi, got -1 to 4"):
        replace(joint, upper=[1.0, 4.0])


def test_without_friction_the_width_is_no_parameter():
    assert "friction_width" not in to_world(HingeJoint).forces["joint"].parameters()
    parameters = to_world(HingeJoint, dry_friction=0.1).forces["joint"].parameters()
    assert parameters["friction_width"] == 0.01
