"""What is free in a scene: paths with start, bounds, transform and prior, as one vector theta."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from studies.scene.bodies.shape import SHAPE
from studies.scene.components import split_component, with_components


COLORS = (".texels", ".vertex_colors")  # paths of values that are bounded by black and white


@dataclass(frozen=True, eq=False)
class Scaled:
    """p = unit theta, for quantities of either sign that the images feel unequally."""

    unit: np.ndarray | float  # positive, for each value, or one that fits by broadcasting
    prefix: ClassVar[str] = "scaled "  # of the label of theta

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        return self.unit * theta

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values."""
        return np.asarray(natural, dtype=np.float64) / self.unit

    def rate(self, theta: np.ndarray) -> np.ndarray | float:
        """Return the derivative of the natural values."""
        return self.unit

    def box(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest box in theta that holds the natural box."""
        return lower / self.unit, upper / self.unit


@dataclass(frozen=True, eq=False)
class Identity(Scaled):
    """p = theta."""

    unit: np.ndarray | float = 1.0
    prefix: ClassVar[str] = ""


@dataclass(frozen=True)
class Log:
    """p = exp(theta), for positive quantities."""

    prefix: ClassVar[str] = "log "

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return the natural values at theta."""
        return np.exp(theta)

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values; raise ValueError if one is not positive."""
        value = np.asarray(natural, dtype=np.float64)
        if not (value > 0.0).all():
            raise ValueError(f"A value under the log transform must be positive, got {value}.")
        return np.log(value)

    def rate(self, theta: np.ndarray) -> np.ndarray:
        """Return the derivative of the natural values."""
        return np.exp(theta)

    def box(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest box in theta that holds the natural box."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(lower, 0.0)), np.log(upper)


Transform = Scaled | Log


@dataclass(frozen=True, eq=False)
class FreeParameter:
    """One free path."""

    path: str
    start: np.ndarray  # natural value, () or (n, ...), inside the bounds
    bounds: tuple[float, float]  # infinite ones are none
    transform: Transform  # from theta to the natural value
    unit: str = "-"
    prior: tuple[np.ndarray, np.ndarray] | None = None  # mean and standard deviation of theta
    is_answer: bool = True  # whether it is asked for; a nuisance such as a camera is not

    @property
    def is_shape(self) -> bool:
        """Whether it is the vertices of a body."""
        return self.path.endswith(".vertices")

    @property
    def is_shape_error(self) -> bool:
        """Whether it is by how much the shape of a body differs from its mesh."""
        return self.path.endswith(SHAPE)

    @property
    def is_camera(self) -> bool:
        """Whether it is of a camera."""
        return self.path.startswith("cameras.")

    @property
    def is_view(self) -> bool:
        """Whether it is of a camera, a light or a look: what one frame shows, without motion."""
        return self.path.startswith(("cameras.", "lights.")) or ".look." in self.path

    @property
    def is_start_time(self) -> bool:
        """Whether it is the time of the scene when an observation begins."""
        return self.path.startswith("observations.") and self.path.endswith(".start")

    def labels(self, prefix: str = "") -> list[str]:
        """Return the names of its components."""
        indices = np.ndindex(*self.start.shape)
        return [f"{prefix}{self.path}{list(index) if index else ''}" for index in indices]


def nuisance(path: str, value: Any, error: Any, unit: str = "-") -> FreeParameter:
    """Return a parameter that is fitted beside the answers, with a Gaussian prior around its start.

    Theta is the deviation from 0 in units of `error`, the standard deviation.
    """
    start = np.asarray(value, np.float64)
    width = np.broadcast_to(np.asarray(error, np.float64), start.shape).copy()
    mean = start / width
    prior, bounds = (mean, np.ones_like(mean)), (-np.inf, np.inf)
    return FreeParameter(path, start, bounds, Scaled(width), unit, prior, is_answer=False)


class Parameters:
    """Free parameters, as one flat vector theta and as values by path; tied paths follow others.

    `ties` gives the path that a tied one follows, and the factor; `wholes` gives values by path of
    which only components are free or tied. The prior of theta has the mean `prior_mean` and the
    error `prior_error`, (size,), infinite where there is none.
    """

    def __init__(
        self,
        free: Sequence[FreeParameter],
        ties: Mapping[str, tuple[str, float]] | None = None,
        wholes: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.free, self.ties, self.wholes = tuple(free), dict(ties or {}), dict(wholes or {})
        self.paths = tuple(parameter.path for parameter in free)
        ends = np.cumsum([0, *(parameter.start.size for parameter in free)])
        self._slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.size = int(ends[-1])
        self.start = np.concatenate(
            [np.ravel(parameter.transform.theta(parameter.start)) for parameter in free]
        )
        lower, upper, mean, error = [], [], [], []
        for parameter in free:
            shape = parameter.start.shape
            low, high = parameter.transform.box(
                *(np.broadcast_to(end, shape) for end in parameter.bounds)
            )
            prior = parameter.prior or (np.zeros(shape), np.full(shape, np.inf))
            for whole, end in zip((lower, upper, mean, error), (low, high, *prior), strict=True):
                whole.append(np.broadcast_to(end, shape).ravel())
        self.lower, self.upper = np.concatenate(lower), np.concatenate(upper)
        self.prior_mean, self.prior_error = np.concatenate(mean), np.concatenate(error)

    @property
    def theta_labels(self) -> tuple[str, ...]:
        """Names of theta's components."""
        return tuple(label for free in self.free for label in free.labels(free.transform.prefix))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the natural components, in the order of `natural`."""
        return tuple(label for free in self.free for label in free.labels())

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural value of every path at theta."""
        parts = self.parts(theta)
        return {free.path: np.asarray(free.transform.natural(block)) for free, block in parts}

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return all natural values at theta as one flat vector."""
        return np.concatenate([np.ravel(value) for value in self.values(theta).values()])

    def natural_tangents(self, theta: np.ndarray, tan_theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the tangent of every path for a tangent of theta."""
        pairs = zip(self.parts(theta), self.parts(tan_theta), strict=True)
        return {free.path: free.transform.rate(block) * tan for (free, block), (_, tan) in pairs}

    def natural_rates(self, theta: np.ndarray) -> np.ndarray:
        """Return the diagonal of d natural / d theta, `(size,)`: nothing stands beside it."""
        tangents = self.natural_tangents(theta, np.ones(self.size))
        return np.concatenate([np.ravel(tan) for tan in tangents.values()])

    def gradient(self, theta: np.ndarray, adjoints: Mapping[str, Any]) -> np.ndarray:
        """Return the gradient in theta from cotangents of the natural values by path."""
        parts = []
        for free, block in self.parts(theta):
            adj = np.asarray(adjoints[free.path], np.float64).reshape(block.shape)
            parts.append(np.ravel(free.transform.rate(block) * adj))
        return np.concatenate(parts)

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values, flat."""
        parts = [np.ravel(free.transform.theta(block)) for free, block in self.parts(natural)]
        return np.concatenate(parts)

    def parts(self, theta: np.ndarray) -> list[tuple[FreeParameter, np.ndarray]]:
        """Return every free path with its part of a flat vector, in its shape."""
        return [
            (free, np.asarray(theta[rows], np.float64).reshape(free.start.shape))
            for free, rows in zip(self.free, self._slices, strict=True)
        ]

    def with_short_turns(self, theta: np.ndarray) -> np.ndarray:
        """Return theta whose cameras are turned in the same way, by half a turn at most.

        A long step may take a rotation vector a whole turn too far, where its prior counts it.
        """
        theta = theta.copy()
        for free, rows in zip(self.free, self._slices, strict=True):
            if free.is_camera and free.path.endswith(".rotation"):
                turn = np.asarray(free.transform.natural(theta[rows]))
                if (angle := float(np.linalg.norm(turn))) > np.pi:
                    short = turn * (math.remainder(angle, 2.0 * np.pi) / angle)
                    theta[rows] = free.transform.theta(short)
        return theta

    @property
    def answers(self) -> tuple[int, ...]:
        """Components of theta that are asked for."""
        return self._components([free.is_answer for free in self.free])

    @property
    def first_answers(self) -> tuple[int, ...]:
        """Components that are searched first: those of the motion, or all if there are none."""
        flags = [(free.is_answer or free.is_start_time) and not free.is_view for free in self.free]
        return self._components(flags) or self.answers

    def each(self, of_paths: Sequence[Any]) -> np.ndarray:
        """Return a value for each component of theta, (size,), from one for each path."""
        return np.repeat(of_paths, [free.start.size for free in self.free])

    def _components(self, flags: Sequence[bool]) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.each(flags)).tolist())

    def units(self) -> dict[str, str]:
        """Return the unit of every free path."""
        return {free.path: free.unit for free in self.free}

    def scene_values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the value of every free and tied path at theta, by path of the whole."""
        return with_components(self._with_tied(self.values(theta)), self.wholes)

    def scene_tangents(self, theta: np.ndarray, tan_theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the tangent of every path that moves with a tangent of theta."""
        tangents = self.natural_tangents(theta, tan_theta)
        moved = self._with_tied({path: tan for path, tan in tangents.items() if np.any(tan)})
        return with_components(moved, {k: np.zeros_like(array) for k, array in self.wholes.items()})

    def scene_gradient(self, theta: np.ndarray, adjoints: Mapping[str, Any]) -> np.ndarray:
        """Return the gradient in theta from cotangents by path; missing ones are 0."""
        values = self.values(theta)
        gathered = {
            path: _cotangent(path, adjoints) + np.zeros_like(value)
            for path, value in values.items()
        }
        for path, (source, factor) in self.ties.items():
            gathered[source] = gathered[source] + factor * _cotangent(path, adjoints)
        return self.gradient(theta, gathered)

    def held_at(self, theta: np.ndarray, keep: tuple[int, ...] | None = None) -> "Parameters":
        """Return the parameters that start at theta; with `keep`, only paths that it touches."""
        values = self.values(theta)
        free = tuple(
            replace(parameter, start=_inside(values[parameter.path], parameter))
            for parameter in self.free
        )
        if keep is not None:
            parts = [range(self.size)[rows] for rows in self._slices]
            pairs = zip(free, parts, strict=True)
            free = tuple(
                parameter for parameter, numbers in pairs if not set(numbers).isdisjoint(keep)
            )
        kept = {parameter.path for parameter in free}
        ties = {path: tie for path, tie in self.ties.items() if tie[0] in kept}
        whole = self.scene_values(theta)
        wholes = {path: whole.get(path, default) for path, default in self.wholes.items()}
        return Parameters(free, ties, wholes)

    def held_at_values(self, values: Mapping[str, np.ndarray]) -> "Parameters":
        """Return the parameters that start at these values, where there are any."""
        free = []
        for parameter in self.free:
            owner, index = split_component(parameter.path)
            has_value = owner in values
            start = values[owner][index] if has_value and index else values.get(owner)
            free.append(
                replace(parameter, start=_inside(np.asarray(start), parameter))
                if has_value
                else parameter
            )
        wholes = {path: values.get(path, default) for path, default in self.wholes.items()}
        return Parameters(tuple(free), self.ties, wholes)

    def as_natural(self) -> "Parameters":
        """Return the parameters whose theta are their natural values, without bounds or priors."""
        wide = (-np.inf, np.inf)
        free = [
            replace(parameter, transform=Identity(), bounds=wide, prior=None)
            for parameter in self.free
        ]
        return Parameters(tuple(free), self.ties, self.wholes)

    def _with_tied(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        tied = {
            path: factor * values[source]
            for path, (source, factor) in self.ties.items()
            if source in values
        }
        return {**values, **tied}


def _cotangent(path: str, adjoints: Mapping[str, Any]) -> np.ndarray:
    """Return that of a path, which may be a component; 0 where there is none."""
    owner, index = split_component(path)
    adj = np.asarray(adjoints.get(owner, 0.0), np.float64)
    return adj[index] if index and adj.ndim else adj


def _inside(value: np.ndarray, free: FreeParameter) -> np.ndarray:
    """Return a value strictly inside the bounds, which a search may have ended at."""
    low, high = free.bounds
    span = high - low if np.isfinite(high - low) else 1.0
    margin = 1e-9 * (span if free.bounds[0] <= 0.0 else min(span, low))
    return np.clip(value, low + margin, high - margin)
