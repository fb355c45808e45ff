"""Pendula against closed forms and an independent solver; `pytest -s` prints the figures."""

from dataclasses import replace

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
MASS_ON_A_ROD = SimplePendulum(LENGTH, gravity=GRAVITY)
# A bar that is heavier below: m g c = 1.3 * 9.8 * 0.4, J = I + m c^2
MASS, CENTER, INERTIA = 1.3, 0.4, 0.09
BAR = SimplePendulum(LENGTH, MASS, 0.0, GRAVITY, center_of_mass=CENTER, inertia=INERTIA)
WEIGHT = MASS * GRAVITY * CENTER
OMEGA_BAR = np.sqrt(WEIGHT / (INERTIA + MASS * CENTER**2))


def listed(numbers):
    """Numbers as text, three digits each."""
    return ", ".join(f"{number:.3g}" for number in numbers)


def periods(angle, rate, dt, n_periods, pendulum=MASS_ON_A_ROD, omega=OMEGA):
    """Time of one period [s]: of a run, by its upward zeros, and by the elliptic integral."""
    m = np.sin(angle / 2.0) ** 2 + (rate / (2.0 * omega)) ** 2  # sin^2 of half the amplitude
    exact = 4.0 / omega * ellipk(m)
    n_steps = int((n_periods + 1.5) * exact / dt)
    run = rollout(pendulum, PendulumState(angle, rate), dt, n_steps, frames=range(n_steps + 1))
    q = run.angle
    before = np.flatnonzero((q[:-1] < 0.0) & (q[1:] >= 0.0))
    zeros = dt * (before + q[before] / (q[before] - q[before + 1]))
    return (zeros[-1] - zeros[0]) / (len(zeros) - 1), exact


def test_a_small_swing_has_the_period_of_the_linear_oscillator():
    # Symplectic Euler on q'' = -w^2 q turns by w* dt each step with sin(w* dt/2) = w dt/2
    dt = 0.01
    period, exact = periods(1e-5, 0.0, dt, 40)
    expected = np.pi * dt / np.arcsin(OMEGA * dt / 2.0)
    off, off_exact = period / expected - 1.0, period / exact - 1.0
    print(f"\nsmall swing: period off the scheme's by {off:.1e}, off the exact by {off_exact:.1e}")
    np.testing.assert_allclose(exact, 2 * np.pi / OMEGA, rtol=1e-10)
    # zeros by interpolation: cubic terms (w dt)^3/16 of a step, over 40 periods
    np.testing.assert_allclose(period, expected, rtol=1e-7)
    np.testing.assert_allclose(period, exact, rtol=(OMEGA * dt) ** 2 / 10)


def test_a_small_swing_of_a_bar_has_the_period_of_a_physical_pendulum():
    dt = 0.01
    period, _ = periods(1e-5, 0.0, dt, 40, BAR, OMEGA_BAR)
    exact = 2.0 * np.pi * np.sqrt((INERTIA + MASS * CENTER**2) / (MASS * GRAVITY * CENTER))
    print(f"\nsmall swing of a bar: period off the exact by {period / exact - 1.0:.1e}")
    np.testing.assert_allclose(period, np.pi * dt / np.arcsin(OMEGA_BAR * dt / 2.0), rtol=1e-7)
    np.testing.assert_allclose(period, exact, rtol=(OMEGA_BAR * dt) ** 2 / 10)


def test_dry_friction_takes_the_same_amplitude_from_every_swing():
    # From one turning point to the next, over A + A', the energy m g c (1 - cos A) loses f (A + A')
    ratio, dt, n_steps = 1e-3, 1e-3, 17_000
    bar = replace(BAR, friction=ratio * WEIGHT, friction_width=1e-4)
    run = rollout(bar, PendulumState(0.1), dt, n_steps, frames=range(n_steps + 1))
    turns = np.flatnonzero(run.rate[1:-1] * run.rate[2:] < 0.0) + 1
    A = np.array([0.1, *np.abs(run.angle[turns])])
    lost = (np.cos(A[1:]) - np.cos(A[:-1])) / (ratio * (A[1:] + A[:-1]))
    per_period = A[2:] - A[:-2]
    print(
        f"\ndry friction: {len(A) // 2} swings from {A[0]} to {A[-1]:.4f} rad, lost energy over "
        f"work {lost.min():.6f} to {lost.max():.6f}, amplitude per period {listed(per_period[:3])}"
    )
    # an angle next to the turning point is off by (w dt)^2/8 of A, slow parts by (eps/(w A))^2
    np.testing.assert_allclose(lost, 1.0, rtol=5e-3)
    # 4 f/(m g c), but for the cosine: A^2/6
    np.testing.assert_allclose(per_period, -4.0 * ratio, rtol=5e-3)
    assert A[-1] < 0.6 * A[0]


# The scheme is a leapfrog whose rate is half a step late. Let go at rest that shifts the energy
# by dt^2, started in motion by dt: so does the period of a wide swing.
@pytest.mark.parametrize(
    ("angle", "rate", "order"), [(0.5, 0.0, 2), (2.0, 0.0, 2), (3.0, 0.0, 2), (1.5, 3.0, 1)]
)
def test_a_wide_swing_has_the_period_of_the_elliptic_integral(angle, rate, order):
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        period, exact = periods(angle, rate, dt, 6)
        errors.append(period / exact - 1.0)
    slope = np.log2(np.abs(errors[:-1]) / np.abs(errors[1:]))
    print(
        f"\nswing from {angle} rad, {rate} rad/s: period off by {listed(errors)}, "
        f"slope {listed(slope)}"
    )
    assert abs(errors[-1]) < 1e-3
    assert (np.abs(slope - order) < 0.1).all()


DOUBLE = {
    "length": np.array([1.0, 0.8]), "mass": np.array([1.2, 0.7]),
    "damping": np.array([0.1, 0.05]), "gravity": GRAVITY,
}  # fmt: skip
LINKS = {
    **DOUBLE, "center_of_mass": np.array([0.6, 0.3]), "inertia": np.array([0.05, 0.03]),
    "friction": np.array([0.2, 0.1]), "friction_width": 0.3,
}  # fmt: skip
START = np.array([1.2, -0.6, 0.5, 1.0])


def solver(time, torque, links):
    """Angles and rates at one time by Dormand-Prince of order 8."""

    def rate(t, y):
        return np.concatenate([y[2:], reference.double(y[:2], y[2:], torque=torque, **links)])

    return solve_ivp(rate, (0.0, time), START, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]


@pytest.mark.parametrize("links", [DOUBLE, LINKS], ids=["point masses", "bars"])
def test_a_double_pendulum_is_of_first_order_against_a_solver_of_order_8(links):
    torque, time = np.array([0.3, -0.2]), 1.0
    exact = solver(time, torque, links)
    system, state = DoublePendulum(torque=torque, **links), PendulumState(START[:2], START[2:])
    errors = []
    for n_steps in (1000, 2000, 4000, 8000):
        run = rollout(system, state, time / n_steps, n_steps)
        errors.append(np.abs(np.concatenate([run.angle[0], run.rate[0]]) - exact).max())
    slope = np.log2(np.divide(errors[:-1], errors[1:]))
    extrapolated = richardson(system, state, time, 4000) - exact
    print(
        f"\ndouble pendulum after {time} s: off by {listed(errors)}, slope {listed(slope)}, "
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


def drift(system, state, dt, time):
    """Largest change of energy [J] on the way, without damping."""
    n_steps = round(time / dt)
    run = rollout(system, state, dt, n_steps, frames=range(n_steps + 1))
    angle, rate = (np.reshape(series, (n_steps + 1, -1)) for series in (run.angle, run.rate))
    names = ("length", "mass", "center_of_mass", "inertia")
    length, mass, center, inertia = (np.ravel(system.constants()[name]) for name in names)
    if len(length) == 1:  # a second link without length and mass
        angle, rate = (np.repeat(series, 2, axis=1) for series in (angle, rate))
        length, mass, center, inertia = (np.append(p, 0.0) for p in (length, mass, center, inertia))
    energy = reference.energy(angle, rate, length, mass, GRAVITY, center, inertia)
    return np.abs(energy - energy[0]).max()


@pytest.mark.parametrize("system", [MASS_ON_A_ROD, BAR], ids=["point mass", "bar"])
def test_the_energy_of_an_undamped_pendulum_drifts_with_dt_and_does_not_grow(system):
    state = PendulumState(2.0)
    drifts = [drift(system, state, dt, 4.0) for dt in (4e-3, 2e-3, 1e-3)]
    slope = np.log2(np.divide(drifts[:-1], drifts[1:]))
    early, late = (drift(system, state, 1e-2, time) for time in (10.0, 1000.0))
    print(f"\nenergy of a pendulum: drift {listed(drifts)} J, slope {listed(slope)}")
    print(f"at dt = 1e-2 s: {early:.3e} J over 10 s, {late:.3e} J over 1000 s")
    assert (np.abs(slope - 1.0) < 0.05).all()
    assert late < 1.05 * early  # symplectic: bounded, not growing


@pytest.mark.parametrize("links", [DOUBLE, LINKS], ids=["point masses", "bars"])
def test_the_energy_of_an_undamped_double_pendulum_drifts_with_dt(links):
    system = DoublePendulum(**{**links, "damping": (0.0, 0.0), "friction": (0.0, 0.0)})
    state = PendulumState(START[:2], START[2:])
    drifts = [drift(system, state, dt, 2.0) for dt in (1e-3, 5e-4, 2.5e-4)]
    slope = np.log2(np.divide(drifts[:-1], drifts[1:]))
    print(f"\nenergy of a double pendulum: drift {listed(drifts)} J, slope {listed(slope)}")
    assert (np.abs(slope - 1.0) < 0.1).all()
