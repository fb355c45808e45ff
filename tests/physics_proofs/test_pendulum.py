"""Pendula against closed forms and an independent solver; `pytest -s` prints the figures."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rollout import rollout
from tests.reference import pendulum as reference


LENGTH, GRAVITY = 0.7, 9.8
OMEGA = np.sqrt(GRAVITY / LENGTH)


def told(numbers):
    """Numbers as text, three digits each."""
    return ", ".join(f"{number:.3g}" for number in numbers)


def periods(angle, rate, dt, n_periods):
    """Time of one period [s]: of a run, by its upward zeros, and by the elliptic integral."""
    m = np.sin(angle / 2.0) ** 2 + (rate / (2.0 * OMEGA)) ** 2  # sin^2 of half the amplitude
    exact = 4.0 / OMEGA * ellipk(m)
    n_steps = int((n_periods + 1.5) * exact / dt)
    pendulum = SimplePendulum(LENGTH, gravity=GRAVITY)
    run = rollout(pendulum, PendulumState(angle, rate), dt, n_steps, frames=range(n_steps + 1))
    q = run.angle
    before = np.flatnonzero((q[:-1] < 0.0) & (q[1:] >= 0.0))
    zeros = dt * (before + q[before] / (q[before] - q[before + 1]))
    return (zeros[-1] - zeros[0]) / (len(zeros) - 1), exact


def test_a_small_swing_has_the_period_of_the_linear_oscillator():
    # Symplectic Euler on q'' = -w^2 q turns by w* dt each step with sin(w* dt/2) = w dt/2
    dt = 0.01
    found, exact = periods(1e-5, 0.0, dt, 40)
    expected = np.pi * dt / np.arcsin(OMEGA * dt / 2.0)
    off, off_exact = found / expected - 1.0, found / exact - 1.0
    print(f"\nsmall swing: period off the scheme's by {off:.1e}, off the exact by {off_exact:.1e}")
    np.testing.assert_allclose(exact, 2 * np.pi / OMEGA, rtol=1e-10)
    # zeros by interpolation: cubic terms (w dt)^3/16 of a step, over 40 periods
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    np.testing.assert_allclose(found, exact, rtol=(OMEGA * dt) ** 2 / 10)


# The scheme is a leapfrog whose rate is half a step late. Let go at rest that shifts the energy
# by dt^2, started in motion by dt: so does the period of a wide swing.
@pytest.mark.parametrize(
    ("angle", "rate", "order"), [(0.5, 0.0, 2), (2.0, 0.0, 2), (3.0, 0.0, 2), (1.5, 3.0, 1)]
)
def test_a_wide_swing_has_the_period_of_the_elliptic_integral(angle, rate, order):
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        found, exact = periods(angle, rate, dt, 6)
        errors.append(found / exact - 1.0)
    slope = np.log2(np.abs(errors[:-1]) / np.abs(errors[1:]))
    print(
        f"\nswing from {angle} rad, {rate} rad/s: period off by {told(errors)}, slope {told(slope)}"
    )
    assert abs(errors[-1]) < 1e-3
    assert (np.abs(slope - order) < 0.1).all()


DOUBLE = {
    "length": np.array([1.0, 0.8]), "mass": np.array([1.2, 0.7]),
    "damping": np.array([0.1, 0.05]), "gravity": GRAVITY,
}  # fmt: skip
START = np.array([1.2, -0.6, 0.5, 1.0])


def solver(time, torque):
    """Angles and rates at one time by Dormand-Prince of order 8."""

    def rate(t, y):
        return np.concatenate([y[2:], reference.double(y[:2], y[2:], torque=torque, **DOUBLE)])

    return solve_ivp(rate, (0.0, time), START, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]


def test_a_double_pendulum_is_of_first_order_against_a_solver_of_order_8():
    torque, time = np.array([0.3, -0.2]), 1.0
    exact = solver(time, torque)
    system, state = DoublePendulum(torque=torque, **DOUBLE), PendulumState(START[:2], START[2:])
    errors = []
    for n_steps in (1000, 2000, 4000, 8000):
        run = rollout(system, state, time / n_steps, n_steps)
        errors.append(np.abs(np.concatenate([run.angle[0], run.rate[0]]) - exact).max())
    slope = np.log2(np.divide(errors[:-1], errors[1:]))
    extrapolated = richardson(system, state, time, 4000) - exact
    print(
        f"\ndouble pendulum after {time} s: off by {told(errors)}, slope {told(slope)}, "
        f"extrapolated {np.abs(extrapolated).max():.1e}"
    )
    assert (np.abs(slope - 1.0) < 0.05).all()
    # the error's next term is of second order: 2 (1/4000)^2 times derivatives of some hundreds
    assert np.abs(extrapolated).max() < 1e-4


def richardson(system, state, time, n_steps):
    """State at a time, the first-order error removed."""
    ends = []
    for n in (n_steps, 2 * n_steps):
        run = rollout(system, state, time / n, n)
        ends.append(np.concatenate([run.angle[0], run.rate[0]]))
    return 2.0 * ends[1] - ends[0]


def drift(system, state, mass, dt, time):
    """Largest change of energy [J] on the way, without damping."""
    n_steps = round(time / dt)
    run = rollout(system, state, dt, n_steps, frames=range(n_steps + 1))
    angle, rate = (np.reshape(part, (n_steps + 1, -1)) for part in (run.angle, run.rate))
    length = np.ravel(system.length)
    if len(length) == 1:  # a rod of no length and no mass at its end
        angle, rate = (np.repeat(part, 2, axis=1) for part in (angle, rate))
        length, mass = np.array([length[0], 0.0]), np.array([mass, 0.0])
    energy = reference.energy(angle, rate, length, mass, GRAVITY)
    return np.abs(energy - energy[0]).max()


def test_the_energy_of_an_undamped_pendulum_drifts_with_dt_and_does_not_grow():
    system, state = SimplePendulum(LENGTH, gravity=GRAVITY), PendulumState(2.0)
    drifts = [drift(system, state, 1.0, dt, 4.0) for dt in (4e-3, 2e-3, 1e-3)]
    slope = np.log2(np.divide(drifts[:-1], drifts[1:]))
    early, late = (drift(system, state, 1.0, 1e-2, time) for time in (10.0, 1000.0))
    print(f"\nenergy of a pendulum: drift {told(drifts)} J, slope {told(slope)}")
    print(f"at dt = 1e-2 s: {early:.3e} J over 10 s, {late:.3e} J over 1000 s")
    assert (np.abs(slope - 1.0) < 0.05).all()
    assert late < 1.05 * early  # symplectic: bounded, not growing


def test_the_energy_of_an_undamped_double_pendulum_drifts_with_dt():
    system = DoublePendulum(DOUBLE["length"], DOUBLE["mass"], gravity=GRAVITY)
    state = PendulumState(START[:2], START[2:])
    drifts = [drift(system, state, DOUBLE["mass"], dt, 2.0) for dt in (1e-3, 5e-4, 2.5e-4)]
    slope = np.log2(np.divide(drifts[:-1], drifts[1:]))
    print(f"\nenergy of a double pendulum: drift {told(drifts)} J, slope {told(slope)}")
    assert (np.abs(slope - 1.0) < 0.1).all()
