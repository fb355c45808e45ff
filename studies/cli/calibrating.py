"""What `adjsim camera` does: a camera from pictures of a chessboard, by OpenCV."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from adjsim.extras import how_to_install
from studies.runs import media
from studies.runs.errors import StudyError


LARGEST = 1.0  # edge of a square [m]: above, it is likely in millimetres
SQUARES = (1e-6, 1e3)  # edges of squares that make a board [m]
SMALLEST = 32  # side of a picture in which corners are looked for [pixels]
FEW = 3  # pictures, below which principal point and distortion are not asked for
GOOD = 1.0  # pixels that corners may be off, on average


def camera_table(
    pictures: Sequence[Path], corners: str, square: float, name: str
) -> tuple[str, list[str]]:
    """Return the table of a camera for a scene file, and what is doubtful about it.

    The world is that of the board in the first picture: its origin at the first inner corner, x
    along the rows of `corners` ("9x6", columns x rows), y up them, z out of the board; squares have
    the edge `square` [m].
    """
    try:
        import cv2
    except ImportError as error:
        raise StudyError(
            f"`adjsim camera` needs the package opencv-python-headless, which is missing: "
            f"{how_to_install('camera')}."
        ) from error
    columns, rows = _board(corners)
    if not SQUARES[0] <= square <= SQUARES[1]:
        raise StudyError(
            f"`--square` must be a length from {SQUARES[0]:g} to {SQUARES[1]:g} m, got {square:g}."
        )
    if not (name.isascii() and name.isidentifier()):
        raise StudyError(
            f"`--name` must be letters from A to Z, digits and _, not first a digit, got {name!r}."
        )
    detections = [_corners(cv2, path, (columns, rows)) for path in pictures]
    sizes = {size for _, size in detections}
    if len(sizes) > 1:
        raise StudyError(
            "`PICTURE`: all pictures must have one size, got "
            f"{', '.join(f'{w} x {h}' for w, h in sorted(sizes))} (width x height)."
        )
    board = np.zeros((columns * rows, 3), np.float32)
    board[:, 0] = square * np.tile(np.arange(columns), rows)
    board[:, 1] = -square * np.repeat(np.arange(rows), columns)
    ((width, height),) = sizes
    flags = cv2.CALIB_ZERO_TANGENT_DIST | cv2.CALIB_FIX_K3 | cv2.CALIB_FIX_ASPECT_RATIO
    guess = np.array([[width, 0, (width - 1) / 2], [0, width, (height - 1) / 2], [0, 0, 1]], float)
    if len(detections) < FEW:
        flags |= cv2.CALIB_FIX_PRINCIPAL_POINT | cv2.CALIB_FIX_K1 | cv2.CALIB_FIX_K2
    points = [pixels for pixels, _ in detections]
    try:
        off, K, lens, turns, shifts = cv2.calibrateCamera(
            [board] * len(detections), points, (width, height), guess, np.zeros(5),
            flags=flags | cv2.CALIB_USE_INTRINSIC_GUESS,
        )  # fmt: skip
    except cv2.error as error:
        raise StudyError(
            "`PICTURE`: no camera fits the corners that were found. Take the pictures again, the "
            "board flat and tilted in all directions."
        ) from error
    R, t = cv2.Rodrigues(turns[0])[0], shifts[0].ravel()
    u, v = points[0][0]
    lines = [
        f"# From {len(detections)} picture(s); corners are off by {off:.2f} pixels on average. The",
        f"# origin is the corner at column {u:.0f} and row {v:.0f} of {pictures[0].name},",
        f"# x along its row of {columns} corners, y up, z out of the board.",
        f"[cameras.{name}]",
        f"K = {_text(K)}",
        f"R = {_text(R)}",
        f"t = {_text(t)}",
        f"distortion = {_text(lens.ravel()[:2])}",
    ]
    doubts = []
    if square > LARGEST:
        doubts.append(
            f"`--square` is {square:g} m. If it is in millimetres, give {1e-3 * square:g}."
        )
    if len(detections) < FEW:
        doubts.append(
            f"With less than {FEW} pictures the principal point is taken to be in the middle and "
            "the lens to have no distortion, and a board seen straight on says little of the "
            "focal length. Take several, tilted in all directions; the first is that of the scene."
        )
    if off > GOOD:
        doubts.append(
            f"Corners are off by {off:.2g} pixels on average. Is the board flat and `--corners` "
            "right, and were all pictures taken with one zoom and focus?"
        )
    return "\n".join(lines), doubts


def _board(corners: str) -> tuple[int, int]:
    """Return how many inner corners a board has, columns and rows."""
    parts = corners.lower().split("x")
    counts = [int(text) for text in parts if re.fullmatch(r"\s*[0-9]{1,3}\s*", text)]
    if len(parts) != 2 or len(counts) != 2 or min(counts) < 3:
        raise StudyError(
            f"`--corners` must be the inner corners as COLUMNSxROWS, from 3 to 999 each, such as "
            f"9x6, got {corners[:40]!r}."
        )
    return counts[0], counts[1]


def _corners(cv2: Any, path: Path, board: tuple[int, int]) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the corners in a picture, (n, 2) [pixels], and its width and height."""
    shown = media.as_uint8(media.read_image(path, name="PICTURE"))[..., :3]
    grey = np.ascontiguousarray(np.rint(shown @ [0.299, 0.587, 0.114]).astype(np.uint8))
    if min(grey.shape) < SMALLEST:
        raise StudyError(
            f"`PICTURE`: {path} must have {SMALLEST} pixels or more along each side, got "
            f"{grey.shape[1]} x {grey.shape[0]} (width x height)."
        )
    is_found, corners = cv2.findChessboardCorners(grey, board)
    if not is_found:
        raise StudyError(
            f"`PICTURE`: {path} shows no chessboard with {board[0]} x {board[1]} inner corners. "
            "Count the corners between squares, not the squares; the whole board and a white "
            "border must be in the picture, sharp and evenly lit."
        )
    corners = np.reshape(corners, (-1, 2))  # as OpenCV 4 does not give them
    near = max(2, round(np.linalg.norm(corners[1] - corners[0]) / 4))
    rule = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 50, 1e-4)
    height, width = grey.shape
    return cv2.cornerSubPix(grey, corners, (near, near), (-1, -1), rule), (width, height)


def _text(numbers: np.ndarray) -> str:
    """Return numbers as TOML has them."""
    return str(np.asarray(numbers, float).round(9).tolist())
