"""What the pendula share: states, checks, and what happens when numbers end."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint import record, rollout_jvp
from adjsim import RolloutError
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rollout import rollout


def test_a_state_without_a_rate_is_at_rest():
    np.testing.assert_array_equal(PendulumState((0.1, 0.2)).rate, [0.0, 0.0])


BAD_STATES = [
    ((np.nan,), "`angle` must be finite"),
    ((0.1, np.inf), "`rate` must be finite"),
    (((0.1, 0.2), 0.3), r"`rate` must have shape \(2,\), got \(\)"),
]


@pytest.mark.parametrize(("given", "message"), BAD_STATES)
def test_a_state_that_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        PendulumState(*given)


def test_a_state_of_another_pendulum_is_refused():
    with pytest.raises(ValueError, match=r"`state.angle` must have shape \(2,\), got \(\)"):
        rollout(DoublePendulum((1.0, 1.0)), PendulumState(0.3), 0.1, 2)
    with pytest.raises(ValueError, match="As a SimplePendulum has"):
        rollout(SimplePendulum(1.0), PendulumState((0.3, 0.1)), 0.1, 2)


def test_a_torque_for_another_number_of_steps_is_refused():
    pendulum = SimplePendulum(1.0, torque=np.ones(5))
    with pytest.raises(ValueError, match=r"`torque` has a series of 5 rows.* has 4 steps"):
        rollout(pendulum, PendulumState(0.3), 0.1, 4)


@pytest.mark.parametrize("run", [rollout, record])
def test_a_rollout_that_leaves_the_finite_numbers_names_step_and_time(run):
    # damped far beyond stability, (b/m) dt = 1e6: |u| grows by 1e6 a step, 1e308 after 51
    pendulum = SimplePendulum(1.0, damping=1e7)
    with pytest.raises(RolloutError, match=r"in step 51 \(t = 5.1 s\).*Try a smaller `dt`"):
        run(pendulum, PendulumState(0.0, 1.0), 0.1, 80)
    with pytest.raises(RolloutError, match="in step 51 "):
        rollout_jvp(pendulum, PendulumState(0.0, 1.0), 0.1, 80, {"length": 1.0})


def test_values_are_replaced_by_path():
    pendulum, state = SimplePendulum(1.0).with_values(
        PendulumState(0.1), {"length": 2.0, "state.rate": 3.0}
    )
    assert (pendulum.length, state.rate, state.angle, pendulum.mass) == (2.0, 3.0, 0.1, 1.0)


def test_a_pendulum_declares_every_parameter_it_has():
    for pendulum in (SimplePendulum(1.0), DoublePendulum((1.0, 1.0))):
        assert "center_of_mass" not in pendulum.parameters()
        given = replace(pendulum, center_of_mass=pendulum.length)
        assert list(given.parameters()) == [p.name for p in pendulum.PARAMETERS]


def test_a_centre_of_mass_that_is_not_given_moves_with_the_length():
    state, n_steps = PendulumState((0.9, 2.0), (-1.1, 0.6)), 9
    tied = DoublePendulum((1.3, 0.8), (0.7, 1.1), inertia=(0.1, 0.2))
    apart = replace(tied, center_of_mass=tied.length)
    adj = np.ones((1, 2))
    slopes = record(tied, state, 0.02, n_steps).vjp(adj, adj)
    parts = record(apart, state, 0.02, n_steps).vjp(adj, adj)
    np.testing.assert_array_equal(slopes["length"], parts["length"] + parts["center_of_mass"])
    assert "center_of_mass" not in slopes
    tangent = {"length": np.array([0.3, -0.2])}
    both = {**tangent, "center_of_mass": tangent["length"]}
    _, pushed = rollout_jvp(tied, state, 0.02, n_steps, tangent)
    _, other = rollout_jvp(apart, state, 0.02, n_steps, both)
    np.testing.assert_array_equal(pushed.angle, other.angle)
