r"""Contact between the surfaces of bodies, or of one surface with itself.

    U = sum over vertices of one surface and faces, edges, vertices of the other, and the other way
      + sum over pairs of edges              (`adjsim/pairs/pair_force.py`)

Nodes of cloth, the boundary of solids and the points of rigid bodies may take part, in any mixture.
Which pairs are near each other is found again whenever a row has moved too far since
(`adjsim/pairs/search.py`); no bit depends on it.

Adjoint: `adjoint/pairs/surface_contact.py`. Tests: `tests/pairs/test_surface_contact.py`.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from adjsim import checks
from adjsim.forces.acted_rows import NODES, ActedRows
from adjsim.forces.contact import check_friction
from adjsim.forces.contact_law import LAW
from adjsim.forces.element import Force
from adjsim.forces.margins import ContactMargins
from adjsim.forces.pressure_laws import PressureLaw, choose_law
from adjsim.meshes.triangle_mesh import INSIDE, vertex_normals, winding_number
from adjsim.pairs.closest import EDGE, EDGES, FACE, VERTEX
from adjsim.pairs.pair_force import SURFACE_ROW
from adjsim.pairs.pair_margins import surface_margins
from adjsim.pairs.search import PIERCED, FoundPairs, PairSet, find_pairs, merge_pairs, sides, within
from adjsim.pairs.surface import Surface, surface_of
from adjsim.values import Parameter


OF_EDGES = 0.8  # of a mean edge: within that there are few pairs but those of two layers
# How many pairs of edges push a vertex of a flat fine mesh on another one; they have 3 edges each.
AT_ONCE, PER_VERTEX = 6.0, 3.0
ASKEW = np.array([0.47, 0.61, 0.64])  # along no axis and in no plane of usual meshes
MOST_LEAP = 500.0  # thicknesses, with two searches in each
SCALARS = (*LAW, "radius", "other_radius")


@dataclass(frozen=True, eq=False, kw_only=True)
class SurfaceContact(Force):
    """Penalty contact between two surfaces of triangles, or of one with itself.

    Both have a thickness: they push each other where they are closer than the sum of their radii.
    The radii must be smaller than the edges, and than the thinnest part of a body is thick. A step
    must not move a surface by more than half of their sum where the other is near; surfaces
    that pass through each other are an error.

    Parameters
    ----------
    triangles : array
        Corners of the triangles, (n_faces, 3) integer, counted as `acts_on` does.
    other_triangles : array, optional
        Those of the other surface. None: contact of the one surface with itself.
    radius, other_radius : float
        Half of the thickness of each surface, positive [m]. `other_radius` only with an other one.
    stiffness : float, optional
        k_e [N/m], not negative. None: 1e4, or none by the cubic law.
    friction_stiffness : float
        k_f [N s/m], not negative.
    dissipation : float, optional
        d [s/m], not negative. Nothing jumps at touch.
    damping : float, optional
        k_d [N s/m], not negative, in place of a dissipation. The force jumps at touch.
    cubic_stiffness, cubic_dissipation : float, optional
        k [N/m^3] and gamma [m s], not negative, in place of the three above.
    friction : float
        Coefficient mu, not negative [-]; a positive one needs a positive `friction_stiffness`.
    rest_positions : array, optional
        Positions of all rows in `acts_on`, (n_rows, 3) [m], in which a surface does not touch
        itself: pairs closer than 2 radii there never push. No parameter.
    speed : float, optional
        At which the surfaces of rigid bodies are expected to meet, positive [m/s]. The stable step
        depends on it: a dissipation damps as k_e d times the depth, and what arrives no faster
        sinks no deeper. No parameter. None: all of a side is as deep as half of the thickness.
    skin : float, optional
        How far beyond the radii pairs are looked for, positive [m]. A larger one saves searches and
        makes each dearer; the numbers do not depend on it. None: the sum of the radii, or as much
        as makes it half of an edge of the triangles.
    acts_on : str or sequence of str
        "nodes", the name of a set of rigid bodies, or several of these: whose rows the triangles
        count, one part after the other.

    Raises
    ------
    ValueError
        If an array has the wrong shape or sign, or the triangles leave the rows.
    """

    triangles: Any
    other_triangles: Any = None
    radius: Any
    other_radius: Any = None
    stiffness: Any = None
    damping: Any = None
    dissipation: Any = None
    cubic_stiffness: Any = None
    cubic_dissipation: Any = None
    friction_stiffness: Any = 0.0
    friction: Any = 0.0
    rest_positions: Any = None
    speed: float | None = None
    skin: float | None = None
    acts_on: str | Sequence[str] = NODES

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("radius", "r", "m", "()", positive=True),
        Parameter("other_radius", "r_B", "m", "()", positive=True),
        Parameter("stiffness", "k_e", "N/m", "()", positive=True),
        Parameter("damping", "k_d", "N s/m", "()", positive=True),
        Parameter("dissipation", "d", "s/m", "()", positive=True),
        Parameter("cubic_stiffness", "k", "N/m3", "()", positive=True),
        Parameter("cubic_dissipation", "γ", "m s", "()", positive=True),
        Parameter("friction_stiffness", "k_f", "N s/m", "()", positive=True),
        Parameter("friction", "μ", "-", "()", positive=True),
    )
    KIND = SURFACE_ROW
    PACKED: ClassVar = dict.fromkeys(SCALARS, ())
    ELEMENTS = "triangles"
    touches: ClassVar[bool] = True
    changes: ClassVar[bool] = True
    law: ClassVar[PressureLaw]

    # Of a bound contact: its rows as `acts_on` counts them, its surfaces, as numbers of its `rows`,
    # and positions of these at rest.
    counted: ClassVar[Any] = None
    surfaces: ClassVar[Any] = None
    rest: ClassVar[Any] = None

    def __post_init__(self) -> None:
        if (self.other_triangles is None) != (self.other_radius is None):
            raise ValueError(
                "`other_triangles` and `other_radius` must both be given, or neither for a surface "
                f"that touches itself: got other_radius = {self.other_radius}."
            )
        choose_law(self)
        super().__post_init__()
        for name in ("triangles", "other_triangles"):
            if getattr(self, name) is not None:
                value = checks.integers(name, getattr(self, name), ("n_faces", 3))
                checks.freeze(self, name, value)
        for name, value in self.parameters().items():
            checks.array(name, value, ())
        check_friction(self)
        for name in ("radius", "other_radius"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
        for name in ("skin", "speed"):
            if getattr(self, name) is not None:
                checks.positive(name, checks.number(name, getattr(self, name)))
        if self.rest_positions is not None:
            rest = checks.array("rest_positions", self.rest_positions, ("n_rows", 3))
            checks.freeze(self, "rest_positions", rest)

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return the contact between rows of a model."""
        n = len(rows.indices)
        surfaces = [self.triangles, self.other_triangles]
        sides = []
        for key, faces in zip(("triangles", "other_triangles"), surfaces, strict=True):
            if faces is not None:
                sides.append(checks.indices(f"{name}.{key}", faces, ("n_faces", 3), n))
        used = np.unique(np.concatenate(sides))
        used_rows = np.unique(rows.indices[used])
        numbers = np.searchsorted(used_rows, rows.indices)  # of those used
        bound = copy.copy(self)
        checks.freeze(bound, "rows", used_rows)
        checks.freeze(bound, "counted", used[np.argsort(rows.indices[used])])
        object.__setattr__(bound, "surfaces", tuple(surface_of(numbers[faces]) for faces in sides))
        if self.rest_positions is not None and len(sides) == 1:
            checks.array(f"{name}.rest_positions", self.rest_positions, (n, 3))
            rest = np.zeros((len(used_rows), 3))
            rest[numbers[used]] = self.rest_positions[used]
            object.__setattr__(bound, "rest", rest)
        return bound

    @property
    def thickness(self) -> float:
        """The distance within which the surfaces push each other [m]."""
        other = self.radius if self.other_radius is None else self.other_radius
        return float(self.radius + other)

    def reach(self, x: np.ndarray) -> float:
        """Return the distance within which pairs are looked for [m].

        `x`, here and below: the positions of its rows.
        """
        if self.skin is not None:
            return self.thickness + float(self.skin)
        return max(2.0 * self.thickness, OF_EDGES * max(map(partial(mean_edge, x), self.surfaces)))

    def pair_sets(self) -> tuple[PairSet, ...]:
        """Return what may touch what."""
        a, b = self.surfaces[0], self.surfaces[-1]
        sets = _vertex_sets(a, b)
        if b is not a:
            sets += _vertex_sets(b, a)
        edges = PairSet(EDGES, a.edges, b.edges, np.ones(len(b.edges)), len(self.surfaces) == 1)
        return (*sets, edges)

    def piercing_sets(self) -> tuple[PairSet, ...]:
        """Return the edges and the faces that they may go through."""
        a, b = self.surfaces[0], self.surfaces[-1]
        both = ((a, b),) if a is b else ((a, b), (b, a))
        return tuple(
            PairSet(PIERCED, surface.edges, other.faces, np.ones(len(other.faces)), False)
            for surface, other in both
        )

    def check_radii(self, x: np.ndarray, name: str) -> None:
        """Raise a ValueError by `name` if a radius is larger than its surface's mean edge."""
        for key, surface in zip(("radius", "other_radius"), self.surfaces, strict=False):
            edge, radius = mean_edge(x, surface), float(getattr(self, key))
            if radius > edge:
                raise ValueError(
                    f"`{name}.{key}` must be smaller than the edges of the triangles, "
                    f"{edge:.4g} m on average, got {radius:.4g} m. Take a thinner surface or a "
                    "coarser mesh."
                )

    def crossing(self, x: np.ndarray, changed: np.ndarray | None = None) -> str | None:
        """Return where the surfaces go through each other; None: not.

        With `changed` only edges and faces with a row that has are looked at.
        """
        rows = find_pairs(self.piercing_sets(), x, 0.0, None, changed).rows
        if not len(rows):
            return None
        at = ", ".join(f"{v:.4g}" for v in x[rows[0, 0]])
        return f"{len(rows)} edges go through faces, the first near ({at})"

    def crossing_at_start(self, x: np.ndarray) -> str | None:
        """Return where two surfaces go through each other, with faces in one plane too; None: not.

        Edges in the plane of a face go through it where one of two surfaces is shifted a little.
        Where surfaces only touch, one of eight ways parts them, as a box in a corner; or else one
        surface of one piece, a little smaller, is apart and outside, as a box in a slot.
        """
        if len(self.surfaces) == 1:
            return self.crossing(x)
        size = np.abs(x).max() * np.finfo(x.dtype).eps ** 0.75
        first, second = self.surfaces
        shift = np.zeros_like(x)
        for signs in product((1.0, -1.0), repeat=3):
            shift[second.vertices[:, 0]] = size * ASKEW * signs
            if not self.crossing(x + shift):
                return None
        smaller = x - size * vertex_normals(x, second.faces)
        corner = smaller[second.vertices[0, 0]]
        is_inside = abs(winding_number(corner, x, first.faces)) > INSIDE
        return self.crossing(x + shift if is_inside else smaller)

    def passed_on_the_way(self, before: np.ndarray, after: np.ndarray) -> str | None:
        """Return which pair changes sides where its rows go straight on; None: none."""
        moved = farthest(before, after)
        if moved == 0.0:
            return None
        n = int(np.ceil(2.0 * moved / self.thickness))
        for k in range(n):
            start, end = (before + m / n * (after - before) for m in (k, k + 1))
            crossing = self.passed(self.find(start, 2.0 * moved / n), start, end)
            if crossing:
                return crossing
        return None

    def leapt(self, before: np.ndarray, after: np.ndarray, reach: float) -> str | None:
        """Return which pair changes sides where rows go farther than pairs are searched for.

        None where they go as far as only what blows up does: looking along its way would not end.
        """
        is_far = reach < farthest(before, after) <= MOST_LEAP * self.thickness
        return self.passed_on_the_way(before, after) if is_far else None

    def passed(
        self, pairs: FoundPairs, before: np.ndarray, after: np.ndarray, away: Any = 0.0
    ) -> str | None:
        """Return which of the pairs found at either of two positions changed sides; None: none.

        `away`: how far rows were there from the positions that `gaps` are of.
        """
        moved = shifts_of(before, after)
        if not moved.any():
            return None
        close = within(pairs, moved + away)
        rows, numbers = pairs.rows[close], pairs.numbers[close]
        (first, r_first), (then, r_then) = (sides(rows, numbers, x) for x in (before, after))
        changed = (first * then < 0) & ((r_first * r_then).sum(axis=1) < 0.0)
        if not changed.any():
            return None
        m = int(np.argmax(changed))
        at = ", ".join(f"{v:.4g}" for v in after[rows[m, 0]])
        what = "edges cross" if numbers[m, 0] == EDGES else "a vertex goes through a face"
        return f"{what} near ({at})"

    def find(self, x: np.ndarray, reach: float, room: int = 0) -> FoundPairs:
        """Return the pairs within reach; `room`: how many to expect."""
        return find_pairs(self.pair_sets(), x, reach, self._rest_and_thickness(), room=room)

    def find_changed(
        self, before: FoundPairs, x: np.ndarray, reach: float, changed: np.ndarray
    ) -> FoundPairs:
        """Return the pairs within reach, of which those without a row that `changed` are known."""
        rest = self._rest_and_thickness()
        return merge_pairs(before, changed, find_pairs(self.pair_sets(), x, reach, rest, changed))

    def _rest_and_thickness(self) -> tuple[np.ndarray, float] | None:
        return None if self.rest is None else (self.rest, self.thickness)

    def margins(self, steps: np.ndarray, x: np.ndarray, v: np.ndarray) -> ContactMargins:
        """Return how far the pairs of each row are from touching, slipping and other places."""
        return surface_margins(self, steps, x, v)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the scalars that this contact has."""
        present = {name: getattr(self, name) for name in SCALARS}
        return {name: np.asarray(v, float) for name, v in present.items() if v is not None}

    def packed(self, values: Any) -> np.ndarray:
        """Return scalars as rows; the one radius of a surface counts twice."""
        if self.other_radius is None and "radius" in values:
            values = {**values, "other_radius": values["radius"]}
        return super().packed(values)

    def row_bounds(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of stiffness and damping at rows of X: as if all of a side touched.

        Friction counts with the slope at which it sticks: in longer steps what rests between the
        walls of the cone mu p would shake there. What a dissipation damps counts as `arrival_loss`
        where a speed is known.
        """
        k, c = np.zeros((2, n_rows))
        depth = 0.5 * self.thickness
        stiffness = self.law.slope(self, depth)
        damping = float(self.friction_stiffness) if self.friction > 0.0 else 0.0
        if not self.arrival_loss:
            damping = max(damping, float(self.law.damping(self, depth)))
        for surface, other in zip(self.surfaces, self.surfaces[::-1], strict=True):
            most = 2.0 * _pairs_at_once(surface, other)  # |w_i| times the sum of |w|, of each pair
            rows = self.rows[surface.vertices]
            rows = rows[rows < n_rows]
            k[rows] += most * float(stiffness)
            c[rows] += most * damping
        return k, c

    @property
    def arrival_loss(self) -> float:
        """Bound of the damping over sqrt(K M) while it stops what arrives at `speed`; 0: unknown.

        From v dv = -omega^2 c (1 + d v) dc: the depth c at which a speed u ends has omega d c =
        sqrt(2 (D - log(1 + D))), D = d u, for one pair and for all that stop a body together.
        """
        if self.speed is None or self.dissipation is None:
            return 0.0
        D = float(self.dissipation) * self.speed
        return float(np.sqrt(2.0 * (D - np.log1p(D))))


def _pairs_at_once(surface: Surface, other: Surface) -> float:
    """Return how many pairs push a vertex of a surface that lies flat on another one, about.

    The vertex itself on the other surface, vertices of the other one near it, and crossing edges.
    """
    share = max(1.0, len(other.vertices) / len(surface.vertices))
    meshed, other_meshed = (len(x.edges) / (PER_VERTEX * len(x.vertices)) for x in (surface, other))
    return 1.0 + share + AT_ONCE * meshed * other_meshed


def farthest(before: np.ndarray, after: np.ndarray) -> float:
    """Return how far a row has moved at most, beside the motion of all; 0 if none is finite."""
    return float(shifts_of(before, after).max(initial=0.0))


def shifts_of(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return how far each row has moved beside the motion of all; 0 for those not finite."""
    sound = np.isfinite(after).all(axis=1) & np.isfinite(before).all(axis=1)
    moved, shifts = np.zeros(len(before)), after[sound] - before[sound]
    if len(shifts):
        with np.errstate(over="ignore", invalid="ignore"):  # of a world on its way to infinity
            moved[sound] = np.sqrt(np.square(shifts - shifts.mean(axis=0)).sum(axis=1))
    return moved


def mean_edge(x: np.ndarray, surface: Surface) -> float:
    """Return the mean length of the edges of a surface."""
    first, second = x[surface.edges].swapaxes(0, 1)
    return float(np.sqrt(np.square(second - first).sum(axis=1)).mean())


def _vertex_sets(a: Surface, b: Surface) -> tuple[PairSet, ...]:
    """Return the sets of pairs of the vertices of one surface and features of another."""
    ones = np.ones(len(b.faces))
    return (
        PairSet(FACE, a.vertices, b.faces, ones, False),
        PairSet(EDGE, a.vertices, b.edges, b.edge_weights, False),
        PairSet(VERTEX, a.vertices, b.vertices, b.vertex_weights, False),
    )
