"""Smoke: divergence at rounding, a shear wave's decay; `pytest -s` prints the figures."""

import numpy as np

from adjsim.reduced.smoke import Smoke, SmokeState
from adjsim.rollout import rollout
from tests.reference import smoke as reference


EPS = np.finfo(np.float64).eps
N = 110


def test_the_velocity_is_free_of_divergence_to_rounding_in_every_frame(rng):
    state = SmokeState(rng.standard_normal((N, N, 2)), rng.random((N, N)))
    run = rollout(Smoke((N, N)), state, 1.0, 100, frames=range(0, 101, 10))
    divergence = np.abs([reference.divergence(u) for u in run.velocity]).max(axis=(1, 2))
    speed = np.abs(run.velocity).max()
    print(
        f"\nsmoke {N} x {N}, 100 steps: divergence {divergence[0]:.1f} at first, then at most "
        f"{divergence[1:].max():.1e} per step, {divergence[1:].max() / (EPS * speed):.1f} eps |u|"
    )
    assert divergence[0] > 1.0
    # transforms of 12 100 terms: log2 of them times eps times the speed
    assert divergence[1:].max() < 20 * EPS * speed
    assert speed > 1.0


def test_density_stays_within_its_bounds_and_speed_does_not_grow(rng):
    state = SmokeState(rng.standard_normal((N, N, 2)), rng.random((N, N)))
    run = rollout(Smoke((N, N)), state, 1.0, 100, frames=range(0, 101, 20))
    energy = np.square(run.velocity).sum(axis=(1, 2, 3))
    low, high = run.density.min(), run.density.max()
    # a lookup is a weighted mean: it never leaves the bounds, but for a rounding or two
    print(
        f"\nsmoke: density in [{low:.3g}, {high:.3g}], energy {energy[0]:.3g} to {energy[-1]:.3g}"
    )
    assert low >= state.density.min() - 4 * EPS
    assert high <= state.density.max() + 4 * EPS
    assert (np.diff(energy) < 0.0).all()


def test_a_shear_wave_across_a_wind_is_damped_by_interpolation_as_predicted():
    # u = (sin k y, w): each step looks up at y - w, a mean with weights 1 - w, w of two rows,
    # which damps the wave by |1 - w + w e^{-ik}| and keeps it free of divergence.
    w, k, n_steps = 0.3, 2 * np.pi / 16, 40
    y = np.arange(16.0)[:, None] * np.ones((1, 8))
    velocity = np.stack([1e-3 * np.sin(k * y), np.full_like(y, w)], axis=-1)
    run = rollout(Smoke(y.shape), SmokeState(velocity, y), 1.0, n_steps)
    amplitude = np.abs(np.fft.fft(run.velocity[0, :, 0, 0])[1]) / 8 / 1e-3
    expected = np.abs(1 - w + w * np.exp(-1j * k)) ** n_steps
    print(f"\nshear wave after {n_steps} steps: {amplitude / expected - 1.0:.1e} off its decay")
    np.testing.assert_allclose(amplitude, expected, rtol=1e-11)
