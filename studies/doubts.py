"""When a fit should not be believed as it stands."""

from typing import Any

import numpy as np

from studies.optimizers.problem import Status


EXPLAINS = 2.0  # a loss that fell by less explains little
ROUNDING = 1e-12  # of the loss at the start: as far as a search can go
CONSTANT = 0.5  # part of the squares left, from which on a constant offset is what is wrong
SEEN = 0.01  # of white: a smaller offset is no matter
TOO_LONG = 1.2  # times the estimated stable step, which is on the safe side
BODY, BEHIND = 0.5, 0.05  # alpha above which a pixel shows the body, and below which none


def offset(images: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """Return by how much fitted images are brighter than their targets, on the whole.

    A motion that is wrong leaves differences of either sign where outlines are; a light, a colour
    or a background that is wrong leaves one colour on the body, or behind it.

    Parameters
    ----------
    images : numpy.ndarray
        RGBA, (n_images, height, width, 4).
    targets : numpy.ndarray
        RGB or RGBA, (n_images, height, width, 3 or 4).

    Returns
    -------
    dict
        "body" and "background": the mean difference of RGB there, three numbers; "share": the
        part of the sum of squares that these two constants explain.
    """
    left = np.asarray(images[..., :3] - targets[..., :3], np.float64)
    alpha, total = images[..., 3], float(np.sum(left**2))
    found: dict[str, Any] = {}
    share = 0.0
    for name, region in (("body", alpha > BODY), ("background", alpha < BEHIND)):
        count = int(region.sum())
        mean = left[region].mean(axis=0) if count else np.zeros(3)
        found[name] = mean.tolist()
        share += count * float(mean @ mean) / total if total > 0.0 else 0.0
    return {**found, "share": share}


def looks_off(result: dict[str, Any]) -> bool:
    """Whether most of what a fit leaves is one colour on the body or behind it."""
    found = result.get("offset")  # a report may be of a run by an earlier version
    if not found or found["share"] < CONSTANT:
        return False
    return max(abs(part) for name in ("body", "background") for part in found[name]) >= SEEN


def ending(status: Status, off: dict[str, Any]) -> str:
    """Return how a search ended; where the look is off, more of the search is no advice."""
    what, _, _ = status.value.partition(". ")
    return f"{what.rstrip('.')}." if looks_off({"offset": off}) else status.value


def doubts(result: dict[str, Any]) -> list[str]:
    """Return sentences that warn of a result: not converged, no better, unstable or undetermined.

    Parameters
    ----------
    result : dict
        What `studies.outcome.result_json` returned.
    """
    # A report may be of a run by an earlier version, without the loss at the start.
    at_start, at_end = result.get("loss_at_start"), result["loss"]
    lines = []
    if result["status"] != "CONVERGED" and not (at_start and at_end <= ROUNDING * at_start):
        known = any(row["interval"] for row in result.get("parameters", ()))
        lines.append(
            "The search did not converge: the values are where it stopped"
            + (", and the intervals may miss the optimum." if known else ".")
        )
    if at_start is not None and at_end > at_start / EXPLAINS:
        lines.append(
            f"The loss fell only from {at_start:.3g} to {at_end:.3g}: the fit explains the images "
            "hardly better than its start did. Unless the start was right already, look at the "
            "videos side by side: mesh, scale, camera, pinned nodes, or what is held fixed do not "
            "fit."
        )
    if looks_off(result):
        found = result["offset"]
        body, behind = (
            "({:+.2f}, {:+.2f}, {:+.2f})".format(*found[name]) for name in ("body", "background")
        )
        lines.append(
            f"{min(found['share'], 1.0):.0%} of what is left is a constant: the fit differs in RGB "
            f"by {body} on the body and by {behind} behind it, where white is 1. That is no "
            "motion but the look: light, colours or background do not fit the images, and the "
            "values were bent to make up for it. Set them (in `identify`: `appearance.fit`, or "
            "the rest of `appearance`, and `background`) before you search longer."
        )
    steps = result.get("steps")
    if steps and steps["dt"] > TOO_LONG * steps["stable_dt"]:
        lines.append(
            f"The search ended where `time.dt` is too long: a step is {steps['dt']:.3g} s, and for "
            f"these values the estimated stable one is {steps['stable_dt']:.3g} s. Motion, loss "
            "and values there may be no more than error of the steps. Set `time.dt` below that and "
            "search again."
        )
    # Singular values beside a reason not to give intervals: the smallest is at rounding.
    spread = result.get("uncertainty", {})
    if spread.get("reason") and spread.get("singular_values") and spread["worst_direction"]:
        along = ", ".join(f"{part:.2f} {name}" for name, part in spread["worst_direction"].items())
        lines.append(
            f"The images do not determine the values: along {along} nothing in them changes. In "
            "that direction they are where the search happened to end."
        )
    return lines
