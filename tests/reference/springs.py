r"""Springs in plain NumPy, as PHYSICS.md section 5 has them.

    l = |x_i - x_j|,  d = (x_i - x_j)/l
    f_i = -[k (l - l0) + c d.(v_i - v_j)] d,  f_j = -f_i

Nothing here takes an absolute value, so every argument may be complex.
"""

import numpy as np


def lengths(x, edges):
    """Lengths (n_springs,) [m]."""
    r = x[edges[:, 0]] - x[edges[:, 1]]
    return np.sqrt((r * r).sum(axis=1))


def energy(x, edges, stiffness, rest_length):
    """Elastic energy [J] of all springs."""
    return (stiffness / 2 * (lengths(x, edges) - rest_length) ** 2).sum()


def forces(x, v, edges, stiffness, rest_length, damping=0.0):
    """Nodal forces (n, 3) [N]; the parameters are scalars or (n_springs,)."""
    i, j = edges.T
    l = lengths(x, edges)
    d = (x[i] - x[j]) / l[:, None]
    rate = (d * (v[i] - v[j])).sum(axis=1)
    f = -(stiffness * (l - rest_length) + damping * rate)[:, None] * d
    out = np.zeros(x.shape, f.dtype)
    np.add.at(out, i, f)
    np.add.at(out, j, -f)
    return out
