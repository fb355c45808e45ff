"""The figure of the page: what was simulated, as dots, on closed forms, as lines."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import beams, motions, solids
from benchmarks.accuracy.resting import Resting


LINE, DOTS = "#8a8f98", "#1b5e8c"
FINER = (0.5, 1.0, 1.5, 2.0)  # cells of the bar over those of the published mesh
Axis = Any


def compared(axis: Axis, x: np.ndarray, exact: Callable, *, at: Sequence[float], value: Callable):
    """Draw a curve, and dots on it."""
    axis.plot(x, [exact(argument) for argument in x], color=LINE)
    axis.plot(at, [value(argument) for argument in at], "o", color=DOTS, ms=4)


def draw_bar(axis: Axis) -> None:
    """Draw how far the bar sinks, by its cells, and what finite elements say."""
    at = np.array([round(finer * solids.BAR_CELLS[0]) for finer in FINER])
    scenes = [Resting(partial(solids.bar, finer=finer), solids.sunk) for finer in FINER]
    axis.axhline(1e3 * solids.by_fem()[0], color=LINE)
    axis.plot(at, [1e3 * scene.value(solids.BAR_E) for scene in scenes], "o", color=DOTS, ms=4)
    axis.set(title="a bar hangs", xlabel="cells through the width", ylabel="sinks by [mm]")
    axis.set(ylim=(0.0, 50.0), xticks=at)


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
    axis.plot(t, [height(moment) for moment in t], color=LINE)
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


def draw(file: Path) -> None:
    """Write the figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"axes.titlesize": 9, "axes.labelsize": 8, "xtick.labelsize": 8,
                         "ytick.labelsize": 8}):  # fmt: skip
        figure = Figure(figsize=(9.6, 5.2), layout="constrained")
        axes = figure.subplots(2, 3).ravel()
        drawings = (draw_bar, draw_ball, draw_bounce, draw_block, draw_stretch, draw_beam)
        for axis, drawing in zip(axes, drawings, strict=True):
            drawing(axis)
        figure.savefig(file, dpi=110)
