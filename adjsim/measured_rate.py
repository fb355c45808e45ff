r"""How stiff and how damped a model is at a state, from the tangent of its forces.

    K = -df/dx, D = -df/dv of all rows (`adjsim/field.py`);  rows move by B = J M^(-1/2) of the
    motions of nodes and bodies, J = [1, -[a]x] at a point of a body with the arm a

The rate is that of the largest eigenvalues of the symmetric parts of B^T K B and B^T D B, as in
`adjsim/stable_step.py`. What acts at the state counts, once and in its own direction, where the
bounds there count all that might act. What is stiffer later is not in it.

Tests: `tests/test_measured_rate.py`.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from scipy.spatial.transform import Rotation

from adjsim.field import Field
from adjsim.model import Model, State
from adjsim.rigid.mass_properties import from_six
from adjsim.rotations import cross_matrix
from adjsim.stable_step import rate_of


DENSE = 400  # motions, up to which all eigenvalues are found
N_POWERS = 100  # products that find the largest of more, to a few percent


def rate_at(field: Field, state: State, step: int = 0) -> float:
    """Return the rate at a state [1/s], in a step of the series; a step below 4/rate is stable."""
    row = field.row(state)
    B = _motions(field.model, row.x, row.p)
    slopes = (field.matrix_at(row, -1.0, 0.0, step), field.matrix_at(row, 0.0, -1.0, step))
    k, c = (max(_largest((B.T @ (slope @ B)).tocsr()), 0.0) for slope in slopes)
    return rate_of(np.array([k]), np.array([c]))


def _motions(model: Model, x: np.ndarray, p: np.ndarray) -> Any:
    """Return B, (3 n_rows, 3 n_nodes + 6 n_bodies), for rows at x and packed bodies p."""
    roots = np.sqrt(model.inverse_mass)
    blocks = [scipy.sparse.diags_array(np.repeat(roots, 3))] if len(roots) else []
    first, number = model.n_nodes, 0
    for bodies in model.bodies.values():
        for b, (lo, hi) in enumerate(pairwise(bodies.point_ptr)):
            arms = x[first + lo : first + hi] - p[number, :3]
            turn = Rotation.from_quat(p[number, 3:7]).as_matrix()  # spins are in body axes
            inertia = from_six(bodies.inertias)[b]
            root = np.eye(6) / np.sqrt(bodies.masses[b])
            root[3:, 3:] = turn @ np.linalg.inv(np.linalg.cholesky(inertia)).T
            eyes = np.broadcast_to(np.eye(3), (len(arms), 3, 3))
            J = np.concatenate([eyes, -cross_matrix(arms)], axis=2)
            blocks.append(scipy.sparse.coo_array((J @ root).reshape(-1, 6)))
            number += 1
        first += bodies.n_points
    return scipy.sparse.block_diag(blocks, format="csr")


def _largest(A: scipy.sparse.csr_array) -> float:
    """Return the largest eigenvalue of the symmetric part of a matrix; of many, in magnitude."""
    S = 0.5 * (A + A.T)
    n = S.shape[0]
    if n <= DENSE:
        return float(np.linalg.eigvalsh(S.toarray())[-1]) if n else 0.0
    v, size = np.cos(np.arange(n)), 0.0  # the same bits each time, and no direction is left out
    for _ in range(N_POWERS):
        v = S @ (v / np.linalg.norm(v))
        size = float(np.linalg.norm(v))
        if size == 0.0:
            break
    return size
