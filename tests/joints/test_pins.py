"""Pins: closed form, the contract, and a node that hangs on a body."""

import numpy as np
import pytest

from adjoint.verify.contract import InternalForceContract
from adjsim.joints.pins import Pins
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.rigid.scenes import box


class TestPins(InternalForceContract):
    def make(self, rng):
        pairs = np.column_stack([np.arange(20), np.arange(1, 21)])
        return Pins(pairs, rng.uniform(5.0, 9.0, 20))

    def state(self, rng, force):
        del force
        return State(*rng.standard_normal((2, 21, 3)))

    def energy(self, force, x):
        r = x[force.nodes[:, 1]] - x[force.nodes[:, 0]]
        return float(0.5 * (force.stiffness * (r**2).sum(axis=1)).sum())

    def at_rest(self, force):
        return force

    @pytest.mark.skip("pins have no rest positions")
    def test_nothing_pulls_at_rest(self, case):
        del case


class TestDampedPins(TestPins):
    def make(self, rng):
        return Pins([(0, 1), (1, 2)] * 9, 6.0, rng.uniform(0.5, 0.9, 18))

    def state(self, rng, force):
        del force
        return State(*rng.standard_normal((2, 3, 3)))

    @pytest.mark.skip("the damper has a moment r x c r'")
    def test_forces_and_torques_sum_to_zero(self, case):
        del case

    @pytest.mark.skip("the damper feels a rigid turn of r")
    def test_force_turns_with_the_body(self, case):
        del case


def test_a_node_hangs_on_a_point_of_a_body():
    block = RigidBodies(box(), mass=1e6, points={"tip": BodyPoint([0.2, 0.3, 0.4])})
    pins = Pins([(0, "block.tip")], 100.0, 2.0, acts_on=("nodes", "block"))
    model = Model([0.5], {"pin": pins}, bodies={"block": block})
    at = np.array([1.0, 2.0, 3.0])
    start = at + block.point_positions[0] - block.centers[0]
    state = State([start], [[0.0, 0.0, 0.0]], {"block": BodyState(at)})
    end = rollout(model, state, 1e-3, 4000)
    fall = end.x[-1, 0] - start - (end.bodies["block"].position[-1, 0] - at)
    assert fall == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)  # both fall alike


def test_a_pin_between_a_point_and_itself_is_refused():
    with pytest.raises(ValueError, match=r"`pin\.pairs` must join two different points"):
        Model([1.0, 1.0], {"pin": Pins([(0, 0)], 1.0)})


def test_a_pin_without_stiffness_is_refused():
    with pytest.raises(ValueError, match=r"`stiffness` must be an array .* no number, got None"):
        Pins([(0, 1)], None)
