"""Where on the surface of a body points are, and what the ray through a pixel meets."""

from typing import Any

import numpy as np
import scipy.sparse

from render.posed_camera import PosedCamera
from studies.runs.errors import StudyError


NEAR = 0.05  # part of a body's size: how far from its surface a point may be


def on_surface(
    name: str, surface: np.ndarray, faces: np.ndarray, places: np.ndarray
) -> scipy.sparse.csr_array:
    """Return W, (n_points, n_vertices), whose rows weigh the corners of the nearest triangle."""
    import pyvista

    mesh = pyvista.PolyData.from_regular_faces(surface, faces)
    found: Any = mesh.find_closest_cell(places, return_closest_point=True)
    cells, nearest = found
    corners = faces[np.atleast_1d(cells)]
    size = float(np.linalg.norm(np.ptp(surface, axis=0)))
    far = np.linalg.norm(nearest - places, axis=1)
    if (far > NEAR * size).any():
        k = int(np.argmax(far))
        raise StudyError(
            f"`observations.{name}` must have points on its body at the start, but one is at "
            f"{places[k].round(4).tolist()} m, {far[k]:.3g} m away from it. Check units and pose "
            "of the points and the body, or say where they are by `at`."
        )
    weights = _barycentric(surface[corners], nearest)
    rows = np.repeat(np.arange(len(places)), 3)
    shape = (len(places), len(surface))
    return scipy.sparse.csr_array((weights.ravel(), (rows, corners.ravel())), shape=shape)


def _barycentric(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return weights (n, 3) of corners (n, 3, 3) that sum up to points (n, 3) in their planes."""
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    d = points - corners[:, 0]
    aa, ab, bb = (np.einsum("ij,ij->i", p, q) for p, q in ((a, a), (a, b), (b, b)))
    da, db = np.einsum("ij,ij->i", d, a), np.einsum("ij,ij->i", d, b)
    area = np.maximum(aa * bb - ab**2, np.finfo(float).tiny)
    u, v = (bb * da - ab * db) / area, (aa * db - ab * da) / area
    return np.stack([1.0 - u - v, u, v], axis=1)


def first_hit(
    camera: PosedCamera,
    size: tuple[int, int],
    pixel: np.ndarray,
    *,
    surface: np.ndarray,
    faces: np.ndarray,
) -> np.ndarray | None:
    """Return where the ray through a pixel (u, v) first meets a surface, (3,) [m]; None: nowhere.

    Source: Moeller & Trumbore, Fast, minimum storage ray/triangle intersection, 1997.
    """
    height, width = size
    f_x, k, c_x, f_y, c_y = camera.optics.numbers()
    s_x = (2.0 * pixel[0] + 1 - width) / height
    s_y = (height - 1 - 2.0 * pixel[1]) / height
    y = (s_y - c_y) / f_y
    x = (s_x - c_x - k * y) / f_x
    eye, axes = camera.pose()
    ray = np.array([x, y, 1.0]) @ axes
    origin, a, b = (
        surface[faces[:, 0]],
        *(surface[faces[:, i]] - surface[faces[:, 0]] for i in (1, 2)),
    )
    p = np.cross(ray, b)
    area = np.einsum("ij,ij->i", a, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = eye - origin
        u = np.einsum("ij,ij->i", d, p) / area
        q = np.cross(d, a)
        v = q @ ray / area
        depth = np.einsum("ij,ij->i", b, q) / area
    is_hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (depth > 0.0)
    if not is_hit.any():
        return None
    return eye + depth[is_hit].min() * ray
