r"""The divergence-free part of a velocity on a periodic grid, by Fourier transform.

    u+(k) = u(k) - k (k.u(k))/|k|^2,   k = (sin 2 pi a/N_x, sin 2 pi b/N_y)

i k is the symbol of the central difference, so it is the central-difference divergence that
vanishes. Where |k| = 0 the velocity is left as it is; that is decided on the integers a and b,
since the sine of a rounded pi is not zero.

The map is linear, symmetric and idempotent: it is its own tangent and its own adjoint.

Tests: `tests/reduced/test_projection.py`.
Source: Stam, Stable Fluids, SIGGRAPH 1999, sec. 2.1, and A Simple Fluid Solver Based on the
FFT, J. Graphics Tools 6(2), 2001.
"""

from typing import Any

import numpy as np

from adjsim.jit.devices import Device, array_module, fourier_transforms


def wave_numbers(n: int) -> np.ndarray:
    """Return sin(2 pi a/n), (n,), exactly 0 where 2 a is a multiple of n."""
    a = np.arange(n)
    return np.where(2 * a % n == 0, 0.0, np.sin(2.0 * np.pi * a / n))


class Projection:
    """Projects velocities (N_y, N_x, 2) on an (N_y, N_x) grid."""

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype, device: Device, threads: int = 1
    ) -> None:
        n_y, n_x = shape
        k_x = wave_numbers(n_x)[None, : n_x // 2 + 1]  # real fields: half of the waves
        k_y = wave_numbers(n_y)[:, None]
        square = k_x**2 + k_y**2
        inverse = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0.0)
        xp = array_module(device)
        self.shape, self.xp = shape, xp
        self.waves = tuple(xp.array(array, dtype) for array in (k_x, k_y, inverse))
        self.forward, self.backward = fourier_transforms(device, threads)

    def __call__(self, velocity: Any) -> Any:
        """Return the divergence-free part of a velocity, a new array."""
        k_x, k_y, inverse = self.waves
        u = self.forward(velocity, axes=(0, 1))
        along = (k_x * u[..., 0] + k_y * u[..., 1]) * inverse
        u[..., 0] -= k_x * along
        u[..., 1] -= k_y * along
        return self.xp.ascontiguousarray(self.backward(u, s=self.shape, axes=(0, 1)))
