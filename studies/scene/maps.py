r"""From the values of a scene to the parameters of its system.

    Scaled       target = factor * value                          "floor.friction", "world.gravity"
    Weighed      rows of the mass = factors * (A density)         density, mass_factors -> mass
    Placed       some rows of the target = weights * value        policy -> actuation
    Moduli       targets = E g(nu)                                E, nu -> mu, lam, stiffness
    NodeMotion   velocity, spin, position, rotation               -> state.x, state.v
    BodyMotion   the same of a rigid body                         -> position, rotation, ...

Where several maps end at one target, their results add up. All differentiate: `jvp` pushes
tangents of the values, `vjp` pulls cotangents of the targets back.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse


Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Value:
    """A parameter of a scene that may be free."""

    value: np.ndarray  # in its unit, float64
    unit: str
    transform: str  # "log" or "linear": what a search looks at
    bounds: tuple[float, float]  # by default
    # Of a linear one: what theta counts in, () or as the value. None: a tenth of the bounds.
    scale: Any = None


class ParameterMap(ABC):
    """A differentiable map from values of a scene, by path, to parameters of its system."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    @abstractmethod
    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the parameters by target."""

    @abstractmethod
    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return their tangents from those of the values; missing ones are zero."""

    @abstractmethod
    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the cotangents of the values from those of the targets; missing ones are zero."""


def add_up(parts: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Return the sums of arrays by name."""
    total: dict[str, np.ndarray] = {}
    for part in parts:
        for name, array in part.items():
            total[name] = total[name] + array if name in total else array
    return total


def all_targets(maps: Iterable[ParameterMap], sources: Arrays) -> dict[str, np.ndarray]:
    """Return the system's parameters by path from all values of a scene."""
    return add_up(part.values(sources) for part in maps)


def sum_to(shape: tuple[int, ...], array: np.ndarray) -> np.ndarray:
    """Return the transpose of broadcasting a shape to that of an array."""
    array = np.asarray(array)
    extra = array.ndim - len(shape)
    array = array.sum(axis=tuple(range(extra)))
    spread = tuple(k for k, n in enumerate(shape) if n == 1 and array.shape[k] != 1)
    return array.sum(axis=spread, keepdims=True)


@dataclass(frozen=True, eq=False)
class _LinearMap(ParameterMap):
    """A linear map from one value."""

    source: str

    @property
    def sources(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The one value."""
        return (self.source,)

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return the map of the tangent."""
        value = sources[self.source]
        return self.values({self.source: tangents.get(self.source, np.zeros_like(value))})


@dataclass(frozen=True, eq=False)
class Scaled(_LinearMap):
    """Targets that are a value times constant factors; factor and value are broadcast."""

    factors: Mapping[str, Any]  # by target

    @property
    def targets(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The targets of the factors."""
        return tuple(self.factors)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the value times the factors."""
        value = np.asarray(sources[self.source])
        return {target: np.asarray(factor * value) for target, factor in self.factors.items()}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the sum of the cotangents times the factors."""
        shape = np.shape(sources[self.source])
        parts = [
            sum_to(shape, factor * adjoints[target])
            for target, factor in self.factors.items()
            if target in adjoints
        ]
        return {self.source: np.sum(parts, axis=0) if parts else np.zeros(shape)}


@dataclass(frozen=True, eq=False)
class Placed(_LinearMap):
    """Some rows of the target are those of a value, or weights times one number; others are 0."""

    target: str
    rows: Any  # a slice, or numbers that are all different, (n_rows,)
    n: int  # rows of the target
    weights: np.ndarray | None = None  # (n_rows,)

    @property
    def targets(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The one target."""
        return (self.target,)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the rows in their places."""
        value = np.asarray(sources[self.source])
        placed = value if self.weights is None else self.weights * value
        out = np.zeros((self.n, *placed.shape[1:]))
        out[self.rows] = placed
        return {self.target: out}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return these rows of the cotangent, times the weights."""
        if self.target not in adjoints:
            return {self.source: np.zeros_like(sources[self.source])}
        adj = np.asarray(adjoints[self.target])[self.rows]
        return {self.source: adj if self.weights is None else np.asarray(self.weights @ adj)}


@dataclass(frozen=True, eq=False)
class Weighed(ParameterMap):
    """Masses of nodes: what a density gives, times a factor for each node."""

    density: str  # paths of the two values, () or (n_elements,), and (n_rows,)
    factors: str
    matrix: Any  # from densities of elements to masses, (n_rows, n_elements)
    rows: slice  # which rows of all masses they are
    n: int  # nodes of the model

    targets = ("mass",)

    @property
    def sources(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Density and factors."""
        return (self.density, self.factors)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the masses in their rows."""
        return self._placed(sources[self.factors] * self._even(sources[self.density]))

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return factors A tan_density + tan_factors A density."""
        density, factors = sources[self.density], sources[self.factors]
        tan = tangents.get(self.factors, 0.0) * self._even(density)
        if self.density in tangents:
            tan = tan + factors * self._even(tangents[self.density])
        return self._placed(np.asarray(tan))

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the cotangents of both."""
        density, factors = np.asarray(sources[self.density]), sources[self.factors]
        adj = adjoints["mass"][self.rows] if "mass" in adjoints else np.zeros_like(factors)
        adj_density = sum_to(density.shape, self.matrix.T @ (factors * adj))
        return {self.density: adj_density, self.factors: adj * self._even(density)}

    def _even(self, density: Any) -> np.ndarray:
        """Return what a density gives to each node, (n_rows,)."""
        return self.matrix @ np.broadcast_to(density, self.matrix.shape[1:])

    def _placed(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        out = np.zeros(self.n, rows.dtype)
        out[self.rows] = rows
        return {"mass": out}


Curve = Callable[[Any], tuple[Any, Any]]  # g(nu) and its derivative


@dataclass(frozen=True, eq=False)
class Moduli(ParameterMap):
    """Stiffnesses that are proportional to Young's modulus: A (E g(nu))."""

    E: str  # paths of the two values
    nu: str
    curves: Mapping[str, Curve]  # by target: g(nu) and dg/dnu
    # A of targets that belong to other elements than E does, used where E is an array.
    averages: Mapping[str, scipy.sparse.csr_array]

    @property
    def sources(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """E and nu."""
        return (self.E, self.nu)

    @property
    def targets(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The targets of the curves."""
        return tuple(self.curves)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return A (E g(nu))."""
        E, nu = sources[self.E], sources[self.nu]
        return {
            target: self._spread(target, np.asarray(E * curve(nu)[0]))
            for target, curve in self.curves.items()
        }

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return A (tan_E g + E g' tan_nu)."""
        E, nu = sources[self.E], sources[self.nu]
        tan_E, tan_nu = tangents.get(self.E, np.zeros_like(E)), tangents.get(self.nu, 0.0)
        out = {}
        for target, curve in self.curves.items():
            g, slope = curve(nu)
            out[target] = self._spread(target, np.asarray(tan_E * g + E * slope * tan_nu))
        return out

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the cotangents of E and nu."""
        E, nu = np.asarray(sources[self.E]), sources[self.nu]
        adj_E, adj_nu = np.zeros_like(E), np.zeros(())
        for target, curve in self.curves.items():
            if target not in adjoints:
                continue
            g, slope = curve(nu)
            adj = self._gather(target, adjoints[target], E.shape)
            adj_E = adj_E + g * adj
            adj_nu = adj_nu + np.sum(E * slope * adj)
        return {self.E: adj_E, self.nu: adj_nu}

    def _spread(self, target: str, values: np.ndarray) -> np.ndarray:
        return self.averages[target] @ values if values.ndim and target in self.averages else values

    def _gather(self, target: str, adj: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        if shape and target in self.averages:
            return self.averages[target].T @ adj
        return sum_to(shape, adj)
