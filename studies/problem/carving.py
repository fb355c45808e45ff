"""The hull of a body that several cameras see: the places that all of them see within their masks.

    f(x) = min over views of  d(u(x)) z(x) w

with d the distance of a pixel u from the outline of the mask [pixels], positive inside, and z w the
width of a pixel at the depth z of x [m]. The hull is where f > 0, and f is a distance near it.

The body touches the hull along one line for each view, and lies within it between them. In a plane
n views are 2 n tangents; between two that turn by a the hull is r^2 (tan a/2 - a/2), or r^2 a^3/24,
too large. Without one view two of these gaps are twice as wide each in place of four, which adds
6 a^3 times r^2/12: so the hull is n/6 of this too large, all gaps alike. As much is taken away, of
f without its ridges, on which tetrahedra would be slivers. Between views of a flat side the hull is
several times as much too large. This stays, and the error of the surface is larger for it.

Source: Laurentini, The visual hull concept, IEEE PAMI 16 (1994).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
from scipy.optimize import brentq

from adjsim.meshes.level_set import level_set
from adjsim.meshes.triangle_mesh import TriangleMesh
from render.posed_camera import PosedCamera
from studies.problem.pixels import rays, to_pixels
from studies.runs.errors import StudyError


COARSE = 48  # cells along a side of the cube in which a body is looked for
SIDES = (1.5, 3.0, 6.0)  # of half of this cube, over the largest radius of a mask
LEAST_TURN = 5.0  # between views, so that they say how deep a body is [deg]
FINER = 4  # parts of a pixel in which the distance from an outline is measured
OUTLINE = 0.2  # pixels: error of an outline
RIDGE = 0.7  # cells: standard deviation of the filter that smooths f
LEAST = 0.5  # part of the volume of a hull that stays
UNEVEN = 3.0  # error of the surface over what is taken away, as gaps are not alike
MOSTLY = 0.5  # of a picture: more is no body but the background
WORTH_A_WARNING, REFUSED = 0.01, 0.3  # part of a mask that a hull leaves empty
BEYOND = -1e3  # pixels: the distance of what is not in a picture


@dataclass(frozen=True, eq=False)
class View:
    """What a calibrated camera sees of a body."""

    mask: np.ndarray  # part of each pixel that the body covers, (height, width)
    camera: PosedCamera  # about the origin of the world

    @cached_property
    def body(self) -> np.ndarray:
        """The largest spot of the mask, (height, width) bool."""
        return _largest_component(self.mask > 0.5, np.ones((3, 3)))

    @cached_property
    def length(self) -> int:
        """Longest side of the body in the picture [pixels]."""
        return max(int(np.ptp(np.flatnonzero(self.body.any(axis=k)))) + 1 for k in (0, 1))

    @cached_property
    def _distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Distances about the body, and column and row where they begin, (2,)."""
        margin = self.length // 2 + 1  # no distance beyond counts
        rows, columns = (np.flatnonzero(self.body.any(axis=axis)) for axis in (1, 0))
        corner = np.maximum([columns[0] - margin, rows[0] - margin], 0)
        around = (
            slice(corner[1], rows[-1] + margin + 1), slice(corner[0], columns[-1] + margin + 1)
        )  # fmt: skip
        return outline_distances(self.mask[around], self.body[around]), corner

    @property
    def middle(self) -> np.ndarray:
        """Column and row of the middle of the body, (2,)."""
        rows, columns = np.nonzero(self.body)
        return np.array([columns.mean(), rows.mean()])

    @property
    def radius(self) -> float:
        """How far the body reaches from its middle, over its depth [-]."""
        rows, columns = np.nonzero(self.body)
        pixels = np.stack([columns, rows], axis=-1) - self.middle
        return float(np.linalg.norm(pixels, axis=1).max() + 1.0) * self.width

    @cached_property
    def width(self) -> float:
        """Width of a pixel over its depth [-]."""
        return 2.0 / (self.body.shape[0] * self.camera.optics.numbers()[3])

    def depths(self, points: np.ndarray) -> np.ndarray:
        """Return the depths of points (..., 3) [m]."""
        eye, axes = self.camera.pose()
        return (points - eye) @ axes[2]

    def field(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return f of this view at points (..., 3) [m], and whether they are in the picture."""
        depths, size = self.depths(points), self.body.shape
        ahead = np.maximum(depths, 1e-9)
        with np.errstate(all="ignore"):
            u, v = np.moveaxis(to_pixels(self.camera, points, size), -1, 0)
        in_picture = (depths > 0.0) & (u >= 0.0) & (u <= size[1] - 1)
        in_picture &= (v >= 0.0) & (v <= size[0] - 1)
        u, v = (np.where(in_picture, pixel, 0.0) for pixel in (u, v))
        there = np.where(in_picture, self.distances_at(u, v), BEYOND)
        return there * ahead * self.width, in_picture

    def distances_at(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return how far columns u and rows v are within the outline [pixels]."""
        distances, corner = self._distances
        return distances_at(distances, u - corner[0], v - corner[1])


def outline_distances(mask: np.ndarray, body: np.ndarray) -> np.ndarray:
    """Return the distance of each part of a pixel from the outline of a mask, (H, W) * `FINER`.

    It is positive inside [pixels]. What is not near the `body`, (H, W) bool, does not count.
    """
    around = scipy.ndimage.binary_dilation(body, iterations=2)
    finer = scipy.ndimage.zoom(
        np.where(around, mask, 0.0), FINER, order=1, mode="nearest", grid_mode=True
    )
    inside, outside = (
        np.asarray(scipy.ndimage.distance_transform_edt(where))
        for where in (finer > 0.5, finer <= 0.5)
    )
    return np.where(inside > 0.0, inside - 0.5, 0.5 - outside) / FINER


def distances_at(distances: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return distances of `outline_distances` at columns u and rows v of pixels."""
    places = [FINER * (pixel + 0.5) - 0.5 for pixel in (v, u)]
    return scipy.ndimage.map_coordinates(distances, places, order=1, mode="nearest")


class Hull(NamedTuple):
    """What views enclose."""

    surface: TriangleMesh  # closed, facing outwards [m]
    error: float  # of the place of the surface [m]
    warning: str = ""  # where views do not agree


def hull(views: Mapping[str, View], cells: int, key: str) -> Hull:
    """Return the hull of a body, with so many `cells` of a grid along its longest side.

    Views have the names that messages call them by, such as "observations.front"; `key` is what a
    message begins with.

    Raise a StudyError if there are fewer than two views, these look in nearly the same direction or
    have no place in common, no place is in all masks, or the hull leaves a large part of a mask
    empty.
    """
    if len(views) < 2:
        usable = f"only `{next(iter(views))}`" if views else "none"
        raise StudyError(
            f"`{key}` needs films from two views or more that begin at time 0 and show this body "
            f"alone, got {usable}. Add films with other cameras, or give a mesh."
        )
    low, high = _bounds(views, key)
    spacing = float((high - low).max()) / cells
    counts = np.ceil((high - low) / spacing).astype(int) + 5
    origin = 0.5 * (low + high) - 0.5 * spacing * (counts - 1)
    points = _grid(origin, spacing, counts)
    fields, _ = _fields(views, points)
    field = _largest(fields.min(axis=0))
    if not (field > 0.0).any():
        raise StudyError(
            f"`{key}`: the body is thinner than a cell of {spacing:.2g} m. Give more `cells` than "
            f"{cells}."
        )
    surface = level_set(field, origin, spacing)
    try:
        warning = _disagreement(views, fields, points, spacing)
    except StudyError as error:
        raise StudyError(f"`{key}`: {error}") from error
    pixels = [view.width * view.depths(surface.centroid) for view in views.values()]
    excess, uneven = _excess(fields, spacing)
    near = np.clip(field, -4.0 * spacing, 4.0 * spacing)
    smooth = scipy.ndimage.gaussian_filter(near, RIDGE)
    left = max(_volume(field, spacing) - excess, LEAST * _volume(field, spacing))

    def too_much(level: float) -> float:
        return _volume(smooth - level, spacing) - left

    level: Any = brentq(too_much, near.min(), near.max())
    a, b, c = (surface.points[surface.faces[:, k]] for k in range(3))
    area = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum()
    error = np.hypot(UNEVEN * uneven / area, OUTLINE * np.mean(pixels))
    surface = level_set(_largest(smooth - level), origin, spacing)
    return Hull(surface, float(error), warning and f"warning: `{key}`: {warning}")


def _disagreement(
    views: Mapping[str, View], fields: np.ndarray, points: np.ndarray, spacing: float
) -> str:
    """Return a warning if the hull leaves part of a mask empty; raise if it is a large part.

    A view whose camera or mask is wrong cuts off what all others see: without it they agree.
    `fields` are those at `points`.
    """
    unfilled = _unfilled(views, fields.min(axis=0), points, spacing)
    if max(unfilled) <= WORTH_A_WARNING:
        return ""
    names = list(views)
    message = (
        f"the hull leaves {100.0 * max(unfilled):.2g} % of the mask of "
        f"`{names[int(np.argmax(unfilled))]}` empty"
    )
    without = []  # of two views either may be wrong
    for k in range(len(names) if len(names) > 2 else 0):
        others = {name: view for name, view in views.items() if name != names[k]}
        field = np.delete(fields, k, axis=0).min(axis=0)
        without.append(max(_unfilled(others, field, points, spacing)))
    if without and min(without) < 0.5 * max(unfilled):
        message += (
            f", and {100.0 * min(without):.2g} % without `{names[int(np.argmin(without))]}`: check "
            "its camera and mask."
        )
    else:
        message += (
            f": something is thinner than a cell of {spacing:.2g} m (give more `cells`), or "
            f"{'more than one' if without else 'a'} camera or mask is wrong."
        )
    if max(unfilled) > REFUSED:
        raise StudyError(message)
    return message


def _unfilled(
    views: Mapping[str, View], field: np.ndarray, points: np.ndarray, spacing: float
) -> list[float]:
    """Return the part of the mask of each view that no place of a hull is seen in, to a cell."""
    places, unfilled = points[_largest(field) > 0.0], []
    for view in views.values():
        size = view.body.shape
        cell = spacing / (view.width * view.depths(places).mean())
        column, row = np.rint(to_pixels(view.camera, places, size)).astype(int).T
        is_inside = (row >= 0) & (row < size[0]) & (column >= 0) & (column < size[1])
        covered = np.zeros(size, bool)
        covered[row[is_inside], column[is_inside]] = True
        covered = scipy.ndimage.maximum_filter(covered, 2 * int(np.ceil(0.5 * cell)) + 1)
        unfilled.append(float((view.body & np.logical_not(covered)).sum() / view.body.sum()))
    return unfilled


def _excess(fields: np.ndarray, spacing: float) -> tuple[float, float]:
    """Return the volume by which a hull is larger than a smooth body, evenly and weighted [m3].

    The first is the mean over views of what leaving each out shows, the second is weighted by it: a
    round body's views show alike, and of a flat side few views show all. Of what no set of the
    views shows, such as a hole that none looks into, it knows nothing; nor of what lies outside of
    the box of `fields`, as where all views are from one side.
    """
    n = len(fields)
    others = [_volume(np.delete(fields, k, axis=0).min(axis=0), spacing) for k in range(n)]
    each = n / 6.0 * (np.array(others) - _volume(fields.min(axis=0), spacing))
    mean = float(each.mean())
    return mean, float(np.square(each).mean()) / mean if mean else 0.0


def _volume(field: np.ndarray, spacing: float) -> float:
    """Return the volume where f > 0 [m3]."""
    return float(np.clip(field / spacing + 0.5, 0.0, 1.0).sum()) * spacing**3


def require_outline(name: str, view: View) -> None:
    """Raise if a mask is empty, or open where it meets the edge of the picture."""
    later = "begin later, in all films, with `frames = [first, end]`"
    if not view.body.any():
        raise StudyError(
            f"`{name}` shows no body in its first frame: nothing is unlike the background. Check "
            f"`background`, give `masks`, or {later}."
        )
    edges = {
        "left": view.body[:, 0], "right": view.body[:, -1],
        "upper": view.body[0], "lower": view.body[-1],
    }  # fmt: skip
    touched = [side for side, edge in edges.items() if edge.any()]
    if len(touched) > 2 and view.body.mean() > MOSTLY:
        raise StudyError(
            f"`{name}` must show a body before its `background`, but in its first frame nearly all "
            "is unlike it. Declare what the film shows there, its color or a picture of the empty "
            "scene, or give `masks`, in which the body is white."
        )
    if touched:
        raise StudyError(
            f"`{name}` must show all of the body in its first frame, but its mask touches the "
            f"{' and the '.join(touched)} edge of the picture: the hull would be open there. Leave "
            f"the film out, give better `masks`, or {later}."
        )


def _bounds(views: Mapping[str, View], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return corners of a box around the hull, (3,) [m] both."""
    eyes = np.array([view.camera.pose()[0] for view in views.values()])
    ahead = np.array([rays(view.camera, view.middle, view.body.shape) for view in views.values()])
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    turn = np.degrees(np.arccos(np.clip(np.abs(ahead @ ahead.T), 0.0, 1.0))).max()
    if turn < LEAST_TURN:
        raise StudyError(
            f"`{key}`: the views look along directions that differ by {turn:.2g} degrees at most, "
            "which does not tell how deep the body is. Add a film from another side."
        )
    middle, _ = _meeting(eyes, ahead)
    radius = max(view.radius * abs(float(view.depths(middle))) for view in views.values())
    for half in (side * radius for side in SIDES):
        spacing = 2.0 * half / COARSE
        origin = middle - half
        points = _grid(origin, spacing, np.full(3, COARSE + 1))
        fields, in_pictures = _fields(views, points)
        if not in_pictures.all(axis=0).any():
            raise _apart(views, eyes, ahead, key)
        reached = np.argwhere(fields.min(axis=0) > -spacing)  # the body may be thinner than a cell
        if not (fields.min(axis=0) > -0.5 * spacing).any():
            raise _empty(views, fields, spacing, key)
        if reached.min() > 0 and reached.max() < COARSE:
            return origin + spacing * (reached.min(0) - 1), origin + spacing * (reached.max(0) + 1)
    raise StudyError(
        f"`{key}`: the views do not enclose the body: their hull is longer than "
        f"{SIDES[-1]:g} times what any of them shows. Add a film from another side."
    )


def _meeting(eyes: np.ndarray, ahead: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the point nearest to lines (n, 3), (3,) [m], and how far off they are, rms [m].

    Of lines that are parallel it is a point between them.
    """
    across = np.eye(3) - ahead[:, :, None] * ahead[:, None, :]  # planes across the rays
    planes = np.einsum("nij,nj->i", across, eyes)
    middle = np.linalg.lstsq(across.sum(axis=0), planes, rcond=None)[0]
    off = np.einsum("nij,nj->ni", across, middle - eyes)
    return middle, float(np.sqrt((off * off).sum(axis=1).mean()))


def _apart(views: Mapping[str, View], eyes: np.ndarray, ahead: np.ndarray, key: str) -> StudyError:
    names, every = list(views), np.arange(len(views))
    which = f"cameras of `{names[0]}` and `{names[-1]}`"
    if len(names) > 2:
        others = [every != k for k in every]
        worst = int(np.argmin([_meeting(eyes[rows], ahead[rows])[1] for rows in others]))
        which = f"camera of `{names[worst]}`, without which the lines of sight meet best"
    return StudyError(
        f"`{key}`: the views do not overlap: no place is in the pictures of all. Check eye and "
        f"target, or K, R and t, of the {which}."
    )


def _empty(views: Mapping[str, View], fields: np.ndarray, spacing: float, key: str) -> StudyError:
    names = list(views)
    left = [
        int((np.delete(fields, k, axis=0).min(axis=0) > -0.5 * spacing).sum())
        for k in range(len(names))
    ]
    worst = int(np.argmax(left))
    hint = (
        f"Without `{names[worst]}` something is left: check its camera and mask."
        if left[worst] and len(names) > 2
        else "Check the cameras, and whether all films begin at the same time."
    )
    return StudyError(f"`{key}`: the hull is empty: no place is in the masks of all views. {hint}")


def _grid(origin: np.ndarray, spacing: float, counts: Any) -> np.ndarray:
    """Return the points of a grid, (n_x, n_y, n_z, 3) [m]."""
    return origin + spacing * np.moveaxis(np.indices(tuple(counts)), 0, -1)


def _fields(views: Mapping[str, View], points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return f of each view at points, and whether they are in its picture, (n_views, ...)."""
    both = [view.field(points) for view in views.values()]
    return np.stack([pair[0] for pair in both]), np.stack([pair[1] for pair in both])


def _largest(field: np.ndarray) -> np.ndarray:
    """Return f with its largest component alone positive."""
    return np.where((field > 0.0) & ~_largest_component(field > 0.0), -field, field)


def _largest_component(mask: np.ndarray, touching: np.ndarray | None = None) -> np.ndarray:
    """Return the largest connected component of a mask; of an empty one nothing.

    `touching` says which neighbours are connected, by default those that share a face.
    """
    labels, count = scipy.ndimage.label(mask, touching)  # pyright: ignore[reportGeneralTypeIssues]
    sizes = np.bincount(labels.ravel(), minlength=count + 1)
    return labels == 1 + int(np.argmax(sizes[1:])) if count else np.zeros(mask.shape, bool)
