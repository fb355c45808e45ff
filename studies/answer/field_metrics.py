"""The numbers by which papers compare answers: of values, of pictures and of surfaces.

All of them are of NumPy arrays, so that a table of other methods may use them too.
"""

import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.spatial import KDTree


SIGMA, REACH = 1.5, 5  # of the window of SSIM [pixels]
WIDTH = 2 * REACH + 1  # of the window
C1, C2 = 0.01**2, 0.03**2  # of SSIM, for pictures from 0 to 1


def log10_error(estimate: float, truth: float) -> float:
    """Return `|log10(estimate / truth)|` of two positive numbers."""
    return float(np.abs(np.log10(estimate / truth)))


def psnr(images: np.ndarray, targets: np.ndarray) -> float:
    """Return the peak signal-to-noise ratio of pictures from 0 to 1 [dB]: -10 log10 of their MSE.

    Of pictures that are equal it is infinite.
    """
    square = float(np.mean((images - targets) ** 2))
    return float(-10.0 * np.log10(square)) if square else float("inf")


def ssim(images: np.ndarray, targets: np.ndarray) -> float:
    """Return the mean structural similarity of pictures from 0 to 1, `(n, height, width, k)`.

    Z. Wang et al., Image quality assessment, IEEE Trans. Image Processing 13 (2004): a Gaussian
    window of 11 pixels with a deviation of 1.5, channels alike, windows that lie in the picture.
    """

    def blurred(a: np.ndarray) -> np.ndarray:
        inner = gaussian_filter(a, (0.0, SIGMA, SIGMA, 0.0), truncate=REACH / SIGMA)
        return inner[:, REACH:-REACH, REACH:-REACH]

    if min(images.shape[1:3]) < WIDTH:
        raise ValueError(
            f"`images` must have {WIDTH} rows and columns or more, got {images.shape[1:3]}."
        )
    a, b = blurred(images), blurred(targets)
    aa, bb, ab = blurred(images**2), blurred(targets**2), blurred(images * targets)
    variances, covariance = aa - a**2 + bb - b**2, ab - a * b
    means = (2.0 * a * b + C1) / (a**2 + b**2 + C1)
    return float(np.mean(means * (2.0 * covariance + C2) / (variances + C2)))


def chamfer(points: np.ndarray, others: np.ndarray) -> float:
    """Return the Chamfer distance of two clouds, (n, 3) and (m, 3) [m].

    It is the mean of the distances from each point to the nearest one of the other cloud, averaged
    over both directions. Papers also have the sum of both, twice as much, or squares.
    """
    there, back = (KDTree(b).query(a)[0].mean() for a, b in ((points, others), (others, points)))
    return 0.5 * float(there + back)
