"""The camera of a new scene file.

It looks along the shorter level axis of what is filmed, which it sees in the middle, or where the
first frame of a film, or the first rows of a table of pixels, have it.
"""

import math
from dataclasses import dataclass

import numpy as np

from studies.cli.new_scene.observations import Seen


ROOM = 3.0  # times the body is the picture, where nothing says how large the body is seen
HALF_VIEW = math.radians(20.0)  # of the shorter side of a picture: a phone's
DIGITS = 4  # after the first, of places and distances
NEARLY = 0.99  # part of a depth that counts as less
# By the axis that points up, the sides from which things are seen: z and x, or of robots -y and x.
SIDES = {1: ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)), 2: ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0))}


@dataclass(frozen=True, eq=False)
class View:
    """How a camera sees the plane through the middle of what is filmed."""

    eye: np.ndarray  # (3,) [m]
    target: np.ndarray
    right: np.ndarray  # (3,), of length 1
    up: np.ndarray
    height: float  # of the picture there [m]
    fov_y: float  # [deg]
    is_sized: bool  # whether it has the size of the first frame

    def point(self, seen: Seen) -> np.ndarray:
        """Return the point of the plane that is seen there, (3,) [m]."""
        return self.target + self.height * (seen.right * self.right - seen.down * self.up)


def view_of(
    box: np.ndarray, middle: np.ndarray, axis: int, *,
    seen: Seen, size: tuple[int, int], fov_y: float | None,
) -> View:  # fmt: skip
    """Return the view of a box (2, 3) [m] whose `middle` (3,) is `seen` in a picture.

    `axis` points up; the picture has a `size` (height, width), and a phone's field of view unless
    `fov_y` [deg] is given.
    """
    extent, up, sides = box[1] - box[0], np.eye(3)[axis], np.array(SIDES[axis])
    depths = np.abs(sides @ extent)
    side = int(depths[1] < NEARLY * depths[0])
    right = np.cross(up, sides[side])
    width, height = abs(right @ extent), up @ extent
    whole = ROOM * max(height, width * size[0] / size[1])
    if seen.diagonal is not None:
        whole = math.hypot(width, height) / seen.diagonal
    if fov_y is None:
        fov_y = math.degrees(2.0 * math.atan(math.tan(HALF_VIEW) * size[0] / min(size)))
    distance = max(0.5 * whole / math.tan(math.radians(0.5 * fov_y)), depths[side])
    target = middle - whole * (seen.right * right - seen.down * up)
    places = DIGITS - math.floor(math.log10(distance))
    target, distance = np.round(target, places), round(float(distance), places)
    eye, is_sized = target + distance * sides[side], seen.diagonal is not None
    return View(eye, target, right, up, float(whole), fov_y, is_sized)
