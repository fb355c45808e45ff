import numpy as np
import pytest

from studies.problem.observations.films import FilmData
from studies.problem.observations.outlines import (
    are_alike,
    drawn_as_filmed,
    foreground,
    outline,
    overlap,
    plain_background,
    size_ratio,
)


H, W = 48, 64
RED = (0.8, 0.2, 0.1)


def box(top, left, height, width):
    mask = np.zeros((H, W), bool)
    mask[top : top + height, left : left + width] = True
    return mask


def film(frames, masks=None):
    frames = np.asarray(frames)
    return FilmData(frames, masks, np.arange(len(frames)) / 10, 10.0, 1, (H, W), None)


def gradient():
    rows, columns = np.mgrid[0 : 1 : H * 1j, 0 : 1 : W * 1j]
    return 0.4 + 0.2 * np.stack([rows, columns, rows * columns], axis=-1)


def horizon():
    wall = np.full((H, W, 3), 0.85)
    wall[20:] = 0.55
    return wall


def painted(background, mask, color=RED):
    return np.where(mask[..., None], color, background)


def test_an_outline():
    shape = outline(box(10, 20, 6, 8))
    assert shape is not None
    assert (shape.area, shape.middle, shape.extent) == (48, (23.5, 12.5), (8, 6))
    assert not shape.touches_edge
    touching = outline(box(10, 56, 6, 8))
    assert touching is not None
    assert touching.touches_edge
    assert outline(np.zeros((H, W), bool)) is None


def test_areas_are_alike_within_a_part_and_an_edge():
    assert are_alike(1000.0, 1150.0)
    assert not are_alike(1300.0, 1000.0)
    assert are_alike(71.0, 82.0)  # a small disc with a softer edge


def drawing(parts, alpha):
    """Return a drawing before a wall, of masks in their colours."""
    image = np.full((H, W, 3), 0.7)
    for mask, color in parts:
        image = painted(image, mask, color)
    return np.dstack([image, alpha.astype(float)])


def test_a_drawing_is_found_as_a_film_is_which_hides_what_is_like_the_wall():
    wall, rod, bob = np.full((H, W, 3), 0.7), box(10, 10, 2, 30), box(8, 40, 8, 8)
    image = drawing([(rod, (0.65, 0.65, 0.65)), (bob, RED)], rod | bob)
    shape = outline(box(9, 42, 8, 8))
    assert shape is not None
    mask, off = drawn_as_filmed(image, wall, shape)
    assert (mask == bob).all()
    assert off is not None
    assert off.tolist() == [2.0, 1.0]
    pale = drawing([(bob, (0.75, 0.7, 0.7))], bob)  # its colour is still that of the wall
    mask, off = drawn_as_filmed(pale, wall, shape)
    assert (mask == bob).all()
    assert off is not None
    assert off.tolist() == [2.0, 1.0]


def test_the_middles_of_different_areas_are_not_compared():
    wall, body = np.full((H, W, 3), 0.7), box(8, 20, 12, 12)
    half = outline(box(8, 20, 12, 6))
    assert half is not None
    mask, off = drawn_as_filmed(drawing([(body, RED)], body), wall, half)
    assert (mask == body).all()
    assert off is None


def test_overlap():
    a, b = box(0, 0, 4, 4), box(0, 2, 4, 4)
    assert overlap(a, a) == 1.0
    assert overlap(a, b) == pytest.approx(1 / 3)
    assert overlap(a & ~a, b & ~b) == 1.0


def ratio(drawing, mask):
    a, b = outline(drawing), outline(mask)
    assert a is not None
    assert b is not None
    return size_ratio(a, b)


def test_the_ratio_of_sizes():
    assert ratio(box(10, 10, 6, 8), box(12, 14, 12, 16)) == pytest.approx(2.0)
    assert ratio(box(10, 10, 20, 4), box(10, 10, 4, 20)) is None  # another shape
    assert ratio(box(0, 10, 20, 20), box(10, 10, 10, 10)) == pytest.approx(0.5)
    assert ratio(box(10, 10, 20, 20), box(0, 10, 10, 10)) is None  # who knows how it goes on


@pytest.mark.parametrize("background", [gradient(), horizon()], ids=["gradient", "horizon"])
def test_a_body_before_a_plain_background(background):
    bodies = [box(16, 10 + 4 * k, 12, 14) for k in range(3)]
    noise = 0.01 * np.random.default_rng(0).standard_normal((3, H, W, 3))
    frames = np.stack([painted(background, body) for body in bodies]) + noise
    masks = foreground(film(frames))
    assert masks is not None
    for mask, body in zip(masks, bodies, strict=True):
        assert overlap(mask, body) > 0.98
    plate = plain_background(frames[0])
    assert plate is not None
    assert np.abs(plate - background)[bodies[0]].max() < 0.05


def test_a_shadow_is_no_body():
    body, shadow = box(10, 20, 12, 14), box(34, 22, 6, 20)
    frame = painted(np.where(shadow[..., None], 0.5 * gradient(), gradient()), body)
    masks = foreground(film(frame[None]))
    assert masks is not None
    assert overlap(masks[0], body) > 0.98


def test_a_grey_body_is_no_shadow():
    body = box(10, 20, 12, 14)
    masks = foreground(film(painted(np.full((H, W, 3), 0.8), body, (0.4, 0.4, 0.4))[None]))
    assert masks is not None
    assert overlap(masks[0], body) == 1.0


def test_a_textured_background_says_nothing():
    assert foreground(film(np.random.default_rng(0).uniform(size=(H, W, 3))[None])) is None


def test_masks_are_taken_as_they_are():
    body = box(10, 20, 12, 14)
    masks = foreground(film(np.zeros((1, H, W, 3)), body[None].astype(float)))
    np.testing.assert_array_equal(masks, body[None])
