"""The projection: free of divergence, idempotent, symmetric, and the reference's."""

import numpy as np
import pytest

from adjsim.jit.devices import Device
from adjsim.reduced.projection import Projection, wave_numbers
from tests.reference import smoke as reference


EPS = np.finfo(np.float64).eps
SHAPES = [(6, 8), (5, 7), (4, 9), (2, 6), (2, 2)]


def projection(shape, dtype=np.float64):
    return Projection(shape, np.dtype(dtype), Device.CPU)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_projection_is_that_of_the_reference(rng, shape):
    u = rng.standard_normal((*shape, 2))
    # sums of n_cells terms of order one
    np.testing.assert_allclose(projection(shape)(u), reference.project(u).real, atol=200 * EPS)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_idempotent_symmetric_and_leaves_the_mean(rng, shape):
    project, (u, w) = projection(shape), rng.standard_normal((2, *shape, 2))
    once = project(u)
    np.testing.assert_allclose(project(once), once, rtol=0, atol=50 * EPS)
    np.testing.assert_allclose(np.sum(w * once), np.sum(project(w) * u), rtol=0, atol=500 * EPS)
    np.testing.assert_allclose(once.mean(axis=(0, 1)), u.mean(axis=(0, 1)), atol=10 * EPS)


def test_what_has_no_divergence_is_left_alone(rng):
    stream = rng.standard_normal((8, 9))
    along_y = (np.roll(stream, -1, 0) - np.roll(stream, 1, 0)) / 2
    along_x = (np.roll(stream, -1, 1) - np.roll(stream, 1, 1)) / 2
    u = np.stack([along_y, -along_x], axis=-1)
    np.testing.assert_allclose(projection((8, 9))(u), u, rtol=0, atol=50 * EPS)


def test_waves_that_central_differences_do_not_see_stay(rng):
    # the sine of a rounded pi is not zero, the wave number of a checkerboard is
    checkers = np.indices((6, 4)).sum(axis=0) % 2 * 2.0 - 1.0
    u = np.stack([checkers, 2.0 * checkers], axis=-1)
    np.testing.assert_allclose(projection((6, 4))(u), u, rtol=0, atol=20 * EPS)
    assert wave_numbers(6)[3] == 0.0
    assert wave_numbers(7)[3] != 0.0


def test_float32_stays_float32(rng):
    u = rng.standard_normal((5, 6, 2)).astype(np.float32)
    out = projection((5, 6), np.float32)(u)
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    np.testing.assert_allclose(out, projection((5, 6))(u.astype(np.float64)), atol=1e-5)
