r"""Anti-aliasing by supersampling: k x k samples for each pixel, and their mean.

    pixel (i, j) = 1/k^2 sum over a, b < k of sample (k i + a, k j + b)

The samples are the pixels of an image k times as high and as wide, of the same view: sample
(r, c) is at s = ( aspect ((2c+1)/(kW) - 1), 1 - (2r+1)/(kH) ). sigma and kappa stay in screen
units: sqrt(sigma) H/2 pixels of the picture, which are k times as many samples. So an edge that
is half a sample soft, the least that no outline slips through, has sqrt(sigma) = 1/(k H).

A background image has a row and a column for each pixel; all samples of a pixel see the same.

Adjoint: `adjoint/render/raster/supersampling.py`. Tests:
`tests/render/raster/test_supersampling.py`.
"""

import numpy as np


def average(samples: np.ndarray, k: int) -> np.ndarray:
    """Return the means of blocks of k x k samples (k height, k width, n): (height, width, n).

    There may be more axes before these.
    """
    if k == 1:
        return samples
    # strided parts one after the other: NumPy is five times slower at a mean over axes of blocks
    rows = sum((samples[..., i::k, :, :] for i in range(1, k)), start=samples[..., ::k, :, :])
    both = sum((rows[..., j::k, :] for j in range(1, k)), start=rows[..., ::k, :])
    return both / (k * k)  # (1)


def repeat(pixels: np.ndarray, k: int) -> np.ndarray:
    """Return the pixels (height, width, n), each at all its samples (k height, k width, n)."""
    return pixels if k == 1 else pixels.repeat(k, axis=-3).repeat(k, axis=-2)  # (1)
