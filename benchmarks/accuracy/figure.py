"""The figure of the page: what was simulated, as dots, on closed forms, as lines."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import beams, motions, solids
from benchmarks.accuracy.resting import Resting
from benchmarks.accuracy.rows import Row


LINE, DOTS, OTHERS = "#8a8f98", "#1b5e8c", "#c9772f"
PUBLISHED = {"explicit": 2.0, "VBD": 3.2, "XPBD": 3.7}  # tips of Newton over FEM; see the page
Axis = Any


def compared(axis: Axis, x: np.ndarray, exact: Callable, *, at: Sequence[float], value: Callable):
    """Draw a curve, and dots on it."""
    axis.plot(x, [exact(one) for one in x], color=LINE)
    axis.plot(at, [value(one) for one in at], "o", color=DOTS, ms=4)


def draw_bar(axis: Axis, rows: Sequence[Row]) -> None:
    """Draw how far the bar sinks, over what finite elements say."""
    names = ["adjsim", "adjsim, fine", *(f"Newton, {name}" for name in PUBLISHED)]
    ratios = [*(row.ratio for row in rows), *PUBLISHED.values()]
    places = np.arange(len(names))[::-1]
    axis.barh(places, ratios, color=[DOTS] * 2 + [OTHERS] * len(PUBLISHED), height=0.6)
    axis.set_yticks(places, names, fontsize=8)
    texts = [*(f"{row.ratio:.3f}" for row in rows), *(f"{one:.1f}" for one in PUBLISHED.values())]
    for place, ratio, text in zip(places, ratios, texts, strict=True):
        axis.text(ratio + 0.05, place, text, va="center", fontsize=8)
    axis.axvline(1.0, color=LINE, lw=1)
    axis.set(title="a bar hangs: tip, FEM is 1", xlim=(0, 4.4))


def draw_ball(axis: Axis) -> None:
    """Draw the pressure below the ball."""
    r, p = solids.pressure()
    x = np.linspace(0.0, 1.0, 200)
    axis.plot([*x, 1.6], [*np.sqrt(1.0 - x**2), 0.0], color=LINE)
    axis.plot(r, p, "o", color=DOTS, ms=4)
    axis.set(title="a ball is pressed in: pressure", xlabel="radius / that of the contact")


def draw_bounce(axis: Axis) -> None:
    """Draw the height of the ball over time."""
    run = motions.fallen(motions.BY_RESTITUTION, frames=range(0, 500_001, 12_500))
    first = float(np.sqrt(2.0 * motions.HEIGHT / motions.G))
    speed = motions.RESTITUTION * motions.G * first

    def height(t: float) -> float:
        if t < first:
            return motions.HEIGHT - 0.5 * motions.G * t**2
        return speed * (t - first) - 0.5 * motions.G * (t - first) ** 2

    t = np.linspace(0.0, motions.UNTIL, 300)
    axis.plot(t, [height(one) for one in t], color=LINE)
    axis.plot(run.trajectory.times, run.trajectory.x[:, 0, 1], "o", color=DOTS, ms=3)
    axis.set(title="a ball falls and bounces", xlabel="time [s]", ylabel="height [m]")


def draw_block(axis: Axis) -> None:
    """Draw how far a block slides in a second, by friction."""
    pull, push = motions.G * np.sin(motions.ANGLE), motions.G * np.cos(motions.ANGLE)
    x = np.linspace(0.0, 0.9, 200)
    compared(
        axis, x, lambda mu: 0.5 * max(pull - mu * push, 0.0), at=np.linspace(0.05, 0.85, 9),
        value=lambda mu: motions.way_of(motions.slid(mu)),
    )  # fmt: skip
    axis.set(title="a block on a slope of 30°", xlabel="friction", ylabel="slides in 1 s [m]")


def draw_stretch(axis: Axis) -> None:
    """Draw the stress of a bar that is stretched."""
    scene = Resting(solids.pulled, solids.pull_of_plate)
    at = np.concatenate([np.arange(1.0, 0.55, -0.1), np.arange(1.1, 2.05, 0.1)])
    x = np.linspace(0.6, 2.0, 100)
    values = []
    for s in at:
        scene.last = None if s == 1.1 else scene.last
        values.append(scene.value(s))
    axis.plot(x, [1e-3 * solids.stress(s) for s in x], color=LINE)
    axis.plot(at, 1e-3 * np.array(values), "o", color=DOTS, ms=4)
    axis.set(title="a bar is stretched", xlabel="stretch", ylabel="stress [kPa]")


def draw_beam(axis: Axis) -> None:
    """Draw by how much a beam of tetrahedra is too stiff, by their edges."""
    at, exact = np.array([1, *beams.THROUGH]), beams.timoshenko(beams.THICK)
    scenes = [Resting(lambda t, n=int(n): beams.beam(t, n), beams.tip) for n in at]
    off = [exact / scene.value(beams.THICK) - 1.0 for scene in scenes]
    axis.loglog(at, off[-1] * (at[-1] / at) ** 2.0, color=LINE)
    axis.loglog(at, off, "o", color=DOTS, ms=4)
    axis.set(title="a beam bends: too stiff by", xlabel="cells through the thickness")
    axis.set_xticks(at, [str(n) for n in at], minor=False)
    axis.minorticks_off()


def draw(file: Path, bar_rows: Sequence[Row]) -> None:
    """Write the figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"axes.titlesize": 9, "axes.labelsize": 8, "xtick.labelsize": 8,
                         "ytick.labelsize": 8}):  # fmt: skip
        figure = Figure(figsize=(9.6, 5.2), layout="constrained")
        axes = figure.subplots(2, 3).ravel()
        draw_bar(axes[0], bar_rows)
        others = (draw_ball, draw_bounce, draw_block, draw_stretch, draw_beam)
        for axis, one in zip(axes[1:], others, strict=True):
            one(axis)
        figure.savefig(file, dpi=110)
