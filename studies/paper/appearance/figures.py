"""Figures of `appearance`: curves side by side, losses over the mass, and what feels the mass."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from studies.reports.figures import BLUE, GREEN, INK, ORANGE, TINY, make_axes


COLORS = (BLUE, ORANGE, GREEN)
LEAST_ERROR = 1e-16  # what is less is rounding
FELT = {"target": "target", "start": "start", "slope": "feels mass"}


def convergence(
    searches: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray]]],
    medians: Mapping[str, np.ndarray],
) -> Any:
    """Draw errors over evaluations: a panel for each name, its searches faint, then all medians."""
    figure, axes = make_axes(1, len(searches) + 1, (2.45 * (len(searches) + 1), 2.9))
    named = list(zip(searches, COLORS, strict=False))
    for ax, (name, color) in zip(axes, named, strict=False):
        for spent, error in searches[name]:
            ax.semilogy(spent, np.maximum(error, LEAST_ERROR), color=color, lw=0.9, alpha=0.45)
        ax.set_title(name, fontsize=10, color=INK)
    axes[-1].set_title("medians", fontsize=10, color=INK)
    for name, color in named:
        median = np.maximum(medians[name], LEAST_ERROR)
        at = np.arange(1, len(median) + 1)
        for ax in (axes[list(searches).index(name)], axes[-1]):
            ax.semilogy(at, median, color=color, lw=1.8, label=name)
    axes[-1].legend(frameon=False, fontsize=8)
    top = 2.0 * max(float(error.max()) for many in searches.values() for _, error in many)
    for ax in axes:
        ax.set(xlabel="evaluations", ylim=(0.5 * LEAST_ERROR, top))
    for ax in axes[1:]:
        ax.tick_params(labelleft=False)
    axes[0].set_ylabel("relative error of the mass")
    return figure


def landscapes(parts: np.ndarray, losses: Mapping[str, np.ndarray], starts: Sequence[float]) -> Any:
    """Draw losses over masses in parts of the truth, by name (n_bodies, n_parts); bold, medians.

    Ticks on the axis say where searches start.
    """
    figure, (ax,) = make_axes(1, 1, (6.4, 3.4))
    for (name, many), color in zip(losses.items(), COLORS, strict=False):
        for one in many:
            ax.plot(parts, one, color=color, lw=0.8, alpha=0.35)
        ax.plot(parts, np.median(many, axis=0), color=color, lw=1.8, label=name)
    ax.plot(starts, np.zeros(len(starts)), "^", color=INK, ms=5, label="starts")
    ax.set(xlabel="mass, in parts of the truth", ylabel="loss [-]")
    ax.legend(frameon=False, fontsize=9)
    return figure


def felt(frames: Mapping[str, np.ndarray], names: Sequence[str], at: Sequence[int]) -> Any:
    """Draw target, start and what feels the mass at some instants, for each name side by side."""
    columns = [(name, key) for name in names for key in FELT]
    height, width = frames["target"].shape[2:4]
    across = 1.02 * len(columns)
    size = (across, 1.02 * height / width * len(at) + 0.5)
    figure, axes = make_axes(len(at), len(columns), size)
    darkest = max(float(frames["slope"].max()), TINY)
    for k, ax in enumerate(axes):
        row, (name, key) = k // len(columns), columns[k % len(columns)]
        one = frames[key][list(names).index(name), at[row]]
        if key == "slope":
            one = np.repeat(1.0 - np.sqrt(one[..., None] / darkest), 3, axis=-1)
        ax.imshow(np.clip(one[..., :3], 0.0, 1.0), interpolation="nearest")
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
        if not row:
            above = name if key == "start" else ""  # the middle one of three
            ax.set_title(f"{above}\n{FELT[key]}", fontsize=9, color=INK)
        if not k % len(columns):
            ax.set_ylabel(f"{1e3 * frames['times'][at[row]]:.0f} ms", fontsize=9, color=INK)
    return figure
