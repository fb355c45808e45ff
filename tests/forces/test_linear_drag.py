"""Drag per mass: closed forms, what masses do, the reference, the contract, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.verify.contract import EPS, ForceContract
from adjsim.forces.external import ExternalForces
from adjsim.forces.linear_drag import LinearDrag
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.forces.complex_steps import check_one_step
from tests.reference import linear_drag as reference


N_NODES, N_DRAGS = 30, 21  # two tiles
NODES = np.random.default_rng(3).integers(0, N_NODES, N_DRAGS)  # some of them twice


def pushed(rng, drag):
    """A model with forces too, without which masses would not matter, its state, and a step."""
    push = ExternalForces(np.arange(N_NODES), rng.standard_normal((N_NODES, 3)))
    model = Model(rng.uniform(0.5, 2.0, N_NODES), {"it": drag, "push": push})
    return model, State(*rng.standard_normal((2, N_NODES, 3))), 0.1


class TestLinearDrag(ForceContract):
    @pytest.fixture
    def moving(self, rng, case):
        return pushed(rng, case[0])

    def make(self, rng):
        return LinearDrag(rng.uniform(0.5, 2.0, N_DRAGS), NODES)

    def state(self, rng, force):
        return State(*rng.standard_normal((2, N_NODES, 3)))


class TestOneRateForAll(TestLinearDrag):
    def make(self, rng):
        return LinearDrag(1.3)


def test_all_nodes_slow_down_alike_and_a_fall_ends_at_g_over_the_rate():
    # v' = v + dt (g - kappa v) has v = (g/kappa) (1 - (1 - dt kappa)^k).
    rate, dt, g = 4.0, 0.01, 9.8
    model = Model([0.1, 20.0], {"air": LinearDrag(rate)}, gravity=(0, -g, 0))
    frames = [1, 30, 2000]
    run = rollout(model, State(np.zeros((2, 3))), dt, 2000, frames=frames)
    expected = -g / rate * (1.0 - (1.0 - dt * rate) ** np.array(frames))
    np.testing.assert_allclose(run.v[:, :, 1], expected[:, None] * [1, 1], rtol=1e-12)
    assert expected[-1] == pytest.approx(-g / rate, rel=1e-12)


def test_the_gradient_of_a_mass_counts_that_its_drag_grows_with_it(rng):
    # The motion does not depend on masses: what w = 1/m and kappa m say cancels.
    model = Model(rng.uniform(0.5, 2.0, N_NODES), {"air": TestLinearDrag().make(rng)})
    run = record(model, TestLinearDrag().state(rng, None), 0.1, 5)
    gradient = run.vjp(*rng.standard_normal((2, 1, N_NODES, 3)), wrt=["mass", "air.rate"])
    assert np.abs(gradient["mass"]).max() <= 100 * EPS * np.abs(gradient["air.rate"]).max()


def test_a_pinned_node_moves_on():
    model = Model([2.0], {"air": LinearDrag(3.0)}, pinned=[True])
    run = record(model, State([[0.0, 0, 0]], [[1.0, 2, 3]]), 0.1, 3)
    np.testing.assert_array_equal(run.trajectory.v[0, 0], [1.0, 2, 3])
    gradient = run.vjp(np.ones((1, 1, 3)))
    assert gradient["air.rate"] == 0.0
    assert gradient["mass"] == 0.0


def test_forces_and_gradient_equal_the_reference(rng):
    model, state, dt = pushed(rng, TestLinearDrag().make(rng))

    def references(at):
        return [
            lambda k, x, v: reference.forces(v, at["mass"], NODES, at["it.rate"]),
            lambda k, x, v: at["push.force"],
        ]

    check_one_step(model, state, dt, references, rng)


def test_steps_are_stable_up_to_two_over_the_rate():
    model = Model([0.1, 20.0], {"air": LinearDrag([4.0, 3.0])})
    assert model.stable_dt() == pytest.approx(0.5, rel=1e-12)


def test_other_masses_and_rates_are_taken_up():
    model, state = Model([1.0, 2.0], {"air": LinearDrag([2.0], [1])}), State(np.zeros((2, 3)))
    moved, _ = model.with_values(state, {"mass": [3.0, 5.0], "air.rate": [4.0]})
    assert moved.forces["air"].pack_params().tolist() == [[20.0]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((-1.0,), "`rate` must not be negative, got -1"),
        ((np.inf,), "`rate` must be finite, got inf"),
        ((1.0, [0.5]), "`drag_nodes` must hold integers, got float64"),
        ((1.0, [3]), r"`air.drag_nodes` must index the 3 points, 0 to 2, got 3 at row 0"),
        (([1.0, 2.0],), r"`air.rate` must have shape \(\) or \(n_drags,\) = \(3,\), got \(2,\)"),
    ],
)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        Model(np.ones(3), {"air": LinearDrag(*given)})
