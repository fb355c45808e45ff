"""Closed surfaces from a few numbers: turned, stretched along a line, swept, or of blocks.

Each returns a `TriangleMesh` that is closed and faces outwards; whether it cuts itself is up
to the numbers. Tests: `tests/meshes/test_surfaces.py`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from adjsim import checks
from adjsim.meshes.cells import used_points
from adjsim.meshes.grid import grid_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh


def turned(profile: ArrayLike, n_around: int) -> TriangleMesh:
    """Return what a profile sweeps out around the y axis.

    Parameters
    ----------
    profile : array_like
        (n, 2) [m]: distance from the axis and height y of each point. A profile whose first
        and last points lie on the axis becomes a body with two poles; any other, none of
        it on the axis, is closed from its last point to its first and becomes a ring.
    n_around : int
        Number of copies of the profile, at least 3.

    Raises
    ------
    ValueError
        If a distance is negative, or 0 elsewhere than at both ends; or there are fewer than
        three points or copies.

    Examples
    --------
    >>> from adjsim.meshes import turned
    >>> cone = turned([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], n_around=100)
    >>> print(round(cone.volume, 3))  # pi / 3, nearly
    1.047
    """
    profile = _points("profile", profile)
    on_axis = profile[:, 0] == 0.0
    has_poles = bool(on_axis[0] and on_axis[-1])
    inner = profile[1:-1] if has_poles else profile
    if not (inner[:, 0] > 0.0).all():
        raise ValueError(
            "`profile` must keep a positive distance from the axis, except that both its ends "
            f"may lie on it; got distances {profile[:, 0].tolist()}."
        )
    angle = _angles(n_around)
    r, y = inner[:, :1], np.broadcast_to(inner[:, 1:], (len(inner), n_around))
    rings = np.stack([r * np.cos(angle), y, -r * np.sin(angle)], axis=-1)
    if not has_poles:
        return _joined(np.concatenate([rings, rings[:1]]), closed=True)
    poles = [(0.0, profile[end, 1], 0.0) for end in (0, -1)]
    return _joined(rings, poles)


def prism(outline: ArrayLike, thickness: float) -> TriangleMesh:
    """Return a plate with an outline all of which can be seen from its centroid.

    Parameters
    ----------
    outline : array_like
        Corners, (n, 2) [m], counter-clockwise; x and y, the plate lies about z = 0.
    thickness : float
        Along z [m], positive.

    Raises
    ------
    ValueError
        If there are fewer than three corners, a side cannot be seen from the centroid, or the
        thickness is not positive.

    Examples
    --------
    >>> from adjsim.meshes import prism
    >>> print(round(prism([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)], thickness=0.1).volume, 6))
    0.05
    """
    outline = _points("outline", outline)
    thickness = float(checks.positive("thickness", checks.array("thickness", thickness, ())))
    ends = [
        np.column_stack([outline, np.full(len(outline), z)])
        for z in (-0.5 * thickness, 0.5 * thickness)
    ]
    x, y = outline.T
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    if not cross.sum() > 0.0:
        raise ValueError("`outline` must run counter-clockwise around an area: reverse it?")
    middle = cross @ (outline + np.roll(outline, -1, axis=0)) / (3.0 * cross.sum())
    sides = np.stack([outline, np.roll(outline, -1, axis=0)], axis=1) - middle
    hidden = np.linalg.det(sides) <= 0.0
    if hidden.any():
        raise ValueError(
            "`outline` must run counter-clockwise and all of it be seen from its centroid, but "
            f"the side from corner {int(np.argmax(hidden))} is not. Build it of `blocks`."
        )
    poles = [(*middle, z) for z in (-0.5 * thickness, 0.5 * thickness)]
    return _joined(np.stack(ends), poles)


def tube(path: ArrayLike, radii: ArrayLike, n_around: int) -> TriangleMesh:
    """Return a round tube along a path in the plane z = 0, closed by a point at each end.

    Parameters
    ----------
    path : array_like
        Points of the centre line, (n, 2) [m], the tips included.
    radii : array_like
        Radius at each point but the tips, (n - 2,) [m].
    n_around : int
        Corners of a cross-section, at least 3.

    Raises
    ------
    ValueError
        If the path has fewer than three points or turns back on itself, a radius is not
        positive, or a cross-section has fewer than three corners.

    Examples
    --------
    >>> from adjsim.meshes import tube
    >>> print(tube([(0.0, 0.0), (0.5, 0.0), (1.0, 0.0)], radii=[0.1], n_around=6).faces.shape)
    (12, 3)
    """
    path = _points("path", path)
    r = checks.positive("radii", checks.array("radii", radii, (len(path) - 2,)))
    along = path[2:] - path[:-2]
    length = np.linalg.norm(along, axis=1, keepdims=True)
    if not (length > 0.0).all():
        k = int(np.argmin(length))
        raise ValueError(
            f"`path` must not turn back on itself, but points {k} and {k + 2} are both at "
            f"{path[k].tolist()}: there is no direction between them."
        )
    along = along / length
    sideways = np.column_stack([-along[:, 1], along[:, 0], np.zeros(len(along))])
    centre = np.column_stack([path[1:-1], np.zeros(len(along))])
    angle = _angles(n_around)
    across = np.cos(angle)[:, None] * sideways[:, None] + np.sin(angle)[:, None] * [0.0, 0.0, 1.0]
    rings = centre[:, None] + r[:, None, None] * across
    return _joined(rings, [(*path[0], 0.0), (*path[-1], 0.0)])


def blocks(axes: Sequence[Sequence[float]], filled: ArrayLike) -> TriangleMesh:
    """Return the boundary of some cells of a grid.

    Parameters
    ----------
    axes : sequence of three sequences of float
        Increasing coordinates of the planes of the grid along x, y and z [m].
    filled : array_like
        Mask of the cells that are there, (n_x, n_y, n_z) bool.

    Raises
    ------
    ValueError
        If the coordinates do not increase, no cell is there, or two blocks touch in an edge
        only, where the surface would not be manifold.

    Examples
    --------
    >>> import numpy as np
    >>> from adjsim.meshes import blocks
    >>> step = blocks([(0.0, 1.0, 2.0), (0.0, 1.0), (0.0, 1.0, 2.0)], np.ones((2, 1, 2), bool))
    >>> print(step.volume)
    4.0
    """
    given = checks.one_each("axes", axes, 3, "direction, x, y and z")
    ticks = [checks.array("axes", axis, ("n",)) for axis in given]
    if not all((np.diff(tick) > 0.0).all() for tick in ticks):
        raise ValueError(
            f"`axes` must be three sequences of coordinates that increase, got {axes!r}."
        )
    mask = np.asarray(filled, bool)
    if mask.shape != tuple(len(axis) - 1 for axis in ticks) or not mask.any():
        raise ValueError(
            f"`filled` must have one entry per cell, {tuple(len(axis) - 1 for axis in ticks)}, "
            f"and some of them set; got shape {mask.shape} with {int(mask.sum())} set."
        )
    points = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    index = np.arange(len(points)).reshape(*(n + 1 for n in mask.shape))
    tets = grid_tets(index, tets_per_cell=6, filled=mask)
    solid = TetMesh(*used_points(points, tets))
    surface = solid.surface()
    mesh = TriangleMesh(solid.points[surface.nodes], surface.local_faces)
    mesh.require_closed("filled")
    return mesh


def _points(name: str, points: ArrayLike) -> np.ndarray:
    """Return points of a plane, (n, 2), at least three."""
    checked = checks.array(name, points, ("n", 2))
    if len(checked) < 3:
        raise ValueError(f"`{name}` must have at least three points, got {len(checked)}.")
    return checked


def _angles(n_around: int) -> np.ndarray:
    """Return the angles around a ring."""
    n_around = checks.whole("n_around", n_around, 3)
    return 2.0 * np.pi / n_around * np.arange(n_around)


def _joined(
    rings: np.ndarray, poles: Sequence[Sequence[float]] = (), *, closed: bool = False
) -> TriangleMesh:
    """Return rings of points, (n_rings, n_around, 3), joined by strips of triangles.

    Poles close the first and the last ring; a `closed` stack ends with its first ring again.
    """
    n_around = rings.shape[1]
    kept = rings[:-1] if closed else rings
    index = np.arange(kept.shape[0] * n_around).reshape(-1, n_around)
    index = np.concatenate([index, index[:1]]) if closed else index
    a, b = index[:-1], np.roll(index[:-1], -1, axis=1)
    c, d = np.roll(index[1:], -1, axis=1), index[1:]
    faces = [np.stack([a, b, c], axis=-1), np.stack([a, c, d], axis=-1)]
    points = [kept.reshape(-1, 3)]
    for pole, ring in zip(poles, (index[0, ::-1], index[-1]), strict=False):
        tip = np.full(n_around, sum(map(len, points)))
        faces.append(np.stack([ring, np.roll(ring, -1), tip], axis=-1))
        points.append(np.reshape(pole, (1, 3)))
    mesh = TriangleMesh(np.concatenate(points), np.concatenate([f.reshape(-1, 3) for f in faces]))
    return mesh if mesh.volume > 0.0 else TriangleMesh(mesh.points, mesh.faces[:, ::-1])
