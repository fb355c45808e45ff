r"""By how much an answer would change on a mesh twice as fine, and at shorter time steps.

With the residuals r (n,) and their Jacobian J (n, p) at the answer theta, and r' those of the same
theta on the finer mesh, one Gauss-Newton step for the finer mesh is

    d = -(J^T J)^-1 J^T (r' - r),

since J^T r is 0 at the answer. The coarse problem alone can correct a long step: at theta - d it
should show what the finer one shows at theta. What is missing is one more step, with J brought up
to date by Broyden's rule; each costs one evaluation.

Of films the places of all drawn vertices are compared, with a Jacobian of their own: pictures that
are off by more than a few pixels have no useful slope.

The whole error is larger than this change: twice as large at first order. Linear tetrahedra are of
second order, e = 4/3 d, but only on meshes that are finer than most. In a clamped beam of 8 x 2 x 2
cells that is fitted to one of 32 x 8 x 8, log E is off by 1.5 d; of 4 x 1 x 1 cells, fitted to one
of 16 x 4 x 4, by 2.5 d.

Sources: Roache, Perspective: a method for uniform reporting of grid refinement studies, J. Fluids
Engineering 116 (1994); Broyden, A class of methods for solving nonlinear simultaneous equations,
Mathematics of Computation 19 (1965).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adjsim.model import Model
from studies.answer.evidence import value_scale
from studies.optimizers.problem import NOT_FINITE
from studies.problem.films import FilmObserver
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.problem.refining import element_counts, seen_in_space, with_shorter_steps
from studies.runs.errors import StudyError


MESH, TIME_STEP = "mesh", "step"  # what is finer
COARSE = 0.05  # part of a value by which it may change before it is said
# Where an answer changes, and what to do
WORDS = {
    MESH: "On a mesh twice as fine {named}. Unless what was observed was simulated on this very "
    "mesh, it is too coarse: refine it (more `cells`, a smaller `edge_length`, a finer file). The "
    "interval does not count this.",
    TIME_STEP: "At a shorter time step {named}. Shorten it (`world.dt`): the interval does not "
    "count this.",
}
SHOWN = 3  # values that are named
CORRECTIONS = 5  # of a step, at most
SHORT, LONG = 0.02, 1.0  # steps of theta: that need no correction, and that are not taken at once
LEAST_FRAMES = 1.0 / 3.0  # part of the film that must be simulated for a change to be known
Linear = tuple[np.ndarray, np.ndarray]  # residuals (n,) and their Jacobian (n, p)


@dataclass(frozen=True, eq=False)
class Change:
    """What an answer would change by on a mesh twice as fine, or at shorter steps."""

    source: str  # `MESH` or `TIME_STEP`
    step: np.ndarray  # of theta, (p,)

    def in_words(
        self, parameters: Parameters, theta: np.ndarray, asked: Sequence[int]
    ) -> str | None:
        """Return which of the values that are asked for change by much, None if none does."""
        moved = parameters.natural(theta + self.step) - parameters.natural(theta)
        relative = moved / np.maximum(value_scale(parameters, theta), 1e-300)
        changed = sorted(asked, key=lambda i: -abs(relative[i]))
        changed = [i for i in changed if abs(relative[i]) > COARSE][:SHOWN]
        named = " and ".join(
            f"{parameters.labels[i]} would be {abs(100.0 * relative[i]):.2g} % "
            f"{'larger' if relative[i] > 0.0 else 'smaller'}"
            for i in changed
        )
        return WORDS[self.source].format(named=named) if changed else None


def notes_on_discretisation(
    problem: SceneProblem,
    theta: np.ndarray,
    *,
    refined: Callable[[SceneProblem], SceneProblem],
    most: float,
) -> list[str]:
    """Return what a finer mesh and a shorter step would change of an answer, in sentences.

    Nothing where no body is soft. Arguments as of `changes_by`.
    """
    if not (isinstance(problem.built.system, Model) and element_counts(problem.built)):
        return []
    changes, notes = changes_by(problem, theta, refined=refined, most=most)
    said = [one.in_words(problem.parameters, theta, problem.answers) for one in changes]
    return [one for one in said if one is not None] + notes


def changes_by(
    problem: SceneProblem,
    theta: np.ndarray,
    *,
    refined: Callable[[SceneProblem], SceneProblem],
    most: float,
) -> tuple[list[Change], list[str]]:
    """Return what an answer would change by with a finer mesh and step, and why some is unknown.

    `refined` returns a problem on a mesh twice as fine or raises. `most` is how many evaluations of
    the problem a motion on it may take: where it takes more, only the first part of the film is
    compared.
    """
    if not isinstance(problem.built.system, Model):
        return [], []
    if any(isinstance(one, FilmObserver) for one in problem.observers):
        problem = seen_in_space(problem)
    n = problem.steps.count
    count, finer, notes = 2 * n, None, []
    if elements := element_counts(problem.built):
        try:
            finer = with_shorter_steps(refined(problem), theta, count)
            growth = sum(one * times for one, times in elements) / sum(one for one, _ in elements)
            part = most * n / finer.steps.count / (1.0 + growth)
            if part < LEAST_FRAMES:
                raise StudyError("A motion on a mesh twice as fine takes longer than the search.")
            if part < 1.0:
                stop = int(np.ceil(part * problem.n_frames))
                problem, finer = problem.frames_between(0, stop), finer.frames_between(0, stop)
            count = finer.steps.count
        except (StudyError, MemoryError) as error:
            notes.append(f"The error by the mesh is not known. {error}")
            finer = None
    changes: list[Change] = []
    try:
        linear = problem.residuals_and_jacobian(theta)
        shorter = with_shorter_steps(problem, theta, count).residuals(theta)
        step = _change(problem, theta, linear, shorter)
        changes.append(Change(TIME_STEP, step))
        if finer is not None:
            step = _change(problem, theta, linear, linear[0] + finer.residuals(theta) - shorter)
            changes.append(Change(MESH, step))
    except NOT_FINITE as error:
        notes.append(f"The error by mesh or time step is not known. {error}")
    return changes, notes


def _change(
    problem: SceneProblem, theta: np.ndarray, linear: Linear, finer: np.ndarray
) -> np.ndarray:
    """Return by how much theta changes, (p,), where residuals are those of a finer model, (n,)."""
    (r, J), shift = linear, np.zeros_like(theta)
    best, least = None, float(np.linalg.norm(finer - r))
    for _ in range(CORRECTIONS):
        step = np.linalg.lstsq(J, finer - r, rcond=None)[0]
        step *= LONG / max(float(np.abs(step).max()), LONG)
        at = np.clip(theta + shift + step, *problem.bounds)
        step, shift = at - theta - shift, at - theta
        best = shift if best is None else best
        if np.abs(step).max() <= SHORT:
            return -shift
        try:
            before, r = r, problem.with_steps_for(at).residuals(at)
        except NOT_FINITE:
            break
        if (left := float(np.linalg.norm(finer - r))) < least:
            best, least = shift, left
        J = J + np.outer(r - before - J @ step, step) / float(step @ step)
    assert best is not None
    return -best
