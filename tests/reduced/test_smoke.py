"""Smoke: the contract of a system, invariances of its steps, and what it refuses."""

import numpy as np
import pytest

from adjoint import record, rollout_jvp
from adjsim import RolloutError
from adjsim.reduced.smoke import Smoke, SmokeState
from adjsim.rollout import rollout
from tests.reduced.contract import SystemContract
from tests.reference import smoke as reference


class TestSmoke(SystemContract):
    FIELDS = ("velocity", "density")
    N_STEPS, FRAMES, DT = 5, (0, 2, 5), 1.0
    FIRST_STEP = 1e-5  # no lookup is nearer to the border of its cell

    def make(self, rng):
        return Smoke((6, 7)), SmokeState(rng.standard_normal((6, 7, 2)), rng.random((6, 7)))

    def reference(self, values, n_steps):
        return reference.rollout(values["state.velocity"], values["state.density"], n_steps)


def test_the_lookups_of_the_contract_are_inside_their_cells(rng):
    smoke, state = TestSmoke().make(rng)
    u = rollout(smoke, state, 1.0, 5, frames=range(6)).velocity
    assert np.abs(u - np.rint(u)).min() > 20 * TestSmoke.FIRST_STEP


def test_smoke_at_rest_stays():
    density = np.arange(12.0).reshape(3, 4)
    run = rollout(Smoke((3, 4)), SmokeState(np.zeros((3, 4, 2)), density), 0.1, 3)
    np.testing.assert_array_equal(run.density[0], density)
    np.testing.assert_array_equal(run.velocity[0], 0.0)


def test_a_uniform_wind_carries_the_density_along():
    density = np.arange(12.0).reshape(3, 4)
    wind = np.broadcast_to([1.0, 0.0], (3, 4, 2))
    run = rollout(Smoke((3, 4)), SmokeState(wind, density), 0.1, 3)
    # the projection leaves the mean to rounding, which the density's slopes of 8 multiply
    np.testing.assert_allclose(run.density[0], np.roll(density, 3, axis=1), rtol=0, atol=1e-13)


def test_the_step_size_does_not_enter(rng):
    smoke, state = TestSmoke().make(rng)
    slow, fast = (rollout(smoke, state, dt, 3, frames=[1, 3]) for dt in (1.0, 0.01))
    np.testing.assert_array_equal(slow.density, fast.density)
    np.testing.assert_allclose(fast.times, [0.01, 0.03], rtol=1e-15)


def test_a_flow_that_leaves_the_finite_numbers_names_step_and_time():
    smoke, state = Smoke((4, 4)), SmokeState(np.full((4, 4, 2), 1e308), np.ones((4, 4)))
    with pytest.raises(RolloutError, match=r"in step 0 \(t = 0 s\).*smaller initial velocity"):
        rollout(smoke, state, 0.1, 3)
    with pytest.raises(RolloutError, match="in step 0 "):
        record(smoke, state, 0.1, 3)
    with pytest.raises(RolloutError, match="in step 0 "):
        rollout_jvp(smoke, state, 0.1, 3, {"state.density": np.ones((4, 4))})


BAD_STATES = [
    (np.zeros((3, 4, 3)), np.zeros((3, 4)), r"`velocity` must have shape \(3, 4, 2\), got"),
    (np.zeros((4, 3, 2)), np.zeros((3, 4)), "One vector .* for each cell of `density`"),
    (np.zeros((3, 4, 2)), np.zeros(4), r"`density` must have shape \(N_y, N_x\), got \(4,\)"),
    (np.full((3, 4, 2), np.nan), np.zeros((3, 4)), "`velocity` must be finite"),
    (np.zeros((3, 4, 2)), np.full((3, 4), np.inf), "`density` must be finite"),
]


@pytest.mark.parametrize(("velocity", "density", "message"), BAD_STATES)
def test_a_state_that_makes_no_sense_is_refused(velocity, density, message):
    with pytest.raises(ValueError, match=message):
        SmokeState(velocity, density)


@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (0, 0)])
def test_too_few_cells_are_refused(shape):
    with pytest.raises(ValueError, match="`shape` must have at least 2 cells along each axis"):
        Smoke(shape)


@pytest.mark.parametrize("shape", [4, (4, 4, 4), (4.5, 4)])
def test_a_shape_that_is_none_is_refused(shape):
    with pytest.raises(ValueError, match="`shape` must"):
        Smoke(shape)


def test_a_state_on_another_grid_is_refused():
    state = SmokeState(np.zeros((3, 4, 2)), np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"`state.density` must have shape \(4, 3\)"):
        rollout(Smoke((4, 3)), state, 0.1, 2)
