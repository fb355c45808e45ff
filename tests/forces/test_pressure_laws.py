"""The three laws of pressure: which one a contact has, and bounces by the cubic one."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.pressure_laws import bouncing, damping_ratio, restitution_of
from adjsim.model import Model, State
from adjsim.rollout import rollout


@pytest.mark.parametrize("e", [1e-3, 0.01, 0.1, np.exp(-2.0), 0.136, 0.5, 0.9, 0.999])
def test_the_damping_ratio_is_the_inverse_of_the_restitution(e):
    zeta, slope = damping_ratio(e)
    assert restitution_of(zeta) == pytest.approx(e, rel=1e-12)
    h = 1e-5 * e * (1.0 - e)
    difference = (damping_ratio(e + h)[0] - damping_ratio(e - h)[0]) / (2.0 * h)
    assert slope == pytest.approx(difference, rel=1e-6)


def test_critical_damping_leaves_exp_of_minus_two():
    assert restitution_of(1.0) == pytest.approx(np.exp(-2.0), rel=1e-15)
    assert restitution_of(1.0 - 1e-5) == pytest.approx(restitution_of(1.0 + 1e-5), rel=1e-4)


MASS, E, DEPTH, SPEED = 0.4, 0.6, 2e-3, 1.5


def bounce(speed, steps_per_touch, gravity=0.0, contact=None):
    """Depths and velocities of a point that arrives at a speed, in small steps."""
    contact = contact or HalfSpaceContact(**bouncing(MASS, E, DEPTH, SPEED))
    depth = DEPTH * np.sqrt(speed / SPEED)
    dt = 3.0 * depth / speed / steps_per_touch
    model = Model([MASS], {"floor": contact}, gravity=(0.0, -gravity, 0.0))
    start = State([[0.0, 0.0, 0.0]], [[0.0, -speed, 0.0]])
    done = rollout(model, start, dt, 4 * steps_per_touch, frames=range(4 * steps_per_touch + 1))
    return -done.x[:, 0, 1], done.v[:, 0, 1]


@pytest.mark.parametrize("speed", [0.3, 1.0, 3.0])
def test_a_point_keeps_the_same_part_of_every_speed_and_sinks_as_deep_as_said(speed):
    depths, velocities = bounce(speed, 2000)
    assert velocities[-1] / speed == pytest.approx(E, rel=1e-3)
    assert depths.max() == pytest.approx(DEPTH * np.sqrt(speed / SPEED), rel=1e-3)


def test_a_point_at_rest_is_as_deep_as_its_weight_presses_it():
    numbers = bouncing(MASS, E, DEPTH, SPEED)
    weight = MASS * 9.81
    depth = (weight / numbers["cubic_stiffness"]) ** (1.0 / 3.0)
    model = Model([MASS], {"floor": HalfSpaceContact(**numbers)}, gravity=(0.0, -9.81, 0.0))
    done = rollout(model, State([[0.0, -depth, 0.0]]), 1e-5, 20000)
    assert -done.x[0, 0, 1] == pytest.approx(depth, rel=1e-9)


def test_the_gradient_is_the_slope_of_the_loss():
    # A point falls from h without gravity and bounces: its height after T is e (s T - h), whose
    # slope by h is -e. A damping that jumps at touch has another one at every step.
    contact = HalfSpaceContact(**bouncing(MASS, E, DEPTH, SPEED))
    model = Model([MASS], {"floor": contact}, gravity=(0.0, 0.0, 0.0))
    slopes = []
    for height in 0.01 + 1e-5 * np.arange(8):
        start = State([[0.0, height, 0.0]], [[0.0, -SPEED, 0.0]])
        run = record(model, start, 2e-5, 1000)
        adj = np.zeros((1, 1, 3))
        adj[0, 0, 1] = 1.0
        slopes.append(run.vjp(adj)["state.x"][0, 1])
    assert np.mean(slopes) == pytest.approx(-E, abs=0.01)
    assert np.std(slopes) < 0.05


def test_the_stable_step_counts_the_stiffness_at_the_deepest():
    model = Model([MASS], {"floor": HalfSpaceContact(**bouncing(MASS, E, DEPTH, SPEED))})
    numbers = bouncing(MASS, E, DEPTH, SPEED)
    k, gamma = numbers["cubic_stiffness"], numbers["cubic_dissipation"]
    c, s = k * gamma * DEPTH / MASS, 3.0 * k * DEPTH**2 / MASS
    assert model.stable_dt() == pytest.approx(4.0 / (c + np.sqrt(c**2 + 4.0 * s)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stiffness": 1.0, "cubic_stiffness": 1.0}, "`stiffness` and `cubic_stiffness` must not"),
        ({"dissipation": 1.0, "cubic_dissipation": 1.0}, "`dissipation` and `cubic_diss.*must not"),
        ({"cubic_dissipation": 1.0}, "`cubic_stiffness` must be given with `cubic_dissipation`"),
        ({"cubic_stiffness": 1.0}, "`deepest` must be positive, got 0"),
    ],
)
def test_a_contact_has_one_law(given, message):
    with pytest.raises(ValueError, match=message):
        HalfSpaceContact(**given)


@pytest.mark.parametrize("e", [0.0, 1.0, 1.2])
def test_a_restitution_is_between_0_and_1(e):
    with pytest.raises(ValueError, match="`restitution` must be between 0 and 1"):
        bouncing(1.0, e, 1e-3, 1.0)


def test_a_depth_is_positive():
    with pytest.raises(ValueError, match="`depth` must be positive, got 0"):
        bouncing(1.0, 0.5, 0.0, 1.0)
