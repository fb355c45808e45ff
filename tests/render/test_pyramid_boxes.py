"""Residuals in the boxes around bodies are those of the frames that are 0 elsewhere."""

import numpy as np
import pytest

from adjoint.render.losses import residuals_jvp, residuals_vjp
from adjoint.render.pyramid_boxes import box_residuals_vjp
from render.losses import Mse, PyramidMse, residuals
from render.pyramid_boxes import boxes_around


SIZE = (37, 50)
RNG = np.random.default_rng(5)


def frames_in(*boxes, dtype=np.float64):
    """Return a mask of boxes (frame, top, bottom, left, right), and random frames on it."""
    mask = np.zeros((4, *SIZE), bool)
    for k, top, bottom, left, right in boxes:
        mask[k, top:bottom, left:right] = True
    images = RNG.normal(size=(*mask.shape, 3)) * mask[..., None]
    return mask, images.astype(dtype)


CASES = {
    "inside": [(0, 9, 14, 20, 29), (2, 10, 11, 30, 31), (3, 4, 20, 3, 40)],
    "corners": [(0, 0, 1, 0, 1), (1, 36, 37, 49, 50), (2, 0, 2, 47, 50), (3, 35, 37, 0, 3)],
    "all of a frame": [(1, 0, 37, 0, 50)],
    "two bodies": [(0, 3, 6, 4, 9), (0, 30, 35, 40, 48)],
    "nothing": [],
}


@pytest.mark.parametrize("boxes", CASES.values(), ids=CASES)
@pytest.mark.parametrize("loss", [Mse(), PyramidMse(4, 4.0), PyramidMse(8)], ids=repr)
def test_boxes_have_every_residual_that_is_not_zero(loss, boxes):
    """To the bit; and no row is named twice."""
    mask, images = frames_in(*boxes)
    every = residuals_jvp(loss, images, images, images)
    around = boxes_around(mask, loss, 3, images.dtype)
    assert (np.diff(around.rows) > 0).all()
    scattered = np.zeros_like(every)
    scattered[around.rows] = around.residuals(images)
    np.testing.assert_array_equal(scattered, every)


@pytest.mark.parametrize("boxes", CASES.values(), ids=CASES)
@pytest.mark.parametrize("loss", [Mse(), PyramidMse(4, 4.0), PyramidMse(8)], ids=repr)
def test_differences_see_what_is_beside_the_boxes(loss, boxes):
    """To the bit, where targets differ from the images everywhere."""
    mask, images = frames_in(*boxes)
    targets = RNG.normal(size=images.shape)
    around = boxes_around(mask, loss, 3, images.dtype)
    every = residuals(loss, images, targets)
    np.testing.assert_array_equal(around.differences(images, targets), every[around.rows])


def test_boxes_hold_little_more_than_what_is_not_zero():
    """A box of 8 by 8 pixels inside a frame is 8, 6, 5 and 4 samples wide in its levels."""
    mask, images = frames_in((1, 8, 16, 16, 24))
    boxes = boxes_around(mask, PyramidMse(4), 3, images.dtype)
    (box,) = boxes.boxes
    assert [(end - first, right - left) for (first, end), (left, right) in box.levels] == [
        (8, 8),
        (6, 6),
        (5, 5),
        (4, 4),
    ]
    assert len(boxes.rows) == 3 * (64 + 36 + 25 + 16)


def test_boxes_keep_single_precision():
    """Of images in it."""
    mask, images = frames_in((0, 3, 9, 4, 9), dtype=np.float32)
    values = boxes_around(mask, PyramidMse(3), 3, images.dtype).residuals(images)
    assert values.dtype == np.float32


@pytest.mark.parametrize("boxes", CASES.values(), ids=CASES)
@pytest.mark.parametrize("loss", [Mse(), PyramidMse(4, 4.0), PyramidMse(8)], ids=repr)
def test_cotangents_in_boxes_are_those_of_whole_frames(loss, boxes):
    """In the boxes, to the bit; elsewhere nothing is written."""
    mask, images = frames_in(*boxes)
    around = boxes_around(mask, loss, 3, images.dtype)
    adj_r = RNG.normal(size=len(residuals_jvp(loss, images, images, images)))
    every = residuals_vjp(loss, images, images, adj_r)
    adj_images = np.full_like(images, np.nan)
    box_residuals_vjp(around, adj_r[around.rows], adj_images)
    is_written = ~np.isnan(adj_images[..., 0])
    assert is_written[mask].all()
    assert is_written.sum() == sum(np.prod(np.ptp(box.levels[0], axis=1)) for box in around.boxes)
    np.testing.assert_array_equal(adj_images[is_written], every[is_written])
