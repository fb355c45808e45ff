r"""A Jacobian of which only the rows are stored that may have a slope.

Most pixels of a film show what is behind the bodies, whatever theta is: their rows of J are 0. With
the other rows K and what belongs to these of a vector y, all sums over residuals are sums over K:

    J^T J = K^T K,    J^T y = K^T y_K,    min |J x - y| where |K x - y_K| is least

Broyden's rule, which brings J up to date after a step s that changed the residuals by d,

    J <- J + (d - J s) s^T / s^T s,

adds rows where d is not 0: pixels that bodies reach now.

Source: Broyden, A class of methods for solving nonlinear simultaneous equations, Mathematics of
Computation 19 (1965).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np


@dataclass(frozen=True, eq=False)
class Jacobian:
    """J (n, p): its stored rows, all others are 0. `np.asarray` returns all of it."""

    rows: np.ndarray  # their numbers, ascending, (m,)
    values: np.ndarray  # (m, p)
    count: int  # n

    @classmethod
    def of(cls, J: Self | np.ndarray) -> Self:
        """Return J of an array (n, p), without its rows of zeros."""
        if isinstance(J, cls):
            return J
        rows = np.flatnonzero(np.any(J, axis=1))
        return cls(rows, np.asarray(J)[rows], len(J))

    @classmethod
    def beside(cls, blocks: Sequence[Self]) -> Self:
        """Return the columns of several, all of n rows, side by side."""
        is_stored = np.zeros(blocks[0].count, bool)
        for block in blocks:
            is_stored[block.rows] = True
        rows, ends = np.flatnonzero(is_stored), np.cumsum([block.shape[1] for block in blocks])
        values = np.zeros((len(rows), ends[-1]), order="F")
        for block, end in zip(blocks, ends, strict=True):
            columns = slice(end - block.shape[1], end)
            is_all = len(block.rows) == len(rows)
            values[... if is_all else np.searchsorted(rows, block.rows), columns] = block.values
        return cls(rows, values, blocks[0].count)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, n and p."""
        return self.count, self.values.shape[1]

    def __len__(self) -> int:
        return self.count

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        del copy
        return (self @ np.eye(self.shape[1])).astype(dtype or np.float64, copy=False)

    @property
    def T(self) -> "_Transposed":
        """J^T, which can be multiplied."""
        return _Transposed(self)

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        """Return J x, (n,) or (n, k)."""
        out = np.zeros((self.count, *x.shape[1:]))
        out[self.rows] = self.values @ x
        return out

    def __getitem__(self, key: slice | np.ndarray) -> Self:
        """Return a slice of rows, or the rows with these indices (k,), each once, in order."""
        if isinstance(key, slice):
            start, stop, step = key.indices(self.count)
            if step != 1:
                raise ValueError(f"Rows of a Jacobian must follow each other, got {key}.")
            first, end = np.searchsorted(self.rows, [start, stop])
            return type(self)(self.rows[first:end] - start, self.values[first:end], stop - start)
        place = np.full(self.count, -1)
        place[key] = np.arange(len(key))
        order = np.argsort(place[self.rows], kind="stable")
        order = order[np.count_nonzero(place[self.rows] < 0) :]
        return type(self)(place[self.rows[order]], self.values[order], len(key))

    def solve(self, y: np.ndarray, moves: np.ndarray | None = None) -> np.ndarray:
        """Return x, (p,), that makes |J x - y| least, the shortest; 0 but where `moves`, (p,)."""
        x, columns = np.zeros(self.shape[1]), slice(None) if moves is None else moves
        x[columns] = np.linalg.lstsq(self.values[:, columns], y[self.rows], rcond=None)[0]
        return x

    def updated(self, before: np.ndarray, after: np.ndarray, step: np.ndarray) -> Self:
        """Return J by Broyden's rule after a step (p,) between residuals (n,)."""
        is_stored = before != after
        is_stored[self.rows] = True
        rows = np.flatnonzero(is_stored)
        values = np.zeros((len(rows), len(step)), order="F")
        values[np.searchsorted(rows, self.rows)] = self.values
        missed = after[rows] - before[rows] - values @ step
        for k, share in enumerate(step / float(step @ step)):
            values[:, k] += share * missed  # no second matrix: with many films it is large
        return type(self)(rows, values, self.count)

    def squares_beside(self, r: np.ndarray) -> float:
        """Return the sum of squares of residuals (n,) in the rows that are not stored."""
        beside = np.delete(r, self.rows)
        return float(beside @ beside)


class _Transposed(NamedTuple):
    """J^T."""

    J: Jacobian

    def __matmul__(self, other: Any) -> np.ndarray:
        """Return J^T times a Jacobian of n rows, or an array (n,) or (n, k)."""
        J = self.J
        if not isinstance(other, Jacobian):
            return J.values.T @ other[J.rows]
        if other is J:
            return J.values.T @ J.values
        _, left, right = np.intersect1d(J.rows, other.rows, assume_unique=True, return_indices=True)
        return J.values[left].T @ other.values[right]
