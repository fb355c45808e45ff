r"""Drag per mass in plain Python: f = -kappa m v on some nodes."""

import numpy as np


def forces(v, mass, nodes, rate):
    """Nodal forces (n, 3) [N]; rate () or (n_drags,) [1/s], mass (n,)."""
    out = np.zeros(v.shape, np.result_type(v, mass, rate))
    for node, kappa in zip(nodes, np.broadcast_to(rate, len(nodes)), strict=True):
        out[node] -= kappa * mass[node] * v[node]
    return out
