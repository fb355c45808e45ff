"""Static equilibrium of a body of tetrahedra, solved with SciPy from our forces alone."""

import numpy as np
import scipy.linalg
import scipy.sparse

from adjsim.engine.stepper import make_stepper
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.model import Model


def force_of(model):
    """Return x -> internal forces, (n_nodes, 3) [N]: one step of 1 s from rest, m v'."""
    stepper = make_stepper(model, 1.0, 1, np.dtype(np.float64), threads=1)
    fields = stepper.allocate(2)
    X, V = fields[:2]

    def force(x):
        X[0], V[0] = x, 0.0
        stepper.advance(0, np.array([0, 1]), fields)
        return model.mass[:, None] * V[1]

    return force


def stiffness(body, step):
    """-df/dx at rest, sparse, from differences of the forces of all tetrahedra taken apart."""
    apart = body.rest_positions[body.tets].reshape(-1, 3)
    alone = NeoHookeanTets(np.arange(len(apart)).reshape(-1, 4), apart, body.mu, body.lam)
    force = force_of(Model(np.ones(len(apart)), {"body": alone}, gravity=(0, 0, 0)))
    K = np.empty((len(body.tets), 12, 12))
    for column in range(12):
        moved = np.zeros((len(body.tets), 12))
        moved[:, column] = step
        d = moved.reshape(-1, 3)
        K[:, :, column] = (force(apart - d) - force(apart + d)).reshape(-1, 12) / (2.0 * step)
    dofs = (3 * body.tets[:, :, None] + np.arange(3)).reshape(-1, 12)
    rows, columns = np.repeat(dofs, 12, axis=1).ravel(), np.tile(dofs, 12).ravel()
    return scipy.sparse.coo_array((K.ravel(), (rows, columns)))


def factorised(K, free):
    """Return b -> K^-1 b on the free numbers, by a banded Cholesky decomposition."""
    K = K.tocsr()[free][:, free].tocoo()
    K.sum_duplicates()
    lower = K.row >= K.col
    row, col = K.row[lower], K.col[lower]
    band = np.zeros((int((row - col).max()) + 1, K.shape[0]))
    band[row - col, col] = K.data[lower]
    factor = scipy.linalg.cholesky_banded(band, lower=True, check_finite=False)
    return lambda b: scipy.linalg.cho_solve_banded((factor, True), b)


def displacement(body, mass, pinned, load, *, step, rounds=6):
    """u with f(X + u) + load = 0 where free, by Newton steps with the stiffness at rest.

    Returns u, (n_nodes, 3), and the largest force left over the largest load.
    """
    force = force_of(Model(mass, {"body": body}, gravity=(0, 0, 0), pinned=pinned))
    free = np.flatnonzero(np.repeat(~pinned, 3))
    solve = factorised(stiffness(body, step), free)
    u = np.zeros_like(load)
    for _ in range(rounds):
        left = (force(body.rest_positions + u) + load).ravel()[free]
        u.ravel()[free] += solve(left)
    left = (force(body.rest_positions + u) + load)[~pinned]
    return u, np.abs(left).max() / np.abs(load).max()
