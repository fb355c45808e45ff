r"""Evaluations of a problem, logged line by line, and replayed when a run is resumed.

An optimizer is deterministic, so the sequence of its requests is a function of the
answers. A resumed run starts the optimizer again and answers from the log until the log
is used up: the same numbers to the bit, for SciPy's optimizers too, whose state cannot
be stored. Numbers are written with all their digits.

Residuals are many (every pixel of every frame) and are stored reduced: with
r_hat = r/|r| and a QR factorisation of what of J is orthogonal to it,

    Q r = (|r|, 0, ..., 0),    Q J = [r_hat^T J ; R],    (I - r_hat r_hat^T) J = Q' R

so that |r|, J^T r and J^T J, all that least squares ever looks at, are kept exactly. The residuals
where J is 0 are first turned into one, the root of their squares.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from adjsim.system import RolloutError
from studies.optimizers.jacobian import Jacobian
from studies.optimizers.problem import Problem, SearchEnd, Stall, Status
from studies.runs.errors import NotFiniteError, StudyError
from studies.runs.evaluations import Evaluation, read_log
from studies.runs.files import append_record


BLOCK = 8192  # rows of a Jacobian that are reduced at once
ALIKE = 1e-6  # a difference of two points that rounding may make on the way to them


def are_alike(stored: np.ndarray, now: np.ndarray) -> bool:
    """Whether points are the same, but for rounding: a search may go on on another device."""
    return stored.shape == now.shape and np.allclose(stored, now, rtol=ALIKE, atol=ALIKE)


def reduce_residuals(
    residuals: np.ndarray, jacobian: Jacobian | np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return r @ r, its gradient 2 J^T r and the reduced Jacobian, `(n + 1, n)`."""
    J = Jacobian.of(jacobian)
    n = J.shape[1]
    norm = float(np.linalg.norm(residuals))
    scale = 1.0 / norm if norm > 0.0 else 0.0
    unit = scale * residuals[J.rows]
    along = unit @ J.values
    # block by block, whose triangles are then reduced together: blocks stay in the cache
    parts = [
        np.linalg.qr(J.values[k : k + BLOCK] - np.outer(unit[k : k + BLOCK], along), mode="r")
        for k in range(0, len(unit), BLOCK)
    ]
    parts.append(-scale * np.sqrt(J.squares_beside(residuals)) * along[None])
    rest = np.linalg.qr(np.concatenate(parts), mode="r")
    reduced = np.zeros((n + 1, n))
    reduced[0] = along
    reduced[1 : 1 + len(rest)] = rest
    return norm * norm, 2.0 * norm * along, reduced


def promised_fall(loss: float, jacobian: np.ndarray) -> float:
    """Return by how much a free Gauss-Newton step lowers the linearised loss."""
    residual = np.zeros(len(jacobian))
    residual[0] = np.sqrt(loss)
    orthonormal, _, _ = np.linalg.svd(jacobian, full_matrices=False)
    along = orthonormal.T @ residual
    return float(along @ along)


def has_settled(history: list[Evaluation], stall: Stall) -> bool:
    """Return whether the best loss hardly fell over the last trials, or stays hopeless."""
    if np.isfinite(stall.needed) and history and (jacobian := history[-1].jacobian) is not None:
        loss = history[-1].loss
        if loss - stall.steps * promised_fall(loss, jacobian) > stall.needed:
            return True
    first: dict[bytes, float] = {}
    for trial in history:  # a gradient may follow a trial where it ended
        if trial.kind not in ("jacobian", "beside", "several") and np.isfinite(trial.loss):
            first.setdefault(trial.theta.tobytes(), trial.loss)
    losses = list(first.values())
    if len(losses) > stall.tries and min(losses) > stall.hopeless:
        return True
    if len(losses) <= stall.trials:
        return False
    before = min(losses[: -stall.trials])
    return before - min(losses) <= stall.least_fall * before


@dataclass(eq=False)
class Evaluator:
    """Answers an optimizer from the log first, then from the problem, within a budget."""

    problem: Problem
    max_evaluations: int
    log: Path | None = None
    callback: Callable[[Evaluation], None] | None = None
    stage: str = ""
    stall: Stall | None = None
    history: list[Evaluation] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Read what a search that goes on has in its log."""
        self._recorded = [] if self.log is None else read_log(self.log, cut=True)
        self._seconds = self._recorded[-1].seconds if self._recorded else 0.0
        self._clock = time.perf_counter()

    @property
    def spent(self) -> int:
        """Rollouts used so far."""
        return self.history[-1].spent if self.history else 0

    @property
    def best(self) -> Evaluation | None:
        """The evaluation of lowest loss; None while none is finite."""
        finite = [e for e in self.history if np.isfinite(e.loss)]
        return min(finite, key=lambda e: e.loss) if finite else None

    def gradient(self, theta: np.ndarray) -> Evaluation:
        """Return loss and gradient at theta: one evaluation."""
        return self._request("gradient", theta, 1)

    def beside(self, theta: np.ndarray) -> Evaluation:
        """Return loss and gradient at a point of a difference, which is no trial."""
        return self._request("beside", theta, 1)

    def residual(self, theta: np.ndarray) -> Evaluation:
        """Return the loss at theta: one evaluation."""
        return self._request("residual", theta, 1)

    def several(self, theta: np.ndarray) -> Evaluation:
        """Return the loss at one of several ends of a step, none of which counts as a trial."""
        return self._request("several", theta, 1)

    def jacobian(self, theta: np.ndarray) -> Evaluation:
        """Return the reduced Jacobian at theta: one evaluation per parameter."""
        return self._request("jacobian", theta, len(theta))

    def _request(self, kind: str, theta: np.ndarray, cost: int) -> Evaluation:
        if self.stall is not None and has_settled(self.history, self.stall):
            raise SearchEnd(Status.SETTLED)
        if self.spent + cost > self.max_evaluations:
            raise SearchEnd(Status.MAX_EVALUATIONS)
        theta = np.array(theta, np.float64)
        index = len(self.history)
        if index < len(self._recorded):
            evaluation = self._recorded[index]
            if evaluation.kind != kind or not are_alike(evaluation.theta, theta):
                raise StudyError(
                    f"Evaluation {index + 1} of {self.log} is of another search than this. "
                    "Delete the file, and `--resume` computes its contents again."
                )
        else:
            evaluation = self._evaluate(kind, theta, cost)
            if self.log is not None:
                append_record(self.log, evaluation.to_record())
        self.history.append(evaluation)
        if self.callback is not None:
            self.callback(evaluation)
        return evaluation

    def _evaluate(self, kind: str, theta: np.ndarray, cost: int) -> Evaluation:
        gradient = jacobian = None
        try:
            if kind in ("gradient", "beside"):
                loss, gradient = self.problem.loss_and_gradient(theta)
            elif kind in ("residual", "several"):
                residuals = self.problem.residuals(theta)
                loss = float(np.linalg.norm(residuals)) ** 2
            else:
                loss, gradient, jacobian = reduce_residuals(
                    *self.problem.residuals_and_jacobian(theta)
                )
        except (NotFiniteError, RolloutError):  # of a rollout, or of its reverse sweep
            loss, gradient, jacobian = np.inf, None, None
        # norms, since a finite gradient may be so large that its square is not
        with np.errstate(over="ignore"):
            norms = [np.linalg.norm(array) for array in (gradient, jacobian) if array is not None]
        if not all(np.isfinite(number) for number in (loss, *norms)):
            loss, gradient, jacobian = np.inf, None, None
        return Evaluation(
            kind,
            theta,
            float(loss),
            gradient,
            jacobian,
            {path: np.asarray(v).tolist() for path, v in self.problem.values(theta).items()},
            cost,
            self.spent + cost,
            self._seconds + time.perf_counter() - self._clock,
            self.stage,
        )
