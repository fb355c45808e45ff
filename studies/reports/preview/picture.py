"""The picture of a preview: film, scene, and the scene's outline over the film.

Tests: `tests/studies/reports/preview/test_showing.py`.
"""

from typing import Any

import numpy as np

from studies.reports.preview.shots import Shot
from studies.runs import media


ROW = 360  # pixels of a row of the picture
GAP = 6
PINK = np.array([1.0, 0.1, 0.6])


def strip(shot: Shot) -> np.ndarray:
    """Return the rows of one film: footage, scene, and footage with the scene's outline."""
    n = len(shot.images)
    rows = []
    for k in dict.fromkeys((0, n // 2, n - 1)):
        drawn = _enlarged(shot.images[k])
        panels = {"scene": drawn[..., :3]}
        if shot.data is not None:
            footage = _enlarged(shot.data.frames[shot.indices[k]])
            over = _outlined(footage, drawn[..., 3])
            panels = {"film": footage, **panels, "outline of the scene over the film": over}
        label = f"{shot.key}, {shot.times[k]:.3g} s"
        labelled = [_labelled(panel, f"{title}: {label}") for title, panel in panels.items()]
        rows.append(stacked(labelled, axis=1))
    return stacked(rows, axis=0)


def _enlarged(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W, C) as high as a row, linear between pixels."""
    from PIL import Image

    height, width = image.shape[:2]
    size = (max(round(width * ROW / height), 1), ROW)
    channels = [
        np.asarray(Image.fromarray(c.astype(np.float32)).resize(size, Image.Resampling.BILINEAR))
        for c in np.moveaxis(image, -1, 0)
    ]
    return np.stack(channels, axis=-1).astype(np.float64)


def _outlined(footage: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return a picture with a line where alpha is one half."""
    from scipy.ndimage import binary_dilation, binary_erosion

    inside = alpha > 0.5
    line = np.logical_xor(binary_dilation(inside), binary_erosion(inside))
    return np.where(line[..., None], PINK, footage)


def _labelled(panel: np.ndarray, text: str) -> np.ndarray:
    """Return a panel with a line of text in its corner."""
    from PIL import Image, ImageDraw

    picture: Any = Image.fromarray(media.as_uint8(panel))
    draw = ImageDraw.Draw(picture)
    box = draw.textbbox((6, 4), text)
    draw.rectangle((box[0] - 3, box[1] - 2, box[2] + 3, box[3] + 2), fill=(255, 255, 255))
    draw.text((6, 4), text, fill=(0, 0, 0))
    return media.as_float(np.asarray(picture))


def stacked(images: list[np.ndarray], axis: int) -> np.ndarray:
    """Return images below (axis 0) or beside each other, white between and after them."""
    other = 1 - axis
    longest = max(image.shape[other] for image in images)
    padded = []
    for k, image in enumerate(images):
        pad = [(0, 0), (0, 0), (0, 0)]
        pad[other] = (0, longest - image.shape[other])
        pad[axis] = (0, GAP if k < len(images) - 1 else 0)
        padded.append(np.pad(image, pad, constant_values=1.0))
    return np.concatenate(padded, axis=axis)
