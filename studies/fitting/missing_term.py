r"""A term that the model of a scene lacks: would one more explain what is left of the motion?

What a fit leaves of a motion may be noise, or the trace of a force that the scene does not have.
With the residuals r at an answer, their Jacobian J (n, p), and c = dr/dt along one more number t,
which is 0 or as declared, one Gauss-Newton step of both together is

    t = -c'^T r/(c'^T c'),   c' = c - J (J^T J)^-1 J^T c,   |r|^2 falls by (c'^T r)^2/(c'^T c')

(a score test). The term by which it falls most is fitted with the answer. Pixels show small errors
of a motion best, and the places of bodies (`studies/problem/body_tracks.py`) larger ones, whose
slopes reach further; both are asked. A term is missing if what is left of the motion falls to
`EXPLAINS` of what it was: what it changes of the answer is a part of the answer's error, and where
that is more than the interval the answer is wrong.

Terms that are tried, unless they are free, are those of `studies/problem/terms.py`. Source: Rao,
Large sample tests of statistical hypotheses, Proc. Camb. Phil. Soc. 44 (1948).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.answer.budget import inverse
from studies.answer.discretisation import Linear
from studies.answer.evidence import MissingTerm
from studies.fitting.judging import explained_motion
from studies.fitting.local_search import LocalSearch
from studies.optimizers.jacobian import Jacobian
from studies.optimizers.problem import NOT_FINITE
from studies.problem.body_tracks import tracked_problem
from studies.problem.problem import SceneProblem
from studies.problem.terms import Term
from studies.runs.errors import StudyError


LEAST_LEFT = 1e-3  # of the motion: what is less is not looked into
GAIN = 0.02  # part of the loss that a term must take by the score, to be fitted
EXPLAINS = 0.5  # of what was left, that may be left with the term
STEPS = 6  # of Gauss-Newton
LOG = "iterations-term-{}.jsonl"


@dataclass(frozen=True, eq=False)
class _Score:
    term: Term
    start: np.ndarray  # where Gauss-Newton puts it, in its unit
    theta: np.ndarray  # and all else, (p,)
    gain: float  # part of the loss that it takes


def find_missing_term(
    problem: SceneProblem,
    theta: np.ndarray,
    linear: Linear,
    *,
    terms: Sequence[Term],
    looks: Sequence[np.ndarray],
    local: LocalSearch,
) -> MissingTerm | None:
    """Return the term that explains most of what is left of the motion; None if none does.

    `linear` are the residuals and their Jacobian at theta. `looks` are as in `explained_motion`.
    """
    before = explained_motion(problem, theta, looks=list(looks))[1]
    if before is None or before.unexplained < LEAST_LEFT:
        return None
    local.progress.say("looking for a term that the scene lacks")
    by_pixels = _best_score(problem, theta, linear, terms)
    for k, score in enumerate((by_pixels, _best_in_places(problem, theta, terms))):
        added = score and score.term.added_to(problem.at(score.theta), score.start)
        if score is None or added is None:
            continue
        whole, n = added[0], len(theta)
        end, stage = whole.parameters.start.copy(), f"with `{score.term.path}`"
        # Errors of shapes are many: they stay where a score puts them that promises too little.
        free, promises = whole.parameters.free, score.gain > EXPLAINS
        moves = whole.parameters.each([promises or not each.is_shape_error for each in free])
        searched = whole.at(end, keep=tuple(np.flatnonzero(moves).tolist()))
        start = searched.parameters.start
        short = replace(local.how, max_evaluations=STEPS * (len(start) + 2))
        result = local.run(searched, start, log=LOG.format(k + 1), stage=stage, how=short)
        end[moves] = result.theta
        more = [end, *(np.append(look, whole.parameters.start[n:]) for look in looks)]
        after = explained_motion(whole, end, looks=more)[1]
        if after is not None and after.unexplained < EXPLAINS * before.unexplained:
            value = whole.parameters.values(end)[free[-1].path]
            left = before.unexplained, after.unexplained
            return MissingTerm(free[-1].path, value, free[-1].unit, *left, end[:n] - theta)
    return None


def _best_in_places(
    problem: SceneProblem, theta: np.ndarray, terms: Sequence[Term]
) -> _Score | None:
    """Return the term that explains the places of bodies in films best; None if none does."""
    try:
        places = tracked_problem(problem.at(theta))
        if places is None:
            return None
        at = places.parameters.start
        return _best_score(places, at, places.residuals_and_jacobian(at), terms)
    except (*NOT_FINITE, StudyError):
        return None


def _best_score(
    problem: SceneProblem, theta: np.ndarray, linear: Linear, terms: Sequence[Term]
) -> _Score | None:
    """Return the term that takes most of the loss; None if none takes `GAIN` of it."""
    r, J = linear
    H = inverse(J.T @ J)
    beside = H @ (J.T @ r)
    rest = r.copy()
    rest[J.rows] -= J.values @ beside
    scores = [
        score for term in terms if (score := _score(problem, theta, (rest, J, H, beside), term))
    ]
    best = max(scores, key=lambda score: score.gain, default=None)
    return best if best is not None and best.gain > GAIN else None


def _score(
    problem: SceneProblem, theta: np.ndarray, fitted: tuple[Any, ...], term: Term
) -> _Score | None:
    """Return what a term would gain; None where there is none, or it would leave its bounds.

    `fitted` are r without what theta makes up for, J, (J^T J)^-1, and this times J^T r.
    """
    made, n = term.added_to(problem), len(theta)
    if made is None:
        return None
    (probe, value), (rest, J, H, beside) = made, fitted
    there = np.append(theta, probe.parameters.start[n:])
    try:
        columns = [  # 0 at the priors of theta, the last rows of J
            Jacobian.of(probe.residuals_jvp(there, tan)[: len(rest), None])
            for tan in np.eye(len(there))[n:]
        ]
    except NOT_FINITE:
        return None
    both = Jacobian.beside([J, *columns])
    of_theta, of_term = both.values[:, :n], both.values[:, n:]
    along = H @ (of_theta.T @ of_term)
    alone = of_term - of_theta @ along
    slope = alone.T @ rest[both.rows]
    step = -inverse(alone.T @ alone) @ slope
    start = value.value + step.reshape(value.value.shape)
    low, high = value.bounds
    if not ((low < start) & (start < high)).all():
        return None
    moved = np.clip(theta - beside - along @ step, *problem.bounds)
    return _Score(term, start, moved, float(-step @ slope) / float(rest @ rest))
