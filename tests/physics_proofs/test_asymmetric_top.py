"""A free top: the flip about the middle axis, and what the explicit gyroscopic term costs.

Without torques Euler's equations hold, I w' = -w x I w, and energy w.I w/2 and angular
momentum R I w in world axes are conserved. The scheme keeps them to order dt; from steps dt and
dt/2 the value at step 0 is extrapolated as 2 q(dt/2) - q(dt), which leaves dt^2.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from adjsim.meshes.shapes import shape
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from tests.reference import rigid


INERTIA = np.array([2.0, 3.0, 4.0, 0.0, 0.0, 0.0]) * 1e-3
TENSOR = rigid.tensor(INERTIA)
# About the middle axis, a little off it: unstable.
SPIN = np.array([0.1, 5.0, 0.2])
STEPS = [4e-4, 2e-4, 1e-4, 5e-5]


def spin_free(inertia, spin, dt, time, n_frames=1, gravity=(0.0, 0.0, 0.0), velocity=None):
    """States of a free body at equal times up to `time`."""
    body = RigidBodies(shape("cube"), mass=1.0, inertia=inertia, center=[0, 0, 0])
    model = Model(gravity=gravity, bodies={"top": body})
    nominal = [0.1, -0.2, 0.3, 0.9]
    state = State(bodies={"top": BodyState([0, 0, 0], nominal, velocity, spin)})
    n_steps = round(time / dt)
    frames = np.linspace(0, n_steps, n_frames + 1).round().astype(int)[1:]
    return rollout(model, state, dt, n_steps, frames=frames).bodies["top"], state.bodies["top"]


def kept(states):
    """Energy (n,) and angular momentum in world axes (n, 3)."""
    omega = states.angular_velocity.reshape(-1, 3)
    turned = Rotation.from_quat(states.orientation.reshape(-1, 4))
    return 0.5 * np.einsum("ni,ij,nj->n", omega, TENSOR, omega), turned.apply(omega @ TENSOR)


def exact(times):
    """Spins at the times by Dormand-Prince of order 8."""

    def rate(_, w):
        return np.linalg.solve(TENSOR, -np.cross(w, TENSOR @ w))

    return solve_ivp(rate, (0, times[-1]), SPIN, "DOP853", times, rtol=1e-13, atol=1e-13).y.T


def test_a_top_about_its_middle_axis_flips_as_the_equations_say():
    times = np.linspace(0.0, 8.0, 801)[1:]
    theirs, errors = exact(times), []
    for dt in (1e-3, 5e-4, 2.5e-4):
        ours, _ = spin_free(INERTIA, SPIN, dt, times[-1], len(times))
        errors.append(np.abs(ours.angular_velocity[:, 0] - theirs).max())
    flips = times[1:][np.diff(np.sign(theirs[:, 1])) != 0]
    our_flips = times[1:][np.diff(np.sign(ours.angular_velocity[:, 0, 1])) != 0]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    print(f"\nflips at {flips} s, found at {our_flips} s; spin off by {errors}, slopes {slopes}")
    assert len(flips) >= 2
    np.testing.assert_allclose(our_flips, flips, rtol=0, atol=0.02)
    assert theirs[:, 1].min() < -4.9
    assert slopes[-1] == pytest.approx(1.0, abs=0.1)


def test_energy_and_momentum_drift_with_the_step_and_vanish_when_extrapolated():
    energy, momentum = [], []
    for dt in STEPS:
        end, start = spin_free(INERTIA, SPIN, dt, 2.0)
        (e, e_0), (l, l_0) = (
            np.concatenate(pair) for pair in zip(kept(end), kept(start), strict=True)
        )
        energy.append(e / e_0 - 1.0)
        momentum.append((l - l_0) / np.linalg.norm(l_0))
    energy, momentum = np.array(energy), np.array(momentum)
    off = {"energy": np.abs(energy), "momentum": np.linalg.norm(momentum, axis=1)}
    left = {
        "energy": np.abs(2 * energy[1:] - energy[:-1]),
        "momentum": np.linalg.norm(2 * momentum[1:] - momentum[:-1], axis=1),
    }
    for name, drift in off.items():
        slopes = np.log2(drift[:-1] / drift[1:])
        print(f"\n{name}: drift {drift} for dt {STEPS}, slopes {slopes}; left {left[name]}")
        assert slopes[-1] == pytest.approx(1.0, abs=0.02)
        assert left[name][-1] <= 1e-5
        assert np.log2(left[name][-2] / left[name][-1]) == pytest.approx(2.0, abs=0.2)


def test_a_sphere_spins_uniformly_and_falls_freely_to_rounding():
    # No gyroscopic torque: r = r_0 exp(t w/2), and x = v t - g t (t + dt)/2 of the scheme.
    spin, dt, n = np.array([3.0, -4.0, 5.0]), 1e-3, 2000
    equal = [2e-3, 2e-3, 2e-3, 0, 0, 0]
    gravity, velocity = np.array([0.1, -9.8, 0.3]), np.array([1.0, 2.0, -0.5])
    end, start = spin_free(equal, spin, dt, n * dt, 1, gravity, velocity)
    turn = rigid.product(start.orientation[0], rigid.exponential(n * dt / 2 * spin))
    t = n * dt
    way = velocity * t + gravity * t * (t + dt) / 2
    errors = [
        np.abs(end.angular_velocity[0, 0] - spin).max(),
        np.abs(end.orientation[0, 0] - turn).max(),
        np.abs(end.position[0, 0] - way).max(),
    ]
    print(f"\nsphere after {n} steps: spin, rotation, place off by {errors}")
    # Rounding of 2000 sums of order 20.
    assert max(errors) <= 1e-11


def test_the_quaternion_stays_of_unit_length_over_1e5_steps():
    end, _ = spin_free(INERTIA, 10 * SPIN, 1e-4, 10.0)
    off = abs(np.linalg.norm(end.orientation) - 1.0)
    print(f"\n|r| - 1 after 1e5 steps: {off:.1e}")
    # A random walk of 1e5 roundings would be 4e-14; their sum at worst 1e-11.
    assert off <= 1e-11
