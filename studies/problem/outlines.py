r"""The surface of a body that several cameras see: its hull, fitted to the outlines of their masks.

A hull is too large between the outlines and, as a grid has it, too short at tips. The vertices move
along their normals n, x + s n, so that what is drawn has the outlines of the masks:

    min over s of   sum (s_i - (d(u_i) - d'(u_i)) z_i w)^2 + mu sum (n_i . L(x + s n)_i)^2

The first sum is over all views and the vertices i at the outline of what is drawn, with d and d'
the distances of the pixel u_i from the outlines of the mask and of what is drawn, and z w the width
of a pixel there (`carving`). L is the Laplacian of `render/shape_losses.py`, so between outlines
the surface is as smooth as it can be. mu begins large, where the surface is stiff, and is made
smaller until the outlines agree as well as a mask is known (Morozov's discrepancy principle).

Tests: `tests/studies/problem/test_outlines.py`.
Source: Franco & Boyer, Exact polyhedral visual hulls, BMVC 2003 (what a hull touches).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.sparse
import scipy.sparse.linalg

from adjsim.meshes.triangle_mesh import TriangleMesh, vertex_normals
from render.blending import Hard
from render.scene import Mesh, Scene
from render.shape_losses import Laplacian
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.carving import FINER, OUTLINE, Hull, View, hull, outline_distances, read_at
from studies.problem.pixels import to_pixels


SMOOTHNESSES = (100.0, 30.0, 10.0, 3.0, 1.0)  # mu, one after the other
ROUNDS = 2  # of each
MARGIN = 4  # pixels about what is drawn, in which distances are measured
NEAR = 0.75  # pixels: nearer to the outline of what is drawn a vertex is at it
ACROSS = 0.5  # cosine: of the normal and the line of sight, at most, at an outline
MOST = 4.0  # pixels: what outlines are farther apart counts as this
RIDGE = 1e-6  # beside 1, so that s is unique


def surface_from_views(views: Mapping[str, View], cells: int, key: str) -> Hull:
    """Return the surface of a body; parameters and errors are those of `carving.hull`."""
    carved = hull(views, cells, key)
    surface, left = fitted_to_outlines(carved.surface, list(views.values()))
    pixel = np.mean([view.width * view.depths(surface.centroid) for view in views.values()])
    return carved._replace(surface=surface, error=float(np.hypot(carved.error, left * pixel)))


def fitted_to_outlines(surface: TriangleMesh, views: list[View]) -> tuple[TriangleMesh, float]:
    """Return a surface whose outlines are those of masks, and how far they are apart, rms [pixels].

    It has the same faces.
    """
    x, faces = surface.points.copy(), np.asarray(surface.faces)
    L, left = Laplacian(faces).matrix, np.inf
    for mu in SMOOTHNESSES:
        for _ in range(ROUNDS):
            n = vertex_normals(x, faces)
            at, off, width = _apart(x, n, faces, views)
            D = scipy.sparse.csr_array(
                (np.ones(len(at)), (np.arange(len(at)), at)), (len(at), len(x))
            )
            of_axes = [scipy.sparse.diags_array(n[:, axis]) for axis in range(3)]
            B: Any = sum(N @ L @ N for N in of_axes)
            rough = np.einsum("ni,ni->n", n, L @ x)
            H = D.T @ D + mu * B.T @ B + RIDGE * scipy.sparse.eye_array(len(x))
            wanted = D.T @ (np.clip(off, -MOST, MOST) * width) - mu * B.T @ rough
            x += scipy.sparse.linalg.spsolve(H.tocsc(), wanted)[:, None] * n
        _, off, _ = _apart(x, vertex_normals(x, faces), faces, views)
        left = float(np.sqrt(np.square(np.clip(off, -MOST, MOST)).mean()))
        if left <= OUTLINE:
            break
    return TriangleMesh(x, faces), left


def _apart(
    x: np.ndarray, n: np.ndarray, faces: np.ndarray, views: list[View]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how far outlines are apart where vertices x are at them, with the normals n.

    The vertices, (n_at,), how far the outline of the mask is outside of that of what is drawn,
    (n_at,) [pixels], and the widths of a pixel, (n_at,) [m]; of all views, one after the other.
    """
    sharp, scene = SoftRasterizer(blend=Hard(), supersample=FINER), Scene({"body": Mesh(faces)})
    of_views = []
    for view in views:
        size = view.body.shape
        drawn = rasterize(scene, view.camera, sharp, {"body": x}, (size[0], size[1]))[..., 3]
        rows, columns = scipy.ndimage.find_objects((drawn > 0.0).astype(np.int8))[0]
        top, left = max(rows.start - MARGIN, 0), max(columns.start - MARGIN, 0)
        drawn = drawn[top : rows.stop + MARGIN, left : columns.stop + MARGIN]
        u, v = to_pixels(view.camera, x, size).T
        inside = read_at(outline_distances(drawn, drawn > 0.5), u - left, v - top)
        sight = x - view.camera.pose()[0]
        cosines = np.einsum("ni,ni->n", sight, n) / np.linalg.norm(sight, axis=1)
        at = np.flatnonzero((np.abs(inside) < NEAR) & (np.abs(cosines) < ACROSS))
        off = read_at(view.distances, u[at], v[at]) - inside[at]
        of_views.append((at, off, view.width * view.depths(x[at])))
    at, off, width = (np.concatenate(rows) for rows in zip(*of_views, strict=True))
    return at, off, width
