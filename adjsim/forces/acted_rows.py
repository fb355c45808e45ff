"""What a force may act on: nodes, the points of sets of rigid bodies, or several of these.

Nodes and the points of bodies are rows of one array X. A force says by `acts_on` whose rows they
are, and counts them from 0: nodes in their order; of a set of bodies the vertices of its meshes,
then its named points; one part after the other, in the order of `acts_on`.

Tests: `tests/forces/test_acted_rows.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from adjsim import checks
from adjsim.rigid.bodies import RigidBodies


NODES = "nodes"  # in the place of a set of bodies


def acted_on(acts_on: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of what a force acts on; one name may come alone.

    Raise a ValueError if there is no name, or one twice.
    """
    names = (acts_on,) if isinstance(acts_on, str) else acts_on
    if not isinstance(names, Sequence) or not names or len(set(names)) < len(names):
        raise ValueError(
            f'`acts_on` must be "{NODES}", the name of a set of bodies, or several different '
            f"names, got {acts_on!r}."
        )
    return tuple(names)


class Body(NamedTuple):
    """A body by the name of its set and its number there."""

    owner: str
    number: int

    @classmethod
    def of(cls, where: str, name: Any) -> Self:
        """Return the body of a name: "arm", which is its first, or "links.3"."""
        owner, _, number = name.partition(".") if isinstance(name, str) else ("", "", "")
        if not owner or not (number.isdecimal() or name == owner):
            raise ValueError(
                f'`{where}` must name a body, as "arm", the first of the set, or "links.3", got '
                f"{name!r}."
            )
        return cls(owner, int(number or 0))

    def __str__(self) -> str:
        return f"{self.owner}.{self.number}"


class BodyFrame(NamedTuple):
    """Where a body that offers frame points lies in X.

    `first` is the row of its first point, `center` that of its centre. Its levers follow.
    """

    first: int
    center: int


@dataclass(frozen=True, eq=False)
class ActedRows:
    """The rows of X that a force may act on, as it counts them.

    Attributes
    ----------
    indices : array
        The row of X of each, (n,).
    surface : array
        Which of these are nodes or vertices, not named points, (n_surface,).
    points : dict
        The numbers of named points, by "block.tip", and by "tip" where one set alone has it.
    frames : dict
        A `BodyFrame` of each body that offers frame points, whatever the force acts on.
    """

    indices: np.ndarray
    surface: np.ndarray
    points: dict[str, int] = field(default_factory=dict)
    frames: Mapping[Body, BodyFrame] = field(default_factory=dict)

    @classmethod
    def of_nodes(cls, n_nodes: int) -> "ActedRows":
        """Return the rows of the nodes of a model."""
        return cls(np.arange(n_nodes), np.arange(n_nodes))

    @classmethod
    def of_bodies(cls, name: str, bodies: RigidBodies, first: int) -> "ActedRows":
        """Return the rows of a set of bodies whose points begin at row `first` of X."""
        n = len(bodies.hull)
        named = [bodies.point_row(point) for point in bodies.points]
        numbers = {f"{name}.{point}": n + k for k, point in enumerate(bodies.points)}
        row = first + np.concatenate([bodies.hull, np.array(named, np.int64)])
        return cls(row, np.arange(n), numbers)

    @classmethod
    def joined(
        cls, parts: Sequence["ActedRows"], frames: Mapping[Body, BodyFrame] | None = None
    ) -> "ActedRows":
        """Return the rows of several parts, concatenated."""
        starts = np.cumsum([0, *(len(rows.indices) for rows in parts[:-1])]).tolist()
        pairs = list(zip(starts, parts, strict=True))
        points = {name: start + k for start, rows in pairs for name, k in rows.points.items()}
        short = [name.partition(".")[2] for name in points]
        alone = {s: k for s, k in zip(short, points.values(), strict=True) if short.count(s) == 1}
        return cls(
            np.concatenate([rows.indices for rows in parts]),
            np.concatenate([start + rows.surface for start, rows in pairs]),
            points | alone,
            frames or {},
        )

    def numbers(self, where: str, ends: Any, shape: Sequence[int | str]) -> np.ndarray:
        """Return the numbers of elements' ends, given as numbers or as names of points.

        Raise a ValueError if one is out of range, a name is unknown, or the shape is another.
        """
        ends = (ends,) if isinstance(ends, str) else ends
        if has_names(ends):
            flat = np.asarray(ends, object)
            for point in flat.flat:
                if isinstance(point, str):
                    checks.known_key(f"point in `{where}`", point, self.points)
            numbers = [self.points[p] if isinstance(p, str) else p for p in flat.flat]
            ends = np.reshape(numbers, flat.shape)
        return checks.indices(where, ends, shape, len(self.indices))


def frames_of(name: str, bodies: RigidBodies, first: int) -> dict[Body, BodyFrame]:
    """Return the frames of a set of bodies whose points begin at row `first` of X."""
    return {
        Body(name, body): BodyFrame(
            first + int(bodies.point_ptr[body]), first + bodies.frame_row(body)
        )
        for body in bodies.framed
    }


def has_names(ends: Any) -> bool:
    """Whether some of the numbers that are given are names of points in their place."""
    if isinstance(ends, np.ndarray) and ends.dtype.kind in "iuf":
        return False
    return any(isinstance(end, str) for end in np.asarray(ends, object).flat)
