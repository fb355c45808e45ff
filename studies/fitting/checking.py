"""What `adjsim check` finds before any search: what can be determined, steps, growth and time.

At the start values the residuals and their Jacobian are evaluated once. Intervals are those of
`studies.answer.intervals`, as if the start were the answer and the residuals nothing but noise of
the expected size, and with what is declared (`studies/answer/budget.py`): an answer can be worse,
but hardly better. The rank counts directions of what is
asked for that are determined to ± 20 %, the most that a verdict accepts.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.answer.budget import Budget, budget_at
from studies.answer.evidence import NAMED
from studies.answer.intervals import (
    FOOTAGE_FLOOR,
    Intervals,
    intervals,
    largest_components,
    no_intervals,
)
from studies.answer.scales import theta_scale
from studies.answer.verdict import WIDE, Words, combination, words_for
from studies.fitting.fit import make_fit, what_moves
from studies.fitting.inspecting import growth_at
from studies.fitting.running import advice_on_growth
from studies.fitting.spread import expected_covariance
from studies.fitting.writing import steps_of
from studies.optimizers.jacobian import Jacobian
from studies.optimizers.minimize import MOST_TANGENTS, method_for
from studies.optimizers.problem import NOT_FINITE, Method
from studies.problem.clusters import clusters_of_rows
from studies.problem.declared_errors import DeclaredNumber
from studies.problem.losses import EVIDENCE
from studies.problem.problem import SceneProblem
from studies.problem.refining import element_counts
from studies.runs.errors import StudyError
from studies.runs.options import RunOptions
from studies.runs.starting import warn
from studies.scene.drawing import instance_of
from studies.scene.likely_units import notes_on_units
from studies.scene.reading import read_scene
from studies.search.coarse import is_log


LOOSE = 1e3  # relative standard deviation of the prior that keeps every direction finite


@dataclass(frozen=True, eq=False)
class Determined:
    """What the observations determine of the numbers that are asked for."""

    # By label: start, unit, half-width of the expected 95 % interval, that relative to the start
    numbers: dict[str, dict[str, Any]]
    rank: int  # directions that are determined
    worst: dict[str, float]  # weights in the combination that is determined worst, by label

    @property
    def missing(self) -> list[str]:
        """The numbers that are not determined."""
        return [name for name, number in self.numbers.items() if not number["is_determined"]]

    def advice(self, words: Words) -> list[str]:
        """Return what to do where something is not determined, in the words of what is observed."""
        if self.rank == len(self.numbers) and not self.missing:
            return []
        what = " and ".join(self.missing) or "The combination determined worst"
        along = f" (determined worst: {combination(self.worst)})" if len(self.numbers) > 1 else ""
        return [
            f"{what} cannot be determined to ± {100 * WIDE:.0f} %{along}. Fix a value that you "
            f"know, or {words.better}."
        ]


def check_scene_file(path: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return what is known of a scene file at its start values, ready for JSON.

    Raise StudyError if the scene or its observations have a mistake, or it is a control.
    """
    file = instance_of(read_scene(path, overrides), seed=0)
    warn(notes_on_units(file))
    if file.purpose == "control":
        raise StudyError(
            '`purpose` must be "identify", got "control": a control has no observations that '
            "could determine anything. Run it."
        )
    title = file.title or path.stem
    fit = make_fit(file, RunOptions(), title=title, say=lambda text: print(text, file=sys.stderr))
    prepared, everything = fit.made, fit.made.everything
    start = everything.parameters.start
    problem = everything.with_steps_for(start)
    n, answers = problem.parameters.size, problem.answers
    out: dict[str, Any] = {
        "title": title,
        "elements": what_moves(problem.built),
        "frames": problem.n_frames,
        **steps_of(problem),
        "asked": len(answers),
        "beside": n - len(answers),
        "growth": None,
        "numbers": {},
        "rank": None,
        "worst_direction": {},
        "budget": {},
        "seconds_per_evaluation": None,
        "advice": list(prepared.notes),
    }
    if element_counts(problem.built):
        out["advice"].append("No error by the mesh is counted here: a run estimates it.")
    advice, share = advice_on_growth(file)
    if (growth := growth_at(problem, start, share)) is not None:
        out["growth"] = {"times": growth.times, "seconds": growth.seconds}
        out["advice"] += growth.warnings(advice)
    try:
        floor, J, cost = 0.0 if prepared.is_twin else FOOTAGE_FLOOR, None, 1
        begun = time.perf_counter()
        if method_for(file.search, n) is Method.GAUSS_NEWTON:
            J, cost = problem.residuals_and_jacobian(start)[1], n
        else:
            problem.loss_and_gradient(start)
        out["seconds_per_evaluation"] = (time.perf_counter() - begun) / cost
        expected, budget = expected_intervals(
            problem, start, floor, prepared.declared, J=J, other_law=prepared.other_law(problem)
        )
        if expected.reason:
            out["advice"].append(f"No intervals: {expected.reason}.")
        else:
            numbers = determined(problem, start, expected)
            out |= {"numbers": numbers.numbers, "rank": numbers.rank}
            out["worst_direction"] = numbers.worst
            out["budget"] = {} if budget is None else budget.to_dict()
            out["advice"] += [row["advice"] for row in out["budget"].values() if row["advice"]]
            out["advice"] += numbers.advice(
                words_for(moves=problem.rolls_out, is_of_forces=problem.is_of_forces)
            )
    except NOT_FINITE as error:
        out["advice"].append(f"At the start values the simulation blows up. {error}")
    return out


def expected_intervals(
    problem: SceneProblem,
    theta: np.ndarray,
    floor: float,
    declared: Sequence[DeclaredNumber] = (),
    *,
    J: Jacobian | None = None,
    other_law: SceneProblem | None = None,
) -> tuple[Intervals, Budget | None]:
    """Return intervals where residuals are noise, and their budget with what is declared.

    `floor` is a relative standard deviation, J the Jacobian, which is computed here of no more than
    `MOST_TANGENTS` numbers, and `other_law` the problem with another law of solids. A prior with an
    error of `LOOSE` keeps those finite that nothing determines.
    """
    p = len(theta)
    if J is None and p > MOST_TANGENTS:
        why = f"more than {MOST_TANGENTS} numbers are free"
        n_of_cameras = sum(name.startswith("cameras.") for name in problem.parameters.labels)
        if n_of_cameras:
            why += f", {n_of_cameras} of cameras: give `fit = false` where one is calibrated"
        return no_intervals(p, why), None
    J = problem.residuals_and_jacobian(theta)[1] if J is None else J
    loose = LOOSE * _scale(problem, theta) * np.sqrt(EVIDENCE)
    J.values[-p:] = np.diag(np.hypot(np.diag(J.values[-p:]), 1.0 / loose))
    r = np.zeros(len(J))
    expected = intervals(
        problem.parameters,
        theta,
        r,
        J,
        frames=clusters_of_rows(problem),
        aligned=not problem.is_still,
        pixel_covariance=expected_covariance(problem, theta, J),
        floor=floor,
    )
    if expected.reason:
        return expected, None
    budget, expected, _ = budget_at(
        problem, theta, expected, J, numbers=declared, residuals=r, other_law=other_law
    )
    return expected, budget


def determined(problem: SceneProblem, theta: np.ndarray, expected: Intervals) -> Determined:
    """Return what observations determine whose intervals at theta are these."""
    parameters, answers = problem.parameters, list(problem.answers)
    scale, (low, high) = _scale(problem, theta), expected.model
    value = parameters.natural(theta)
    half = np.where(is_log(parameters), high - value, (high - low) / 2.0)
    relative = half / (scale * parameters.natural_rates(theta))
    units = parameters.each([free.unit for free in parameters.free])
    numbers = {
        parameters.labels[i]: {
            "start": float(value[i]),
            "unit": "" if units[i] == "-" else str(units[i]),
            "half_width": float(half[i]) if np.isfinite(half[i]) else None,
            "relative_half_width": float(relative[i]) if np.isfinite(relative[i]) else None,
            "is_determined": bool(relative[i] <= WIDE),
        }
        for i in answers
    }
    C = expected.covariance[np.ix_(answers, answers)] / np.outer(scale[answers], scale[answers])
    variances, directions = np.linalg.eigh(C)
    rank = int((expected.quantile * np.sqrt(np.maximum(variances, 0.0)) <= WIDE).sum())
    labels = tuple(parameters.theta_labels[i] for i in answers)
    return Determined(numbers, rank, largest_components(directions[:, -1], labels, NAMED))


def _scale(problem: SceneProblem, theta: np.ndarray) -> np.ndarray:
    """Return the scale of theta, (p,); of what starts at 0 its unit."""
    scale = theta_scale(problem.parameters, theta)
    return np.where(scale > 0.0, scale, 1.0)
