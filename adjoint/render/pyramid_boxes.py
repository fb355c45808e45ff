r"""Adjoint of `render/pyramid_boxes.py`: read the two files side by side."""

import math

import numpy as np

from adjoint.render.losses import reduce_by_vjp
from render.pyramid_boxes import Boxes


def box_residuals_vjp(boxes: Boxes, adj_r: np.ndarray, adj_images: np.ndarray) -> None:
    """Write the cotangent of what `boxes` hold of images (n_frames, H, W, C) into `adj_images`.

    `adj_r` (m,) is that of `boxes.residuals`.
    """
    first, channels = 0, adj_images.shape[-1]
    for frame, spans, matrices in boxes.boxes:
        levels = []
        for level, scale in zip(spans, boxes.scales, strict=True):
            shape = (*(end - start for start, end in level), channels)
            end = first + math.prod(shape)
            levels.append(adj_r[first:end].reshape(shape) * scale)
            first = end
        adj_level = levels.pop()
        for adj_finer, (R_y, R_x) in zip(reversed(levels), reversed(matrices), strict=True):
            adj_level = adj_finer + reduce_by_vjp(adj_level, R_y.T, R_x.T, adj_finer.shape)
        i, j = spans[0]
        adj_images[frame, slice(*i), slice(*j)] = adj_level
