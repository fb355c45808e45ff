"""Tangents and adjoints of `render/lenses.py`: read the two files side by side.

`LENS_TWINS` holds both for each type of lens. The size of a calibrated image is fixed.
"""

import math
from collections.abc import Mapping

import numpy as np

from render.lenses import HALF_DEGREE, Intrinsics, Orthographic, Perspective


Values = Mapping[str, np.ndarray]


def focal_slope(lens: Perspective) -> float:
    """Slope of cot(h fov): -h (1 + cot^2)."""
    focal = 1.0 / math.tan(HALF_DEGREE * lens.fov_y)
    return -HALF_DEGREE * (1.0 + focal * focal)


def perspective_jvp(lens: Perspective, tangents: Values) -> np.ndarray:
    """Tangents of the lens, (5,)."""
    tan_focal = focal_slope(lens) * float(tangents["fov_y"])  # (1)
    return np.array([tan_focal, 0.0, 0.0, tan_focal, 0.0])


def perspective_vjp(lens: Perspective, adj: np.ndarray) -> dict[str, np.ndarray]:
    """Pull the adjoint of the lens (5,) back to the field of view."""
    # (1) f_x = f_y = cot(h fov)
    return {"fov_y": np.asarray(focal_slope(lens) * (adj[0] + adj[3]))}


def intrinsics_jvp(lens: Intrinsics, tangents: Values) -> np.ndarray:
    """Tangents of the lens, (5,)."""
    pixel = 2.0 / lens.size[0]
    tan_focal, tan_center = tangents["focal"], tangents["principal_point"]
    return np.array(
        [
            pixel * tan_focal[0],  # (1)
            -pixel * float(tangents["skew"]),  # (2)
            pixel * tan_center[0],  # (3)
            pixel * tan_focal[1],  # (4)
            -pixel * tan_center[1],  # (5)
        ]
    )


def intrinsics_vjp(lens: Intrinsics, adj: np.ndarray) -> dict[str, np.ndarray]:
    """Pull the adjoint of the lens (5,) back to focal lengths, principal point and skew."""
    pixel = 2.0 / lens.size[0]
    return {
        # (4) f_y = pixel f_v, (1) f_x = pixel f_u
        "focal": pixel * adj[[0, 3]],
        # (5) c_y = 1 - 1/H - pixel c_v, (3) c_x = pixel c_u + (1 - W)/H
        "principal_point": pixel * np.array([adj[2], -adj[4]]),
        # (2) k = -pixel skew
        "skew": np.asarray(-pixel * adj[1]),
    }


def orthographic_jvp(lens: Orthographic, tangents: Values) -> np.ndarray:
    """Tangents of the lens, (5,)."""
    tan_scale = -2.0 / lens.height**2 * float(tangents["height"])  # (1)
    return np.array([tan_scale, 0.0, 0.0, tan_scale, 0.0])


def orthographic_vjp(lens: Orthographic, adj: np.ndarray) -> dict[str, np.ndarray]:
    """Pull the adjoint of the lens (5,) back to the height."""
    # (1) f_x = f_y = 2/height
    return {"height": np.asarray(-2.0 / lens.height**2 * (adj[0] + adj[3]))}


LENS_TWINS = {
    Perspective: (perspective_jvp, perspective_vjp),
    Intrinsics: (intrinsics_jvp, intrinsics_vjp),
    Orthographic: (orthographic_jvp, orthographic_vjp),
}
