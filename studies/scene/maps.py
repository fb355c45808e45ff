r"""From the values of a scene to the parameters of its system.

    Scaled       target = factor * value                          "floor.friction", "world.gravity"
    Weighed      rows of the mass = factors * (A density)         density, mass_factors -> mass
    Placed       some rows of the target = weights * value        policy -> actuation
    Moduli       targets = E g(nu)                                E, nu -> mu, lam, stiffness
    Turned       gravity = exp([angles]x) value                   "world.gravity_direction"
    NodeMotion   velocity, spin, position, rotation, ...          -> state.x, state.v
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


def values_of(values: Mapping[str, Value]) -> dict[str, np.ndarray]:
    """Return a scene's own values by path."""
    return {path: value.value for path, value in values.items()}


class ParameterMap(ABC):
    """A differentiable map from values of a scene, by path, to parameters of its system."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    @abstractmethod
    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the parameters by target."""

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return their tangents from those of the values; missing ones are zero.

        This one is right for a linear map.
        """
        return self.values({k: tangents.get(k, np.zeros_like(sources[k])) for k in self.sources})

    @abstractmethod
    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the cotangents of the values from those of the targets; missing ones are zero."""


def add_up(parts: Iterable[Arrays]) -> dict[str, np.ndarray]:
    """Return the sums of arrays by name."""
    total: dict[str, np.ndarray] = {}
    for arrays in parts:
        for name, array in arrays.items():
            total[name] = total[name] + array if name in total else array
    return total


def all_targets(maps: Iterable[ParameterMap], sources: Arrays) -> dict[str, np.ndarray]:
    """Return the system's parameters by path from all values of a scene."""
    return add_up(map_.values(sources) for map_ in maps)


def sum_to(shape: tuple[int, ...], array: np.ndarray) -> np.ndarray:
    """Return the transpose of broadcasting a shape to that of an array."""
    array = np.asarray(array)
    extra = array.ndim - len(shape)
    array = array.sum(axis=tuple(range(extra)))
    spread = tuple(k for k, n in enumerate(shape) if n == 1 and array.shape[k] != 1)
    return array.sum(axis=spread, keepdims=True)


class Scaled(ParameterMap):
    """Targets that are a value times constant factors by target; both are broadcast."""

    def __init__(self, source: str, factors: Mapping[str, Any]) -> None:
        self.sources, self.targets = (source,), tuple(factors)
        self.source, self.factors = source, factors

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        value = np.asarray(sources[self.source])
        return {target: np.asarray(factor * value) for target, factor in self.factors.items()}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        shape = np.shape(sources[self.source])
        parts = [
            sum_to(shape, factor * adjoints[target])
            for target, factor in self.factors.items()
            if target in adjoints
        ]
        return {self.source: np.sum(parts, axis=0) if parts else np.zeros(shape)}


class Widened(Scaled):
    """Targets that are constants, by target, and beside them a value times constant factors."""

    def __init__(self, source: str, factors: Mapping[str, Any], base: Mapping[str, Any]) -> None:
        super().__init__(source, factors)
        self.base = base

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        return {
            target: self.base[target] + more for target, more in super().values(sources).items()
        }

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        zero = np.zeros_like(sources[self.source])
        return super().values({self.source: tangents.get(self.source, zero)})


class Placed(ParameterMap):
    """Some rows of the target are those of a value, or weights times one number; others are 0.

    `rows` is a slice, or numbers that are all different, (n_rows,); the target has `n` rows.
    """

    def __init__(
        self, source: str, target: str, rows: Any, n: int, *, weights: np.ndarray | None = None
    ) -> None:
        self.sources, self.targets = (source,), (target,)
        self.source, self.target = source, target
        self.rows, self.n, self.weights = rows, n, weights

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        value = np.asarray(sources[self.source])
        placed = value if self.weights is None else self.weights * value
        out = np.zeros((self.n, *placed.shape[1:]))
        out[self.rows] = placed
        return {self.target: out}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        if self.target not in adjoints:
            return {self.source: np.zeros_like(sources[self.source])}
        adj = np.asarray(adjoints[self.target])[self.rows]
        return {self.source: adj if self.weights is None else np.asarray(self.weights @ adj)}


class Weighed(ParameterMap):
    """Masses of a body's nodes: what its density gives, times a factor for each node.

    `matrix` goes from densities of elements to masses, (n_rows, n_elements); `rows` are the body's
    among the `n` nodes of the model.
    """

    targets = ("mass",)

    def __init__(self, name: str, matrix: Any, rows: slice, n: int) -> None:
        self.density, self.factors = f"{name}.density", f"{name}.mass_factors"
        self.sources = (self.density, self.factors)
        self.matrix, self.rows, self.n = matrix, rows, n

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        return self._placed(sources[self.factors] * self._even(sources))

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return factors A tan_density + tan_factors A density."""
        tan = tangents.get(self.factors, 0.0) * self._even(sources)
        if self.density in tangents:
            tan_density = {**sources, self.density: tangents[self.density]}
            tan = tan + sources[self.factors] * self._even(tan_density)
        return self._placed(np.asarray(tan))

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        density, factors = np.asarray(sources[self.density]), sources[self.factors]
        adj = adjoints["mass"][self.rows] if "mass" in adjoints else np.zeros_like(factors)
        adj_density = sum_to(density.shape, self.lumping(sources).T @ (factors * adj))
        return {self.density: adj_density, self.factors: adj * self._even(sources)}

    def lumping(self, sources: Arrays) -> Any:
        """Return the matrix from densities of elements to masses, (n_rows, n_elements)."""
        return self.matrix

    def _even(self, sources: Arrays) -> np.ndarray:
        """Return what a density gives to each node, (n_rows,)."""
        matrix = self.lumping(sources)
        return matrix @ np.broadcast_to(sources[self.density], matrix.shape[1:])

    def _placed(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        out = np.zeros(self.n, rows.dtype)
        out[self.rows] = rows
        return {"mass": out}


Curve = Callable[[Any], tuple[Any, Any]]  # g(nu) and its derivative


class Moduli(ParameterMap):
    """Stiffnesses that are proportional to a body's Young's modulus: A (E g(nu)).

    `curves` are g(nu) and dg/dnu by target; `averages` are A of targets that belong to other
    elements than E does, used where E is an array.
    """

    def __init__(
        self, name: str, curves: Mapping[str, Curve], averages: Mapping[str, scipy.sparse.csr_array]
    ) -> None:
        self.E, self.nu = f"{name}.E", f"{name}.nu"
        self.sources, self.targets = (self.E, self.nu), tuple(curves)
        self.curves, self.averages = curves, averages

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
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
        E, nu = np.asarray(sources[self.E]), sources[self.nu]
        adj_E, adj_nu = np.zeros_like(E), np.zeros(())
        for target, curve in self.curves.items():
            if target not in adjoints:
                continue
            g, slope = curve(nu)
            spread = self.averages.get(target) if E.ndim else None
            adj = adjoints[target]
            adj = sum_to(E.shape, adj) if spread is None else spread.T @ adj
            adj_E = adj_E + g * adj
            adj_nu = adj_nu + np.sum(E * slope * adj)
        return {self.E: adj_E, self.nu: adj_nu}

    def _spread(self, target: str, values: np.ndarray) -> np.ndarray:
        return self.averages[target] @ values if values.ndim and target in self.averages else values
