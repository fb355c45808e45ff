"""What of a film differs from its background, found without the scene, and outlines compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.problem.observations.films import DIFFERENT, STILL, FilmData


RING = 0.06  # part of the picture's height: how wide the ring is that shows the background
PLAIN = 0.75  # part of the ring that a plain background explains
MOST = 0.6  # part of a picture that bodies may cover
LEAST = 0.002  # part of a picture that is too small to be a body
ROUNDS = 4
NOISE, MORE = 0.99, 1.5  # quantile of the ring's deviations, and times so much no noise reaches
GREYISH = 0.12  # how far the shares of red, green and blue that a shadow leaves may be apart
AREAS, SOFT_EDGE = 0.15, 0.5  # how far areas of one thing may differ: a part, and an edge [pixels]
BODY = 0.3  # part of what differs from the background that is a body, where the rest is shadow


@dataclass(frozen=True)
class Outline:
    """Size and place of what is white in a mask [pixels]."""

    area: float
    middle: tuple[float, float]  # column and row of the centroid
    extent: tuple[float, float]  # width and height of the box around it
    touches_edge: bool  # whether it reaches the edge of the picture, where it may go on


def outline(mask: np.ndarray) -> Outline | None:
    """Return the outline of a mask (H, W) of truth values; None if it is empty."""
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return None
    height, width = mask.shape
    edges = (rows.min() == 0, columns.min() == 0, rows.max() == height - 1)
    return Outline(
        float(len(rows)),
        (float(columns.mean()), float(rows.mean())),
        (float(np.ptp(columns) + 1), float(np.ptp(rows) + 1)),
        any(edges) or bool(columns.max() == width - 1),
    )


def are_alike(area: float, other: float) -> bool:
    """Return whether two areas [pixels] are those of one thing."""
    smaller, larger = sorted((area, other))
    edge = SOFT_EDGE * 2.0 * float(np.sqrt(np.pi * smaller))
    return larger <= (1.0 + AREAS) * smaller + edge


def drawn_as_filmed(
    drawing: np.ndarray, background: np.ndarray, seen: Outline
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return where the bodies of a drawing are, (H, W), and how far off a film has them, (2,).

    The drawing (H, W, 4) has the background behind it. Its bodies are found as those of a film:
    what surely differs from the background. They are all that is drawn where that is nearer to the
    area in the film, `seen`, as when colours are not fitted yet. The distance (columns, rows) is
    None where the areas are not alike: then the two middles are those of different things.
    """
    masks = (bodies_in(drawing[..., :3], background), drawing[..., 3] > 0.5)
    ratios = [abs(np.log(max(np.count_nonzero(mask), 0.5) / seen.area)) for mask in masks]
    mask = masks[int(np.argmin(ratios))]
    drawn = outline(mask)
    if drawn is None or not are_alike(drawn.area, seen.area):
        return mask, None
    return mask, np.subtract(seen.middle, drawn.middle)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Return how far two masks are the same: their intersection over their union."""
    union = np.count_nonzero(a | b)
    return np.count_nonzero(a & b) / union if union else 1.0


def size_ratio(drawn: Outline, seen: Outline) -> float | None:
    """Return how many times larger `seen` is along an edge; None if that cannot be said.

    The shapes must be alike. Where the larger one reaches the edge of the picture, the ratio is
    nearer to 1 than it should be.
    """
    ratio = float(np.sqrt(seen.area / drawn.area))
    smaller, larger = (drawn, seen) if ratio > 1.0 else (seen, drawn)
    if smaller.touches_edge:
        return None
    sides = [b / a for a, b in zip(drawn.extent, seen.extent, strict=True)]
    alike = larger.touches_edge or all(0.7 < side / ratio < 1.4 for side in sides)
    return ratio if alike else None


def foreground(data: FilmData) -> np.ndarray | None:
    """Return what surely differs from the background, (n, H, W) of truth values.

    None where that cannot be said without the scene: the background is neither declared nor plain.
    """
    if data.masks is not None:
        return data.masks > 0.5
    background = _background(data)
    if background is None:
        return None
    bodies = np.stack([bodies_in(frame, background) for frame in data.frames])
    return bodies if data.ignored is None else bodies & ~data.ignored


def bodies_in(frame: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return what surely differs from a background in one frame, (H, W) of truth values."""
    return _without_specks(_without_shadow(_far(frame, background), frame, background))


def faint_foreground(data: FilmData) -> np.ndarray | None:
    """Return what differs from the background by more than its noise in the first frame, (H, W).

    Parts of a body that are nearly as dark as what is behind them are in this mask. There is none
    where masks are given, or where `foreground` finds no background.
    """
    background = None if data.masks is not None else _background(data)
    if background is None:
        return None
    frame = data.frames[0]
    off = np.abs(frame - background).max(axis=-1)[_ring(frame, max(int(RING * len(frame)), 2))]
    noise = np.quantile(off[off < DIFFERENT], NOISE) if (off < DIFFERENT).any() else DIFFERENT
    mask = _far(frame, background, float(np.clip(MORE * noise, STILL, DIFFERENT)))
    bodies = _without_specks(_without_shadow(mask, frame, background))
    return bodies if data.ignored is None else bodies & ~data.ignored


def _background(data: FilmData) -> np.ndarray | None:
    return plain_background(data.frames[0]) if data.backdrop is None else data.backdrop


def plain_background(frame: np.ndarray) -> np.ndarray | None:
    """Return the better of two backgrounds that explain the ring around a picture, or None."""
    reach = max(int(RING * len(frame)), 2)
    ring = _ring(frame, reach)
    best, least = None, MOST
    for background in (_polynomial(frame, ring), _of_rows(frame, reach)):
        other = _far(frame, background)
        if 1.0 - other[ring].mean() > PLAIN and other.mean() < least:
            best, least = background, float(other.mean())
    return best


def _ring(frame: np.ndarray, reach: int) -> np.ndarray:
    """Return the pixels so near to the edges of a picture, (H, W) of truth values."""
    ring = np.ones(frame.shape[:2], bool)
    ring[reach:-reach, reach:-reach] = False
    return ring


def _polynomial(frame: np.ndarray, ring: np.ndarray) -> np.ndarray:
    """Return quadratic polynomials of place that fit the ring, then all that is like them."""
    height, width = ring.shape
    y, x = np.mgrid[-1.0 : 1.0 : height * 1j, -1.0 : 1.0 : width * 1j]
    basis = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=-1)
    median = np.median(frame[ring], axis=0)
    used = ring & ~_far(frame, np.broadcast_to(median, frame.shape), 2.0 * DIFFERENT)
    background = np.broadcast_to(median, frame.shape)
    for _ in range(ROUNDS):
        if np.count_nonzero(used) < 50:
            break
        coefficients, *_ = np.linalg.lstsq(basis[used], frame[used], rcond=None)
        background = basis @ coefficients
        used = ~_far(frame, background)
    return background


def _of_rows(frame: np.ndarray, reach: int) -> np.ndarray:
    """Return rows that go linearly from the colour of the left edge to that of the right."""
    left = np.median(frame[:, :reach], axis=1)[:, None]
    right = np.median(frame[:, -reach:], axis=1)[:, None]
    share = np.linspace(0.0, 1.0, frame.shape[1])[None, :, None]
    return (1.0 - share) * left + share * right


def _far(frame: np.ndarray, background: np.ndarray, threshold: float = DIFFERENT) -> np.ndarray:
    return np.abs(frame - background).max(axis=-1) > threshold


def _without_shadow(mask: np.ndarray, frame: np.ndarray, background: np.ndarray) -> np.ndarray:
    """Return a mask without what is the background, only darker, if enough of it is left."""
    share = (frame / np.maximum(background, 1e-3))[mask]
    is_shadow = (np.ptp(share, axis=-1) < GREYISH) & (share.mean(axis=-1) < 1.0)
    if np.count_nonzero(~is_shadow) < BODY * len(is_shadow):
        return mask
    out = mask.copy()
    out[mask] = ~is_shadow
    return out


def _without_specks(mask: np.ndarray) -> np.ndarray:
    """Return a mask without connected parts that are too small to be a body."""
    from scipy.ndimage import label

    labelled: Any = label(mask)
    parts, n = labelled
    sizes = np.bincount(parts.ravel(), minlength=n + 1)
    is_body = sizes >= max(LEAST * mask.size, 2.0)
    is_body[0] = False
    return is_body[parts]
