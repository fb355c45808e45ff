r"""Adjoint of `render/smoke.py`: read the two files side by side. The map is linear in rho."""

from typing import Any

import numpy as np

from adjsim import checks
from render.smoke import checked_density


def smoke_images_jvp(
    tan_density: Any, color: Any = (1.0, 1.0, 1.0), background: Any = (0.0, 0.0, 0.0)
) -> np.ndarray:
    """Push a tangent of the density through `smoke_images`: tan_images, in its shape.

    Parameters
    ----------
    tan_density : array_like
        (N_y, N_x) or (n_frames, N_y, N_x) [-].
    color, background : array_like
        As in the forward, (3,) [-].

    Raises
    ------
    ValueError
        If a shape does not fit, or a number is not finite.
    """
    tan_rho = checked_density("tan_density", tan_density)
    C = checks.array("color", color, (3,), dtype=tan_rho.dtype)
    C_bg = checks.array("background", background, (3,), dtype=tan_rho.dtype)
    tan = np.empty((*tan_rho.shape, 4), tan_rho.dtype)
    tan[..., :3] = tan_rho[..., None] * (C - C_bg)  # (1)
    tan[..., 3] = tan_rho  # (2)
    return tan


def smoke_images_vjp(
    adj_images: np.ndarray, color: Any = (1.0, 1.0, 1.0), background: Any = (0.0, 0.0, 0.0)
) -> np.ndarray:
    """Pull a cotangent of `smoke_images` back: adj_density, images' shape without channels.

    Parameters
    ----------
    adj_images : ndarray
        (N_y, N_x, 4) or (n_frames, N_y, N_x, 4).
    color, background : array_like
        As in the forward, (3,) [-].

    Raises
    ------
    ValueError
        If a shape does not fit, or a number is not finite.
    """
    dtype = np.asarray(adj_images).dtype
    adj = checks.array(
        "adj_images", adj_images, dtype=dtype if dtype in checks.FLOAT_DTYPES else np.float64
    )
    if adj.ndim not in {3, 4} or adj.shape[-1] != 4:
        raise ValueError(
            f"`adj_images` must have shape (N_y, N_x, 4) or (n_frames, N_y, N_x, 4), got "
            f"{adj.shape}."
        )
    C = checks.array("color", color, (3,), dtype=adj.dtype)
    C_bg = checks.array("background", background, (3,), dtype=adj.dtype)

    # (2) alpha = rho
    adj_rho = adj[..., 3].copy()
    # (1) RGB = C_bg + rho (C - C_bg)
    adj_rho += adj[..., :3] @ (C - C_bg)
    return adj_rho
