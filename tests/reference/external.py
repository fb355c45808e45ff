r"""Given forces on nodes in plain Python, as PHYSICS.md sections 1 and 8 have them.

Row k of a series acts in step k; a window (first, last) keeps steps first <= k < last.
"""

import numpy as np


def force_at(k, force, n_loads, window=None):
    """Forces (n_loads, 3) [N] of step k from (3,), (n_loads, 3) or (n_steps, n_loads, 3)."""
    if window is not None and not window[0] <= k < window[1]:
        return np.zeros((n_loads, 3))
    row = force[k] if np.ndim(force) == 3 else force
    return np.array([row if np.ndim(row) == 1 else row[load] for load in range(n_loads)])


def forces(k, n_nodes, nodes, force, window=None):
    """Nodal forces (n_nodes, 3) [N] in step k."""
    at = force_at(k, force, len(nodes), window)
    out = np.zeros((n_nodes, 3), at.dtype)
    for load, node in enumerate(nodes):
        out[node] += at[load]
    return out
