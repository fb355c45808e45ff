r"""Points carried along by a tetrahedral mesh: vertices = S x.

A point p in the tetrahedron with nodes x0..x3 has barycentric coordinates b,

    b_{1..3} = [x1 - x0, x2 - x0, x3 - x0]^-1 (p - x0),   b_0 = 1 - b_1 - b_2 - b_3,

and moves with it: p = sum_a b_a x_a. Outside the mesh the closest tetrahedron carries the
point by the same formula, so S rest_positions gives the points back everywhere. S is
linear and constant, so its tangent is S itself and its adjoint S^T.

Tests: `tests/meshes/test_embedding.py`.
"""

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from adjsim import checks
from adjsim.meshes.files import unstructured_grid
from adjsim.meshes.tet_mesh import TetMesh


def embedding(
    mesh: TetMesh, points: ArrayLike, *, max_distance: float = 0.02
) -> scipy.sparse.csr_array:
    """Return the matrix S with `vertices = S @ x`, and `adj_x = S.T @ adj_vertices`.

    Parameters
    ----------
    mesh : TetMesh
        The mesh that carries the points, in its rest shape.
    points : array_like
        Positions at rest, (n_vertices, 3) [m].
    max_distance : float
        How far outside the mesh a point may lie, over the diagonal of the bounding box
        of the mesh [-].

    Returns
    -------
    csr_array
        (n_vertices, n_points of the mesh) float64, at most four entries to a row; each
        row adds up to 1.

    Raises
    ------
    ValueError
        If a point lies farther outside.
    """
    points = checks.array("points", points, ("n_vertices", 3))
    grid = unstructured_grid(checks.instance("mesh", mesh, TetMesh))
    cells, closest = grid.find_closest_cell(points, return_closest_point=True)
    cells = np.atleast_1d(cells)
    distance = np.linalg.norm(np.reshape(closest, (-1, 3)) - points, axis=1)
    limit = max_distance * float(np.linalg.norm(np.ptp(mesh.points, axis=0)))
    if not (distance <= limit).all():
        worst = int(np.argmax(distance))
        raise ValueError(
            f"`points` must lie in the mesh or within {limit:.3g} of it, but point {worst} is "
            f"{distance[worst]:.3g} outside. Check the scale of both, or pass a larger "
            "`max_distance`."
        )

    nodes = mesh.tets[cells]
    x0 = mesh.points[nodes[:, 0]]
    edges = np.stack([mesh.points[nodes[:, a]] - x0 for a in (1, 2, 3)], axis=2)
    b = np.linalg.solve(edges, (points - x0)[:, :, None])[:, :, 0]
    weights = np.column_stack([1.0 - b.sum(axis=1), b])
    rows = np.repeat(np.arange(len(points)), 4)
    return scipy.sparse.csr_array(
        (weights.ravel(), (rows, nodes.ravel())), shape=(len(points), mesh.n_points)
    )
