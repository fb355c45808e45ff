"""What a wrong model does, in one picture: the loss over the mass, and the video beside the fit."""

from typing import Any

import numpy as np

from studies.looks import Look
from studies.paper.model_errors.scenes import MASS, Case
from studies.paper.model_errors.study import TOLD
from studies.paper.tables.scan import landscape
from studies.reports.figures import BLUE, GREEN, INK, ORANGE, SOFT, difference_gain, make_axes, png


SHOWN = 5  # instants
LEAST_PART = 1e-6  # a smaller relative error is called none


def draw(case: Case, theta: np.ndarray, points: int) -> Look:
    """Draw the landscape of a case and its video beside the fit that a search ended with.

    Parameters
    ----------
    case : Case
    theta : numpy.ndarray
        Where the search ended, (1,).
    points : int
        Of the landscape.
    """
    found = float(case.problem.parameters.values(theta)[MASS])
    off = found / case.body.mass - 1.0
    images = case.problem.images(theta)[..., :3]
    gain = difference_gain(float(np.abs(images - case.problem.targets).max()))
    enlarged = "" if gain == 1.0 else f" times {gain:.3g}"
    far = f"{off:+.1%}" if abs(off) > LEAST_PART else "the same to rounding"
    name = str(case.kind)
    caption = (
        f"{TOLD[case.kind]} The body of the median error, a {case.body.what}: {case.body.mass:.4g} "
        f"kg hidden, {found:.4g} kg found{_bound(case, theta)}, {far}. Left the loss over "
        "the mass, of the model of the fit and of that of the video as our renderer shows it. "
        f"Right the video, the fit where its search ended, and their difference{enlarged}."
    )
    data = png(_figure(case, theta, images, points))
    return Look(f"model-{name}", name.replace("-", " "), caption, data)


def _bound(case: Case, theta: np.ndarray) -> str:
    """Return what to say of a search that ended at a bound: the error is that of the bound."""
    parameters = case.problem.parameters
    ends = ((theta <= parameters.lower, "lower"), (theta >= parameters.upper, "upper"))
    return "".join(f" (the {end} bound of the search)" for at, end in ends if at.any())


def _figure(case: Case, theta: np.ndarray, images: np.ndarray, points: int) -> Any:
    targets = case.problem.targets
    height, width = targets.shape[1:3]
    figure, axes = make_axes(1, 3, (12.0, 0.7 + 3.0 * 8.0 / SHOWN * height / width))
    _curves(axes[0], case, theta, points)
    axes[2].remove()
    axes[1].set_subplotspec(axes[0].get_gridspec()[1:])
    chosen = np.unique(np.rint(np.linspace(0, len(targets) - 1, SHOWN)).astype(int))
    gain = difference_gain(float(np.abs(images - targets).max()))
    rows = [targets[chosen], images[chosen], 0.5 + gain * (images - targets)[chosen]]
    gap = np.ones((2, (width + 2) * len(chosen), 3))
    sheet = [gap]
    for row in rows:
        framed = np.pad(row, ((0, 0), (0, 0), (1, 1), (0, 0)), constant_values=1.0)
        sheet += [np.concatenate(list(framed), axis=1), gap]
    ax = axes[1]
    ax.imshow(np.clip(np.concatenate(sheet), 0.0, 1.0), interpolation="nearest")
    middle = 2 + 0.5 * height + (height + 2) * np.arange(3)
    ax.set_yticks(middle, ["video", "fit", "difference"], fontsize=9)
    times = case.problem.motion.dt * case.problem.motion.frames[chosen]
    ax.set_xticks((width + 2) * (np.arange(len(chosen)) + 0.5), [f"{t:.2f} s" for t in times])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return figure


def _curves(ax: Any, case: Case, theta: np.ndarray, points: int) -> None:
    """Draw both losses over the mass, and where truth, start and end are."""
    for problem, color, name in (
        (case.own, SOFT, "model of the video"),
        (case.problem, BLUE, "model of the fit"),
    ):
        grid, losses = landscape(problem, points)
        marked = np.append(grid, [np.log(case.body.mass), theta[0]])
        ends = [problem.loss_at(np.array([one])) for one in marked[len(grid) :]]
        order = np.argsort(marked)
        values = np.append(losses, ends)[order]
        known = np.isfinite(values)
        ax.plot(np.exp(marked[order])[known], values[known], color=color, label=name)
    ax.axvline(case.body.mass, color=GREEN, lw=1.2, label="hidden")
    ax.axvline(np.exp(theta[0]), color=ORANGE, ls="--", lw=1.2, label="found")
    ax.plot(case.body.start, 0.0, "^", color=INK, ms=5, label="start", clip_on=False)
    ax.set_xscale("log")
    ticks = [t for t in (0.5, 1, 2, 3, 5, 7, 10) if ax.get_xlim()[0] <= t <= ax.get_xlim()[1]]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set(xlabel="mass [kg]", ylabel="loss [-]", ylim=(0.0, None))
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13)}  # the lines fill the axes
    ax.legend(frameon=False, fontsize=8, ncol=2, **below)
