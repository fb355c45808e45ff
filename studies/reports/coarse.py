"""A figure of what the coarse set showed, and where the local searches went, from `coarse.json`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial import Delaunay

from studies.problem.parameters import Parameters
from studies.reports import figures
from studies.search.coarse import SearchResult, is_log


FILE = "coarse.json"
PANELS = 6  # of parameters, if there are more than two
LEVELS = 60  # of the colours of a map
SHADES = (0.25, 1.0)  # opacity of the curve of the first and of the last stage
OTHERS = "Ds^v"  # markers of as many basins beside the answer


def coarse_json(
    search: SearchResult, parameters: Parameters, units: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return what is drawn of a search, in natural values; None where there is nothing to draw."""
    coarse = search.coarse
    if coarse is None or not coarse.points.axes or not np.isfinite(coarse.by_stage[-1, 1:]).any():
        return None
    axes = list(coarse.points.axes)

    def natural(thetas: np.ndarray) -> list[list[float]]:
        return [parameters.natural(theta)[axes].tolist() for theta in thetas]

    ends = np.tile(coarse.points.points[0], (2, 1))
    ends[:, axes] = coarse.points.lower, coarse.points.upper
    labels = [parameters.labels[axis] for axis in axes]
    return {
        "labels": labels,
        "units": [units.get(label.split("[")[0], "") for label in labels],
        "scales": ["log" if is_log(parameters)[axis] else "linear" for axis in axes],
        "ends": natural(ends),
        "points": natural(coarse.points.points),
        "losses": [[x if np.isfinite(x) else None for x in row] for row in coarse.by_stage],
        "frames": list(coarse.frames),
        "n_frames": coarse.by_frame.shape[1],
        "basins": [
            {
                "end": natural(basin.theta[None])[0],
                "starts": natural(basin.starts),
                "loss": basin.loss if np.isfinite(basin.loss) else None,
                "is_searched": basin.is_searched,
            }
            for basin in search.basins
        ],
    }


def coarse_figure(data: dict[str, Any]) -> Any:
    """Return a figure of the losses over the coarse set, the basins and the answer.

    One axis has a curve for each stage. Two have a map of the loss of all frames, more have a panel
    each, for the first `PANELS` of them, with the loss of all frames of every point.
    """
    n_axes = len(data["labels"])
    draw = {1: _curves, 2: _map}.get(n_axes, _panels)
    figure = draw(data, np.array(data["points"]))
    handles: dict[str, Any] = {}  # one for each label, of all panels
    for ax in figure.axes:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(
        handles.values(), handles, loc="outside lower center", frameon=False, fontsize=8.5,
        ncols=2 if n_axes == 2 else 3, columnspacing=1.4,
    )  # fmt: skip
    return figure


def _label(data: dict[str, Any], axis: int) -> str:
    return figures.named(data["labels"][axis], data["units"][axis])


def _finite(losses: Sequence[float | None]) -> np.ndarray:
    """Return losses that a log scale can show: NaN for infinite ones, none below `LEAST_LOSS`."""
    return np.maximum(np.array(losses, float), figures.LEAST_LOSS)


def _styled(data: dict[str, Any]) -> list[tuple[dict[str, Any], str, dict[str, Any]]]:
    """Return the basins to draw, the answer first, with a label and a style each."""
    answer, *others = data["basins"]
    least = max(np.inf if answer["loss"] is None else answer["loss"], figures.LEAST_LOSS)
    style = {"marker": "*", "color": figures.ORANGE, "ms": 12.0, "zorder": 5}
    out = [(answer, f"end of this search: loss {least:.3g}", style)]
    for number, (basin, marker) in enumerate(zip(others, OTHERS, strict=False)):
        loss = "no loss"
        if basin["loss"] is not None:
            ratio = basin["loss"] / least
            loss = f"{ratio:.3g} times as much" if ratio < 1e4 else f"loss {basin['loss']:.2g}"
        label = f"basin {number + 2}: {loss}{'' if basin['is_searched'] else ', given up'}"
        style = {"marker": marker, "color": figures.SOFT, "ms": 6.0, "zorder": 4}
        out.append((basin, label, style))
    return out


def _curves(data: dict[str, Any], points: np.ndarray) -> Any:
    """Draw the losses of all stages along the only axis."""
    figure, (ax,) = figures.make_axes(1, 1, (6.4, 4.0))
    along = points[:, 0]
    order, counts = np.argsort(along), data["frames"]
    shades = np.linspace(SHADES[1], SHADES[0], len(counts))[::-1]
    for losses, count, shade in zip(data["losses"], counts, shades, strict=True):
        label = f"first {count} frames" if count < data["n_frames"] else f"all {count} frames"
        ax.plot(along[order], _finite(losses)[order], "o-", color=figures.BLUE, alpha=shade,
                ms=3.5, lw=1.4, label=label)  # fmt: skip
    whole = _finite(data["losses"][-1])
    blown = along[np.isnan(whole)]
    if blown.size:
        top = np.full(len(blown), np.nanmax(whole))
        ax.plot(blown, top, "x", color=figures.INK, label="blew up")
    ax.set(xscale=data["scales"][0], yscale="log", xlabel=_label(data, 0), ylabel="loss [-]")
    if data["scales"][0] == "log":
        figures.plain_ticks(ax.xaxis)
    _mark_along(ax, data, 0)
    return figure


def _panels(data: dict[str, Any], points: np.ndarray) -> Any:
    """Draw the loss of all frames over each of the first axes."""
    shown, columns = min(len(data["labels"]), PANELS), 3
    rows = -(-shown // columns)
    figure, axes = figures.make_axes(rows, columns, (9.0, 2.9 * rows + 0.6))
    for number, ax in enumerate(axes):
        if number >= shown:
            ax.set_visible(False)
            continue
        ax.plot(points[:, number], _finite(data["losses"][-1]), "o", color=figures.BLUE, ms=3.5,
                label="coarse set")  # fmt: skip
        ax.set(xscale=data["scales"][number], yscale="log", xlabel=_label(data, number))
        if data["scales"][number] == "log":
            figures.plain_ticks(ax.xaxis)
        if number % columns == 0:
            ax.set_ylabel("loss of all frames [-]")
        _mark_along(ax, data, number)
    return figure


def _mark_along(ax: Any, data: dict[str, Any], axis: int) -> None:
    """Mark start, basins and answer at the top edge of a panel, with a line down to the axis."""
    top = {"transform": ax.get_xaxis_transform(), "clip_on": False, "ls": ""}
    ax.axvline(data["points"][0][axis], color=figures.GREEN, lw=1.0, ls="--", label="start")
    for basin, label, style in _styled(data):
        ax.axvline(basin["end"][axis], color=style["color"], lw=1.0, alpha=0.6)
        ax.plot([basin["end"][axis]], [1.0], label=label, **top, **style)


def _map(data: dict[str, Any], points: np.ndarray) -> Any:
    """Draw the loss of all frames over both axes, and paths from starts to answers.

    Each point has the colour of its loss, a cross where it blew up; between three points that have
    one, the colour is interpolated.
    """
    from matplotlib.colors import LogNorm
    from matplotlib.tri import Triangulation

    figure, (ax,) = figures.make_axes(1, 1, (6.4, 5.0))
    ax.grid(visible=False)
    ax.use_sticky_edges = False  # of the colours: points at the rim are drawn whole
    losses = _finite(data["losses"][-1])
    blew_up = np.isnan(losses)
    shade = {"norm": LogNorm(np.nanmin(losses), np.nanmax(losses)), "cmap": "viridis_r"}
    corners = _triangles(data, points)
    if len(corners):
        between = Triangulation(points[:, 0], points[:, 1], corners, blew_up[corners].any(axis=1))
        values = np.where(blew_up, np.nanmax(losses), losses)
        levels = np.geomspace(np.nanmin(losses), np.nanmax(losses) * (1.0 + 1e-9), LEVELS)
        ax.tricontourf(between, values, levels, **shade)
    drawn = ax.scatter(*points[~blew_up].T, c=losses[~blew_up], s=26.0, ec="white", lw=0.5, **shade)
    if blew_up.any():
        ax.plot(*points[blew_up].T, "x", color=figures.INK, ms=5.0, label="blew up")
    bar = figure.colorbar(drawn, ax=ax, pad=0.02)
    bar.set_label("loss of all frames [-]", fontsize=9)
    bar.ax.tick_params(labelsize=9)
    ax.plot(*points[0], "X", color="white", mec=figures.INK, mew=0.8, ms=9.0, label="start", ls="")
    for basin, label, marker in _styled(data):
        for begin in basin["starts"]:
            ax.plot(*zip(begin, basin["end"], strict=True), "-", color=figures.INK, lw=1.0)
        ax.plot(*basin["end"], label=label, ls="", mec="white", mew=0.8, clip_on=False, **marker)
    scales = {"xscale": data["scales"][0], "yscale": data["scales"][1]}
    ax.set(**scales, xlabel=_label(data, 0), ylabel=_label(data, 1))
    for axis, scale in zip((ax.xaxis, ax.yaxis), data["scales"], strict=True):
        if scale == "log":
            figures.plain_ticks(axis)
    return figure


def _triangles(data: dict[str, Any], points: np.ndarray) -> np.ndarray:
    """Return the corners of triangles between points, (n, 3), with both axes of equal length."""
    units = []
    for axis, scale in enumerate(data["scales"]):
        into = np.log if scale == "log" else np.array
        low, high = (into(end[axis]) for end in data["ends"])
        units.append((into(points[:, axis]) - low) / (high - low))
    at = np.stack(units, axis=1)
    if len(at) < 3 or np.linalg.matrix_rank(at - at[0], tol=1e-9) < 2:
        return np.zeros((0, 3), int)
    return Delaunay(at).simplices
