r"""Stable neo-Hookean tetrahedra in plain NumPy: the oracle of `adjsim/forces/`.

    Dm = [X1-X0, X2-X0, X3-X0],  B = Dm^-1,  V = det(Dm)/6,  F = Ds B,  J = det F
    psi = mu/2 (I_C - 3) + lam/2 (J - alpha)^2 - mu/2 log(I_C + 1),   I_C = tr(F^T F)
    alpha = 1 + mu/lam - mu/(4 lam) + a
    P = mu (1 - 1/(I_C + 1)) F + lam (J - alpha) cof F + eta F (Fdot^T F + F^T Fdot)

Nothing here takes an absolute value or conjugates, so every argument may be complex: a
step of 1e-30 i in any of them gives its derivative to rounding.

Source: Smith, de Goes & Kim, Stable Neo-Hookean Flesh Simulation, ACM TOG 2018, eq. 13-14;
the viscosity and the actuation `a` are this project's.
"""

import numpy as np


def lame(youngs_modulus, poisson_ratio):
    """(mu, lam) [Pa] of this model from the engineering constants (Smith 2018, 3.4)."""
    mu_l = youngs_modulus / (2 * (1 + poisson_ratio))
    lam_l = youngs_modulus * poisson_ratio / ((1 + poisson_ratio) * (1 - 2 * poisson_ratio))
    return 4 / 3 * mu_l, lam_l + 5 / 6 * mu_l


def edges(x, tets):
    """Matrices (nt, 3, 3) whose columns are x1 - x0, x2 - x0, x3 - x0."""
    corners = np.asarray(x)[tets]
    return np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)


def rest_shape(rest_positions, tets):
    """B (nt, 3, 3) [1/m] and V (nt,) [m^3], positive if the corners are in order."""
    Dm = edges(rest_positions, tets)
    return np.linalg.inv(Dm), determinant(Dm) / 6


def density_mass(rest_positions, tets, density):
    """Masses (n,) [kg]: each tetrahedron gives rho V / 4 to each of its nodes."""
    _, V = rest_shape(rest_positions, tets)
    share = np.repeat((density * V / 4)[:, None], 4, axis=1)
    return add_at_nodes(len(rest_positions), tets, share)


def rest_alpha(mu, lam, actuation=0.0):
    """The volume ratio alpha [-] that the volume term pulls towards."""
    return 1 + mu / lam - mu / (4 * lam) + actuation


def energy_density(F, mu, lam, actuation=0.0):
    """psi [J/m^3] of deformation gradients F (nt, 3, 3)."""
    I_C = (F * F).sum(axis=(1, 2))
    J = determinant(F)
    alpha = rest_alpha(mu, lam, actuation)
    return mu / 2 * (I_C - 3) + lam / 2 * (J - alpha) ** 2 - mu / 2 * np.log(I_C + 1)


def energy(x, rest_positions, tets, mu, lam, actuation=0.0):
    """Elastic energy [J] of the whole mesh; `mu`, `lam`, `actuation` scalars or (nt,)."""
    B, V = rest_shape(rest_positions, tets)
    return (V * energy_density(edges(x, tets) @ B, mu, lam, actuation)).sum()


def pk1_stress(F, mu, lam, actuation=0.0):
    """Elastic first Piola-Kirchhoff stress P [Pa], (nt, 3, 3)."""
    mu, lam, actuation = (
        np.broadcast_to(value, len(F))[:, None, None] for value in (mu, lam, actuation)
    )
    I_C = (F * F).sum(axis=(1, 2))[:, None, None]
    J = determinant(F)[:, None, None]
    alpha = rest_alpha(mu, lam, actuation)
    return mu * (1 - 1 / (I_C + 1)) * F + lam * (J - alpha) * cofactor(F)


def viscous_stress(F, F_rate, viscosity):
    """eta F (Fdot^T F + F^T Fdot) [Pa], zero in any rigid motion."""
    eta = np.broadcast_to(viscosity, len(F))[:, None, None]
    rate_t = np.swapaxes(F_rate, 1, 2)
    return eta * F @ (rate_t @ F + np.swapaxes(F, 1, 2) @ F_rate)


def forces(x, v, rest_positions, tets, mu, lam, viscosity=0.0, actuation=0.0):
    """Nodal forces (n, 3) [N]; the parameters are scalars or (nt,)."""
    B, V = rest_shape(rest_positions, tets)
    F = edges(x, tets) @ B
    P = pk1_stress(F, mu, lam, actuation) + viscous_stress(F, edges(v, tets) @ B, viscosity)
    f123 = -V[:, None, None] * P @ np.swapaxes(B, 1, 2)  # columns f1, f2, f3
    f0 = -f123.sum(axis=2, keepdims=True)
    return add_at_nodes(len(x), tets, np.swapaxes(np.concatenate([f0, f123], axis=2), 1, 2))


def add_at_nodes(n_nodes, tets, slots):
    """Sum `slots` (nt, 4, ...) into nodes (n, ...)."""
    out = np.zeros((n_nodes, *slots.shape[2:]), slots.dtype)
    np.add.at(out, tets, slots)
    return out


def cofactor(F):
    """cof F = d det F / d F: columns f1 x f2, f2 x f0, f0 x f1."""
    f0, f1, f2 = (F[:, :, k] for k in range(3))
    return np.stack([np.cross(f1, f2), np.cross(f2, f0), np.cross(f0, f1)], axis=2)


def determinant(F):
    """det F as a polynomial of the entries."""
    return (F[:, :, 0] * np.cross(F[:, :, 1], F[:, :, 2])).sum(axis=1)
