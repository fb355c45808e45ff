"""When a fit should not be believed as it stands."""

from typing import Any


EXPLAINS = 2.0  # a loss that fell by less explains little
ROUNDING = 1e-12  # of the loss at the start: as far as a search can go


def doubts(result: dict[str, Any]) -> list[str]:
    """Return sentences that warn of a result: not converged, no better, or not determined.

    Parameters
    ----------
    result : dict
        What `studies.outcome.result_json` returned.
    """
    # A report may be of a run by an earlier version, without the loss at the start.
    at_start, at_end = result.get("loss_at_start"), result["loss"]
    lines = []
    if result["status"] != "CONVERGED" and not (at_start and at_end <= ROUNDING * at_start):
        lines.append(
            "The search did not converge: the values are where it stopped, and the intervals may "
            "miss the optimum."
        )
    if at_start is not None and at_end > at_start / EXPLAINS:
        lines.append(
            f"The loss fell only from {at_start:.3g} to {at_end:.3g}: the fit explains the images "
            "hardly better than its start did. Unless the start was right already, look at the "
            "videos side by side: mesh, scale, camera, pinned nodes, or what is held fixed do not "
            "fit."
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
