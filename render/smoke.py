r"""Smoke as an image: one pixel for each cell, opaque where the density is 1.

    alpha = rho,   RGB = rho C + (1 - rho) C_bg

Pixel (row i, column j) is cell (i, j): row 0 is on top. Nothing is clamped.

Adjoint: `adjoint/render/smoke.py`. Tests: `tests/render/test_smoke.py`.
"""

from typing import Any

import numpy as np

from adjsim import checks


def smoke_images(
    density: Any, color: Any = (1.0, 1.0, 1.0), background: Any = (0.0, 0.0, 0.0)
) -> np.ndarray:
    """Return images of densities.

    Parameters
    ----------
    density : array_like
        rho, (N_y, N_x) or (n_frames, N_y, N_x) [-].
    color, background : array_like
        RGB of the smoke and behind it, (3,) [-].

    Returns
    -------
    ndarray
        RGBA, (N_y, N_x, 4) or (n_frames, N_y, N_x, 4), float32 if the density is; RGB is
        already over the background.

    Raises
    ------
    ValueError
        If a shape does not fit, or a number is not finite.
    """
    rho = checked_density("density", density)
    C = checks.colors("color", color, (3,), dtype=rho.dtype)
    C_bg = checks.colors("background", background, (3,), dtype=rho.dtype)
    out = np.empty((*rho.shape, 4), rho.dtype)
    out[..., :3] = C_bg + rho[..., None] * (C - C_bg)  # (1)
    out[..., 3] = rho  # (2)
    return out


def checked_density(name: str, density: Any) -> np.ndarray:
    """Return one density or several, float64 or float32."""
    dtype = np.asarray(density).dtype
    rho = checks.array(
        name, density, dtype=dtype if dtype in checks.FLOAT_DTYPES else np.dtype(np.float64)
    )
    if rho.ndim not in {2, 3} or rho.size == 0:
        raise ValueError(
            f"`{name}` must have shape (N_y, N_x) or (n_frames, N_y, N_x), none of them 0, got "
            f"{rho.shape}."
        )
    return rho
