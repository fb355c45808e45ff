"""A figure of what the coarse set showed, and where the local searches went."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from studies.figures import BLUE, GREEN, INK, LEAST_LOSS, ORANGE, SOFT, make_axes, png
from studies.parameters import Parameters
from studies.search.coarse import is_log
from studies.search.found import Basin, CoarseLosses, Found


PANELS = 6  # of parameters, if there are more than two
CELLS = 150  # of the map, along each axis
BLEW_UP = "#c9cfd6"  # where the map has no loss
SHADES = (0.25, 1.0)  # opacity of the curve of the first and of the last stage
OTHERS = "Ds^v"  # markers of as many basins beside the answer


def coarse_figure(
    found: Found, parameters: Parameters, units: Mapping[str, str] | None = None
) -> bytes:
    """Draw the losses over the coarse set, the basins and the answer, as a PNG.

    One axis has a curve for each stage. Two have a map of the loss of all frames, more have a panel
    each, for the first `PANELS` of them, with the loss of all frames of every point.

    Parameters
    ----------
    found : Found
        By `studies.search.robust.robust_search`.
    parameters : Parameters
        Those of the problem that was searched.
    units : mapping of str to str, optional
        Unit of each path.

    Raises
    ------
    ValueError
        If there was no coarse set, or every rollout blew up.
    """
    coarse = found.coarse
    if coarse is None or not coarse.points.axes or not np.isfinite(coarse.by_stage[-1, 1:]).any():
        raise ValueError("`found` has no coarse set to draw.")
    one = _Drawn(found, coarse, parameters, units or {})
    n_axes = len(coarse.points.axes)
    if n_axes == 1:
        figure = _curves(one)
    elif n_axes == 2:
        figure = _map(one)
    else:
        figure = _panels(one)
    handles: dict[str, Any] = {}  # one for each label, of all panels
    for ax in figure.axes:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(
        handles.values(), handles, loc="outside lower center", frameon=False, fontsize=8.5,
        ncols=2 if n_axes == 2 else 3, columnspacing=1.4,
    )  # fmt: skip
    return png(figure)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """What is drawn, in natural values."""

    found: Found
    coarse: CoarseLosses
    parameters: Parameters
    units: Mapping[str, str]

    @property
    def points(self) -> np.ndarray:
        """Natural values of the coarse set, (n_points, n_axes)."""
        return self.natural(self.coarse.points.points)

    @property
    def whole(self) -> np.ndarray:
        """Loss of all frames at every point, NaN where it blew up."""
        return _finite(self.coarse.by_stage[-1])

    def natural(self, thetas: np.ndarray) -> np.ndarray:
        """Return the natural values of the axes, (n_points, n_axes)."""
        axes = list(self.coarse.points.axes)
        return np.stack([self.parameters.natural(theta)[axes] for theta in thetas])

    def label(self, number: int) -> str:
        """Return the name and unit of an axis."""
        label = self.parameters.labels[self.coarse.points.axes[number]]
        unit = self.units.get(label.split("[")[0], "")
        return f"{label} [{unit}]" if unit else label

    def scale(self, number: int) -> str:
        """Return the scale of an axis: log or linear."""
        return "log" if is_log(self.parameters)[self.coarse.points.axes[number]] else "linear"

    def basins(self) -> list[tuple[Basin, str, dict[str, Any]]]:
        """Return the basins to draw, the answer first, with a label and a style each."""
        answer, *others = self.found.basins
        style = {"marker": "*", "color": ORANGE, "ms": 12.0, "zorder": 5}
        out = [(answer, f"end of this search: loss {answer.loss:.3g}", style)]
        for number, (basin, marker) in enumerate(zip(others, OTHERS, strict=False)):
            ratio = basin.loss / max(answer.loss, LEAST_LOSS)
            loss = f"{ratio:.3g} times as much" if ratio < 1e4 else f"loss {basin.loss:.2g}"
            label = f"basin {number + 2}: {loss}{'' if basin.is_searched else ', given up'}"
            out.append((basin, label, {"marker": marker, "color": SOFT, "ms": 6.0, "zorder": 4}))
        return out


def _finite(losses: np.ndarray) -> np.ndarray:
    """Return losses that a log scale can show: NaN for infinite ones, none below `LEAST_LOSS`."""
    return np.maximum(np.where(np.isfinite(losses), losses, np.nan), LEAST_LOSS)


def _curves(one: _Drawn) -> Any:
    """Draw the losses of all stages along the only axis."""
    figure, (ax,) = make_axes(1, 1, (6.4, 4.0))
    along = one.points[:, 0]
    order = np.argsort(along)
    counts, n_frames = one.coarse.frames, one.coarse.by_frame.shape[1]
    shades = np.linspace(SHADES[1], SHADES[0], len(counts))[::-1]
    for losses, count, shade in zip(one.coarse.by_stage, counts, shades, strict=True):
        label = f"first {count} frames" if count < n_frames else f"all {count} frames"
        ax.plot(along[order], _finite(losses)[order], "o-", color=BLUE, alpha=shade,
                ms=3.5, lw=1.4, label=label)  # fmt: skip
    blown = along[np.isnan(one.whole)]
    if blown.size:
        ax.plot(blown, np.full(len(blown), np.nanmax(one.whole)), "x", color=INK, label="blew up")
    ax.set(xscale=one.scale(0), yscale="log", xlabel=one.label(0), ylabel="loss [-]")
    _mark_along(ax, one, 0)
    return figure


def _panels(one: _Drawn) -> Any:
    """Draw the loss of all frames over each of the first axes."""
    shown = min(len(one.coarse.points.axes), PANELS)
    columns = 3
    rows = -(-shown // columns)
    figure, axes = make_axes(rows, columns, (9.0, 2.9 * rows + 0.6))
    for number, ax in enumerate(axes):
        if number >= shown:
            ax.set_visible(False)
            continue
        ax.plot(one.points[:, number], one.whole, "o", color=BLUE, ms=3.5, label="coarse set")
        ax.set(xscale=one.scale(number), yscale="log", xlabel=one.label(number))
        if number % columns == 0:
            ax.set_ylabel("loss of all frames [-]")
        _mark_along(ax, one, number)
    return figure


def _mark_along(ax: Any, one: _Drawn, number: int) -> None:
    """Mark start, basins and answer at the top edge of a panel, with a line down to the axis."""
    top = {"transform": ax.get_xaxis_transform(), "clip_on": False, "ls": ""}
    start = one.natural(one.coarse.points.points[:1])[0, number]
    ax.axvline(start, color=GREEN, lw=1.0, ls="--", label="start")
    for basin, label, style in one.basins():
        value = one.natural(basin.theta[None])[0, number]
        ax.axvline(value, color=style["color"], lw=1.0, alpha=0.6)
        ax.plot([value], [1.0], label=label, **top, **style)


def _map(one: _Drawn) -> Any:
    """Draw the loss of all frames over both axes, and paths from starts to answers.

    Every place has the colour of the nearest point, grey where that one blew up.
    """
    figure, (ax,) = make_axes(1, 1, (6.4, 5.0))
    ax.grid(visible=False)
    ax.set_facecolor(BLEW_UP)
    edges, losses = _nearest_losses(one)
    drawn = ax.pcolormesh(*edges, losses, norm="log", cmap="viridis_r", rasterized=True)
    ax.plot(*one.points.T, ".", color="white", ms=2.5, alpha=0.7)
    bar = figure.colorbar(drawn, ax=ax, pad=0.02)
    bar.set_label("loss of all frames [-]", fontsize=9)
    bar.ax.tick_params(labelsize=9)
    start = one.natural(one.coarse.points.points[:1])[0]
    ax.plot(*start, "X", color="white", mec=INK, mew=0.8, ms=9.0, label="start", ls="")
    for basin, label, marker in one.basins():
        end = one.natural(basin.theta[None])[0]
        for begin in one.natural(basin.starts):
            ax.plot(*zip(begin, end, strict=True), "-", color="white", lw=1.6)
            ax.plot(*begin, "o", color="white", mec=INK, mew=0.6, ms=4.0)
        ax.plot(*end, label=label, ls="", mec="white", mew=0.8, clip_on=False, **marker)
    ax.set(xscale=one.scale(0), yscale=one.scale(1), xlabel=one.label(0), ylabel=one.label(1))
    return figure


def _nearest_losses(one: _Drawn) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return the corners of many small cells, and the loss of the point nearest to each."""
    points = one.coarse.points
    size = points.upper - points.lower
    ends = np.arange(CELLS + 1) / CELLS
    corners = np.tile(points.points[0], ((CELLS + 1) ** 2, 1))
    grid = np.stack(np.meshgrid(ends, ends, indexing="ij"), axis=-1)
    corners[:, points.axes] = points.lower + size * grid.reshape(-1, 2)
    natural = one.natural(corners).reshape(CELLS + 1, CELLS + 1, 2)
    tree = KDTree((points.points[:, points.axes] - points.lower) / size)
    _, nearest = tree.query(grid[:-1, :-1] + 0.5 / CELLS)
    return (natural[..., 0], natural[..., 1]), one.whole[nearest]
