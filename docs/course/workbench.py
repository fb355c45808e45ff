"""What the chapters share: listings side by side, drawings, and the plot of a Taylor test."""

import inspect
import re
from html import escape
from textwrap import dedent

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


BLUE, RED, GREY = "#1b5e8c", "#b3442b", "#8a8f98"
COLORS = {"blue": BLUE, "red": RED, "green": "#2c7a4b", "grey": GREY, "paper": "#fff"}

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


def _marked(line, name):
    """Return a line of HTML, its number `# (3)` in a colour of its own; `name` is its function."""
    number = re.search(r"# \((\d+)\)", line)
    if number is None:
        return line
    hue = f"--hue:{int(number[1]) * 137}"
    data = f'class="line-number" data-function="{name}" data-line="{number[1]}"'
    return line.replace(number[0], f'<b {data} style="{hue}">{number[0]}</b>')


def listing(caption, functions):
    """Return functions as a figure of HTML, one block per line, and how wide it should be.

    A number `# (3)` is marked, so that the page can join it to its namesake in the other listing.
    """
    text = source(*functions)
    coloured = highlight(text, PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
    lines, name = [], ""
    for plain, line in zip(text.split("\n"), coloured.split("\n"), strict=True):
        indent = len(plain) - len(plain.lstrip())
        if head := re.match(r"\s*def (\w+?)(_vjp|_jvp)?\(", plain):
            name = head[1]
        style = f"--indent:{indent}ch"
        lines.append(f'<span class="line" style="{style}">{_marked(line, name)}\n</span>')
    code = f'<div class="highlight"><pre>{"".join(lines)}</pre></div>'
    figure = f"<figure><figcaption>{escape(caption)}</figcaption>{code}</figure>"
    return figure, np.quantile([len(line) for line in text.split("\n")], 0.9)


def side_by_side(left, right, captions=("forward", "adjoint")):
    """Show functions in two columns; `left` and `right` are tuples of functions."""
    (first, width), (second, other) = map(listing, captions, (left, right))
    share = np.clip(width / (width + other), 0.38, 0.62)
    style = f"--left:{share:.2f}fr;--right:{1 - share:.2f}fr"
    return HTML(f'<div class="side-by-side" style="{style}">{first}{second}</div>')


def _color(name):
    """Return a colour of the page, or one for notebooks, whose pages have none."""
    return f"var(--drawing-{name}, {COLORS[name]})" if name in COLORS else "currentColor"


class Drawing:
    """A drawing as SVG, y upwards, in the colours of the page, be it light or dark.

    `x` and `y` are the ranges that are drawn, `width` its width in pixels where there is room.
    Colours are "ink", "blue", "red", "green", "grey" and "paper".
    """

    def __init__(self, x, y, caption="", width=400):
        self.scale, self.origin = width / (x[1] - x[0]), np.array([x[0], y[1]])
        self.size, self.caption, self.parts = (width, self.scale * (y[1] - y[0])), caption, []

    def pixels(self, points):
        """Return places in the picture, (..., 2), y downwards."""
        return (np.asarray(points, float) - self.origin) * self.scale * [1.0, -1.0]

    def line(self, points, color="ink", width=1.5, dash="", fill=0.0, extra=""):
        """Draw a line through points, (n, 2), or an area of an opacity `fill`; `extra` is SVG."""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.pixels(points))
        color = _color(color)
        inside = f"fill:{color};fill-opacity:{fill}" if fill else "fill:none"
        style = f"stroke:{color};stroke-width:{width};stroke-dasharray:{dash or 'none'};{inside}"
        kind = "polygon" if fill else "polyline"
        self.parts.append(f'<{kind} points="{places}" style="{style}">{extra}</{kind}>')

    def arrow(self, start, step, color="ink", width=2.0, head=9.0):
        """Draw arrows, (2,) or (n, 2); heads have `head` pixels, or less on a short arrow."""
        strokes, starts = [], self.pixels(start).reshape(-1, 2)
        ways = np.reshape(step, (-1, 2)) * [self.scale, -self.scale]
        for a, way in zip(starts, ways, strict=True):
            length = np.hypot(*way)
            if length < 1.0:
                continue
            ahead = min(head, 0.5 * length) * way / length
            side = 0.5 * np.array([-ahead[1], ahead[0]])
            places = (a, a + way, a + way - ahead + side, a + way, a + way - ahead - side)
            strokes.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places))
        style = f"fill:none;stroke:{_color(color)};stroke-width:{width};stroke-linejoin:round"
        self.parts.append(f'<path d="{"".join(strokes)}" style="{style}"/>')

    def dots(self, points, color="ink", r=4.0):
        """Draw points, (n, 2), with a radius in pixels."""
        for x, y in self.pixels(points).reshape(-1, 2):
            style = f"fill:{_color(color)}"
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" style="{style}"/>')

    def text(self, place, text, color="ink", anchor="middle", size=15, shift=(0, 0)):
        """Write a text, moved by pixels; what stands between `*` is in italics."""
        x, y = self.pixels(place) + np.multiply(shift, [1, -1]) + [0, 0.35 * size]
        marked = re.sub(r"\*(.+?)\*", r'<tspan font-style="italic">\1</tspan>', escape(text))
        style = f"fill:{_color(color)};text-anchor:{anchor};font:{size}px sans-serif"
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" style="{style}">{marked}</text>')

    def html(self):
        """Return the drawing with its caption, as a figure of HTML."""
        width, height = self.size
        caption = f"<figcaption>{self.caption}</figcaption>" if self.caption else ""
        label = escape(re.sub("<.*?>", "", self.caption), quote=True)
        return (
            f'<figure><svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{label}">'
            f"{''.join(self.parts)}</svg>{caption}</figure>"
        )


def drawings(*panels):
    """Show drawings abreast, or below each other where the page is narrow."""
    return HTML(f'<div class="drawings">{"".join(panel.html() for panel in panels)}</div>')


PLAYER = """
(() => {
  const film = document.currentScript.closest("figure");
  const frames = film.querySelectorAll("svg > g");
  const [button, slider, output] = ["button", "input", "output"].map((e) => film.querySelector(e));
  let timer;
  const show = () => {
    frames.forEach((frame, k) => (frame.style.display = k === Number(slider.value) ? "" : "none"));
    output.textContent = frames[slider.value].dataset.label;
  };
  button.onclick = () => {
    if (timer) timer = clearInterval(timer);
    else timer = setInterval(() => {
      slider.value = (Number(slider.value) + 1) % frames.length;
      show();
    }, 120);
    button.textContent = timer ? "Pause" : "Play";
  };
  slider.oninput = show;
  show();
})();
"""


def film(frames, labels, caption, start=0):
    """Show drawings of one size one after the other, with a slider; `start` is seen first."""
    width, height = frames[0].size
    groups = "".join(
        f'<g data-label="{escape(label)}" style="{"" if k == start else "display:none"}">'
        f"{''.join(frame.parts)}</g>"
        for k, (frame, label) in enumerate(zip(frames, labels, strict=True))
    )
    return HTML(
        '<div class="drawings film"><figure>'
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(caption)}">'
        f'{groups}</svg><div><button type="button">Play</button> '
        f'<input type="range" aria-label="frame" max="{len(frames) - 1}" value="{start}"> '
        f"<output></output></div><figcaption>{caption}</figcaption>"
        f"<script>{PLAYER}</script></figure></div>"
    )


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
