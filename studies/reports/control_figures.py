"""Figures of controls under several kinds of supervision: raw curves, and last pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from studies.control.results import CURVES, MEASURES, measures_of
from studies.reports.figures import BLUE, GREEN, INK, ORANGE, SOFT, make_axes


COLORS = (BLUE, ORANGE, GREEN)
LEAST_DISTANCE = 1e-6  # metres; what is less is drawn here


def curves(
    records: Sequence[dict[str, Any]], kinds: Sequence[str], bars: Mapping[str, float]
) -> Any:
    """Draw the measures of every evaluation: a column for each kind; bold, the medians."""
    names = [name for name in CURVES if name in measures_of([*records])]
    figure, axes = make_axes(len(names), len(kinds), (3.1 * len(kinds) + 0.4, 2.4 * len(names)))
    rows = [axes[k * len(kinds) : (k + 1) * len(kinds)] for k in range(len(names))]
    most = max(record["searches"][kind]["spent"][-1] for record in records for kind in kinds)
    for across, kind in enumerate(kinds):
        for ax, name in zip((row[across] for row in rows), names, strict=True):
            _column(ax, [record["searches"][kind] for record in records], name, COLORS[across % 3])
            if name in bars:
                ax.axhline(bars[name], color=INK, lw=0.9, ls=":")
            ax.set(xlim=(0.0, 1.03 * most), **_range(records, kinds, name))
            if across:
                ax.tick_params(labelleft=False)
        rows[0][across].set_title(kind, fontsize=10, color=INK)
        rows[-1][across].set_xlabel("evaluations")
    for row, name in zip(rows, names, strict=True):
        row[0].set_ylabel("cover (IoU)" if name == "cover" else f"{name} [{MEASURES[name].unit}]")
    return figure


def _range(records: Sequence[dict[str, Any]], kinds: Sequence[str], name: str) -> dict[str, Any]:
    """Return scale and limits of a measure: distances are drawn by their logarithm."""
    if name == "cover":
        return {"ylim": (0.0, 1.02)}
    values = [v for record in records for kind in kinds for v in _known(record, kind, name)]
    return {"yscale": "log", "ylim": (max(0.5 * min(values), LEAST_DISTANCE), 2.0 * max(values))}


def _known(record: dict[str, Any], kind: str, name: str) -> list[float]:
    return [value for value in record["searches"][kind][name] if value is not None]


def _column(ax: Any, searches: Sequence[dict[str, Any]], name: str, color: str) -> None:
    """Draw a measure over evaluations, a line for each search and their median while all run."""
    tables = [np.array([np.nan if v is None else v for v in one[name]]) for one in searches]
    for one, values in zip(searches, tables, strict=True):
        ax.plot(one["spent"], values, color=color, lw=0.9, alpha=0.45)
    shortest = min(len(values) for values in tables)
    if len(tables) > 1:
        middle = np.median([values[:shortest] for values in tables], axis=0)
        ax.plot(searches[0]["spent"][:shortest], middle, color=color, lw=1.9)


def ends(
    pictures: Sequence[Mapping[str, np.ndarray]],
    kinds: Sequence[str],
    titles: Sequence[Mapping[str, str]],
) -> Any:
    """Draw the last picture of every instance under each kind, the target's outline over it.

    A row for each instance; `titles` stand above the pictures.
    """
    from matplotlib.patheffects import withStroke

    on_any_colour = withStroke(linewidth=2.2, foreground="black")
    height, width = pictures[0]["outline"].shape
    across = 2.9 * len(kinds)
    down = (2.75 * height / width + 0.25) * len(pictures)
    figure, axes = make_axes(len(pictures), len(kinds), (across, down))
    for k, ax in enumerate(axes):
        row, kind = k // len(kinds), kinds[k % len(kinds)]
        shown, wanted = pictures[row][f"picture.{kind}"], pictures[row]["outline"]
        ax.imshow(np.clip(shown[..., :3], 0.0, 1.0), interpolation="nearest")
        line = ax.contour(wanted, levels=[0.5], colors="white", linewidths=0.9)
        line.set_path_effects([on_any_colour])
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
        ax.set_title(titles[row][kind], fontsize=8.5, color=INK)
        if not k % len(kinds):
            ax.set_ylabel(f"instance {row}", fontsize=8.5, color=SOFT)
    return figure
