r"""The surface of a body that several cameras see: its hull, fitted to the outlines of their masks.

A hull is too large between the outlines, and its grid cuts off thin tips. Its vertices move along
their normals n, x + s n, so that what is drawn has the outlines of the masks:

    min over s of   sum (s_i - (d(u_i) - d'(u_i)) z_i w)^2 + mu sum (n_i . L(x + s n)_i)^2

The first sum is over all views and the vertices i at the outline of what is drawn, with d and d'
the distances of the pixel u_i from the outlines of the mask and of what is drawn, and z w the width
of a pixel there (`carving`). A vertex is at an outline if a step along its normal goes out of what
is drawn. L is the Laplacian of `render/shape_losses.py`, so between outlines the surface is as
smooth as they allow. mu begins large, where the surface is stiff, and is made smaller until the
outlines agree as well as a mask is known, or hardly agree better: then what is left contradicts
itself, as where a camera is wrong.

Tests: `tests/studies/problem/test_outlines.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
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
from studies.problem.carving import (
    FINER,
    OUTLINE,
    Hull,
    View,
    distances_at,
    hull,
    outline_distances,
    require_outline,
)
from studies.problem.pixels import to_pixels
from studies.runs.media import resized


SMOOTHNESSES = (100.0, 30.0, 10.0, 3.0, 1.0)  # mu, one after the other
ROUNDS = 2  # of each
STALLS = 0.9  # of how far outlines are apart: a smaller mu must bring them nearer than that
AT_OUTLINE = 0.75  # pixels from the outline of what is drawn, at most
OUTWARD = 0.8  # pixels by which a step of one pixel goes out of it, at least
LARGEST = 6.0  # pixels: what outlines are farther apart counts as this
MARGIN = 4  # pixels about what is drawn, in which distances are measured
LEAST_VIEWS = 3  # with two views the volume of the hull is nearer
SHARP = 200  # pixels: masks of longer bodies are made smaller
DAMPING = 1e-6  # beside 1, so that s is unique


def surface_from_views(views: Mapping[str, View], cells: int, key: str) -> Hull:
    """Return the hull of a body, fitted to the outlines of the masks if there are enough views.

    Parameters and errors are as in `carving.hull`; masks that are empty or touch the edge of their
    picture are refused too. Where outlines stay apart, the error of the surface is larger.
    """
    for name, view in views.items():
        require_outline(name, view)
    views = {name: _reduced(view) for name, view in views.items()}
    carved = hull(views, cells, key)
    if len(views) < LEAST_VIEWS:
        return carved
    surface, apart = fitted_to_outlines(carved.surface, list(views.values()))
    pixel = np.mean([view.width * view.depths(surface.centroid) for view in views.values()])
    error = float(np.hypot(carved.error, max(apart - OUTLINE, 0.0) * pixel))
    return carved._replace(surface=surface, error=error)


def fitted_to_outlines(surface: TriangleMesh, views: list[View]) -> tuple[TriangleMesh, float]:
    """Return a surface with the outlines of masks, and how far they are apart, rms [pixels].

    It has the same faces.
    """
    faces, fitted, least = np.asarray(surface.faces), surface, np.inf
    L = Laplacian(faces).matrix
    for mu in SMOOTHNESSES:
        x = fitted.points.copy()
        for _ in range(ROUNDS):
            n = vertex_normals(x, faces)
            at, offsets, width = _outline_offsets(x, n, faces, views)
            entries = np.ones(len(at)), (np.arange(len(at)), at)
            D = scipy.sparse.csr_array(entries, shape=(len(at), len(x)))
            B: Any = sum(
                scipy.sparse.diags_array(each) @ L @ scipy.sparse.diags_array(each) for each in n.T
            )
            rough = np.einsum("ni,ni->n", n, L @ x)
            H = D.T @ D + mu * B.T @ B + DAMPING * scipy.sparse.eye_array(len(x))
            b = D.T @ (offsets * width) - mu * B.T @ rough
            s: Any = scipy.sparse.linalg.spsolve(H.tocsc(), b)
            x += s[:, None] * n
        _, offsets, _ = _outline_offsets(x, vertex_normals(x, faces), faces, views)
        apart = float(np.sqrt(np.square(offsets).mean())) if offsets.size else 0.0
        if apart > STALLS * least:
            break
        fitted, least = TriangleMesh(x, faces), apart
        if apart <= OUTLINE:
            break
    return fitted, least


def _outline_offsets(
    x: np.ndarray, n: np.ndarray, faces: np.ndarray, views: list[View]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which vertices x are at outlines, how far the masks' are outside, and a pixel's width.

    Vertices with the normals n, (n_at,); how far the outline of the mask is outside of that of what
    is drawn, (n_at,) [pixels]; (n_at,) [m]. Those of all views follow each other.
    """
    sharp, scene = SoftRasterizer(blend=Hard(), supersample=FINER), Scene({"body": Mesh(faces)})
    of_views = []
    for view in views:
        size, depths = (view.body.shape[0], view.body.shape[1]), view.depths(x)
        camera = replace(view.camera, near=0.5 * depths.min(), far=2.0 * depths.max())
        drawn = rasterize(scene, camera, sharp, {"body": x}, size)[..., 3]
        rows, columns = scipy.ndimage.find_objects((drawn > 0.0).astype(np.int8))[0]
        top, left = max(rows.start - MARGIN, 0), max(columns.start - MARGIN, 0)
        drawn = drawn[top : rows.stop + MARGIN, left : columns.stop + MARGIN]
        distances, width = outline_distances(drawn, drawn > 0.5), view.width * depths
        u, v = to_pixels(camera, x, size).T
        inside = distances_at(distances, u - left, v - top)
        there = to_pixels(camera, x + width[:, None] * n, size) - [left, top]
        outward = inside - distances_at(distances, *there.T)
        at = np.flatnonzero((np.abs(inside) < AT_OUTLINE) & (outward > OUTWARD))
        offsets = view.distances_at(u[at], v[at]) - inside[at]
        of_views.append((at, np.clip(offsets, -LARGEST, LARGEST), width[at]))
    at, offsets, width = (np.concatenate(each) for each in zip(*of_views, strict=True))
    return at, offsets, width


def _reduced(view: View) -> View:
    """Return a view whose body is at most `SHARP` pixels long, with pixels that are square."""
    if view.length <= SHARP:
        return view
    height, width = view.mask.shape
    most = int(height * SHARP / view.length)
    rows = max(range(most, most // 2, -1), key=lambda n: abs(n * width / height % 1.0 - 0.5))
    mask = resized(view.mask[..., None], (rows, round(rows * width / height)), by="BOX")[..., 0]
    return View(mask, view.camera)
