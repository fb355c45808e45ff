r"""Stable neo-Hookean triangles in plain NumPy, with a frame in the plane of each of them.

    B: inverse of the 2 x 2 rest edges in an orthonormal frame of the rest triangle
    F = [x1-x0, x2-x0] B in R^(3x2),  I_C = tr(F^T F),  J = |a x b| for F = [a, b]
    psi = mu/2 (I_C - 2) + lam/2 (J - alpha)^2 - mu/2 log(I_C + 1),  alpha = 1 + 2 mu/(3 lam) + a
    P = mu (1 - 1/(I_C + 1)) F + lam (J - alpha) [b x n, n x a] + eta F (Fdot^T F + F^T Fdot)
    [f1 f2] = -A0 P B^T,  f0 = -(f1 + f2)

The frame leans on the first edge; tests turn it. No absolute value is taken and nothing
conjugated, so every argument may be complex.

Source: Smith, de Goes & Kim, ACM TOG 2018, eq. 13-14, in the plane of the sheet (ours).
"""

import numpy as np

from tests.reference.neo_hookean import add_at_nodes


def lame(youngs_modulus, poisson_ratio):
    """(mu, lam) [N/m] from E [N/m] and nu of the sheet, in plane stress."""
    mu_l = youngs_modulus / (2 * (1 + poisson_ratio))
    lam_l = youngs_modulus * poisson_ratio / (1 - poisson_ratio**2)
    return 3 / 2 * mu_l, lam_l + 2 / 3 * mu_l


def edges(x, triangles):
    """Matrices (nt, 3, 2) whose columns are x1 - x0 and x2 - x0."""
    corners = np.asarray(x)[triangles]
    return np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)


def rest_shape(rest_positions, triangles, turn=0.0):
    """B (nt, 2, 2) [1/m] and A0 (nt,) [m^2]; `turn` turns the frame in its plane [rad]."""
    Dm = edges(rest_positions, triangles)
    e1, e2 = Dm[:, :, 0], Dm[:, :, 1]
    normal = unit(np.cross(e1, e2))
    t1 = unit(e1)
    t2 = np.cross(normal, t1)
    c, s = np.cos(turn), np.sin(turn)
    frame = np.stack([c * t1 + s * t2, c * t2 - s * t1], axis=1)
    flat = frame @ Dm
    area = (flat[:, 0, 0] * flat[:, 1, 1] - flat[:, 0, 1] * flat[:, 1, 0]) / 2
    return np.linalg.inv(flat), area


def density_mass(rest_positions, triangles, density):
    """Masses (n,) [kg]: each triangle gives sigma A0 / 3 to each of its nodes."""
    _, area = rest_shape(rest_positions, triangles)
    share = np.repeat((density * area / 3)[:, None], 3, axis=1)
    return add_at_nodes(len(rest_positions), triangles, share)


def rest_alpha(mu, lam, actuation=0.0):
    """The area ratio alpha [-] that the area term pulls towards."""
    return 1 + 2 * mu / (3 * lam) + actuation


def energy(x, rest_positions, triangles, mu, lam, actuation=0.0):
    """Elastic energy [J] of the whole sheet; parameters scalars or (nt,)."""
    B, area = rest_shape(rest_positions, triangles)
    F = edges(x, triangles) @ B
    I_C = (F * F).sum(axis=(1, 2))
    J = area_ratio(F)
    alpha = rest_alpha(mu, lam, actuation)
    psi = mu / 2 * (I_C - 2) + lam / 2 * (J - alpha) ** 2 - mu / 2 * np.log(I_C + 1)
    return (area * psi).sum()


def pk1_stress(F, mu, lam, actuation=0.0):
    """Elastic first Piola-Kirchhoff stress P [N/m], (nt, 3, 2)."""
    mu, lam, actuation = (
        np.broadcast_to(value, len(F))[:, None, None] for value in (mu, lam, actuation)
    )
    I_C = (F * F).sum(axis=(1, 2))[:, None, None]
    J = area_ratio(F)[:, None, None]
    a, b = F[:, :, 0], F[:, :, 1]
    n = unit(np.cross(a, b))
    dJ = np.stack([np.cross(b, n), np.cross(n, a)], axis=2)
    return mu * (1 - 1 / (I_C + 1)) * F + lam * (J - rest_alpha(mu, lam, actuation)) * dJ


def viscous_stress(F, F_rate, viscosity):
    """eta F (Fdot^T F + F^T Fdot) [N/m], zero in any rigid motion."""
    eta = np.broadcast_to(viscosity, len(F))[:, None, None]
    rate_t = np.swapaxes(F_rate, 1, 2)
    return eta * F @ (rate_t @ F + np.swapaxes(F, 1, 2) @ F_rate)


def forces(x, v, rest_positions, triangles, mu, lam, viscosity=0.0, actuation=0.0, turn=0.0):
    """Nodal forces (n, 3) [N]; the parameters are scalars or (nt,)."""
    B, area = rest_shape(rest_positions, triangles, turn)
    F = edges(x, triangles) @ B
    P = pk1_stress(F, mu, lam, actuation) + viscous_stress(F, edges(v, triangles) @ B, viscosity)
    f12 = -area[:, None, None] * P @ np.swapaxes(B, 1, 2)  # columns f1, f2
    f0 = -f12.sum(axis=2, keepdims=True)
    return add_at_nodes(len(x), triangles, np.swapaxes(np.concatenate([f0, f12], axis=2), 1, 2))


def area_ratio(F):
    """J = sqrt(det(F^T F)) = |a x b|."""
    normal = np.cross(F[:, :, 0], F[:, :, 1])
    return np.sqrt((normal * normal).sum(axis=1))


def unit(a):
    """Rows over their lengths."""
    return a / np.sqrt((a * a).sum(axis=1, keepdims=True))
