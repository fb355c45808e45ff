"""The figure of a table: the errors of every instance, row beside row."""

from textwrap import wrap
from typing import Any

import numpy as np

from studies.instances import FAILED
from studies.paper.tables.summary import VIDEO, find_cell
from studies.reports.figures import BLUE, INK, ORANGE, SOFT, make_axes


LEAST = 1e-17  # an error of 0 is drawn here
ACROSS = 2  # panels beside each other
LETTERS = 11  # of a row's name in a line
NARROWEST = 7.0  # figure [inches]; a report shows it as wide as the page


def errors(result: dict[str, Any]) -> Any:
    """Draw one panel for each column: errors on a log scale, one strip of points for each row."""
    columns = result["columns"]
    across = min(ACROSS, len(columns))
    down = -(-len(columns) // across)
    width = max(3.2, 0.85 * len(result["rows"]) + 0.9)
    figure, axes = make_axes(down, across, (max(NARROWEST, width * across), 3.1 * down))
    for ax, column in zip(axes, columns, strict=False):
        _panel(ax, result, column)
    for ax in axes[len(columns) :]:
        ax.set_visible(False)
    return figure


def _panel(ax: Any, result: dict[str, Any], column: dict[str, Any]) -> None:
    rows = result["rows"]
    for i, row in enumerate(rows):
        found = np.array(
            [
                max(one["errors"][column["path"]]["mean"], LEAST)
                for one in result["records"]
                if (one["scene"], one["estimator"]) == (column["scene"], row["name"])
                and one["status"] != FAILED
            ]
        )
        ax.plot(i + np.linspace(-0.25, 0.25, len(found)), found, "o", color=BLUE, ms=2.5, alpha=0.6)
        cell = find_cell(result, column, row["name"])
        if cell["median"] is not None:
            ax.plot([i - 0.32, i + 0.32], [max(cell["median"], LEAST)] * 2, color=INK, lw=1.8)
        if cell["published"] is not None:
            ax.plot([i - 0.32, i + 0.32], [cell["published"]] * 2, "--", color=SOFT, lw=1.6)
        if row["name"] == VIDEO and column["bar"] is not None:
            ax.plot([i - 0.32, i + 0.32], [column["bar"]] * 2, "--", color=ORANGE, lw=1.6)
    ax.set_yscale("log")
    ax.tick_params(axis="y", which="both", labelsize=8)  # the minor ones, within a decade
    ax.set_xlim(-0.6, len(rows) - 0.4)
    names = ["\n".join(wrap(row["label"], LETTERS, break_long_words=False)) for row in rows]
    ax.set_xticks(range(len(rows)), names, fontsize=8)
    ax.set_title(column["label"], fontsize=10)
    ax.set_ylabel("relative error", fontsize=9)
