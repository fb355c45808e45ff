"""Joints find their bodies, refuse bad input, and bound the stable step."""

import numpy as np
import pytest

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.joints.driven import HingeJoint
from adjsim.joints.joint import BallJoint, WeldJoint, frames_at
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.placing import point_states
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.rigid.scenes import box


SIZE = (0.2, 0.3, 0.4)
BLOCKS = RigidBodies([box(SIZE)] * 3, density=500.0)
X = np.outer(np.arange(3.0), (0.2, 0.1, 0.0))


def blocks(*joints, n=3, **more):
    """A model of three blocks with some joints."""
    named = {f"j{k}": joint for k, joint in enumerate(joints)}
    return Model(
        forces=named | more, bodies={"blocks": BLOCKS, "alone": RigidBodies(box(), mass=1)}
    )


def test_only_bodies_in_joints_offer_frame_points():
    model = blocks(BallJoint(("blocks.2", "blocks"), stiffness=1.0))
    jointed = model.bodies["blocks"]
    assert jointed.framed == (0, 2)
    assert model.bodies["alone"] is not None
    assert model.bodies["alone"].framed == ()
    assert (jointed.n_points, len(jointed.hull)) == (24 + 8, 24)
    assert model.forces["j0"].rows.tolist() == [[28, 29, 30, 31, 8, 9, 10, 11]]
    np.testing.assert_array_equal(jointed.arms[28:], np.vstack([np.zeros(3), np.eye(3)]))
    np.testing.assert_array_equal(jointed.arms[jointed.hull], BLOCKS.arms)
    free = Model(bodies=model.bodies)
    assert free.bodies["blocks"].framed == ()  # nothing asks for them any more


def test_frame_points_are_no_vertices_and_touch_nothing():
    floor = HalfSpaceContact(stiffness=10.0, height=-0.5, acts_on="blocks")
    model = blocks(BallJoint(("blocks.0", "blocks.1"), stiffness=1.0), floor=floor)
    assert len(model.forces["floor"].nodes) == 24
    state = State(bodies={"blocks": BodyState(X), "alone": BodyState([5.0, 0.0, 0.0])})
    x, _ = point_states(model.bodies["blocks"], rollout(model, state, 1e-4, 1).bodies["blocks"])
    assert x.shape[1] == 24 + 8
    model.with_values(state, {"blocks.vertices": BLOCKS.vertices * 1.1})


def test_frames_hold_bodies_as_they_are(rng):
    states = {"blocks": BodyState(X, rng.standard_normal((3, 4)))}
    pairs = [("blocks.0", "blocks.1"), ("blocks.1", "blocks.2")]
    at = [[0.1, 0.0, 0.0], [0.3, 0.1, 0.2]]
    frames = frames_at(pairs, states, at, axis=[[0.0, 2.0, 0.0], [1.0, 1.0, 0.0]])
    joint = HingeJoint(pairs, stiffness=1e3, angular_stiffness=10.0, spring_stiffness=1.0, **frames)
    model = Model(forces={"joint": joint}, gravity=(0.0, 0.0, 0.0), bodies={"blocks": BLOCKS})
    x, v = point_states(
        model.bodies["blocks"],
        rollout(model, State(bodies=states), 1e-3, 1, frames=[0]).bodies["blocks"],
    )
    q, rate = model.forces["joint"].coordinates(x, v)
    np.testing.assert_allclose(q, 0.0, atol=1e-15)
    np.testing.assert_allclose(rate, 0.0, atol=1e-15)
    end = rollout(model, State(bodies=states), 1e-3, 50)
    np.testing.assert_allclose(end.bodies["blocks"].position[-1], X, rtol=0, atol=1e-13)


def test_a_joint_to_the_world_holds_a_body_where_it_is():
    frames = frames_at((None, "blocks.1"), {"blocks": BodyState(X)}, X[1], axis=(0.0, 0.0, 1.0))
    weld = WeldJoint(
        (None, "blocks.1"), stiffness=1e5, damping=500.0, angular_stiffness=1e4,
        angular_damping=20.0, **frames,
    )  # fmt: skip
    model = blocks(weld)
    state = State(bodies={"blocks": BodyState(X), "alone": BodyState([5.0, 0.0, 0.0])})
    end = rollout(model, state, 2e-4, 5000)
    mass = BLOCKS.masses[1]
    assert end.bodies["blocks"].position[-1, 1] - X[1] == pytest.approx(
        [0.0, -9.8 * mass / 1e5, 0.0], abs=1e-9
    )


@pytest.mark.parametrize("kind", [BallJoint, WeldJoint, HingeJoint])
@pytest.mark.parametrize("damping", [0.0, 5.0])
@pytest.mark.parametrize("world", [True, False])
def test_the_stable_step_is_stable_and_not_much_too_short(kind, damping, world):
    # Two small light blocks: levers of 1 m say nothing of their inertia.
    small = RigidBodies([box((0.02, 0.03, 0.04))] * 2, density=500.0)
    start = BodyState([[0.0, 0.0, 0.0], [0.0, 0.05, 0.0]])
    pair = (None if world else "small.0", "small.1")
    options = {"stiffness": 400.0, "damping": 0.05 * damping}
    if kind is not BallJoint:
        options |= {"angular_stiffness": 0.2, "angular_damping": 1e-5 * damping}
    axis = None if kind is BallJoint else (1.0, 0.0, 0.0)
    joint = kind(pair, **options, **frames_at(pair, {"small": start}, (0.0, 0.02, 0.01), axis))
    model = Model(forces={"joint": joint}, gravity=(0.0, 0.0, 0.0), bodies={"small": small})
    kick = BodyState(start.position, velocity=[[0.0] * 3, [1e-5, 2e-5, -1e-5]],
                     angular_velocity=[[0.0] * 3, [1e-3, -2e-3, 1e-3]])  # fmt: skip
    dt = model.stable_dt()

    def grows(factor):
        end = rollout(model, State(bodies={"small": kick}), factor * dt, 3000, on_divergence="mark")
        return not np.abs(end.bodies["small"].angular_velocity[-1]).max() < 0.1

    assert not grows(0.99)
    assert grows(2.1)  # bounding each body apart costs at most a factor of 2 in the stiffness


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ([], "`bodies` must be pairs of bodies"),
        ("blocks", "`bodies` must be pairs of bodies"),
        (("blocks.1", "blocks.1"), "two different bodies, got blocks.1 twice"),
        (("blocks.x", "blocks.1"), "`bodies` must name a body"),
        (("blocks.²", "blocks.1"), "`bodies` must name a body"),
        ([(None, "blocks.0"), ("blocks.0", "blocks.1")], "a force of their own"),
        ((None, None), "`bodies` must name a body"),
    ],
)
def test_bodies_that_make_no_joint_are_refused(bodies, message):
    with pytest.raises(ValueError, match=message):
        BallJoint(bodies, stiffness=1.0)


def test_bodies_that_the_model_does_not_have_are_refused():
    with pytest.raises(ValueError, match=r"Unknown set of bodies in `j0` `block`\. Did you mean"):
        blocks(BallJoint(("block.0", "blocks.1"), stiffness=1.0))
    with pytest.raises(ValueError, match="`j0` must act on bodies that there are: `blocks` has 3"):
        blocks(BallJoint(("blocks.0", "blocks.3"), stiffness=1.0))


def test_values_are_checked():
    with pytest.raises(ValueError, match="`stiffness`"):
        BallJoint(("a", "b"), stiffness=-1.0)
    with pytest.raises(ValueError, match=r"`stiffness` must be an array .* no number, got None"):
        BallJoint(("a", "b"), stiffness=None)
    with pytest.raises(ValueError, match=r"`angular_stiffness` must be .* got None"):
        HingeJoint(("a", "b"), stiffness=1.0, angular_stiffness=None)
    with pytest.raises(ValueError, match="`anchor_a`"):
        BallJoint(("a", "b"), stiffness=1.0, anchor_a=[1.0, 2.0])
    with pytest.raises(ValueError, match="`orientation_b` must not be a quaternion of length 0"):
        WeldJoint(("a", "b"), stiffness=1.0, angular_stiffness=1.0, orientation_b=[0, 0, 0, 0])
    with pytest.raises(ValueError, match="set of bodies"):
        frames_at(("a", "b"), {"c": BodyState(np.zeros(3))}, (0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match=r"`bodies` must name one of `a\.0` to `\.0`, got a\.9"):
        frames_at((None, "a.9"), {"a": BodyState(np.zeros(3))}, (0.0, 0.0, 0.0))
