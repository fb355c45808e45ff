r"""Pictures and points as a pinhole without distortion would have them.

With (x, y) = K^-1 (u, v) and r2 = x^2 + y^2, the lens takes an ideal point to

    (x', y') = (1 + k1 r2 + k2 r2^2) (x, y)

An ideal picture has at (u, v) what the film has at K (x', y'). A point of the film is taken back
along its radius with Newton's method.
Source: Hartley & Zisserman, Multiple View Geometry, 2nd ed., sec. 7.4.
"""

import math

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.declared import Camera


ITERATIONS = 50
SETTLED = 1e-14  # of the radius [-]


def intrinsics(camera: Camera, size: tuple[int, int]) -> np.ndarray:
    """Return K, (3, 3) [pixels]: as it is given, or that of fov_y for a film of `size` (H, W)."""
    if camera.K is not None:
        return np.array(camera.K)
    assert camera.fov_y is not None
    height, width = size
    focal = 0.5 * height / math.tan(math.radians(0.5 * camera.fov_y))
    return np.array(
        [[focal, 0.0, 0.5 * (width - 1)], [0.0, focal, 0.5 * (height - 1)], [0.0, 0.0, 1.0]]
    )


def source_pixels(camera: Camera, size: tuple[int, int], key: str) -> np.ndarray | None:
    """Return where the film shows each pixel of an ideal picture, (2, H, W); None if just there."""
    if not any(camera.distortion):
        return None
    height, width = size
    K = intrinsics(camera, size)
    rows, columns = np.mgrid[:height, :width].astype(float)
    x, y = _to_plane(K, columns, rows)
    r2 = x * x + y * y
    k1, k2 = camera.distortion
    if (1.0 + 3.0 * k1 * r2 + 5.0 * k2 * r2 * r2).min() <= 0.0:
        raise StudyError(
            f"`{key}.distortion` folds the picture: with k1 = {k1:g} and k2 = {k2:g} points "
            "further out are drawn further in. Take the coefficients in OpenCV's order, k1 and "
            "k2, with the K that belongs to them."
        )
    factor = 1.0 + k1 * r2 + k2 * r2 * r2
    columns, rows = _to_pixels(K, factor * x, factor * y)
    return np.stack([rows, columns])


def undistorted_picture(picture: np.ndarray, source: np.ndarray | None) -> np.ndarray:
    """Return the ideal picture, (H, W, C), linear between pixels; the edge's colour beyond it."""
    from scipy.ndimage import map_coordinates

    if source is None:
        return picture
    channels = [
        map_coordinates(picture[..., c], source, order=1, mode="nearest")
        for c in range(picture.shape[2])
    ]
    return np.stack(channels, axis=-1)


def undistorted_points(points: np.ndarray, camera: Camera, size: tuple[int, int]) -> np.ndarray:
    """Return points (..., 2) of the film as (u, v) of the ideal picture [pixels]; NaN stays NaN."""
    if not any(camera.distortion):
        return points
    K = intrinsics(camera, size)
    x, y = _to_plane(K, points[..., 0], points[..., 1])
    distorted = np.hypot(x, y)
    k1, k2 = camera.distortion
    radius = distorted.copy()
    for _ in range(ITERATIONS):
        r2 = radius * radius
        excess = radius * (1.0 + k1 * r2 + k2 * r2 * r2) - distorted
        change = excess / (1.0 + 3.0 * k1 * r2 + 5.0 * k2 * r2 * r2)
        radius -= change
        if not np.any(np.abs(change) > SETTLED):
            break
    factor = np.divide(radius, distorted, out=np.ones_like(radius), where=distorted > 0.0)
    return np.stack(_to_pixels(K, factor * x, factor * y), axis=-1)


def _to_plane(K: np.ndarray, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = (v - K[1, 2]) / K[1, 1]
    return (u - K[0, 2] - K[0, 1] * y) / K[0, 0], y


def _to_pixels(K: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return K[0, 0] * x + K[0, 1] * y + K[0, 2], K[1, 1] * y + K[1, 2]
