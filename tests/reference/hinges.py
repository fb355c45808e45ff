r"""Hinges in plain NumPy, as PHYSICS.md section 4 has them.

    n1 = (x1-x3) x (x1-x4),  n2 = (x2-x4) x (x2-x3),  e = x4-x3
    phi = atan2((n1 x n2).e/|e|, n1.n2),  c0 = |e|^2/(|n1| + |n2|) at rest
    U = 2 k_b c0 (1 - cos((phi - phi0)/2 + a))
    f_i = -[k_b c0 sin((phi - phi0)/2 + a) + k_d c0 phidot] dphi/dx_i

The gradient of phi is taken coordinate by coordinate with the product rule,

    dphi = (C dS - S dC)/(S^2 + C^2),  S = (n1 x n2).e/|e|,  C = n1.n2

and not from Bridson's directions. Every argument may carry a complex step.
"""

import numpy as np


def dot(a, b):
    """Row by row, (..., n, 1)."""
    return (a * b).sum(axis=-1, keepdims=True)


def atan2(S, C):
    """atan2 of numbers with a small imaginary part."""
    angle = np.arctan2(np.real(S), np.real(C))
    if not (np.iscomplexobj(S) or np.iscomplexobj(C)):
        return angle
    size = np.real(S) ** 2 + np.real(C) ** 2
    return angle + 1j * (np.real(C) * np.imag(S) - np.real(S) * np.imag(C)) / size


def sin_and_cos(corners):
    """S and C, (n, 1) [m^4], of corners (n, 4, 3)."""
    x1, x2, x3, x4 = (corners[:, k] for k in range(4))
    n1, n2, e = np.cross(x1 - x3, x1 - x4), np.cross(x2 - x4, x2 - x3), x4 - x3
    return dot(np.cross(n1, n2), e) / np.sqrt(dot(e, e)), dot(n1, n2)


def angles(x, hinges):
    """phi (n_hinges,) [rad]."""
    return atan2(*sin_and_cos(x[hinges]))[:, 0]


def rest_factor(rest_positions, hinges):
    """c0 (n_hinges,) [-]."""
    x1, x2, x3, x4 = (rest_positions[hinges[:, k]] for k in range(4))
    n1, n2, e = np.cross(x1 - x3, x1 - x4), np.cross(x2 - x4, x2 - x3), x4 - x3
    return (dot(e, e) / (np.sqrt(dot(n1, n1)) + np.sqrt(dot(n2, n2))))[:, 0]


def angle_gradient(x, hinges):
    """dphi/dx_i, (n_hinges, 4, 3) [1/m]."""
    x1, x2, x3, x4 = (x[hinges[:, k]] for k in range(4))
    n1, n2, e = np.cross(x1 - x3, x1 - x4), np.cross(x2 - x4, x2 - x3), x4 - x3
    normal, l = np.cross(n1, n2), np.sqrt(dot(e, e))
    S, C = dot(normal, e) / l, dot(n1, n2)
    steps = np.eye(12).reshape(12, 1, 4, 3)  # of one coordinate each, for all hinges
    d1, d2, d3, d4 = (steps[:, :, k] for k in range(4))
    dn1 = np.cross(d1 - d3, x1 - x4) + np.cross(x1 - x3, d1 - d4)
    dn2 = np.cross(d2 - d4, x2 - x3) + np.cross(x2 - x4, d2 - d3)
    de = d4 - d3
    dl = dot(e, de) / l
    dS = dot(np.cross(dn1, n2) + np.cross(n1, dn2), e) + dot(normal, de)
    dS = dS / l - S * dl / l
    dC = dot(dn1, n2) + dot(n1, dn2)
    out = (C * dS - S * dC) / (S * S + C * C)
    return out[..., 0].T.reshape(-1, 4, 3)


def energy(x, rest_positions, hinges, stiffness, rest_angle, actuation=0.0):
    """Elastic energy [J] of all hinges."""
    c0 = rest_factor(rest_positions, hinges)
    psi = (angles(x, hinges) - rest_angle) / 2 + actuation
    return (2 * stiffness * c0 * (1 - np.cos(psi))).sum()


def forces(x, v, rest_positions, hinges, stiffness, rest_angle, damping=0.0, actuation=0.0):
    """Nodal forces (n, 3) [N]; the parameters are scalars or (n_hinges,)."""
    c0 = rest_factor(rest_positions, hinges)
    gradient = angle_gradient(x, hinges)
    psi = (angles(x, hinges) - rest_angle) / 2 + actuation
    rate = (gradient * v[hinges]).sum(axis=(1, 2))
    moment = stiffness * c0 * np.sin(psi) + damping * c0 * rate
    f = -moment[:, None, None] * gradient
    out = np.zeros(x.shape, f.dtype)
    np.add.at(out, hinges, f)
    return out
