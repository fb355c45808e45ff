"""What the chapters share: two listings side by side, and the plot of a Taylor test."""

import inspect
from html import escape
from textwrap import dedent

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


BLUE, RED, GREY = "#1b5e8c", "#b3442b", "#8a8f98"

plt.rcParams.update(
    {
        "figure.dpi": 110,
        "savefig.bbox": "tight",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "legend.frameon": False,
    }
)


def source(*functions):
    """Source text of functions, compiled or not, without their decorator."""
    texts = [dedent(inspect.getsource(getattr(f, "py_func", f))).strip() for f in functions]
    return "\n\n\n".join(text.removeprefix("@device_fn\n") for text in texts)


def side_by_side(left, right, captions=("forward", "adjoint")):
    """Show functions in two columns; `left` and `right` are tuples of functions."""
    columns = []
    for caption, functions in zip(captions, (left, right), strict=True):
        code = highlight(source(*functions), PythonLexer(), HtmlFormatter())
        columns.append(f"<figure><figcaption>{escape(caption)}</figcaption>{code}</figure>")
    return HTML(f'<div class="side-by-side">{"".join(columns)}</div>')


def taylor_plot(tests):
    """Draw the remainders R0 and R1 of Taylor tests by label over the step."""
    figure, axes = plt.subplots(
        1, len(tests), figsize=(4.2 * len(tests), 3.4), sharey=True, squeeze=False
    )
    for axis, (label, test) in zip(axes[0], tests.items(), strict=True):
        for r, color, name in (
            (test.r0, GREY, "without gradient, $R_0$"),
            (test.r1, BLUE if test.passed else RED, "with gradient, $R_1$"),
        ):
            axis.loglog(test.eps, r, "o-", ms=3.5, lw=1.2, color=color, label=name)
        for order, r in ((1, test.r0), (2, test.r1)):
            axis.loglog(test.eps, r[0] * (test.eps / test.eps[0]) ** order, ":", lw=1, color="k")
        axis.axhline(test.noise, lw=0.8, ls="--", color=GREY)
        axis.set(title=f"{label}: slope {test.slope1:.2f}", xlabel=r"step $\varepsilon$")
        axis.set_ylim(0.1 * test.noise, 30 * test.r0.max())
        axis.legend(loc="upper left", fontsize=8)
    axes[0, 0].set_ylabel("remainder")
    return figure


def signed_maps(maps, image=None, *, scale=None, columns=4, width=9.0):
    """Draw signed maps (height, width) by label, blue below 0, red above, roots of values.

    They share a scale, by default the largest value, whose root has the full colour.
    """
    scale = scale or max(abs(value).max() for value in maps.values())
    panels = ({} if image is None else {"image": image}) | maps
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    height, across = next(iter(maps.values())).shape
    size = (width, rows * (width / columns * height / across + 0.3))
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axis, (label, value) in zip(axes.ravel(), panels.items(), strict=False):
        if value.ndim == 3:
            axis.imshow(value[..., :3].clip(0, 1), interpolation="nearest")
        else:
            shown = np.sign(value) * np.sqrt(abs(value) / scale)
            axis.imshow(shown, "RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
        axis.set_title(label, fontsize=9)
    for axis in axes.ravel():
        axis.axis("off")
    return figure
