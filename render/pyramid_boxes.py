r"""Residuals of the parts of frames that bodies reach: the rest of a frame has no slope.

The part is a box of pixels in each frame. Sample e of the next level of a pyramid sees the samples
2 e - 2 to 2 e + 2, so every level has a box of its own, and all of it is computed from that box of
the level before, with the matrices of `render/losses.py` cut to it.

Adjoint: `adjoint/render/pyramid_boxes.py`. Tests: `tests/render/test_pyramid_boxes.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse

from render.losses import (
    ImageLoss,
    difference,
    level_shapes,
    reduce_by,
    reduce_matrix,
    square_weights,
)


Span = tuple[int, int]  # first and end of consecutive samples
Level = tuple[Span, Span]  # of a box: rows and columns


class Box(NamedTuple):
    """Where a frame is not 0, and there in every level of its pyramid."""

    frame: int
    levels: Sequence[Level]  # of every second one transposed, as the levels are
    # what makes every level but the first of that before: R_y and R_x, cut
    matrices: Sequence[tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of pixels, and the residuals that these can change."""

    boxes: Sequence[Box]  # at most one a frame
    shapes: Sequence[tuple[int, ...]]  # (H, W, C) of every level of a frame
    scales: Sequence[float]  # of every level
    rows: np.ndarray  # numbers of these residuals, ascending, (m,)

    def residuals(self, images: np.ndarray) -> np.ndarray:
        """Return these residuals, (m,), of images (n_frames, H, W, C) that are 0 elsewhere."""
        out, first = np.empty(len(self.rows), images.dtype), 0
        for frame, ((i, j), *_), matrices in self.boxes:
            level = images[frame, slice(*i), slice(*j)]
            for k, scale in enumerate(self.scales):
                level = reduce_by(level, *matrices[k - 1]) if k else level
                end = first + level.size
                np.multiply(level, scale, out=out[first:end].reshape(level.shape))
                first = end
        return out

    def differences(self, images: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return these residuals, (m,), of images - targets, both (n_frames, H, W, C).

        They depend on pixels beside the box too. They have the bits of residuals of whole frames.
        """
        dtype = np.result_type(images, targets)
        out, first = np.empty(len(self.rows), dtype), 0
        for box in self.boxes:
            i, j = pixels = _seen_by(box.levels[-1], self.shapes)
            around, matrices = _levels(pixels, self.shapes, dtype.char)
            seen = box.frame, slice(*i), slice(*j)
            level = difference(images[seen], targets[seen])
            for k, (scale, inner, outer) in enumerate(
                zip(self.scales, box.levels, around, strict=True)
            ):
                level = reduce_by(level, *matrices[k - 1]) if k else level
                rows, columns = (
                    slice(start - begin, end - begin)
                    for (start, end), (begin, _) in zip(inner, outer, strict=True)
                )
                residuals = level[rows, columns]
                end = first + residuals.size
                np.multiply(residuals, scale, out=out[first:end].reshape(residuals.shape))
                first = end
        return out


def boxes_around(mask: np.ndarray, loss: ImageLoss, channels: int, dtype: np.dtype) -> Boxes:
    """Return the boxes around the pixels of a mask (n_frames, H, W).

    `loss`, `channels` and `dtype` are those of the images: Mse or PyramidMse, C, and their type.
    """
    weights, (n_frames, *size) = square_weights(loss), mask.shape
    shapes = level_shapes((*size, channels), len(weights))
    sizes = [math.prod(shape) for shape in shapes]
    by_row, by_column = np.any(mask, axis=2), np.any(mask, axis=1)
    boxes, rows, starts = [], [], np.cumsum([0, *sizes])
    for frame in np.flatnonzero(np.any(by_row, axis=1)).tolist():
        level = _span(by_row[frame]), _span(by_column[frame])
        box = Box(frame, *_levels(level, shapes, np.dtype(dtype).char))
        for spans, start, shape in zip(box.levels, starts, shapes, strict=False):
            rows.append(frame * starts[-1] + start + _numbers(spans, shape))
        boxes.append(box)
    pairs = zip(sizes, weights, strict=True)
    scales = [math.sqrt(weight / (count * n_frames)) for count, weight in pairs]
    return Boxes(boxes, shapes, scales, np.concatenate([np.empty(0, np.intp), *rows]))


def _span(mask: np.ndarray) -> Span:
    places = np.flatnonzero(mask)
    return int(places[0]), int(places[-1]) + 1


def _seen_by(level: Level, shapes: Sequence[tuple[int, ...]]) -> Level:
    """Return the pixels that a box in the last level sees."""
    for height, width, _ in reversed(shapes[:-1]):
        columns, rows = ((max(2 * first - 2, 0), 2 * end + 1) for first, end in level)
        level = (rows[0], min(rows[1], height)), (columns[0], min(columns[1], width))
    return level


def _numbers(level: Level, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers of the samples of a box in a level of this shape (H, W, C), flat."""
    (top, bottom), (left, right) = level
    _, width, channels = shape
    across = np.arange(left * channels, right * channels)
    return np.add.outer(np.arange(top, bottom) * (width * channels), across).ravel()


def _levels(
    level: Level, shapes: Sequence[tuple[int, ...]], dtype: str
) -> tuple[list[Level], list[tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]]]:
    """Return a box in all levels of these shapes, and the matrices that lead to the next ones."""
    levels, matrices = [level], []
    for height, width, _ in shapes[:-1]:
        (R_y, rows), (R_x, columns) = (
            _cut(n, dtype, *span) for n, span in zip((height, width), levels[-1], strict=True)
        )
        levels.append((columns, rows))
        matrices.append((R_y, R_x))
    return levels, matrices


@lru_cache(maxsize=1024)
def _cut(n: int, dtype: str, first: int, end: int) -> tuple[scipy.sparse.csr_array, Span]:
    """Return what of `reduce_matrix` meets n samples that are 0 outside a span, and its rows."""
    span = max((first - 1) // 2, 0), min((end + 1) // 2 + 1, -(-n // 2))
    return reduce_matrix(n, dtype)[slice(*span), first:end], span
