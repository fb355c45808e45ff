r"""Thin tetrahedra of a mesh made thicker by moving their nodes.

An explicit step is about as long as sound takes through the least height of a tetrahedron,

    h = 3 V / A_max,

with the area A_max of its largest face. Of ten thousand tetrahedra of a mesher a handful is far
thinner than the rest, most of them at the surface, and shortens every step. Each of their nodes in
turn goes to the best of some places about it: where the least h of its tetrahedra is largest. A
node of the surface stays near the planes of the triangles that met there at first.

Source: Freitag and Ollivier-Gooch, Tetrahedral mesh improvement using swapping and smoothing, Int.
J. Numer. Methods Eng. 40 (1997), who find the best place by linear programs.
Tests: `tests/meshes/test_smoothing.py`.
"""

from itertools import product

import numpy as np

from adjsim.meshes.tet_mesh import TetMesh


THIN = 0.6  # of the median of h: what is thinner gets thicker
ROUNDS = 60  # through the nodes of all thin tetrahedra, at most
GAIN = 1.01  # by which a new place is better
LENGTHS = (0.6, 0.3, 0.15, 0.075, 0.0375)  # of moves that are tried, over the height that is wanted
DIRECTIONS = np.array([d for d in product((-1.0, 0.0, 1.0), repeat=3) if any(d)])
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)


def smoothed(mesh: TetMesh, play: float) -> TetMesh:
    """Return a mesh of the same tetrahedra whose thinnest are thicker.

    `play` is how far a node of the surface may leave the planes of its triangles [m].
    """
    x, nodes = mesh.points.copy(), mesh.tets.ravel()
    wanted = THIN * float(np.median(least_heights(x[mesh.tets])))
    of_node = _by_node(nodes, len(x))
    normals, of_surface = _normals(mesh), _by_node(mesh.surface().faces.ravel(), len(x))
    for _ in range(ROUNDS):
        is_thin, has_moved = least_heights(x[mesh.tets]) < wanted, False
        for v in np.unique(mesh.tets[is_thin]).tolist():
            tets = mesh.tets[of_node[v] // 4]
            corners, at = x[tets], tets == v
            least = float(least_heights(corners).min())
            if least >= wanted:
                continue
            planes = normals[of_surface[v] // 3]
            for length in LENGTHS:
                places = x[v] + length * wanted * DIRECTIONS
                away = np.abs((places - mesh.points[v]) @ planes.T)
                places = places[(away <= play).all(axis=1)]
                moved = np.repeat(corners[None], len(places), axis=0)
                moved[:, at] = places[:, None]
                heights = least_heights(moved).min(axis=1)
                if len(places) and heights.max() > GAIN * least:
                    x[v], has_moved = places[heights.argmax()], True
                    break
        if not has_moved:
            break
    return TetMesh(x, mesh.tets)


def least_heights(corners: np.ndarray) -> np.ndarray:
    """Return the least height of each tetrahedron, (...) [m], from its corners, (..., 4, 3)."""
    a, b, c = (corners[..., k, :] - corners[..., 0, :] for k in (1, 2, 3))
    faces = np.stack([np.cross(b - a, c - a), np.cross(b, c), np.cross(a, c), np.cross(a, b)])
    volumes6 = np.einsum("...i,...i->...", a, faces[1])
    return volumes6 / np.linalg.norm(faces, axis=-1).max(axis=0)


def _normals(mesh: TetMesh) -> np.ndarray:
    """Return the unit normals of the triangles of the surface, (n_faces, 3) [-]."""
    a, b, c = np.moveaxis(mesh.points[mesh.surface().faces], 1, 0)
    normals = np.cross(b - a, c - a)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def _by_node(nodes: np.ndarray, n_nodes: int) -> list[np.ndarray]:
    """Return for each node where it is in `nodes`, (n,)."""
    order = np.argsort(nodes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(nodes, minlength=n_nodes))[:-1])
