"""Figures of a run, as functions of its results. Each returns a figure of Matplotlib."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from studies.answer.scales import uncertainty
from studies.reports.numbers import SUPERSCRIPT
from studies.runs import folder as run_folder
from studies.runs.evaluations import Evaluation
from studies.runs.folder import RunFolder


INK, SOFT, BLUE, ORANGE, GREEN = "#1d2733", "#8a96a3", "#2f6db3", "#d2622a", "#3a8a5f"
GRID = "#e6eaee"
# The colours of a chart on a dark page, by those that are drawn. Colour maps stay as they are.
ON_DARK = {
    "#000000": "#e4e9ee", INK: "#e4e9ee", GRID: "#35404b", BLUE: "#6ea6e6", ORANGE: "#ec8f5e",
    GREEN: "#62b98a",
}  # fmt: skip
DECADES = 1e3  # ends of an axis so far apart: only powers of ten have labels
MOST_VECTORS = 1000  # points of a line or a map: of more, a picture is smaller
COMPARED = ("start", "target", "fitted")
TINY = float(np.finfo(np.float64).tiny)
LABEL = 18  # letters of a name in a line
FEW = 8  # directions that have a tick each
NEAR_SLOPE = 0.1  # how near to a slope a remainder follows it
LEAST_BAND = 0.012  # of the height of its axes: a lower one lies within the line of an estimate
FAR = 10.0  # times the values, beyond which no interval is drawn
WITHIN = 0.98  # of the points of a cloud, whose distances the colours span
POINTS = 6  # tracked ones whose curves are drawn
INSTANTS = 5  # of a film that stand side by side
TALLEST = 40.0  # figure of pictures [inches]
GAP = 0.03  # between pictures, of their width
NEAR_ROUNDING = 1e6  # of a spectrum: else its line would leave most of the figure empty
LEAST_PART = 0.01  # of a half-width: smaller parts of a budget are not drawn
LEAST_DISTANCE = 1e-3  # that colours show [mm]
LEAST_LOSS = 1e-36  # what is less is 0 up to rounding, and is drawn here


def make_axes(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = (4.6, 3.2)
) -> tuple[Any, Any]:
    """Return an empty figure of this size [inches], and its axes, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors=INK, labelsize=9)
        ax.grid(color=GRID, linewidth=0.8)
        ax.set_axisbelow(True)
    return figure, axes


def bare(ax: Any) -> None:
    """Take grid, frame and ticks from axes that show a picture."""
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    ax.set(xticks=[], yticks=[])


def named(name: str, unit: str) -> str:
    """Return the label of an axis: what it shows and its unit, where there is one."""
    return f"{name} [{unit}]" if unit else name


def plain_ticks(axis: Any) -> None:
    """Write 1, 2 and 5 of each power of ten on a logarithmic axis, and no more."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _over_evaluations(ends: Sequence[int] = ()) -> tuple[Any, Any]:
    """Return a panel over evaluations, with lines where stages of the search end."""
    from matplotlib.ticker import MaxNLocator

    figure, (ax,) = make_axes()
    ax.set_xlabel("evaluations")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))  # there is no half of one
    for end in ends:
        ax.axvline(end + 0.5, color=SOFT, lw=1.0, ls="--")
    return figure, ax


def png(figure: Any, dpi: int = 170) -> bytes:
    """Return a figure as a PNG: as `figure.savefig` does, which would draw it twice."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure.dpi = dpi
    canvas = FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    canvas.print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def svg(figure: Any) -> str:
    """Return a figure as an SVG without a ground, in other colours where the page is dark."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    figure.dpi = 120  # of what is no vector
    for panel in (figure, *figure.axes):
        panel.patch.set_visible(False)
    for ax in figure.axes:
        for artist in (*ax.lines, *ax.collections):
            artist.set_rasterized(_count(artist) > MOST_VECTORS)
        for axis in (ax.xaxis, ax.yaxis):
            _write_powers(axis)
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "adjsim"}):  # names of parts that are the same each time
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})
    rules = "".join(
        f'[style*="{kind}: {light}"]{{{kind}:{dark}!important}}'
        for light, dark in ON_DARK.items()
        for kind in ("stroke", "fill")
    )
    dark = f"@media screen and (prefers-color-scheme:dark){{svg{{fill:{ON_DARK[INK]}}}{rules}}}"
    return buffer.getvalue().replace("</style>", f"{dark}</style>", 1)


def _write_powers(axis: Any) -> None:
    """Write powers of ten on a logarithmic axis as text: to set them as mathematics takes long."""
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, NullFormatter

    low, high = sorted(axis.get_view_interval())
    is_wide = low > 0.0 and high > DECADES * low
    if is_wide and isinstance(axis.get_major_formatter(), LogFormatterMathtext):
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: f"10{f'{np.log10(value):.0f}'.translate(SUPERSCRIPT)}")
        )
        axis.set_minor_formatter(NullFormatter())


def _count(artist: Any) -> int:
    """Return of how many points an artist is."""
    if hasattr(artist, "get_xdata"):
        return len(artist.get_xdata())
    corners = sum(len(path.vertices) for path in artist.get_paths())
    return max(len(artist.get_offsets()), corners)


@dataclass(frozen=True)
class FigureFiles:
    """Writes figures into a run folder."""

    folder: RunFolder
    formats: tuple[str, ...] = ()  # beside the SVG of the page: "pdf" or "png"

    def save(self, name: str, figure: Any) -> str:
        """Write a figure in all formats; return the file of the page."""
        file = f"{run_folder.FIGURES}/{name}"
        for form in self.formats:
            with self.folder.replacing(f"{file}.{form}") as temporary:
                figure.savefig(temporary, format=form, facecolor="none", dpi=170)
        self.folder.write_text(f"{file}.svg", svg(figure))
        return f"{file}.svg"


def loss(
    log: list[Evaluation], others: Sequence[list[Evaluation]] = (), ends: Sequence[int] = ()
) -> Any:
    """Draw the loss against evaluations, on a log scale; faint, that of other starts.

    `ends` are the evaluations after which a stage of the search ended.
    """
    figure, ax = _over_evaluations(ends)

    def finite(some: list[Evaluation]) -> np.ndarray:
        known = [(e.spent, max(e.loss, LEAST_LOSS)) for e in some if np.isfinite(e.loss)]
        return np.reshape(known, (-1, 2)).T

    for number, other in enumerate(others):
        label = "other starts" if number == 0 else None
        ax.semilogy(*finite(other), "o-", color=SOFT, ms=2.0, lw=0.8, alpha=0.6, label=label)
    spent, losses = finite(log)
    for after, end in zip([0, *ends], [*ends, np.inf], strict=True):  # each has losses of its own
        mine = (spent > after) & (spent <= end)
        label = "this search" if after == 0 else None
        ax.semilogy(spent[mine], losses[mine], "o-", color=BLUE, ms=3.5, lw=1.4, label=label)
    blown = [e.spent for e in log if not np.isfinite(e.loss)]
    if blown:
        ax.plot(blown, [max(losses)] * len(blown), "x", color=ORANGE, label="blew up")
    if blown or others:
        ax.legend(frameon=False, fontsize=9)
    ax.set_ylabel("loss [-]")
    return figure


def curve(
    points: Sequence[tuple[int, Any]], label: str, *, ends: Sequence[int] = (),
    bar: float | None = None, color: str = BLUE, scale: str = "linear",
) -> Any:  # fmt: skip
    """Draw a measure against evaluations, and the bar that it is held against."""
    figure, ax = _over_evaluations(ends)
    ax.set_yscale(scale)
    ax.plot(*np.array(points, float).reshape(-1, 2).T, "o-", color=color, ms=3.5, lw=1.4)
    if bar is not None:
        ax.axhline(bar, color=ORANGE, lw=1.4, ls="--")
    ax.set_ylabel(label)
    return figure


def parameter(arrays: dict[str, np.ndarray], row: dict[str, Any], ends: Sequence[int] = ()) -> Any:
    """Draw one parameter against evaluations, with its truth where that is known."""
    figure, ax = _over_evaluations(ends)
    values = arrays["history"][:, row["index"]]
    ax.plot(arrays["evaluations"], values, "o-", color=BLUE, ms=3.5, lw=1.4, label="estimate")
    if "truth" in row:
        ax.axhline(row["truth"], color=ORANGE, lw=1.4, ls="--", label="truth")
    low, high = float(values.min()), float(values.max())
    if low > 0.0 and high > 2.0 * low:
        ax.set_yscale("log")
        plain_ticks(ax.yaxis)
    if row["interval"]:  # without what lies far from all values, which would hide them
        reach = FAR * ((high - low) or abs(high) or 1.0)
        least, most = (low / FAR, high * FAR) if low > 0.0 else (low - reach, high + reach)
        interval = np.clip(row["interval"], least, most)
        band = ax.axhspan(*interval, color=BLUE, alpha=0.15, lw=0)
        foot, top = ax.get_ylim()
        heights = np.array([foot, *interval.clip(foot, top), top])
        heights = np.log(heights) if ax.get_yscale() == "log" else heights
        if heights[2] - heights[1] >= LEAST_BAND * (heights[3] - heights[0]):
            band.set_label("95 % interval")
        else:  # it would look like a line of the grid
            band.remove()
    ax.set_ylabel(named(row["name"], row["unit"]))
    ax.legend(frameon=False, fontsize=9)
    return figure


def many(arrays: dict[str, np.ndarray], row: dict[str, Any]) -> Any:
    """Draw the components of a parameter that has many: estimates over the truth."""
    figure, (ax,) = make_axes()
    mine = [name.split("[")[0] == row["name"] for name in arrays["names"].tolist()]
    history = arrays["history"]  # of what was searched first: cameras beside it come after
    estimate, start = arrays["estimate"][mine], history[0][mine[: history.shape[1]]]
    along = arrays["truth"][mine] if "truth" in arrays else np.arange(len(estimate))
    ax.plot(along, estimate, "o", color=BLUE, ms=3.5, label="estimate")
    ax.plot(along, start, ".", color=SOFT, ms=2.5, label="start")  # thousands would hide it
    if "truth" in arrays:
        ends = [along.min(), along.max()]
        ax.plot(ends, ends, "--", color=ORANGE, lw=1.2, label="truth")
    ax.set_xlabel(named("truth", row["unit"]) if "truth" in arrays else "component")
    ax.set_ylabel(named(row["name"], row["unit"]))
    ax.legend(frameon=False, fontsize=9)
    return figure


def spectrum(values: np.ndarray) -> Any:
    """Draw the singular values of the Jacobian, on a log scale; few of them as stems."""
    figure, (ax,) = make_axes()
    along, shown = np.arange(1, len(values) + 1), np.maximum(values, TINY)
    rounding = values[0] * np.finfo(np.float64).eps
    few = len(values) <= FEW
    ax.semilogy(along, shown, "o" if few else "o-", color=BLUE, ms=5.0 if few else 3.5)
    if shown.min() < NEAR_ROUNDING * rounding:
        ax.axhline(rounding, color=ORANGE, lw=0.9, ls="--")
        ax.annotate(
            "rounding", (0.0, rounding), fontsize=8, color=ORANGE, xytext=(3, 3),
            xycoords=ax.get_yaxis_transform(), textcoords="offset points",
        )  # fmt: skip
    if few:
        foot, top = ax.get_ylim()
        ax.vlines(along, foot, shown, color=BLUE, lw=1.4)
        ax.set(xticks=along, xlim=(0.5, len(values) + 0.5), ylim=(foot, top))
    ax.set(xlabel="direction, best determined first", ylabel="singular value of the Jacobian")
    return figure


def budget(name: str, answer: Mapping[str, Any]) -> Any:
    """Draw the parts of the interval of an answer as bars, those of declared numbers in colour."""
    rows = [row for row in answer["parts"] if row["half_width"] > LEAST_PART * answer["half_width"]]
    figure, (ax,) = make_axes(size=(7.2, 1.1 + 0.3 * len(rows)))
    labels = [
        f"{row['name'].replace('`', '')}, ± {uncertainty(row['error'], row['unit'])}"
        if "key" in row
        else row["name"]
        for row in rows
    ]
    widths = [100.0 * row["half_width"] for row in rows]
    colors = [ORANGE if "key" in row else BLUE for row in rows]
    bars = ax.barh(labels, widths, color=colors, height=0.62)
    ax.bar_label(bars, [f"{width:.2g} %" for width in widths], padding=3, fontsize=9, color=INK)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.grid(visible=False, axis="y")
    total = f"± {100.0 * answer['half_width']:.2g} %"
    ax.set_xlabel(f"half-width of the 95 % interval of {name}: all together {total}", loc="right")
    return figure


def instances(table: dict[str, Any]) -> Any:
    """Draw the errors of all instances, one column per parameter, on a log scale."""
    rows, records = table["parameters"], table["records"]
    figure, (ax,) = make_axes(1, 1, (max(4.6, 1.1 * len(rows) + 1.5), 3.4))
    for i, row in enumerate(rows):
        errors = np.array([max(record["errors"][row["name"]]["mean"], 1e-17) for record in records])
        ax.plot(i + np.linspace(-0.18, 0.18, len(errors)), errors, "o", color=BLUE, ms=3.5)
        ax.plot([i - 0.3, i + 0.3], [max(row["median"], 1e-17)] * 2, color=INK, lw=1.8)
        if row["published"] is not None:
            ax.plot([i - 0.3, i + 0.3], [row["published"]] * 2, "--", color=SOFT, lw=1.4)
    ax.set_yscale("log")
    names = ["\n".join(wrap(row["name"].replace(".", ". "), LABEL)) for row in rows]
    ax.set_xticks(range(len(rows)), [name.replace(". ", ".") for name in names], fontsize=9)
    ax.set(ylabel="error")
    kinds = [("instance", "o", BLUE), ("median", "-", INK)]
    kinds += [("published", "--", SOFT)] if any(row["published"] for row in rows) else []
    for label, style, color in kinds:
        ax.plot([], [], style, color=color, ms=3.5, label=label)
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def taylor(name: str, point: dict[str, Any]) -> Any:
    """Draw the Taylor remainders at one point of the certificate, with slopes 1 and 2.

    R1 lies on R0 where the gradient vanishes: R0 has wide open markers, and stays to be seen.
    """
    figure, (ax,) = make_axes(1, 1, (4.6, 3.6))
    test = point["taylor"]
    eps = np.array(test["eps"])
    wide, thin = {"mfc": "none", "ms": 7.5, "lw": 3.2}, {"ms": 3.5, "lw": 1.8}
    curves = (
        ("r0", 1, ":", {"color": SOFT, "label": "R0, without gradient"} | wide),
        ("r1", 2, "--", {"color": BLUE, "label": "R1, with gradient"} | thin),
    )
    for key, slope, dashes, style in curves:
        r = np.array(test[key], float)  # NaN in place of None
        r = np.where(r > 0.0, r, np.nan)
        ax.loglog(eps, r, "o-", **style)
        falls = np.abs(np.log2(r[:-1] / r[1:]) - slope) < NEAR_SLOPE  # at a halving of the step
        if key == "r1" or falls.any():  # R1 shall fall so, R0 need not
            known = np.flatnonzero(np.isfinite(r))[-1:]
            line = r[known] * (eps / eps[known]) ** slope
            if known.size:
                ax.loglog(eps, line, dashes, color=INK, lw=0.9, zorder=3, label=f"slope {slope}")
    if test["noise"]:
        ax.axhline(test["noise"], color=ORANGE, lw=0.9, ls="--", label="rounding noise")
    ax.set(xlabel="step in theta", ylabel="remainder")
    ax.set_title(f"at the {name}", fontsize=10)
    figure.legend(  # below: inside it would lie on a curve, or on the line of the noise
        loc="outside lower center", ncols=3, frameon=False, fontsize=8, handlelength=1.6,
        columnspacing=1.2,
    )  # fmt: skip
    return figure


def field(images: Mapping[str, np.ndarray], about: Mapping[str, Any], name: str) -> Any:
    """Draw pictures of a body in the colours of a field, on one scale with a colour bar."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    height, width = next(iter(images.values())).shape[:2]
    tall = min(4.6 * height / width, 4.6)
    figure, axes = make_axes(1, len(images), (4.6 * len(images) + 0.9, tall + 0.3))
    for ax, (title, image) in zip(axes, images.items(), strict=True):
        ax.imshow(np.clip(image, 0.0, 1.0))
        bare(ax)
        ax.set_title(title, fontsize=11)
    scale = ScalarMappable(Normalize(about["low"], about["high"]), cmap="viridis")
    figure.colorbar(
        scale, ax=axes, label=named(name, about["unit"].strip("-")), fraction=0.04, pad=0.02
    )
    return figure


def points(arrays: Mapping[str, np.ndarray]) -> Any:
    """Draw the first tracked points over time, dots, and their predictions, lines.

    `arrays` are what `studies.problem.observers.Observer.curves` returns.
    """
    observed, predicted, labels = arrays["observed"], arrays["predicted"], arrays["labels"]
    figure, axes = make_axes(1, len(labels), (3.2 * len(labels), 2.8))
    for k, (ax, label) in enumerate(zip(axes, labels, strict=True)):
        for point in range(min(observed.shape[1], POINTS)):
            ax.plot(arrays["times"], observed[:, point, k], ".", color=SOFT, ms=4)
            ax.plot(arrays["times"], predicted[:, point, k], color=BLUE, lw=1.2)
        ax.set(xlabel="time [s]", ylabel=str(label))
    return figure


def cloud(arrays: Mapping[str, np.ndarray]) -> Any:
    """Draw measured points over a surface at a few instants, coloured by their distance from it.

    `arrays` are what `studies.problem.observers.Observer.over_surface` returns. The view is along
    the shortest side of what is measured.
    """
    points, x, distances = arrays["points"], arrays["vertices"], 1e3 * arrays["distances"]
    sides = np.ptp(x.reshape(-1, 3), axis=0)
    across, up = np.sort(np.argsort(sides, kind="stable")[1:])
    measured = np.abs(distances[np.isfinite(points[..., 0])])
    widest = float(np.nanquantile(measured, WITHIN)) if measured.size else 0.0
    widest = max(widest, LEAST_DISTANCE)
    ratio = float(np.clip(sides[up] / sides[across], 0.3, 2.0))
    n = len(points)
    figure, axes = make_axes(1, n, (3.2 * n + 0.8, 3.2 * ratio + 0.8))
    for k, ax in enumerate(axes):
        ax.triplot(x[k, :, across], x[k, :, up], arrays["faces"], color=SOFT, lw=0.3)
        ax.scatter(
            points[k, :, across], points[k, :, up], c=distances[k], s=5, cmap="coolwarm",
            vmin=-widest, vmax=widest,
        )  # fmt: skip
        inside = distances[k][np.isfinite(points[k, :, 0])]
        off = f"{np.sqrt(np.square(inside).mean()):.2g} mm rms" if inside.size else "nothing seen"
        ax.set(
            aspect="equal",
            xlabel=f"{'xyz'[across]} [m]",
            ylabel=f"{'xyz'[up]} [m]",
            title=f"{arrays['times'][k]:.3g} s: {off}",
        )
    figure.colorbar(axes[-1].collections[-1], ax=axes.tolist(), label="distance outwards [mm]")
    return figure


def compared(frames: Mapping[str, np.ndarray]) -> Any:
    """Draw start, target, fitted and their difference, made visible, at a few instants.

    `frames` has their pictures, (n, height, width, 3 or 4) each, and `times` [s]. Many instants
    stand side by side; up to two below each other.
    """
    chosen = np.unique(np.rint(np.linspace(0, len(frames["target"]) - 1, INSTANTS)).astype(int))
    times = frames["times"]
    moves = np.ptp(times) > 0.0  # a single instant needs no name
    titles = [f"{1e3 * times[index]:.0f} ms" if moves else "" for index in chosen]
    images = {key: frames[key][chosen][..., :3] for key in COMPARED}
    difference = images["fitted"] - images["target"]
    images["difference"] = 0.5 + difference_gain(float(np.abs(difference).max())) * difference
    rows = [list(row) for row in images.values()]
    if len(titles) <= 2:
        below = list(zip(*rows, strict=True))
        return pictures(below, titles, list(images), interpolation="nearest")
    return pictures(rows, list(images), titles, interpolation="nearest")


def pictures(
    rows: Sequence[Sequence[np.ndarray]],
    beside: Sequence[str],
    above: Sequence[str],
    interpolation: str | None = None,
) -> Any:
    """Draw rows of pictures (height, width, 3 or 4) of one size, with names of rows and columns.

    They are one image in one pair of axes, whose ticks are the names: with axes for each, it took
    three times as long.
    """
    height, width = rows[0][0].shape[:2]
    down, count, gap = len(rows), len(rows[0]), max(1, round(GAP * width))
    tall, wide = height + gap, width + gap
    canvas = np.zeros((down * tall - gap, count * wide - gap, 4))  # what is between them is clear
    for r, row in enumerate(rows):
        for c, picture in enumerate(row):
            place = np.s_[r * tall : r * tall + height, c * wide : c * wide + width]
            canvas[place] = 1.0
            canvas[place][..., :3] = np.clip(picture[..., :3], 0.0, 1.0)
    across = min(9.0, 2.6 * count, TALLEST * canvas.shape[1] / canvas.shape[0])
    size = across, across * canvas.shape[0] / canvas.shape[1] + (0.25 if len(above) else 0.0)
    figure, (ax,) = make_axes(1, 1, size)
    bare(ax)
    ax.imshow(canvas, interpolation=interpolation)
    ax.set_xticks(0.5 * (width - 1) + wide * np.arange(len(above)), above, fontsize=10)
    middles = 0.5 * (height - 1) + tall * np.arange(len(beside))
    ax.set_yticks(middles, beside, fontsize=10, rotation=90.0, va="center")
    ax.tick_params(length=0.0, labeltop=True, labelbottom=False)
    return figure


def difference_gain(largest: float) -> float:
    """Return the power of ten that makes a difference visible; 1 below float32 rounding."""
    if largest < 1e-6:
        return 1.0
    return float(max(1.0, 10.0 ** np.floor(np.log10(0.5 / largest))))
