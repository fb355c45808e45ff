"""The answer of a scene file, and its numbers as rows of a table."""

from pathlib import Path
from typing import Any

import numpy as np

from studies.api import Answer, Problem, fit
from studies.scene.reading import read_scene


def found_in_scene(toml: str, folder: Path) -> Answer:
    """Return the answer of a scene file, whose files are relative to a folder."""
    path = folder / "scene.toml"
    path.write_text(toml, "utf-8")
    file = read_scene(path)
    return fit(Problem(file, file.observations, file.free, search=file.search))


def row(
    answer: Answer, path: str, start: str, *others: str, unit: float = 1.0, name: str = "m"
) -> str:
    """Return the row of one number: start, answer and interval in a unit, its verdict, others'."""
    low, high = (float(end.item()) / unit for end in answer.intervals[path])
    value = float(answer.values[path].item()) / unit
    (verdict,) = {kind for label, kind in answer.verdicts.items() if label.startswith(path)}
    estimate = f"{value:.4g} {name} ({low:.4g} to {high:.4g})"
    return "| " + " | ".join([path, start, estimate, verdict, *others]) + " |"


def draw_fit(axes: Any, answer: Answer, component: int, *, unit: float = 1.0, label: str) -> None:
    """Draw one coordinate of all tracked points over time: measured as dots, fitted as lines."""
    problem, theta = answer.solved.problem, answer.solved.result.theta
    rows = problem.predicted_rows(theta)
    for observer, fitted in problem.by_observer(rows):
        shape = (len(observer.times), -1)
        seen = observer.targets()[:, component].reshape(shape)
        shown = fitted[:, component].reshape(shape)
        seconds = observer.times - observer.times[0]
        for k in np.argsort(np.ptp(seen, axis=0))[::-1][:3]:  # those that move most
            dots = axes.plot(seconds, seen[:, k] / unit, ".", ms=3)[0]
            axes.plot(seconds, shown[:, k] / unit, "-", lw=1, color=dots.get_color())
    axes.set_xlabel("time [s]")
    axes.set_ylabel(label)
