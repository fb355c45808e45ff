"""Pictures of the errors over steps and rates."""

from pathlib import Path

import matplotlib.pyplot as plt

from benchmarks.contact_gradients.measuring import Errors
from benchmarks.contact_gradients.problems import PROBLEMS


COLOURS = ("#7cc0ea", "#1b5e8c", "#0b2a40")
Both = dict[str, list[tuple[float, Errors]]]


def draw(found: Both, path: Path) -> None:
    """Draw the errors of values (above) and gradients (below) of every problem over the step."""
    figure, axes = plt.subplots(
        2, len(found), figsize=(2.9 * len(found), 5.6), squeeze=False, layout="constrained"
    )
    for column, (name, curves) in zip(axes.T, found.items(), strict=True):
        orders = PROBLEMS[name].orders
        column[0].set_title(PROBLEMS[name].title, fontsize=9)
        for axis, kind, order in zip(
            column, ("value", "gradient"), (orders.value, orders.gradient), strict=True
        ):
            for colour, (rate, errors) in zip(COLOURS, curves, strict=False):
                y = getattr(errors, kind)
                axis.loglog(errors.over, y, "o-", ms=3, lw=1.2, color=colour, label=f"{rate:g}/s")
            guide = y[0] * (errors.over / errors.over[0]) ** order
            axis.loglog(errors.over, guide, ":", lw=1, color="k", label=f"order {order}")
            axis.set(xlabel="step [s]", ylim=(axis.get_ylim()[0] / 2, axis.get_ylim()[1]))
            axis.grid(alpha=0.3)
            axis.legend(fontsize=6)
    for axis, kind in zip(axes[:, 0], ("value", "gradient"), strict=True):
        axis.set_ylabel(f"error of the {kind}")
    figure.savefig(path, dpi=110)
    plt.close(figure)
