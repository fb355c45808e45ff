r"""Rods and bobs: the vertices of a chain of links that turn in the plane of the image.

    d_k = (sin theta_k, -cos theta_k, 0),   e_k = (cos theta_k, sin theta_k, 0)
    P_0 = pivot,   P_{k+1} = P_k + l_k d_k                                  (1)
    p   = P_k + (a l_k + h) d_k + b e_k + (c + k gap) z                     (2)

Every vertex has its link k, a part a of the link's length, and offsets h, b, c along it,
across it and towards the viewer. A rod reaches from the bob above it to its own bob, whose
surfaces only touch, and every link hangs in front of the one before it by `gap`: what hides
what does not change while they turn. Angles are taken from the vertical down.

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
        Radii of the bobs, (n_links,) [m], positive.
    rod_radius : float
        Of every rod, [m], positive and below that of the bobs.
    pivot : array_like
        Where the first rod hangs, (3,) [m].
    gap : float, optional
        Distance in depth from one link to the next [m]. None: so that none touches another.
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
        If a size is not positive or has the wrong shape, or the rods are thicker than the bobs.
    """

    bob_radius: Any
    rod_radius: float
    pivot: Any = (0.0, 0.0, 0.0)
    gap: Any = None
    sides: int = 6
    faces: np.ndarray = field(init=False, repr=False)
    link: np.ndarray = field(init=False, repr=False)
    place: np.ndarray = field(init=False, repr=False)
    is_bob: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        radii = checks.array("bob_radius", self.bob_radius, ("n_links",))
        checks.freeze(self, "bob_radius", checks.positive("bob_radius", radii))
        thin = float(checks.positive("rod_radius", checks.array("rod_radius", self.rod_radius, ())))
        if not (len(radii) and thin < radii.min()):
            raise ValueError(
                f"`rod_radius` must be below every `bob_radius`, got {thin:g} and {radii.tolist()}."
            )
        if self.sides < 3:
            raise ValueError(f"`sides` must be at least 3, got {self.sides}.")
        checks.freeze(self, "pivot", checks.array("pivot", self.pivot, (3,)))
        gap = 2.5 * float(radii.max()) if self.gap is None else self.gap
        object.__setattr__(self, "gap", float(checks.array("gap", gap, ())))
        parts = []
        for k, radius in enumerate(radii):
            above = float(radii[k - 1]) if k else 0.0
            parts += [(k, *_rod(above, radius, thin, self.sides)), (k, *_bob(radius, self.sides))]
        sizes = [len(place) for _, place, _ in parts]
        offsets = np.cumsum([0, *sizes[:-1]])
        faces = [own + first for (_, _, own), first in zip(parts, offsets, strict=True)]
        checks.freeze(self, "faces", np.concatenate(faces))
        checks.freeze(self, "link", np.repeat([k for k, _, _ in parts], sizes))
        checks.freeze(self, "place", np.concatenate([place for _, place, _ in parts]))
        checks.freeze(self, "is_bob", np.repeat([i % 2 == 1 for i in range(len(parts))], sizes))

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
            own = self.link == k
            a, h, b, c = place[own].T
            along = (a * length[k] + h)[None, :, None] * d[:, None]
            out[:, own] = joint[:, None] + along + b[:, None] * e[:, None]  # (2)
            out[:, own, 2] += c + angle.dtype.type(k * self.gap)
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

    def colors(self, rod: Any, bobs: Any) -> np.ndarray:
        """Return a colour for each vertex, (n_vertices, 3): RGB of rods (3,), bobs (n_links, 3)."""
        bobs = checks.array("bobs", bobs, (self.n_links, 3))
        return np.where(self.is_bob[:, None], bobs[self.link], checks.array("rod", rod, (3,)))


def directions(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return d and e of one link, along it and across it, (n_frames, 3) each."""
    s, c, zero = np.sin(angle), np.cos(angle), np.zeros_like(angle)
    return np.stack([s, -c, zero], axis=1), np.stack([c, s, zero], axis=1)


def _rod(above: float, below: float, radius: float, sides: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and faces of a tube from the bob above to the bob below, without caps."""
    turn = 2.0 * np.pi * np.arange(sides) / sides
    ring = radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    top = np.column_stack([np.zeros(sides), np.full(sides, above), ring])
    bottom = np.column_stack([np.ones(sides), np.full(sides, -below), ring])
    i, j = np.arange(sides), (np.arange(sides) + 1) % sides
    faces = np.concatenate(
        [np.stack([i, j, i + sides], axis=1), np.stack([j, j + sides, i + sides], axis=1)]
    )
    return np.concatenate([top, bottom]), faces


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
