"""The metrics of the field against closed forms."""

import numpy as np
import pytest

from studies.answer.field_metrics import chamfer, log10_error, psnr, ssim


RNG = np.random.default_rng(3)
PICTURES = RNG.uniform(0.2, 0.8, (2, 24, 20, 3))


def test_the_log_error_is_that_of_a_ratio():
    assert log10_error(2e5, 2e4) == pytest.approx(1.0)
    assert log10_error(3.0, 6.0) == pytest.approx(np.log10(2.0))


def test_psnr_of_an_offset():
    assert psnr(PICTURES + 0.1, PICTURES) == pytest.approx(20.0)
    assert psnr(PICTURES, PICTURES) == np.inf


def test_ssim_of_equal_and_of_plain_pictures():
    assert ssim(PICTURES, PICTURES) == pytest.approx(1.0)
    a, b = np.full((1, 16, 16, 3), 0.3), np.full((1, 16, 16, 3), 0.6)
    expected = (2 * 0.3 * 0.6 + 1e-4) / (0.3**2 + 0.6**2 + 1e-4)  # nothing varies
    assert ssim(a, b) == pytest.approx(expected, rel=1e-9)


def test_ssim_of_a_scaled_contrast():
    """About a mean that stays, it is 2 k s / ((1 + k^2) s), with s the windows' variances."""
    x = np.where(np.indices((40, 40)).sum(axis=0) % 2, 1.0, -1.0)[None, ..., None] / 5
    k, middle = 0.5, 0.5
    inner = 1.0 / 25  # of the variance: the weighted mean of +1 and -1 is nearly 0
    expected = (2 * k * inner + 9e-4) / ((1 + k**2) * inner + 9e-4)
    assert ssim(middle + k * x, middle + x) == pytest.approx(expected, rel=1e-3)


def test_ssim_needs_a_window():
    with pytest.raises(ValueError, match="11 rows and columns or more"):
        ssim(PICTURES[:, :8], PICTURES[:, :8])


def test_chamfer_of_a_shifted_grid():
    """A shift below half the spacing is the distance; a missing half counts in one direction."""
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), -1).reshape(-1, 3)
    assert chamfer(grid, grid + np.array([0.2, 0.0, 0.0])) == pytest.approx(0.2)
    half = grid[grid[:, 0] < 2]  # from x = 2 and 3 the nearest is 1 and 2 away
    assert chamfer(grid, half) == pytest.approx(0.5 * (0.25 * 1 + 0.25 * 2))
