"""How much of the motion in a film a fit leaves unexplained, also in frames held back from it.

What is wrong with the appearance is wrong in the first frame already. What is wrong with the motion
grows from there. So the residual of the first frame is subtracted from those of later frames, and
the rest is compared with the motion that is there to explain:

    unexplained = max(0, mean_k (e_k - look_k)) / mean_k m_k

with e_k the sum of squares of prediction - target in frame k, look_k that of the first frame of
what is observed then, by a fit of the looks to that frame alone if there is one, and m_k that of
target_k - target_0.
A fit whose body stays where it is has about 1. Frames held back are compared with the motion of the
whole film too: a body that swings back to where it began has little motion there. Of films only
pixels count that can tell a right motion from a wrong one: shadows and light that change beside the
bodies do not.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Explained:
    """What a fit leaves unexplained of a film."""

    unexplained: float  # part of the motion in the frames after the first that is left, from 0
    # The same part in the frames held back, by the fit of the others; None without such frames
    predicted_unexplained: float | None
    # Residual of the first frame, as a part of the same motion: what is wrong with the look
    first: float
    # Residual of the last third of the frames over that of the first frame (sums of squares); None
    # where the first frame has none
    growth: float | None
    # Number of frames, and of those held back
    frames: int
    held_back: int

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        return asdict(self)


def explained(
    left: np.ndarray,
    moved: np.ndarray,
    *,
    n_fitted: int | None = None,
    appearance: np.ndarray | None = None,
) -> Explained | None:
    """Return what is left unexplained; None for less than two frames, or if nothing moves.

    All arrays are `(n_frames,)`: `left` is e_k, of the answer or of a fit to the first `n_fitted`
    frames alone, `moved` m_k, and `appearance` look_k with cameras and looks fitted to the first
    frame only, by default e_0. A fit of the whole film may bend a camera to make up for a wrong
    motion, and what that leaves of the first frame is no appearance.
    """
    if len(left) < 2 or not moved[1:].any():
        return None
    motion, first = float(moved[1:].mean()), float(left[0])
    beyond = left - (first if appearance is None else appearance)
    last = float(left[-max(1, len(left) // 3) :].mean())
    return Explained(
        max(0.0, float(beyond[1:].mean())) / motion,
        None if n_fitted is None else max(0.0, float(beyond[n_fitted:].mean())) / motion,
        first / motion,
        last / first if first > 0.0 else None,
        len(left),
        0 if n_fitted is None else len(left) - n_fitted,
    )
