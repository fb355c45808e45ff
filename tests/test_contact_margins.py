"""How far a rollout is from the events of contact: margins, and the nearest touch."""

import numpy as np
import pytest

from adjsim.contact_margins import contact_margins, nearest_touch, stable_dt_along
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.meshes.shapes import shape
from adjsim.model import Model, State, Trajectory
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.stable_step import rate_of, step_of


LAW = {"stiffness": 100.0, "damping": 5.0, "friction_stiffness": 4.0, "friction": 0.5}


def at(contact, x, v=(0.0, 0.0, 0.0)):
    """Margins of one node."""
    model = Model([1.0], {"it": contact})
    states = np.array([[x]], float), np.array([[v]], float)
    return contact_margins(model, Trajectory(np.array([0]), 1.0, *states))["it"]


def test_margins_of_the_law_worked_out_by_hand():
    # c = 0.1, u_n = -2, |u_t| = 5: p = 20, k_f |u_t| - mu p = 20 - 10.
    m = at(HalfSpaceContact(**LAW), (9, -0.1, 9), (3, -2, 4))
    assert m.touch[0, 0] == pytest.approx(0.1)
    assert m.leaving[0, 0] == -2.0
    assert m.slip[0, 0] == pytest.approx(10.0)
    assert m.shape.shape == (1, 1, 0)
    apart = at(SphereContact(**LAW), (0, 3, 0))
    np.testing.assert_array_equal(apart.all(), [-2.0, np.nan, np.nan])


def test_the_stable_step_counts_the_damping_at_the_depth_of_a_rollout():
    # f = k c (1 - d u_n): slope k, damping k d c, with c = 0.3 where 0.1 was expected
    contact = HalfSpaceContact(stiffness=100.0, dissipation=2.0, deepest=0.1)
    model = Model([1.0, 1.0], {"floor": contact})
    x = np.array([[[0.0, 0.2, 0.0], [0.0, 1.0, 0.0]], [[0.0, -0.3, 0.0], [0.0, 1.0, 0.0]]])
    run = Trajectory(np.array([0, 1]), 1.0, x, np.zeros_like(x))
    rates = [rate_of(np.array([100.0]), np.array([100.0 * 2.0 * c])) for c in (0.1, 0.3)]
    assert model.stable_dt() == pytest.approx(step_of(rates[0]))
    assert stable_dt_along(model, run) == pytest.approx(step_of(rates[1]))
    run = Trajectory(np.array([0]), 1.0, x[:1], x[:1])
    assert stable_dt_along(model, run) == model.stable_dt()


@pytest.mark.parametrize(
    ("contact", "x", "expected"),
    [
        (CapsuleContact(half_length=2.0, radius=1.0), (1.5, 1.75, 0), (-0.25, 3.75)),
        (BoxContact(radius=1.0), (1.5, 0.5, 0), (np.nan, -0.5, -1.0)),  # face x
        (BoxContact(radius=1.0), (1.5, 1.25, 0), (0.5, 0.25, -1.0)),  # edge
        (BoxContact(), (0.5, 0.25, 0.0), (0.25, 0.5, np.nan)),  # inside: x before y and -x
        (BoxContact(), (0.1, -0.75, 0.5), (0.25, -0.75, np.nan)),  # inside: -y before z
    ],
)
def test_margins_of_the_shapes_worked_out_by_hand(contact, x, expected):
    np.testing.assert_allclose(at(contact, x).shape[0, 0], expected, atol=1e-15)


def test_the_nearest_touch_is_where_one_more_step_would_change_the_motion():
    # Free fall onto a floor: x_k by exact sums. State 3 is the last one above it.
    dt, start = 0.1, 0.7
    model = Model([1.0, 1.0], {"floor": HalfSpaceContact(**LAW)}, gravity=(0.0, -10.0, 0.0))
    state = State([[0.0, 5.0, 0.0], [0.0, start, 0.0]])
    run = rollout(model, state, dt, 4, frames=range(4))
    heights = start - 10.0 * dt**2 * np.array([0, 1, 3, 6])
    np.testing.assert_allclose(run.x[:, 1, 1], heights)
    touch = nearest_touch(model, run)
    assert (touch.force, touch.node, touch.step) == ("floor", 1, 3)
    assert touch.distance == pytest.approx(0.1)
    assert touch.speed == pytest.approx(3.0)
    # By less it may be lowered, and every touch stays in its step; by more, not.
    steps = {}
    for lowered in (0.0, 0.99 * touch.distance, 1.01 * touch.distance):
        moved = State(state.x - [0.0, lowered, 0.0])
        deep = contact_margins(model, rollout(model, moved, dt, 4, frames=range(4)))["floor"].touch
        steps[lowered] = (deep > 0.0).sum()
    assert list(steps.values()) == [0, 0, 1]


def test_a_moving_obstacle_is_where_it_is_in_each_step():
    heights = np.array([0.0, 0.1, 0.3])
    model = Model([1.0], {"lift": HalfSpaceContact(height=heights)}, gravity=(0, 0, 0))
    run = rollout(model, State([[0.0, 1.0, 0.0]]), 0.1, 3, frames=range(4))
    margins = contact_margins(model, run)["lift"]
    np.testing.assert_allclose(margins.touch[:, 0], heights - 1.0)
    np.testing.assert_array_equal(margins.steps, [0, 1, 2])  # no force acts on state 3


def test_the_margins_of_a_body_are_those_of_its_vertices():
    # A cube of edge 2 m, half a metre above the floor, then turned by 90 degrees about z.
    cube = RigidBodies(shape("cube"), mass=1.0)
    half = np.abs(cube.arms).max()
    floor = HalfSpaceContact(acts_on="cube", contact_nodes=[0, 3, 5], **LAW)
    model = Model([1.0], {"floor": floor, "under": HalfSpaceContact(**LAW)}, bodies={"cube": cube})
    turned = BodyState([0, half + 0.5, 0], [0, 0, 1, 1], [0, -2, 0], [0, 0, 3])
    state = State([[0, 9, 0]], bodies={"cube": turned})
    margins = contact_margins(model, rollout(model, state, 0.1, 1, frames=[0]))
    x, y, _ = cube.arms[[0, 3, 5]].T  # a quarter turn: (x, y) to (-y, x)
    np.testing.assert_allclose(margins["floor"].touch, -(half + 0.5 + x)[None], atol=1e-14)
    np.testing.assert_allclose(margins["floor"].leaving, (-2 - 3 * y)[None], atol=1e-14)
    np.testing.assert_array_equal(margins["floor"].nodes, [0, 3, 5])
    assert margins["under"].touch[0, 0] == -9.0


def test_without_contact_there_is_no_event():
    model = Model([1.0])
    run = rollout(model, State([[0.0, 1.0, 0.0]]), 0.1, 3)
    assert contact_margins(model, run) == {}
    assert nearest_touch(model, run) is None


def test_a_trajectory_of_other_nodes_is_refused():
    run = rollout(Model([1.0]), State([[0.0, 1.0, 0.0]]), 0.1, 3)
    with pytest.raises(ValueError, match="`trajectory` must have the model's 2 nodes"):
        nearest_touch(Model([1.0, 1.0]), run)
    bodies = {"cube": RigidBodies(shape("cube"), mass=1.0)}
    with pytest.raises(
        ValueError, match="`trajectory` must have the model's bodies, cube; got none"
    ):
        nearest_touch(Model([1.0], bodies=bodies), run)
