"""A figure of what the coarse set showed, and where the local searches went, from `coarse.json`.

Between points the loss is a smooth curve or surface through all values, and through the slopes
where a search took a gradient; a map of few points has no surface. It interpolates
ln(loss + floor): so it does not fall below 0.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from studies.problem.parameters import Parameters
from studies.reports import figures
from studies.reports.curves import hermite_curve, hermite_surface
from studies.runs.evaluations import Evaluation
from studies.search.coarse import SearchResult, is_log


FILE = "coarse.json"
PANELS = 6  # of parameters, if there are more than two
LEVELS = 10  # lines of equal loss on a map
CELLS = 200  # of a map, along an axis
FEW = 16  # points of the coarse set on a map: between fewer a surface would show valleys of its own
APART = 0.02  # of an axis: of points that are nearer to each other, only the lowest counts
FLOOR = 0.01, 1e-6  # parts of the least and of the largest loss of the coarse set
LEAST = 0.1  # part of the floor, below which no loss is told from 0
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
        "units": [units.get(label, units.get(label.split("[")[0], "")) for label in labels],
        "scales": ["log" if is_log(parameters)[axis] else "linear" for axis in axes],
        "ends": natural(ends),
        "theta": [coarse.points.lower.tolist(), coarse.points.upper.tolist()],  # the same ends
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


def coarse_figure(
    data: dict[str, Any],
    searched: Sequence[Sequence[Evaluation]] = (),
    truth: Mapping[str, float] | None = None,
) -> Any:
    """Return a figure of the losses over the coarse set, the basins and the answer.

    One axis has a curve for each stage. Two have a map of the loss of all frames, more have a panel
    each, for the first `PANELS` of them, with the loss of all frames of every point. `searched`
    are, by basin, evaluations of local searches with all frames, `truth` has true values by label.
    """
    n_axes = len(data["labels"])
    points = np.array(data["points"])
    if n_axes > 2:
        figure = _panels(data, points)
    else:
        sloped = [_sloped(data, path) for path in searched]
        shape = _shape(data, points, list(chain.from_iterable(sloped)))
        figure = _curves(data, points, shape) if n_axes == 1 else _map(data, points, shape, sloped)
    at = [(truth or {}).get(label) for label in data["labels"]]
    if n_axes <= 2 and None not in at:
        ax = figure.axes[0]
        if n_axes == 1:
            ax.axvline(at[0], color=figures.ORANGE, lw=1.2, ls=":", label="truth")
        else:
            style = {"mec": figures.ORANGE, "mew": 1.6, "ms": 15.0, "zorder": 6}
            ax.plot(*at, "o", mfc="none", label="truth", **style)
    handles: dict[str, Any] = {}  # one for each label, of all panels
    for ax in figure.axes:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(
        handles.values(), handles, loc="outside lower center", frameon=False, fontsize=8.5,
        ncols=2 if n_axes == 2 else 3, columnspacing=1.4,
    )  # fmt: skip
    return figure


def says_between(data: Mapping[str, Any]) -> bool:
    """Whether the figure shows the loss between points as well."""
    count = sum(loss is not None for loss in data["losses"][-1])
    return len(data["labels"]) == 1 or (len(data["labels"]) == 2 and count >= FEW)


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


class _Shape(NamedTuple):
    """Points of the loss of all frames, on axes from 0 to 1."""

    places: np.ndarray  # (n, n_axes)
    values: np.ndarray  # ln(loss + floor), (n,); NaN where there is none
    slopes: np.ndarray  # of the values, (n, n_axes); NaN where no gradient was taken
    floor: float
    least: float  # loss that is shown

    def loss(self, values: np.ndarray) -> np.ndarray:
        """Return losses, which a log scale can show, of values."""
        return np.maximum(np.exp(values) - self.floor, self.least)


def _shape(data: Mapping[str, Any], points: np.ndarray, sloped: Sequence[Evaluation]) -> _Shape:
    """Return the coarse set, and with their slopes the evaluations of searches over its axes."""
    ends, n_axes = np.array(data.get("theta", np.zeros((2, 0)))), points.shape[1]
    losses = _finite([*data["losses"][-1], *(evaluation.loss for evaluation in sloped)])
    coarse = losses[: len(points)]
    floor = max(FLOOR[0] * np.nanmin(coarse), FLOOR[1] * np.nanmax(coarse))
    places = np.full((len(losses), n_axes), np.nan)
    places[: len(points)], slopes = _to_unit(data, points), np.full_like(places, np.nan)
    for k, evaluation in enumerate(sloped, len(points)):
        places[k] = (evaluation.theta - ends[0]) / np.ptp(ends, 0)
        slopes[k] = evaluation.gradient * np.ptp(ends, 0)
    kept: list[int] = []
    for k in np.argsort(losses, kind="stable"):  # NaN comes last
        if (np.linalg.norm(places[kept] - places[k], axis=1) >= APART).all():
            kept.append(int(k))
    slopes = slopes / (losses[:, None] + floor)
    least = max(np.nanmin(losses), LEAST * floor)
    return _Shape(places[kept], np.log(losses + floor)[kept], slopes[kept], floor, least)


def _sloped(data: Mapping[str, Any], searched: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations with a slope that lie on the axes."""
    ends = np.array(data.get("theta", np.zeros((2, 0))))
    return [
        evaluation for evaluation in searched
        if evaluation.gradient is not None and np.isfinite(evaluation.loss)
        and len(evaluation.theta) == ends.shape[1] == len(data["labels"])
    ]  # fmt: skip


def _to_unit(data: Mapping[str, Any], points: np.ndarray) -> np.ndarray:
    """Return points with both ends of each axis at 0 and 1."""
    columns = []
    for axis, scale in enumerate(data["scales"]):
        into = np.log if scale == "log" else np.array
        low, high = (into(end[axis]) for end in data["ends"])
        columns.append((into(points[:, axis]) - low) / (high - low))
    return np.stack(columns, axis=1)


def _from_unit(data: Mapping[str, Any], axis: int, at: np.ndarray) -> np.ndarray:
    """Return values of an axis whose ends are at 0 and 1."""
    low, high = (end[axis] for end in data["ends"])
    is_logarithmic = data["scales"][axis] == "log"
    return low * (high / low) ** at if is_logarithmic else low + at * (high - low)


def _curves(data: dict[str, Any], points: np.ndarray, shape: _Shape) -> Any:
    """Draw the losses of all stages along the only axis."""
    from scipy.interpolate import PchipInterpolator

    figure, (ax,) = figures.make_axes(1, 1, (6.4, 4.0))
    along, counts = points[:, 0], data["frames"]
    shades = np.linspace(SHADES[1], SHADES[0], len(counts))[::-1]
    stages = [_shape({**data, "losses": [losses]}, points, ()) for losses in data["losses"][:-1]]
    stages.append(shape)
    for stage, losses, count, shade in zip(stages, data["losses"], counts, shades, strict=True):
        label = f"first {count} frames" if count < data["n_frames"] else f"all {count} frames"
        style = {"color": figures.BLUE, "alpha": shade}
        order = np.argsort(stage.places[:, 0])
        x, values, slopes = stage.places[order, 0], stage.values[order], stage.slopes[order, 0]
        there = np.isfinite(values)
        if there.sum() > 1:
            estimate = np.full(len(x), np.nan)
            estimate[there] = PchipInterpolator(x[there], values[there]).derivative()(x[there])
            slopes = np.where(np.isnan(slopes), estimate, slopes)
            at, between = hermite_curve(x, values, slopes)
            ax.plot(_from_unit(data, 0, at), stage.loss(between), lw=1.4, **style)
        ax.plot(along, np.maximum(_finite(losses), stage.least), "o", ms=3.5, label=label, **style)
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


def _map(
    data: dict[str, Any], points: np.ndarray, shape: _Shape, sloped: Sequence[Sequence[Evaluation]]
) -> Any:
    """Draw the loss of all frames over both axes, and the ways from starts to answers.

    Each point of the coarse set has the colour of its loss, a cross where it blew up. Between them
    is the surface through values and slopes, where there are enough points.
    """
    from matplotlib.colors import LogNorm

    figure, (ax,) = figures.make_axes(1, 1, (6.4, 5.0))
    ax.grid(visible=False)
    losses = _finite(data["losses"][-1])
    blew_up = np.isnan(losses)
    at = (np.arange(CELLS) + 0.5) / CELLS
    x, y = (_from_unit(data, axis, at) for axis in (0, 1))
    grid = np.stack(np.meshgrid(at, at), axis=-1)
    surface = np.full((CELLS, CELLS), np.nan)
    if says_between(data):
        surface = shape.loss(hermite_surface(shape.places, shape.values, shape.slopes, grid))
    everything = np.concatenate([surface.ravel(), losses])
    shade = {"norm": LogNorm(np.nanmin(everything), np.nanmax(everything)), "cmap": "viridis_r"}
    if np.isfinite(surface).any():
        # Whatever the scales are, the ends of the axes are those of the unit square.
        ax.imshow(surface, extent=(0.0, 1.0, 0.0, 1.0), transform=ax.transAxes, aspect="auto",
                  origin="lower", interpolation="none", **shade)  # fmt: skip
        levels = np.geomspace(np.nanmin(surface), np.nanmax(surface) * (1.0 + 1e-9), LEVELS + 2)
        ax.contour(x, y, surface, levels[1:-1], colors="white", linewidths=0.5, alpha=0.6)
    size, edge = (42.0, "white") if says_between(data) else (130.0, figures.INK)
    drawn = ax.scatter(
        *points[~blew_up].T,
        c=losses[~blew_up],
        s=size,
        ec=edge,
        lw=0.7,
        label="coarse set",
        **shade,
    )
    if blew_up.any():
        ax.plot(*points[blew_up].T, "x", color=figures.INK, ms=5.0, label="blew up")
    steep = shape.places[np.isfinite(shape.slopes[:, 0])].T
    if steep.size:
        among = [_from_unit(data, axis, at) for axis, at in enumerate(steep)]
        ax.plot(
            *among, ".", color="white", mec=figures.INK, mew=0.6, ms=8.0, label="points with slopes"
        )
    bar = figure.colorbar(drawn, ax=ax, pad=0.02)
    bar.set_label("loss of all frames [-]", fontsize=9)
    bar.ax.tick_params(labelsize=9)
    ax.plot(*points[0], "X", color="white", mec=figures.INK, mew=0.8, ms=9.0, label="start", ls="")
    for k, (basin, label, marker) in enumerate(_styled(data)):
        for way, steps in _ways(data, basin, sloped[k] if k < len(sloped) else ()):
            style, label_of_way = ("-", "way of a search") if steps else (":", "start to end")
            if np.ptp(way, axis=0).any():  # a basin that was not searched ends where it starts
                ax.plot(*way.T, color=figures.INK, lw=1.0, zorder=1.5, ls=style, label=label_of_way)
        ax.plot(*basin["end"], label=label, ls="", mec="white", mew=0.8, clip_on=False, **marker)
    (left, low), (right, high) = data["ends"]
    ax.set(
        xscale=data["scales"][0], yscale=data["scales"][1], xlim=(left, right), ylim=(low, high),
        xlabel=_label(data, 0), ylabel=_label(data, 1),
    )  # fmt: skip
    for axis, scale in zip((ax.xaxis, ax.yaxis), data["scales"], strict=True):
        if scale == "log":
            figures.plain_ticks(axis)
    return figure


def _ways(
    data: dict[str, Any], basin: Mapping[str, Any], sloped: Sequence[Evaluation]
) -> list[tuple[np.ndarray, int]]:
    """Return the way from each start to the end, (n, 2), and how many steps of it are known.

    All evaluations belong to one search, which began at the start nearest to the first of them.
    """
    ends = np.array(data.get("theta", np.zeros((2, 0))))
    steps = [(evaluation.theta - ends[0]) / np.ptp(ends, 0) for evaluation in sloped]
    starts = _to_unit(data, np.array(basin["starts"]).reshape(-1, 2))
    end = _to_unit(data, np.array([basin["end"]]))
    first = int(np.linalg.norm(starts - steps[0], axis=1).argmin()) if steps and len(starts) else -1
    ways = []
    for k, start in enumerate(starts):
        between = np.array(steps if k == first else []).reshape(-1, 2)
        way = np.concatenate([start[None], between, end])
        natural = np.stack([_from_unit(data, axis, way[:, axis]) for axis in (0, 1)], axis=1)
        ways.append((natural, len(between)))
    return ways
