"""Pictures of the errors over steps and rates."""

from pathlib import Path

import matplotlib.pyplot as plt

from benchmarks.contact_gradients.measuring import Errors
from benchmarks.contact_gradients.problems import PROBLEMS


COLOURS = ("#7cc0ea", "#1b5e8c", "#0b2a40")
Both = dict[str, list[tuple[float, Errors]]]


ACROSS = 5  # problems side by side


def draw(curves_by_problem: Both, path: Path) -> None:
    """Draw the errors of values (above) and gradients (below) of every problem over the step."""
    rows = 2 * -(-len(curves_by_problem) // ACROSS)
    columns = min(len(curves_by_problem), ACROSS)
    figure, axes = plt.subplots(
        rows, columns, figsize=(2.7 * columns, 2.2 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.ravel():
        axis.axis("off")
    for i, (name, curves) in enumerate(curves_by_problem.items()):
        first, orders = 2 * (i // ACROSS), PROBLEMS[name].orders
        pair = axes[first : first + 2, i % ACROSS]
        pair[0].set_title(PROBLEMS[name].title, fontsize=8)
        for axis, kind, order in zip(
            pair, ("value", "gradient"), (orders.value, orders.gradient), strict=True
        ):
            axis.axis("on")
            for colour, (rate, errors) in zip(COLOURS, curves, strict=True):
                y = getattr(errors, kind)
                axis.loglog(errors.over, y, "o-", ms=2.5, lw=1, color=colour, label=f"{rate:g}/s")
            guide = y[0] * (errors.over / errors.over[0]) ** order
            axis.loglog(errors.over, guide, ":", lw=1, color="k", label=f"order {order}")
            axis.tick_params(labelsize=6)
            axis.minorticks_off()
            axis.grid(alpha=0.3)
            axis.legend(fontsize=5)
            if i % ACROSS == 0:
                axis.set_ylabel(f"error of the {kind}", fontsize=7)
        pair[1].set_xlabel("step [s]", fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)
