r"""Smoke on a periodic grid in plain NumPy, cell by cell.

    1. u* = S(u; u)      value at cell p is u at p - u(p), bilinear, periodic
    2. u+ = u* - k (k.u*)/|k|^2 per wave, k = (sin 2 pi a/N_x, sin 2 pi b/N_y)
    3. d+ = S(d; u+)

Loops, and full complex transforms written as matrices: nothing is shared with the kernels.
Branches look at real parts only, so every argument may carry a complex step.

Source: Stam, Stable Fluids, SIGGRAPH 1999.
"""

import numpy as np


def lookup(field, velocity):
    """S(field; velocity), (N_y, N_x, ...) and (N_y, N_x, 2)."""
    n_y, n_x = field.shape[:2]
    out = np.zeros(field.shape, np.result_type(field, velocity))
    for i in range(n_y):
        for j in range(n_x):
            x, y = j - velocity[i, j, 0], i - velocity[i, j, 1]
            left, low = int(np.floor(np.real(x))), int(np.floor(np.real(y)))
            for di, wy in ((0, 1 - (y - low)), (1, y - low)):
                for dj, wx in ((0, 1 - (x - left)), (1, x - left)):
                    out[i, j] += wy * wx * field[(low + di) % n_y, (left + dj) % n_x]
    return out


def fourier_matrix(n):
    """F with F f = sum_m f_m exp(-2 pi i a m/n)."""
    a = np.arange(n)
    return np.exp(-2j * np.pi * np.outer(a, a) / n)


def project(velocity, imaginary=0.0):
    """The divergence-free part of a real velocity (N_y, N_x, 2), wave by wave."""
    n_y, n_x = velocity.shape[:2]
    Fy, Fx = fourier_matrix(n_y), fourier_matrix(n_x)
    hat = np.einsum("am,mnc,bn->abc", Fy, velocity, Fx)
    for b in range(n_y):
        for a in range(n_x):
            if 2 * a % n_x == 0 and 2 * b % n_y == 0:
                continue
            k = np.array([np.sin(2 * np.pi * a / n_x), np.sin(2 * np.pi * b / n_y)])
            hat[b, a] -= k * (k @ hat[b, a]) / (k @ k)
    return np.einsum("am,mnc,bn->abc", Fy.conj(), hat, Fx.conj()) / (n_y * n_x)


def real_project(velocity):
    """`project` of real and imaginary part apart: linear in both, for complex steps."""
    real = project(np.real(velocity)).real
    if not np.iscomplexobj(velocity):
        return real
    return real + 1j * project(np.imag(velocity)).real


def rollout(velocity, density, n_steps):
    """Velocities and densities of all states, (n_steps + 1, N_y, N_x, ...)."""
    states = [(np.asarray(velocity), np.asarray(density))]
    for _ in range(n_steps):
        u, d = states[-1]
        u = real_project(lookup(u, u))
        states.append((u, lookup(d, u)))
    return np.stack([u for u, _ in states]), np.stack([d for _, d in states])


def divergence(velocity):
    """Central-difference divergence (N_y, N_x) [1/step]."""
    u_x, u_y = velocity[..., 0], velocity[..., 1]
    across = np.roll(u_x, -1, axis=1) - np.roll(u_x, 1, axis=1)
    return (across + np.roll(u_y, -1, axis=0) - np.roll(u_y, 1, axis=0)) / 2
