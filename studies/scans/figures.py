"""Figures of a scan, as functions of its data set. Each returns one of Matplotlib."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.reports.figures import BLUE, GREEN, INK, ORANGE, SOFT, TINY, make_axes, plain_ticks
from studies.scans.landscape import FINE, Slice, agreement, per_axis
from studies.scans.spec import Axis


TICKS = 25  # tangents along a curve
ARROWS = 13  # along an axis
REACH, MOST_REACH = 0.46, 0.08  # of an arrow: parts of the way to the next one, of the axes
LEAST_FALL = 0.01  # a loss is drawn not lower than this part of the second lowest one
MOST_EVENTS = 0.4  # part of the pairs of neighbours: more of them are not drawn
COLORS = (BLUE, ORANGE, GREEN, SOFT)
NOT_COMPARED = "#b9c2cb"
OUTLINE = "#10161d"  # of marks on a colour map, which is the same on a dark page
MANY = 60  # cells along an axis: their borders are not drawn
EVENTS = {
    "visibility_event": ("other faces are seen", GREEN, 0.02),
    "contact_event": ("other points touch", ORANGE, 0.07),
}
VERDICTS = {
    "agree": (BLUE, "o", "agree"),
    "jumps": (GREEN, "D", "a shorter step agrees"),
    "crosses": (ORANGE, "^", "a touch moves within the step"),
    "differ": (INK, "s", "differ"),
}


def curve(scan_slice: Slice, unit: str) -> Any:
    """Draw the loss along one axis, with tangents, the truth, the lowest and failed points."""
    (axis,) = scan_slice.axes
    figure, (ax,) = make_axes(1, 1, (4.8, 3.5))
    x, loss = scan_slice.curve()
    label = "cubic curve" if scan_slice.has_gradient else None
    ax.plot(x, loss, color=SOFT, lw=1.2, label=label)
    size = 7 if axis.count < 30 else 4 if axis.count < 100 else 1.5
    ax.plot(axis.values, scan_slice.loss, ".", color=BLUE, ms=size, label="computed", zorder=3)
    _label("x", ax, axis, unit)
    if truth := scan_slice.truth_inside():
        ax.axvline(truth[axis.key], color=ORANGE, lw=1.2, ls="--", label="truth")
    lowest = scan_slice.lowest()
    if lowest is not None:
        at = scan_slice.at(lowest)[axis.key]
        ax.plot(
            [at], [scan_slice.loss[lowest]], "o", mfc="none", mec=INK, ms=7, label="lowest point"
        )
    if minimum := scan_slice.minimum():
        at = minimum[axis.key]
        ax.plot(
            [at], [np.interp(at, x, loss)], "D", color=GREEN, ms=5, label="its minimum", zorder=4
        )
    failed = axis.values[~np.isfinite(scan_slice.loss)]
    if failed.size:
        trans = ax.get_xaxis_transform()
        ax.plot(failed, np.full(failed.size, 0.03), "x", color=ORANGE, ms=4, transform=trans,
                label="no loss")  # fmt: skip
    every = np.append(loss, scan_slice.loss)  # a point between two that failed is on no curve
    low, high = np.nanmin(every), np.nanmax(every)
    if scan_slice.has_gradient:
        _tangents(ax, scan_slice)
    if high > low:
        ax.set_ylim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    ax.set(ylabel="loss [-]")
    _legend_below(figure, ax)
    return figure


def _tangents(ax: Any, scan_slice: Slice) -> None:
    """Draw the adjoint's slope at some points, as straight as the axis is."""
    (axis,) = scan_slice.axes
    slope = scan_slice.data.gradient.sel(parameter=axis.key).values
    x, loss = axis.values, scan_slice.loss
    u = np.log(x) if axis.is_log else x
    half = 0.016 * (u[-1] - u[0])
    height = np.nanmax(loss) - np.nanmin(loss)
    chosen = np.unique(np.linspace(0, len(u) - 1, TICKS).round().astype(int))
    label = "adjoint gradient"
    for k in chosen[np.isfinite(slope[chosen])]:
        rate = slope[k] * (x[k] if axis.is_log else 1.0)
        # As long on the picture whether steep or flat.
        reach = half / np.hypot(1.0, rate * 2.0 * half / (0.06 * height)) if height else half
        step = np.linspace(-reach, reach, 2)
        at = x[k] * np.exp(step) if axis.is_log else x[k] + step
        ax.plot(at, loss[k] + rate * step, color=GREEN, lw=2.2, alpha=0.85, label=label)
        label = None


def contours(
    scan_slice: Slice, units: Mapping[str, str], *, title: str = "", black_box: bool = False
) -> Any:
    """Draw the loss over two axes, with the direction of steepest descent as arrows.

    Arrows are in fractions of the axes, of one length; beside them, if asked for, the
    estimates of a black box.
    """
    from matplotlib.patheffects import withStroke

    a, b = scan_slice.axes  # a upwards, b to the right, as the first axis of an array goes down
    figure, (ax,) = make_axes(1, 1, (6.4, 5.2))
    shares = np.linspace(0.0, 1.0, FINE + 1)
    loss = np.ma.masked_invalid(scan_slice.surface(shares, shares))
    x, y = b.at(shares), a.at(shares)
    computed = np.sort(scan_slice.loss[scan_slice.loss > 0.0])
    least = LEAST_FALL * computed[min(1, len(computed) - 1)] if computed.size else TINY
    log_loss = np.ma.log10(np.ma.maximum(loss, least))
    filled = ax.contourf(x, y, log_loss, levels=24, cmap="viridis")
    lines = ax.contour(x, y, log_loss, levels=12, colors="white", linewidths=0.4)
    lines.set_alpha(0.6)
    figure.colorbar(filled, ax=ax, label="log10 of the loss")
    _label("x", ax, b, units[b.key])
    _label("y", ax, a, units[a.key])
    ax.set(xlim=_with_margin(b, _reach(scan_slice)), ylim=_with_margin(a, _reach(scan_slice)))
    ax.grid(visible=False)
    ax.set_title(title, fontsize=10)
    if black_box:
        _arrows(ax, scan_slice, scan_slice.data.black_box, color=ORANGE, label="descent, black box")
    if scan_slice.has_gradient:
        _arrows(ax, scan_slice, scan_slice.data.gradient, color="white", label="descent, adjoint")
    if max(a.count, b.count) <= MANY:
        at_x, at_y = np.meshgrid(b.values, a.values)
        ok = np.isfinite(scan_slice.loss)
        ax.plot(
            at_x[ok], at_y[ok], ".", color="white", mec=OUTLINE, mew=0.4, ms=5, label="computed"
        )
    failed = np.argwhere(~np.isfinite(scan_slice.loss))
    if len(failed):
        ax.plot(b.values[failed[:, 1]], a.values[failed[:, 0]], "x", color=ORANGE, ms=5,
                label="no loss")  # fmt: skip
    outlined = [withStroke(linewidth=3.0, foreground=OUTLINE)]  # white shows on the margin too
    for at in map(scan_slice.at, scan_slice.local_minima()):
        ax.plot(at[b.key], at[a.key], "o", mfc="none", mec="white", ms=8, mew=1.4,
                path_effects=outlined, label="local minimum")  # fmt: skip
    if minimum := scan_slice.minimum():
        ax.plot(minimum[b.key], minimum[a.key], "D", color=ORANGE, mec="white", ms=7,
                label="minimum of the surface")  # fmt: skip
    if truth := scan_slice.truth_inside():
        ax.plot(truth[b.key], truth[a.key], "*", color="#ffd23f", mec=OUTLINE, ms=13,
                label="truth")  # fmt: skip
    _legend_below(figure, ax, SOFT)
    return figure


def _arrows(ax: Any, scan_slice: Slice, field: Any, *, color: str, label: str) -> None:
    """Draw minus a gradient over two axes, every arrow of one length on the picture."""
    a, b = scan_slice.axes
    rows, columns = (_evenly(axis.count) for axis in (a, b))
    slope = per_axis((b, a), field.transpose(*scan_slice.keys, ...))[np.ix_(rows, columns)]
    length = np.linalg.norm(slope, axis=-1)
    mask = np.isfinite(length) & (length > 0.0)
    x, y = np.meshgrid(b.values[columns], a.values[rows])
    unit = -slope[mask] / length[mask][:, None]
    reach = _reach(scan_slice)
    ax.quiver(x[mask], y[mask], *unit.T, color=color, scale=1.0 / reach, scale_units="width",
              units="width", width=0.12 * reach, edgecolor=OUTLINE, linewidth=0.8)  # fmt: skip
    ax.plot([], [], marker=r"$\rightarrow$", color=color, ls="", ms=11, label=label)


def _reach(scan_slice: Slice) -> float:
    """Return the length of an arrow, in parts of the axes: less than to the next arrow."""
    most = max(len(_evenly(axis.count)) for axis in scan_slice.axes)
    return min(REACH / max(most - 1, 1), MOST_REACH)


def _with_margin(axis: Axis, share: float) -> tuple[float, float]:
    """Return the ends of an axis with a part of its length beyond both."""
    low, high = axis.at(np.array([-share, 1.0 + share]))
    return float(low), float(high)


def _evenly(count: int) -> np.ndarray:
    """Return every so many of the values of an axis, at most `ARROWS`, in its middle."""
    every = -(-count // ARROWS)
    return np.arange((count - 1) % every // 2, count, every)


def compared(
    along: Axis, curves: Mapping[str, tuple[np.ndarray, np.ndarray]], unit: str, truth: Any
) -> Any:
    """Draw curves over one axis, each scaled from 0 at its lowest point to 1 at its highest.

    `curves` are places and losses, (n,) each, by name.
    """
    from matplotlib import colormaps

    figure, (ax,) = make_axes(1, 1, (5.2, 4.2))
    curves = {name: curve for name, curve in curves.items() if np.isfinite(curve[1]).any()}
    many = len(curves) > len(COLORS)
    shades = colormaps["viridis"](np.linspace(0.0, 0.92, len(curves)))
    for k, (name, (x, loss)) in enumerate(curves.items()):
        low, high = np.nanmin(loss), np.nanmax(loss)
        scaled = (loss - low) / (high - low) if high > low else np.zeros_like(loss)
        ax.plot(x, scaled, color=shades[k] if many else COLORS[k], lw=1.5, label=name)
    if truth is not None:
        ax.axvline(truth, color=INK, lw=1.0, ls="--", label="truth")
    _label("x", ax, along, unit)
    ax.set(ylabel="loss, scaled to 0 .. 1")
    _legend_below(figure, ax)
    return figure


def trust_curve(scan_slice: Slice, unit: str, tolerance: float) -> Any:
    """Draw how far gradient and central difference are apart along one axis, and the events."""
    (axis,) = scan_slice.axes
    figure, (ax,) = make_axes(1, 1, (6.4, 4.2))
    drawn = np.maximum(scan_slice.data.relative.sel(axis=axis.key).values, 1e-14)
    for kind, chosen in agreement(scan_slice.data, axis.key, tolerance).items():
        if chosen.any():
            color, style, label = VERDICTS[kind]
            ax.plot(axis.values[chosen], drawn[chosen], style, color=color, ms=3, label=label)
    ax.axhline(tolerance, color=SOFT, lw=1.0, ls="--")
    ax.set_yscale("log")
    _label("x", ax, axis, unit)
    ax.set(ylabel="relative difference")
    middle = (axis.values[1:] + axis.values[:-1]) / 2.0
    for name, (label, color, height) in EVENTS.items():
        if name in scan_slice.data:
            at = middle[scan_slice.data[name].sel(along=axis.key).values[:-1].astype(bool)]
            if 0 < at.size <= MOST_EVENTS * middle.size:
                ax.plot(at, np.full(at.size, height), "|", color=color, ms=9, label=label,
                        transform=ax.get_xaxis_transform())  # fmt: skip
    _legend_below(figure, ax)
    return figure


def trust_map(scan_slice: Slice, key: str, units: Mapping[str, str], tolerance: float) -> Any:
    """Draw where gradient and difference along `key` agree over two axes, and where they do not.

    Grey is where nothing can be compared: a jump or a touch within the step, or no loss.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    a, b = scan_slice.axes
    figure, (ax,) = make_axes(1, 1, (6.4, 5.4))
    kinds = agreement(scan_slice.data.transpose(a.key, b.key, ...), key, tolerance)
    counts = {kind: int(chosen.sum()) for kind, chosen in kinds.items()}
    colors = np.select([kinds["agree"], kinds["differ"]], [0, 2], 1)
    palette = ListedColormap([BLUE, NOT_COMPARED, ORANGE])
    ax.pcolormesh(
        _edges(b), _edges(a), colors, cmap=palette, vmin=-0.5, vmax=2.5, edgecolors="white",
        linewidth=0.4 if max(a.count, b.count) < MANY else 0.0,
    )  # fmt: skip
    _label("x", ax, b, units[b.key])
    _label("y", ax, a, units[a.key])
    ax.tick_params(labelsize=12)
    ax.xaxis.label.set_size(13)
    ax.yaxis.label.set_size(13)
    ax.grid(visible=False)
    ax.set_title(f"gradient along {key}", fontsize=13)
    in_step = counts["jumps"] + counts["crosses"]
    failed = int((~np.isfinite(scan_slice.loss)).sum())
    legend = [
        (BLUE, f"agrees ({counts['agree']})"),
        (NOT_COMPARED, f"jump or touch in the step ({in_step}), no loss ({failed})"),
        (ORANGE, f"differs ({counts['differ']})"),
    ]
    patches = [Patch(color=color, label=label) for color, label in legend]
    figure.legend(handles=patches, loc="outside lower center", ncols=1, fontsize=12, frameon=False)
    return figure


def _edges(axis: Axis) -> np.ndarray:
    """Return the borders of the cells of an axis of several values."""
    u = np.log(axis.values) if axis.is_log else axis.values
    middle = (u[:-1] + u[1:]) / 2.0
    ends = np.concatenate([[2.0 * u[0] - middle[0]], middle, [2.0 * u[-1] - middle[-1]]])
    return np.exp(ends) if axis.is_log else ends


def _label(which: str, ax: Any, axis: Axis, unit: str) -> None:
    """Give the x or y axis of a figure its name and its scale."""
    ax.set(**{f"{which}label": f"{axis.key} [{unit}]" if unit else axis.key})
    if axis.is_log:
        ax.set(**{f"{which}scale": "log"})
        plain_ticks(getattr(ax, f"{which}axis"))


def _legend_below(figure: Any, ax: Any, ground: str = "none") -> None:
    """Put a legend below the axes, each label once; `ground` is what white marks show on."""
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        figure.legend(
            once.values(), once.keys(), loc="outside lower center", ncols=min(3, len(once)),
            fontsize=8, facecolor=ground, framealpha=0.55, edgecolor="none",
        )  # fmt: skip
