r"""By how much an answer would change on a mesh twice as fine, and at shorter time steps.

With the residuals r (n,) and their Jacobian J (n, p) at the answer theta, and r' those of the same
theta on the finer mesh, one Gauss-Newton step for the finer mesh is

    d = -(J^T J)^-1 J^T (r' - r),

since J^T r is 0 at the answer. It is a step of the coarse problem towards what the finer one shows,
so that it can be corrected by the coarse problem alone: r(theta - d) should be r', and what
is missing goes through the same J again, one evaluation each time.

Linear elements converge with the square of their size h, so the whole error of the mesh is about

    e(h) = C h^2,   e(h) - e(h/2) = d   ->   e(h) = 4/3 d.

The step of semi-implicit Euler is of first order where forces depend on velocities: of n steps and
m > n shorter ones, the whole error of the step is d/(1 - n/m), which is 2 d at half the step.

Source: Roache, Perspective: a method for uniform reporting of grid refinement studies, J. Fluids
Engineering 116 (1994).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from adjsim.model import Model
from studies.answer.intervals import triangle
from studies.optimizers.problem import NOT_FINITE
from studies.problem.problem import SceneProblem
from studies.problem.refining import element_counts, with_shorter_steps
from studies.runs.errors import StudyError


MESH, STEP = "mesh", "step"
OF_MESH = 4.0 / 3.0  # the whole error over the change on a mesh twice as fine
CORRECTIONS = 2  # of a step by the same Jacobian
LEAST_FRAMES = 1.0 / 3.0  # part of the film that must be simulated for a change to be known


@dataclass(frozen=True, eq=False)
class Change:
    """What an answer would change by with a finer discretisation."""

    source: str  # "mesh" or "step"
    step: np.ndarray  # of theta, (p,)
    error: np.ndarray  # of theta by all that is not resolved, (p,)


@dataclass(frozen=True, eq=False)
class Discretisation:
    """The changes of an answer that are known, and why others are not."""

    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


def discretisation(
    problem: SceneProblem,
    theta: np.ndarray,
    linear: tuple[np.ndarray, np.ndarray],
    *,
    refined: Callable[[SceneProblem], SceneProblem],
    most: float,
) -> Discretisation:
    """Return what an answer would change by on a mesh twice as fine, and at shorter steps.

    `linear` are the residuals and their Jacobian at theta, and `refined` returns a problem on a
    mesh twice as fine or raises. `most` is how many evaluations of the problem this may take: where
    it takes more, only the first part of the film is compared.
    """
    if not isinstance(problem.built.system, Model):
        return Discretisation()
    n = problem.steps.count
    count, finer, notes = 2 * n, None, []
    if elements := element_counts(problem.built):
        try:
            finer = with_shorter_steps(refined(problem), theta, count)
            growth = sum(one * times for one, times in elements) / sum(one for one, _ in elements)
            part = most * n / finer.steps.count / (1.0 + growth)
            if part < LEAST_FRAMES:
                raise StudyError("a motion on a mesh twice as fine takes longer than the search.")
            if part < 1.0:
                stop = int(np.ceil(part * problem.n_frames))
                problem, finer = problem.frames_between(0, stop), finer.frames_between(0, stop)
                linear = problem.residuals_and_jacobian(theta)
            count = finer.steps.count
        except (StudyError, MemoryError) as error:
            notes.append(f"The error by the mesh is not known: {error}")
            finer = None
    changes = []
    coarse = _Linear(problem, theta, *linear)
    try:
        shorter = with_shorter_steps(problem, theta, count).residuals(theta)
        step = coarse.change(shorter)
        changes.append(Change(STEP, step, step / (1.0 - n / count)))
        if finer is not None:
            step = coarse.change(coarse.r + finer.residuals(theta) - shorter)
            changes.append(Change(MESH, step, OF_MESH * step))
    except NOT_FINITE as error:
        notes.append(f"The error by mesh and step is not known: {error}")
    return Discretisation(tuple(changes), tuple(notes))


@dataclass(frozen=True, eq=False)
class _Linear:
    """A problem near its answer theta, where the residuals are r and their Jacobian J."""

    problem: SceneProblem
    theta: np.ndarray
    r: np.ndarray
    J: np.ndarray

    def change(self, finer: np.ndarray) -> np.ndarray:
        """Return by how much theta changes, (p,), where residuals are those of a finer model."""
        R = triangle(self.J)
        shift = np.zeros_like(self.theta)
        r = self.r
        for k in range(1 + CORRECTIONS):
            if k:
                r = self.problem.with_steps_for(self.theta+shift).residuals(self.theta + shift)
                print(k, shift, np.linalg.norm(finer-r)/np.linalg.norm(finer-self.r))
            projected = solve_triangular(R, self.J.T @ (finer - r), trans=1)
            shift = shift + solve_triangular(R, projected)
        return -shift
