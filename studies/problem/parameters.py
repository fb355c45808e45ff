"""Free parameters: blocks of natural values behind one flat theta."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks
from studies.problem.transforms import LINEAR, Log, Transform
from studies.runs.errors import StudyError


@dataclass(frozen=True)
class Block:
    """Parameters that share one transform."""

    paths: tuple[str, ...]  # names of the parameters, e.g. `("beam.mu", "beam.lam")`.
    transform: Transform  # from theta to natural values
    # natural start values and bounds, `(n_paths, ...)`. Infinite bounds are none.
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def __post_init__(self) -> None:
        for i, path in enumerate(self.paths):
            start, low, high = self.start[i], self.lower[i], self.upper[i]
            checks.array(path, start, hint="It is the start value.")
            if not (low < high).all():
                raise StudyError(
                    f"The bounds of `{path}` must be increasing, got {low} and {high}. Give the "
                    "lower one first."
                )
            if not ((start > low) & (start < high)).all():
                raise StudyError(
                    f"The start of `{path}` must lie inside its bounds ({low}, {high}), got "
                    f"{start}. Move the start, or widen the bounds."
                )


class Parameters:
    """Free parameters, as one flat vector theta and as values by path."""

    def __init__(self, blocks: list[Block]) -> None:
        if not blocks:
            raise StudyError("There must be at least one free parameter.")
        self.blocks = tuple(blocks)
        self.paths = tuple(path for block in blocks for path in block.paths)
        sizes = [block.start.size for block in blocks]
        ends = np.cumsum([0, *sizes])
        self._slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self.size = int(ends[-1])
        self.start = np.concatenate([one.transform.theta(one.start).ravel() for one in blocks])
        boxes = [block.transform.box(block.lower, block.upper) for block in blocks]
        self.lower = np.concatenate([low.ravel() for low, _ in boxes])
        self.upper = np.concatenate([high.ravel() for _, high in boxes])

    @property
    def theta_labels(self) -> tuple[str, ...]:
        """Names of theta's components."""
        return self._labels(lambda block: block.transform.prefix)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the natural components, in the order of `natural`."""
        return self._labels(lambda _block: "")

    def _labels(self, prefix: Callable[[Block], str]) -> tuple[str, ...]:
        return tuple(
            f"{prefix(block)}{path}{list(index) if index else ''}"
            for block in self.blocks
            for path in block.paths
            for index in np.ndindex(*block.start.shape[1:])
        )

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural value of every path at theta."""
        return self._by_path([block.transform.natural(part) for block, part in self._parts(theta)])

    def natural(self, theta: np.ndarray) -> np.ndarray:
        """Return all natural values at theta as one flat vector."""
        return np.concatenate([np.ravel(value) for value in self.values(theta).values()])

    def natural_tangents(self, theta: np.ndarray, tan_theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the tangent of every path for a tangent of theta."""
        pairs = zip(self._parts(theta), self._parts(tan_theta), strict=True)
        return self._by_path([block.transform.jvp(part, tan) for (block, part), (_, tan) in pairs])

    def natural_jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Return d natural / d theta, `(size, size)`."""
        columns = [
            np.concatenate([np.ravel(t) for t in self.natural_tangents(theta, column).values()])
            for column in np.eye(self.size)
        ]
        return np.stack(columns, axis=1)

    def gradient(self, theta: np.ndarray, adjoints: Mapping[str, Any]) -> np.ndarray:
        """Return the gradient in theta from cotangents of the natural values by path."""
        parts = []
        for block, part in self._parts(theta):
            adj = np.stack([np.asarray(adjoints[path], np.float64) for path in block.paths])
            parts.append(block.transform.vjp(part, adj.reshape(part.shape)).ravel())
        return np.concatenate(parts)

    def theta(self, natural: np.ndarray) -> np.ndarray:
        """Return theta of natural values, flat."""
        parts = [block.transform.theta(part).ravel() for block, part in self._parts(natural)]
        return np.concatenate(parts)

    def _parts(self, theta: np.ndarray) -> list[tuple[Block, np.ndarray]]:
        return [
            (block, np.asarray(theta[part], np.float64).reshape(block.start.shape))
            for block, part in zip(self.blocks, self._slices, strict=True)
        ]

    def _by_path(self, parts: list[np.ndarray]) -> dict[str, np.ndarray]:
        return {
            path: np.asarray(value)
            for block, part in zip(self.blocks, parts, strict=True)
            for path, value in zip(block.paths, part, strict=True)
        }


def block(
    paths: tuple[str, ...],
    transform: Transform,
    start: list[Any],
    bounds: Mapping[str, Any] | None = None,
) -> Block:
    """Return a block from start values and `(lower, upper)` by path.

    A path without bounds is bounded by its transform only.
    """
    values = np.stack([np.asarray(value, np.float64) for value in start])
    lower, upper = np.full_like(values, -np.inf), np.full_like(values, np.inf)
    if not isinstance(transform, LINEAR):
        lower = np.zeros_like(values)
    for i, path in enumerate(paths):
        if bounds and path in bounds:
            lower[i], upper[i] = bounds[path]
    return Block(paths, transform, values, lower, upper)


def positive_block(path: str, start: Any, bounds: Mapping[str, Any] | None = None) -> Block:
    """Return the default block of a positive quantity: log transform."""
    return block((path,), Log(), [start], bounds)
