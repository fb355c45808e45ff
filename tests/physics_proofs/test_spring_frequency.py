"""Masses on springs: the frequency of the scheme and of the ODE, and its gradient.

Along its spring a mass obeys q'' = -omega^2 q, omega^2 = k/m (two free masses: k/m1 + k/m2).
Semi-implicit Euler turns by theta a step, of which

    sin(theta/2) = omega dt/2,   q_n = q_0 (cos n theta - tan(theta/2) sin n theta) from rest

so its frequency theta/dt is too high by (omega dt)^2/24.
"""

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.forces.springs import Springs
from adjsim.model import Model, State
from adjsim.rollout import rollout


K, M, L0, Q0 = 50.0, 0.2, 0.7, 0.01
AXIS = np.array([0.6, 0.0, 0.8])


def one_mass(stiffness=K, damping=0.0):
    """A mass on a spring whose other end is pinned, pulled out along it by Q0."""
    springs = Springs([[0, 1]], stiffness, rest_length=L0, damping=damping)
    pinned = np.array([True, False])
    model = Model([1.0, M], {"s": springs}, gravity=(0, 0, 0), pinned=pinned)
    return model, State([(0, 0, 0), AXIS * (L0 + Q0)])


def two_masses():
    """Two free masses on a spring, pulled apart by Q0."""
    model = Model([0.3, M], {"s": Springs([[0, 1]], K, rest_length=L0)}, gravity=(0, 0, 0))
    return model, State([(0, 0, 0), AXIS * (L0 + Q0)])


def stretch(run):
    """How far the spring is out of rest at the frames, (n_frames,) [m]."""
    return np.linalg.norm(run.x[:, 1] - run.x[:, 0], axis=-1) - L0


def turn(omega, dt):
    """Angle theta that the scheme turns by in a step."""
    return 2.0 * np.arcsin(omega * dt / 2.0)


def measured(q, dt):
    """Frequency of q_n = A cos(n theta + c): q_(n-1) + q_(n+1) = 2 cos(theta) q_n."""
    both = q[2:] + q[:-2] - 2.0 * q[1:-1]
    cos_minus_1 = 0.5 * np.vdot(q[1:-1], both) / np.vdot(q[1:-1], q[1:-1])
    return 2.0 * np.arcsin(np.sqrt(-cos_minus_1 / 2.0)) / dt


@pytest.mark.parametrize(
    ("build", "omega"), [(one_mass, np.sqrt(K / M)), (two_masses, np.sqrt(K / 0.3 + K / M))]
)
def test_the_frequency_is_that_of_the_scheme_and_tends_to_the_one_of_the_ode(build, omega):
    off_ode, off_scheme = [], []
    for n in (200, 400, 800):  # steps a period
        dt = 2.0 * np.pi / omega / n
        model, state = build()
        run = rollout(model, state, dt, 3 * n, frames=range(3 * n + 1))
        got = measured(stretch(run), dt)
        off_ode.append(got / omega - 1.0)
        off_scheme.append(got / (turn(omega, dt) / dt) - 1.0)
    order = np.log2(np.array(off_ode[:-1]) / off_ode[1:])
    print(
        f"\n{build.__name__}: frequency off the ODE's by {np.array(off_ode)} (order {order}), "
        f"off the scheme's by {np.abs(off_scheme).max():.1e}"
    )
    np.testing.assert_allclose(off_ode, [(2 * np.pi / n) ** 2 / 24 for n in (200, 400, 800)], 1e-3)
    # q is rounded to eps L0/Q0 of itself, and cos theta - 1 is 1e-4 to 1e-3.
    assert np.abs(off_scheme).max() <= 1e-8


def test_the_motion_and_its_gradient_have_the_closed_form():
    omega = np.sqrt(K / M)
    dt, n = 2.0 * np.pi / omega / 200, 730
    model, state = one_mass()
    run = record(model, state, dt, n)
    # dL/dq_n = 1 along the axis. With theta(k): d theta/dk = dt/(2 m omega cos(theta/2)).
    adj = np.zeros((1, 2, 3))
    adj[0, 1] = AXIS
    got = {"stiffness": run.vjp(adj)["s.stiffness"], "q": stretch(run.trajectory)[0]}
    theta = turn(omega, dt)
    c, s, t = np.cos(n * theta), np.sin(n * theta), np.tan(theta / 2)
    slope = Q0 * (-n * s - t * n * c - s / (2 * np.cos(theta / 2) ** 2))
    expected = {
        "q": Q0 * (c - t * s),
        "stiffness": slope * dt / (2 * M * omega * np.cos(theta / 2)),
    }
    for name, value in expected.items():
        off = abs(got[name] / value - 1.0)
        print(f"\nmass on a spring, {n} steps: {name} off the closed form by {off:.1e}")
        assert off <= 1e-10


def test_damping_lets_the_amplitude_fall_by_the_determinant_of_a_step():
    # q'' = -(k/m) q - (c/m) q': a step has trace 2 - (omega dt)^2 - c dt/m and determinant
    # 1 - c dt/m, so the amplitude falls at -log(1 - c dt/m)/(2 dt), which tends to c/(2 m).
    c, omega = 0.1, np.sqrt(K / M)
    off_scheme, off_ode = [], []
    for n in (100, 200, 400):
        dt = 2.0 * np.pi / omega / n
        model, state = one_mass(damping=c)
        q = stretch(rollout(model, state, dt, 5 * n, frames=range(5 * n + 1)))
        _, determinant = np.linalg.lstsq(np.stack([q[1:-1], -q[:-2]], axis=-1), q[2:])[0]
        off_scheme.append(determinant - (1.0 - c * dt / M))
        off_ode.append(-np.log(determinant) / (2.0 * dt) / (c / (2.0 * M)) - 1.0)
    order = np.log2(np.array(off_ode[:-1]) / off_ode[1:])
    print(
        f"\ndamped mass: rate of decay off the ODE's by {np.array(off_ode)} (order {order}), "
        f"determinant off the scheme's by {np.abs(off_scheme).max():.1e}"
    )
    assert np.abs(off_scheme).max() <= 1e-10
    assert np.abs(order - 1.0).max() < 0.02
