"""Warnings about a fit beside its verdict: a look that is off."""

from typing import Any

import numpy as np


CONSTANT = 0.5  # part of the squares left, from which on a constant offset is what is wrong
VISIBLE = 0.01  # of white: a smaller offset does not matter
BODY, BEHIND = 0.5, 0.05  # alpha above which a pixel shows the body, and below which none


def offset(images: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """Return by how much fitted images are brighter than their targets, on the whole.

    A motion that is wrong leaves differences of either sign where outlines are; a light, a colour
    or a background that is wrong leaves one colour on the body, or behind it. Silhouettes and
    other grey images have no look that could be off. Images are RGBA, (n_images, height, width, 4),
    targets RGB or RGBA. "body" and "background" get the mean difference of RGB there, three
    numbers, "share" the part of the sum of squares that these two constants explain.
    """
    left = np.asarray(images[..., :3] - targets[..., :3], np.float64)
    if all(not np.ptp(pictures[..., :3], axis=-1).any() for pictures in (images, targets)):
        return {"body": [0.0] * 3, "background": [0.0] * 3, "share": 0.0}
    alpha, total = images[..., 3], float(np.sum(left**2))
    out: dict[str, Any] = {}
    share = 0.0
    for name, region in (("body", alpha > BODY), ("background", alpha < BEHIND)):
        count = int(region.sum())
        mean = left[region].mean(axis=0) if count else np.zeros(3)
        out[name] = mean.tolist()
        share += count * float(mean @ mean) / total if total > 0.0 else 0.0
    return {**out, "share": share}


def fit_warnings(result: dict[str, Any]) -> list[str]:
    """Return sentences that warn of the result of a fit beside its verdict.

    One does so where most of what is left is one colour on the body or behind it.
    """
    constant = result["offset"]  # None where images are not compared with films as they are
    if constant is None or constant["share"] < CONSTANT:
        return []
    if max(abs(number) for name in ("body", "background") for number in constant[name]) < VISIBLE:
        return []
    body, behind = (
        "({:+.2f}, {:+.2f}, {:+.2f})".format(*constant[name]) for name in ("body", "background")
    )
    return [
        f"{min(constant['share'], 1.0):.0%} of the residual is a constant: the fit differs in RGB "
        f"by {body} on the body and by {behind} behind it, where white is 1. That is not "
        "motion but the look: light, colours or background do not fit the images, and the "
        "values may be bent to make up for it. Set them (in a scene file: a body's "
        "`look.color`, `lights` and an observation's `background`) before you search longer."
    ]
