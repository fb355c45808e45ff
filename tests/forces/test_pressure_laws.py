"""The three laws of pressure: which one a contact has, and bounces by the cubic one."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.pressure_laws import bounce, bouncing, restitution_of
from adjsim.model import Model, State
from adjsim.rollout import rollout


@pytest.mark.parametrize("e", [1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_numbers_of_a_bounce_are_the_inverse_of_the_restitution_with_their_slopes(e):
    (zeta, _), slopes = bounce(e)
    assert restitution_of(zeta) == pytest.approx(e, rel=1e-12)
    h = 1e-5 * e * (1.0 - e)
    ahead, behind = (np.array(bounce(each)[0]) for each in (e + h, e - h))
    np.testing.assert_allclose(slopes, (ahead - behind) / (2.0 * h), rtol=1e-6, atol=1e-7)


def test_without_loss_the_depth_is_that_of_the_energy_and_with_all_lost_half_as_stiff():
    assert bounce(1.0)[0] == (0.0, 1.0)  # m u^2/2 = k c^4/4
    np.testing.assert_allclose(bounce(1.0), bounce(1.0 - 1e-7), atol=1e-6)
    assert bounce(1e-3)[0][1] == pytest.approx(0.5, rel=1e-5)  # in approach G is nearly 2


MASS, E, DEPTH, SPEED = 0.4, 0.6, 2e-3, 1.5


def touch(speed, e):
    """Depths and velocities of a point that arrives at a speed, in small steps."""
    contact = HalfSpaceContact(**bouncing(MASS, e, DEPTH, SPEED))
    steps_per_touch = 2000
    dt = 3.0 * DEPTH * np.sqrt(speed / SPEED) / speed / steps_per_touch
    model = Model([MASS], {"floor": contact}, gravity=(0.0, 0.0, 0.0))
    start = State([[0.0, 0.0, 0.0]], [[0.0, -speed, 0.0]])
    done = rollout(model, start, dt, 4 * steps_per_touch, frames=range(4 * steps_per_touch + 1))
    return -done.x[:, 0, 1], done.v[:, 0, 1]


@pytest.mark.parametrize("e", [0.2, 0.6, 0.9, 1.0])
@pytest.mark.parametrize("speed", [0.1, 1.0, 10.0])
def test_a_point_keeps_the_same_part_of_every_speed_and_sinks_as_deep_as_said(speed, e):
    depths, velocities = touch(speed, e)
    assert velocities[-1] / speed == pytest.approx(e, abs=1e-3)
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
    # slope by h is -e, wherever in a step the touch falls.
    contact = HalfSpaceContact(**bouncing(MASS, E, DEPTH, SPEED))
    model = Model([MASS], {"floor": contact}, gravity=(0.0, 0.0, 0.0))
    slopes = []
    for height in 0.01 + 1e-5 * np.arange(8):
        run = record(model, State([[0.0, height, 0.0]], [[0.0, -SPEED, 0.0]]), 2e-5, 1000)
        adj = np.zeros((1, 1, 3))
        adj[0, 0, 1] = 1.0
        slopes.append(run.vjp(adj)["state.x"][0, 1])
    np.testing.assert_allclose(slopes, -E, atol=1e-3)


def bounced_height(e):
    """Return the height after a bounce under gravity, and its derivative by e, by the adjoint."""
    numbers = bouncing(MASS, e, DEPTH, SPEED)
    model = Model([MASS], {"floor": HalfSpaceContact(**numbers)}, gravity=(0.0, -9.81, 0.0))
    start = State([[0.0, 0.0, 0.0]], [[0.0, -SPEED, 0.0]])
    run = record(model, start, 1e-5, 10000, checkpoint="50MB")
    adj = np.zeros((1, 1, 3))
    adj[0, 0, 1] = 1.0
    gradient = run.vjp(adj, wrt=["floor.cubic_stiffness", "floor.cubic_dissipation"])
    (zeta, q), (zeta_slope, q_slope) = bounce(e)
    k, gamma = numbers["cubic_stiffness"], numbers["cubic_dissipation"]
    rates = (k * q_slope / q, gamma * (zeta_slope / zeta - 0.5 * q_slope / q))
    slope = sum(g * rate for g, rate in zip(gradient.values(), rates, strict=True))
    return run.trajectory.x[-1, 0, 1], slope


def test_the_height_of_a_bounce_follows_the_restitution():
    T, g, h = 0.1, 9.81, 1e-4
    height, slope = bounced_height(E)
    # A hard bounce: y = e u T - g T^2/2. The touch takes about 4 C/u of this time.
    touching = 4.0 * DEPTH / SPEED / T
    assert height == pytest.approx(E * SPEED * T - 0.5 * g * T**2, rel=2.0 * touching)
    assert slope == pytest.approx(SPEED * T, rel=2.0 * touching)
    (above, _), (below, _) = (bounced_height(E + s) for s in (h, -h))
    assert slope == pytest.approx((above - below) / (2.0 * h), rel=1e-5)


def test_the_stable_step_counts_the_stiffness_at_the_deepest():
    model = Model([MASS], {"floor": HalfSpaceContact(**bouncing(MASS, E, DEPTH, SPEED))})
    numbers = bouncing(MASS, E, DEPTH, SPEED)
    k, gamma = numbers["cubic_stiffness"], numbers["cubic_dissipation"]
    c, s = k * gamma * DEPTH / MASS, 6.0 * k * DEPTH**2 / MASS
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


@pytest.mark.parametrize("e", [-0.5, 0.0, 1.0 + 1e-12, 1.2])
def test_a_restitution_is_above_0_and_at_most_1(e):
    with pytest.raises(ValueError, match="`restitution` must be above 0 and at most 1, got"):
        bouncing(1.0, e, 1e-3, 1.0)


def test_a_depth_is_positive():
    with pytest.raises(ValueError, match="`depth` must be positive, got 0"):
        bouncing(1.0, 0.5, 0.0, 1.0)
