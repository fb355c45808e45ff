"""Points, gradients and tangents as one flat vector, whatever they were given as.

A vector is a number, an array, or a mapping of names to either; the checks of this package
see one flat float64 array, and a scale for each of its entries, so that positions in
metres and moduli in pascals count alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from adjsim import checks


Vector: TypeAlias = npt.ArrayLike | Mapping[str, npt.ArrayLike]


@dataclass(frozen=True)
class Layout:
    """Names and shapes of a vector's blocks; one block named "" unless it is a mapping."""

    shapes: dict[str, tuple[int, ...]]
    is_mapping: bool

    @classmethod
    def of(cls, name: str, vector: Vector) -> "Layout":
        """Return the layout of a vector; `name` is what an error calls it."""
        is_mapping = isinstance(vector, Mapping)
        blocks = dict(vector) if is_mapping else {"": vector}
        shapes = {key: np.shape(value) for key, value in blocks.items()}
        if not sum(np.size(value) for value in blocks.values()):
            raise ValueError(f"`{name}` must not be empty: nothing would be compared.")
        return cls(shapes, is_mapping)

    @property
    def size(self) -> int:
        """Number of entries of all blocks together."""
        return sum(int(np.prod(shape)) for shape in self.shapes.values())

    def flat(self, name: str, vector: Vector) -> np.ndarray:
        """Return a vector of this layout as one flat float64 array, which may hold NaN.

        Raises
        ------
        ValueError
            If a block is missing, has no counterpart, or has another shape.
        """
        blocks: dict[str, Any] = dict(vector) if isinstance(vector, Mapping) else {"": vector}
        if set(blocks) != set(self.shapes):
            raise ValueError(
                f"`{name}` must have the entries {self._names(self.shapes)}, got "
                f"{self._names(blocks)}: every component is compared."
            )
        for key, shape in self.shapes.items():
            if np.shape(blocks[key]) != shape:
                label = f"{name}[{key!r}]" if key else name
                raise ValueError(f"`{label}` must have shape {shape}, got {np.shape(blocks[key])}.")
        return np.concatenate(
            [np.asarray(blocks[key], dtype=np.float64).ravel() for key in self.shapes]
        )

    def split(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """Return the blocks of a flat vector by name, each in its shape."""
        if len(self.shapes) == 1:
            return {key: flat.reshape(shape) for key, shape in self.shapes.items()}
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        return {
            key: block.reshape(shape)
            for (key, shape), block in zip(self.shapes.items(), parts, strict=True)
        }

    def restore(self, flat: np.ndarray) -> Any:
        """Return a flat vector as the caller had it: an array or a dict of arrays."""
        blocks = self.split(flat)
        return blocks if self.is_mapping else blocks[""]

    def block_scale(self, flat: np.ndarray) -> np.ndarray:
        """Return for each entry the root mean square of its block, 1 where that is 0."""
        scales = {}
        for key, block in self.split(flat).items():
            rms = float(np.sqrt(np.mean(np.square(block)))) if block.size else 0.0
            scales[key] = np.full(block.shape, rms if rms > 0.0 else 1.0)
        return np.concatenate([scale.ravel() for scale in scales.values()])

    @staticmethod
    def _names(blocks: Mapping[str, Any]) -> str:
        return ", ".join(f"{key!r}" for key in blocks) if any(blocks) else "of one plain array"


@dataclass(frozen=True)
class Point:
    """Where a check is made: a flat vector, its layout and the scale of each entry."""

    layout: Layout
    flat: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, x: Vector, scale: Vector | None = None) -> "Point":
        """Return the point `x`; `scale` is the typical size of its entries.

        Raise a ValueError if `x` is empty or not finite, or a scale is not positive.
        """
        layout = Layout.of("x", x)
        flat = checks.array("x", layout.flat("x", x))
        if scale is None:
            return cls(layout, flat, layout.block_scale(flat))
        checked = checks.array("scale", layout.flat("scale", scale))
        return cls(layout, flat, checks.positive("scale", checked))

    def at(self, tangent: np.ndarray, step: float) -> Any:
        """Return x + step * tangent, as the caller had x."""
        return self.layout.restore(self.flat + step * tangent)


def unit(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a random direction, (size,), of length 1."""
    direction = rng.standard_normal(size)
    return direction / np.linalg.norm(direction)


def zero_block(layout: Layout, gradient: np.ndarray) -> str | None:
    """Say which block is all zero: a check of it would pass on nothing."""
    for key, block in layout.split(gradient).items():
        if block.size and not np.any(block):
            label = f"`gradient[{key!r}]`" if key else "`gradient`"
            return f"{label} is zero: a comparison would pass on nothing"
    return None
