r"""Rods and bobs: the vertices of a chain of links that turn in the plane of the image.

    d_k = (sin theta_k, -cos theta_k, 0),   e_k = (cos theta_k, sin theta_k, 0)
    P_0 = pivot,   P_{k+1} = P_k + l_k d_k                                  (1)
    p   = P_k + (a l_k + h) d_k + b e_k + (c + k gap) z                     (2)

Every vertex has its link k, a part a of the link's length, and offsets h, b, c along it,
across it and towards the viewer. A rod reaches from the bob above it to its own bob, whose
surfaces only touch; without a bob of its own it is a bar with closed ends. The links hang in one
plane, or each in front of the one before it by `gap`. In one plane the thicker part hides the
thinner one, and of bars that are equally thick the first hides the others (`docs/outputs.md`).
Angles are taken from the vertical down.

Adjoint: `adjoint/render/pendulum.py`. Tests: `tests/render/test_pendulum.py`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjsim import checks


@dataclass(frozen=True, eq=False)
class RodsAndBobs:
    """The mesh of a pendulum of one link or several.

    Parameters
    ----------
    bob_radius : array_like
        Radii of the bobs, (n_links,) [m]; 0: no bob.
    rod_radius : array_like
        Of every rod, () or (n_links,) [m], below that of the bobs at its ends; 0: no rod.
    pivot : array_like
        Where the first rod hangs, (3,) [m].
    gap : float, optional
        Distance from one link to the next, towards the viewer [m].
    sides : int
        Sides of a rod; a bob has twice as many meridians, at least 3.

    Attributes
    ----------
    faces : ndarray
        Corner vertices, (n_faces, 3), outward.
    link : ndarray
        Link of each vertex, (n_vertices,).
    place : ndarray
        (a, h, b, c) of each vertex, (n_vertices, 4).
    is_bob : ndarray
        Which vertices are on a bob, (n_vertices,) bool.

    Raises
    ------
    ValueError
        If a size is negative or has the wrong shape, all are 0, or a rod is thicker than a bob at
        its end.
    """

    bob_radius: Any
    rod_radius: Any
    pivot: Any = (0.0, 0.0, 0.0)
    gap: Any = 0.0
    sides: int = 6
    faces: np.ndarray = field(init=False, repr=False)
    link: np.ndarray = field(init=False, repr=False)
    place: np.ndarray = field(init=False, repr=False)
    is_bob: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        radii = checks.array("bob_radius", self.bob_radius, ("n_links",))
        checks.freeze(self, "bob_radius", checks.non_negative("bob_radius", radii))
        shape = () if np.ndim(self.rod_radius) == 0 else radii.shape
        rods = np.broadcast_to(checks.array("rod_radius", self.rod_radius, shape), radii.shape)
        checks.freeze(self, "rod_radius", checks.non_negative("rod_radius", rods))
        if not (np.any(radii) or np.any(rods)):
            raise ValueError(
                "`bob_radius` and `rod_radius` must not all be 0: nothing would be drawn."
            )
        ends = np.stack([radii, np.roll(radii, 1)])  # the bobs at the ends of each rod
        ends[1, 0] = 0.0
        if ((ends > 0.0) & (rods >= ends)).any():
            raise ValueError(
                "`rod_radius` must be below the `bob_radius` at the ends of a rod, got "
                f"{rods.tolist()} and {radii.tolist()}. A bob of 0 is not drawn."
            )
        if self.sides < 3:
            raise ValueError(f"`sides` must be at least 3, got {self.sides}.")
        checks.freeze(self, "pivot", checks.array("pivot", self.pivot, (3,)))
        object.__setattr__(self, "gap", float(checks.array("gap", self.gap, ())))
        parts = []
        for k, (radius, thin) in enumerate(zip(radii, rods, strict=True)):
            if thin > 0.0:
                parts.append((k, False, *_rod(ends[1, k], radius, thin, self.sides)))
            if radius > 0.0:
                parts.append((k, True, *_bob(radius, self.sides)))
        links, are_bobs, places, faces = zip(*parts, strict=True)
        sizes = [len(place) for place in places]
        offsets = np.cumsum([0, *sizes[:-1]])
        moved = [triangles + first for triangles, first in zip(faces, offsets, strict=True)]
        checks.freeze(self, "faces", np.concatenate(moved))
        checks.freeze(self, "link", np.repeat(links, sizes))
        checks.freeze(self, "place", np.concatenate(places))
        checks.freeze(self, "is_bob", np.repeat(are_bobs, sizes))

    @property
    def n_links(self) -> int:
        """Number of links."""
        return len(self.bob_radius)

    def vertices(self, angle: Any, length: Any) -> np.ndarray:
        """Return the vertices at angles and lengths.

        Parameters
        ----------
        angle : array_like
            (n_frames, n_links), or (n_frames,) of one link [rad].
        length : array_like
            (n_links,), or () of one link [m].

        Returns
        -------
        ndarray
            (n_frames, n_vertices, 3) [m], float32 if the angles are.

        Raises
        ------
        ValueError
            If a shape does not fit, or a number is not finite.
        """
        angle, length = self.checked(angle, length)
        place, pivot = self.place.astype(angle.dtype), self.pivot.astype(angle.dtype)
        out = np.empty((len(angle), len(place), 3), angle.dtype)
        joint = np.broadcast_to(pivot, (len(angle), 3))
        for k in range(self.n_links):
            d, e = directions(angle[:, k])
            of_link = self.link == k
            a, h, b, c = place[of_link].T
            along = (a * length[k] + h)[None, :, None] * d[:, None]
            out[:, of_link] = joint[:, None] + along + b[:, None] * e[:, None]  # (2)
            out[:, of_link, 2] += c + angle.dtype.type(k * self.gap)
            joint = joint + length[k] * d  # (1)
        return out

    def checked(self, angle: Any, length: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return angles (n_frames, n_links) and lengths (n_links,), in the angles' precision."""
        dtype = np.asarray(angle).dtype
        dtype = dtype if dtype in checks.FLOAT_DTYPES else np.dtype(np.float64)
        if self.n_links == 1 and np.ndim(angle) == 1:
            angle = np.reshape(angle, (-1, 1))
        checked = checks.array("angle", angle, ("n_frames", self.n_links), dtype=dtype)
        lengths = np.reshape(length, 1) if self.n_links == 1 and np.ndim(length) == 0 else length
        return checked, checks.array("length", lengths, (self.n_links,), dtype=dtype)

    def colors(self, rods: Any, bobs: Any) -> np.ndarray:
        """Return a colour for each vertex, (n_vertices, 3): RGB of rods and bobs, (n_links, 3)."""
        rods, bobs = (
            checks.array(name, given, (self.n_links, 3))
            for name, given in (("rods", rods), ("bobs", bobs))
        )
        return np.where(self.is_bob[:, None], bobs[self.link], rods[self.link])


def directions(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return d and e of one link, along it and across it, (n_frames, 3) each."""
    s, c, zero = np.sin(angle), np.cos(angle), np.zeros_like(angle)
    return np.stack([s, -c, zero], axis=1), np.stack([c, s, zero], axis=1)


def _rod(above: float, below: float, radius: float, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and faces of a tube from the bob above to the bob below.

    It has caps where there is no bob below.
    """
    turn = 2.0 * np.pi * np.arange(sides) / sides
    ring = radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    top = np.column_stack([np.zeros(sides), np.full(sides, above), ring])
    bottom = np.column_stack([np.ones(sides), np.full(sides, -below), ring])
    i, j = np.arange(sides), (np.arange(sides) + 1) % sides
    faces = np.concatenate(
        [np.stack([i, j, i + sides], axis=1), np.stack([j, j + sides, i + sides], axis=1)]
    )
    if below > 0.0:
        return np.concatenate([top, bottom]), faces
    # rims of their own, so that smooth normals leave the edges sharp
    caps = [np.vstack([end, [*end[0, :2], 0.0, 0.0]]) for end in (top, bottom)]
    first, second = 2 * sides, 3 * sides + 1
    fans = [
        np.stack([np.full(sides, first + sides), first + j, first + i], axis=1),
        np.stack([np.full(sides, second + sides), second + i, second + j], axis=1),
    ]
    return np.concatenate([top, bottom, *caps]), np.concatenate([faces, *fans])


def _bob(radius: float, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and faces of a sphere at the end of the link, its poles on the link."""
    n, rings = 2 * sides, sides - 1
    height = np.cos(np.pi * np.arange(1, sides) / sides)
    turn = 2.0 * np.pi * np.arange(n) / n
    wide = np.sqrt(1.0 - height**2)[:, None]
    ball = np.stack(
        np.broadcast_arrays(height[:, None], wide * np.cos(turn), wide * np.sin(turn)), axis=-1
    ).reshape(-1, 3)
    ball = radius * np.concatenate([ball, [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]])
    top, bottom = rings * n, rings * n + 1
    i, j = np.arange(n), (np.arange(n) + 1) % n
    last = (rings - 1) * n
    faces = [np.stack([np.full(n, top), i, j], axis=1)]
    for r in range(rings - 1):
        a, b = r * n, (r + 1) * n
        faces += [np.stack([a + i, b + i, a + j], axis=1), np.stack([a + j, b + i, b + j], axis=1)]
    faces.append(np.stack([last + i, np.full(n, bottom), last + j], axis=1))
    return np.column_stack([np.ones(len(ball)), ball]), np.concatenate(faces)
