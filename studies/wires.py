r"""From the free values of a study to the parameters of its rollout: a constant affine map.

A free value reaches the rollout by its own path, "beam.mu", unless wires lead it elsewhere:

    density   ->  mass = (node masses at density 1) * density
    speed     ->  state.v = (direction of every node) * speed
    beam.mu   ->  beam.mu, and beam.lam = (lam/mu) * beam.mu

Wires that end at one path add up, on top of what is `fixed` there. Values are spread by the
map, tangents by its linear part A, and cotangents are gathered by A^T.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np


class LinearMap(Protocol):
    """A constant linear map."""

    def apply(self, value: np.ndarray) -> np.ndarray:
        """Return A value."""
        ...

    def transpose(self, adj: np.ndarray) -> np.ndarray:
        """Return A^T adj."""
        ...


@dataclass(frozen=True, eq=False)
class Outer:
    """The outer product of a pattern with the value: pattern_ij.. value_kl..

    A pattern of shape () scales; with a scalar value the result has the pattern's shape.
    """

    pattern: Any

    def apply(self, value: np.ndarray) -> np.ndarray:
        """Return the outer product."""
        return np.multiply.outer(np.asarray(self.pattern), value)

    def transpose(self, adj: np.ndarray) -> np.ndarray:
        """Return the cotangent summed against the pattern."""
        pattern = np.asarray(self.pattern)
        return np.tensordot(pattern, adj, axes=pattern.ndim)


@dataclass(frozen=True, eq=False)
class Rows:
    """The value becomes the rows `index` of `n`; the other rows are 0.

    With n = (height, width) they are cells of a grid, and `index` is what `np.nonzero` gives.
    """

    index: Any
    n: int | tuple[int, ...]

    def apply(self, value: np.ndarray) -> np.ndarray:
        """Return the rows in their places."""
        out = np.zeros((*np.atleast_1d(self.n), *np.shape(value)[1:]))
        out[self.index] = value
        return out

    def transpose(self, adj: np.ndarray) -> np.ndarray:
        """Return the rows of the cotangent."""
        return adj[self.index]


@dataclass(frozen=True, eq=False)
class Wire:
    """One free value's way to a parameter of the rollout."""

    source: str
    target: str
    map: LinearMap = field(default_factory=lambda: Outer(1.0))


@dataclass(frozen=True, eq=False)
class Wires:
    """The whole map.

    Attributes
    ----------
    wires : tuple of Wire
    fixed : mapping
        What a target is where all its wires bring 0, by path; missing ones are 0.
    """

    wires: tuple[Wire, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def targets(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return the parameters of the rollout that free paths reach."""
        led = dict.fromkeys(wire.target for wire in self.wires if wire.source in paths)
        return (*self._direct(paths), *led)

    def values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rollout's parameters from the free values."""
        out = self.spread(values)
        for path, value in self.fixed.items():
            out[path] = out[path] + value
        return out

    def spread(self, tangents: Mapping[str, Any]) -> dict[str, Any]:
        """Return A applied to tangents by path."""
        out = {path: tangents[path] for path in self._direct(tuple(tangents))}
        for wire in self.wires:
            if wire.source in tangents:
                part = wire.map.apply(np.asarray(tangents[wire.source]))
                out[wire.target] = out[wire.target] + part if wire.target in out else part
        return out

    def gather(self, paths: tuple[str, ...], adjoints: Mapping[str, Any]) -> dict[str, Any]:
        """Return A^T applied to cotangents of the rollout's parameters."""
        out: dict[str, Any] = {path: adjoints[path] for path in self._direct(paths)}
        for wire in self.wires:
            if wire.source in paths:
                part = wire.map.transpose(np.asarray(adjoints[wire.target]))
                out[wire.source] = out[wire.source] + part if wire.source in out else part
        return out

    def _direct(self, paths: tuple[str, ...]) -> list[str]:
        led = {wire.source for wire in self.wires}
        return [path for path in paths if path not in led]
