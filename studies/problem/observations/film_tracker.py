"""Where something of a plain colour, or what differs from the background, is in each frame.

Of all pixels like the colour, or unlike the background, those that hang together and weigh most are
tracked. Their place is the mean of their columns and rows, weighted by how sure they are.

By hue, pixels are like the colour in any light, as on the shaded side of a body: they are compared
as bright as it is. On a shaded ball before grey, the middle by hue is right to 0.3 pixels, and by
the colour itself off by two thirds of the radius. Greys have no hue.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import label

from studies.problem.observations.films import STILL
from studies.runs import media


LEAST = 4.0  # pixels that something tracked must cover
MOST_KEPT = 32  # frames of which the background is the median
PINK, BLUE = np.array([1.0, 0.1, 0.6]), np.array([0.1, 0.4, 1.0])
DARKEST, BRIGHTEST = 0.2, 4.0  # part of the light of the colour in which its hue is found


@dataclass(frozen=True, eq=False)
class Spot:
    """Something in one frame."""

    u: float  # column and row of its middle [pixels]
    v: float
    pixels: np.ndarray  # where it is, (H, W) of truth values

    @property
    def is_cut(self) -> bool:
        """Whether it touches the edge of the picture."""
        inner = self.pixels[1:-1, 1:-1]
        return bool(inner.sum() < self.pixels.sum())


@dataclass(frozen=True, eq=False)
class Tracked:
    """What is tracked: pixels like `color`, (3,), or unlike a picture, (H, W, 3)."""

    color: np.ndarray | None
    background: np.ndarray | None
    tolerance: float
    region: tuple[int, ...] | None = None  # first column and row, and last ones
    by_hue: bool = False  # whether brightness does not count

    def find(self, frame: np.ndarray) -> Spot | None:
        """Return where it is in a frame (H, W, 3); None where it is not."""
        weights = self.weights(frame)
        if self.region is not None:
            u0, v0, u1, v1 = self.region
            inside = np.zeros(weights.shape, bool)
            inside[v0 : v1 + 1, u0 : u1 + 1] = True
            weights = np.where(inside, weights, 0.0)
        pieces = np.asarray(label(weights > 0.0, np.ones((3, 3)))[0])  # pyright: ignore[reportGeneralTypeIssues, reportIndexIssue]
        masses = np.bincount(pieces.ravel(), weights.ravel())
        if masses.max() < LEAST:
            return None
        rows, columns = np.nonzero(pieces == masses.argmax())
        share = weights[rows, columns] / masses.max()
        return Spot(float(share @ columns), float(share @ rows), pieces == masses.argmax())

    def weights(self, frame: np.ndarray) -> np.ndarray:
        """Return from 0 to 1 how surely each pixel belongs to it, (H, W)."""
        if self.color is not None:
            if self.by_hue:
                brightness = frame @ self.color / (self.color @ self.color)
                frame = frame / np.clip(brightness, DARKEST, BRIGHTEST)[..., None]
            off = np.abs(frame - self.color).max(axis=-1)
            return np.clip(2.0 - 2.0 * off / self.tolerance, 0.0, 1.0)
        off = np.abs(frame - self.background).max(axis=-1)
        least = min(STILL, 0.5 * self.tolerance)
        return np.clip((off - least) / (self.tolerance - least), 0.0, 1.0)


def has_hue(color: np.ndarray, tolerance: float) -> bool:
    """Whether all greys differ from a colour by more than the tolerance."""
    return 0.5 * float(np.ptp(color)) > tolerance


def usual(frames: Iterable[np.ndarray], say: Callable[[int], None]) -> np.ndarray:
    """Return what most of up to `MOST_KEPT` frames show, evenly chosen, (H, W, 3) in [0, 1]."""
    kept: list[np.ndarray] = []
    every = 1
    for number, frame in enumerate(frames):
        say(number + 1)
        if number % every == 0:
            kept.append(media.as_uint8(frame))
        if len(kept) == MOST_KEPT:
            kept, every = kept[::2], 2 * every
    return np.median(kept, axis=0) / 255.0


def marked(frame: np.ndarray, spot: Spot, like: np.ndarray | None = None) -> np.ndarray:
    """Return a frame with what was found in pink, and a cross through its middle.

    What of it is not like the colour itself, (H, W), is blue.
    """
    tint = PINK if like is None else np.where(like[..., None], PINK, BLUE)
    out = np.where(spot.pixels[..., None], 0.4 * frame + 0.6 * tint, frame)
    out[round(spot.v), :] = out[:, round(spot.u)] = PINK
    return out
