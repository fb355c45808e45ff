"""Marks of joints over a picture: a disc at each anchor, and a line along an axis."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from studies.problem.pixels import posed, to_pixels
from studies.scene.joints import JointMark


RADIUS = 0.014  # of a disc, over the height of the picture
SHARP = 3  # times as large as the picture are marks drawn
INK, PAPER = (25, 30, 45), (255, 255, 255)
LEAST = 4.0  # radii: a shorter line, of an axis along the view, is hidden by its disc
ALONG = 0.5  # of the way to the point along an axis: how far a line goes to either side

SeenAt = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def seen_by(camera: Any, size: tuple[int, int]) -> SeenAt:
    """Return what gives columns and rows (n, 2) [pixels] and depths (n,) [m] of points."""
    eye, axes = camera.pose()

    def seen_at(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(divide="ignore", invalid="ignore"):  # beside the eye
            pixels = to_pixels(posed(camera, eye), points - eye, size)
        return pixels, (points - eye) @ axes[2]

    return seen_at


def marked(
    image: np.ndarray,
    joints: Mapping[str, JointMark],
    places: Mapping[str, np.ndarray],
    seen_at: SeenAt,
) -> np.ndarray:
    """Return a picture (H, W, 3) of 8 bits with the joints of bodies that are drawn in it.

    `places` are their vertices by name, (n_vertices, 3) [m].
    """
    joints_here = [joint for joint in joints.values() if joint.body in places]
    if not joints_here:
        return image
    height, width = image.shape[:2]
    large = Image.fromarray(image).resize((SHARP * width, SHARP * height), Image.Resampling.BICUBIC)
    draw, radius = ImageDraw.Draw(large), SHARP * max(RADIUS * height, 2.0)

    def at(points: np.ndarray) -> np.ndarray:
        pixels, depths = seen_at(points)
        return SHARP * (pixels[depths > 0.0] + 0.5)

    for joint in joints_here:
        x = places[joint.body]
        anchors = joint.anchors @ x
        if joint.axis is not None:
            along = ALONG * (joint.axis @ x - anchors[0])
            ends = at(np.stack([anchors[0] - along, anchors[0] + along]))
            if len(ends) == 2 and np.linalg.norm(ends[1] - ends[0]) > LEAST * radius:
                draw.line(ends.ravel().tolist(), PAPER, round(radius))
                draw.line(ends.ravel().tolist(), INK, round(0.5 * radius))
        for column, row in at(anchors):
            for r, color in ((1.0, INK), (0.6, PAPER)):
                reach = r * radius
                box = (column - reach, row - reach, column + reach, row + reach)
                draw.ellipse(box, fill=color)
    return np.asarray(large.resize((width, height), Image.Resampling.BOX))
