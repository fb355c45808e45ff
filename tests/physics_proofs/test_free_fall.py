"""Free fall: the scheme's closed form to rounding, the ODE's with an error that is known exactly.

v_k = v0 + k dt g,   x_k = x0 + k dt v0 + k (k + 1)/2 dt^2 g
x(t) = x0 + t v0 + t^2/2 g,   x_k - x(k dt) = dt t/2 g,   v_k = v(k dt)
"""

import numpy as np

from adjoint.rollout import record
from adjsim.model import Model, State


EPS = np.finfo(np.float64).eps
N_STEPS, FRAMES = 1000, np.array([0, 1, 10, 1000])
G = np.array([0.3, -9.8, 0.2])


def falling(rng, dt):
    """Five nodes of different mass in free fall, recorded."""
    x0, v0 = rng.standard_normal((2, 5, 3))
    model = Model(rng.uniform(1e-3, 10.0, 5), gravity=G)
    return x0, v0, record(model, State(x0, v0), dt, N_STEPS, frames=FRAMES)


def test_free_fall_has_its_closed_form(rng):
    dt = 1e-3
    x0, v0, run = falling(rng, dt)
    k = FRAMES[:, None, None]
    x, v = run.trajectory.x, run.trajectory.v
    off = np.abs(x - (x0 + k * dt * v0 + k * (k + 1) / 2 * dt**2 * G)).max()
    off_v = np.abs(v - (v0 + k * dt * G)).max()
    print(f"\nfree fall, {N_STEPS} steps: off the closed form by {off:.1e} m, {off_v:.1e} m/s")
    # Each step rounds a number of size 10.
    assert max(off, off_v) <= N_STEPS * EPS * 10


def test_the_error_against_the_ode_is_half_a_step_of_falling(rng):
    errors = []
    for dt in (1e-3, 5e-4):
        x0, v0, run = falling(rng, dt)
        t = run.trajectory.times[:, None, None]
        error = run.trajectory.x - (x0 + t * v0 + t**2 / 2 * G)
        np.testing.assert_allclose(error, np.broadcast_to(dt * t / 2 * G, error.shape), atol=1e-11)
        errors.append(np.abs(error[-1]).max() / t[-1, 0, 0])
    print(f"\nfree fall against the ODE: error per second {errors} m at dt = 1e-3, 5e-4 s")
    assert abs(errors[0] / errors[1] - 2.0) < 1e-8


def test_its_gradient_has_one_too(rng):
    # L = c.x_K + d.v_K: dL/dg = sum over nodes of K (K + 1)/2 dt^2 c + K dt d.
    dt, K = 1e-3, N_STEPS
    _, _, run = falling(rng, dt)
    c, d = np.zeros((2, len(FRAMES), 5, 3))
    c[-1], d[-1] = rng.standard_normal((2, 5, 3))
    gradient = run.vjp(c, d)
    expected = {
        "gravity": (K * (K + 1) / 2 * dt**2 * c[-1] + K * dt * d[-1]).sum(axis=0),
        "state.x": c[-1],
        "state.v": K * dt * c[-1] + d[-1],
        "mass": np.zeros(5),
    }
    worst = max(np.abs(gradient[path] - value).max() for path, value in expected.items())
    print(f"\ngradient of free fall: off the closed form by {worst:.1e}")
    assert worst <= N_STEPS * EPS * 10
