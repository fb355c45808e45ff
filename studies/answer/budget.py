r"""The error budget of an answer: how much of its interval is due to each thing that was declared.

An answer a minimises |r(a; q)|^2/2, r with its priors, where q is declared and not fitted. To first
order, with the Jacobian J of r at the answer,

    da/dq = -(J^T J)^-1 J^T dr/dq,    cov(a) += (da/dq)(da/dq)^T s_q^2

for a standard uncertainty s_q. dr/dq is a central difference over `STEP` s_q, which agrees with the
exact tangent to `STEP`^2 and serves every number alike, the size of a mesh and the rate of a film
too: two evaluations each. Where gradients are not the slopes of the loss, it is one over s_q.

The residuals may show a place or a direction better than it was declared: gravity that leans by a
degree lets a ball drift. Sizes, masses and rates they show where no camera is fitted, which absorbs
these. So these numbers q, in their uncertainties, are estimated from them as if they were free,
beside theta and all other numbers. With C = dr/dq s_q, C' what of it those do not make up for,
and its visible directions C'^T C' = V L V^T, they show z = -L^-1 V^T C'^T r up to a covariance R,
by residuals that last, priors and errors of the model. The second moment of what is left of q,

    M = 1 - V (1 + R)^-1 V^T + q q^T,   q = V (1 + R)^-1 z,      cov(a) += D M D^T,   D = da/dq s_q

is 1 where they show nothing.

A standard uncertainty is itself known to about a quarter of it, which is as good as an estimate
with nu = (1/4)^-2/2, or about 7, degrees of freedom (GUM, G.4.2). So half-widths are 2.36 s_q, that
of the other parts where the jackknife has 8 blocks.

Cameras are fitted beside the answer, and a camera that is known less well absorbs more of an error.
That must not make an interval narrower. So of sizes, masses and rates the largest da/dq counts that
any tighter priors of the cameras give, down to cameras that are held: the wider the prior, the more
of these there are.

Source: BIPM, Guide to the expression of uncertainty in measurement (GUM), JCGM 100:2008, sec. 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from studies.answer.intervals import Intervals, widened
from studies.answer.scales import percent, uncertainty, value_scale
from studies.optimizers.jacobian import Jacobian
from studies.optimizers.problem import NOT_FINITE
from studies.problem.clusters import clusters_of_rows
from studies.problem.declared_errors import DeclaredNumber
from studies.problem.losses import EVIDENCE
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.runs.errors import StudyError
from studies.search.coarse import is_log


STEP = 1e-3  # of an uncertainty, over which differences are taken
LEAST_STEP = 1e-5  # of a number: instants that are nearer to a step of time are taken for it
# Student's with 7 degrees of freedom: an uncertainty is itself known to about a quarter of it.
QUANTILE = 2.365
# As well as residuals may show a declared number, over its uncertainty: a model has errors too.
KNOWN_BY_DATA = 0.25
VISIBLE = 1e-8  # part of the largest change of the residuals, in squares, that is not rounding
DECLARED = "declared"  # source of this part of an interval
WIDEST = 5.0  # half-width of a number that nothing determines, relative or of a logarithm
TIGHTER = np.logspace(0.0, 4.0, 81)  # factors by which priors of cameras are made tighter
LEAST_SHARE = 0.3  # of a half-width: smaller parts are not named in a sentence
# What the parts of an interval that are not of a declared number are called.
NAMES = {
    "drift": "frames that were held back",
    "floor": "model error that leaves no trace",
    "trial": "the roughness of the loss",
    "mesh": "the mesh",
    "step": "the time step",
    "contact": "the stiffness of contacts, which was chosen",
    "loss": "the dissipation of contacts, which was chosen",
    "law": "the law of the solid",
    "cloth": "the law of the cloth",
    "term": "a term that the scene lacks",
    "shading": "flat or smooth shading",
    "held": "where the held nodes end",
    "released": "held nodes that may be free",
    "larger": "nodes that a larger body would have held",
    "smaller": "nodes that a smaller body would have held",
}


class DeclaredChanges(NamedTuple):
    """What m declared numbers change, each by one standard uncertainty."""

    numbers: list[DeclaredNumber]
    answer: np.ndarray  # theta, (p, m)
    residuals: list[Jacobian]  # (n, 1) of each
    notes: list[str]  # on numbers without a derivative


def declared_changes(
    problem: SceneProblem,
    theta: np.ndarray,
    numbers: Sequence[DeclaredNumber],
    jacobian: Jacobian,
    *,
    is_rough: bool = False,
) -> DeclaredChanges:
    """Return what declared numbers change.

    `jacobian` is that of the residuals with their priors, (n, p). `is_rough` says that it is not
    the slope of the loss.
    """
    kept: list[DeclaredNumber] = []
    notes: list[str] = []
    answers, residuals = [], []
    answer, precise = AnswerChange(problem.parameters, jacobian), problem.with_dtype("float64")
    for number in numbers:
        step = number.error * (1.0 if is_rough else STEP)
        step = step if number.unit else max(step, LEAST_STEP)
        try:
            slope, behind = (number.moved(precise, h).residuals(theta) for h in (step, -step))
        except (*NOT_FINITE, StudyError) as error:
            notes.append(f"What {number.name} does to the answer is not known. {error}")
            continue
        slope -= behind  # in place: of a film they are large
        slope *= 0.5 * number.error / step
        kept.append(number)
        answers.append(answer.change_for(slope, is_place=bool(number.unit)))
        residuals.append(Jacobian.of(slope[:, None]))
    changes = np.stack(answers, axis=1) if kept else np.zeros((len(theta), 0))
    return DeclaredChanges(kept, changes, residuals, notes)


def second_moment(
    C: Jacobian, J: Jacobian, r: np.ndarray, frames: np.ndarray, *, n_priors: int
) -> np.ndarray:
    """Return what residuals leave of the uncertainty of declared numbers, (m, m), in its squares.

    C (n, m) are the changes of the residuals r (n,) by the numbers, J (n, p) those by what else may
    make up for them, and `frames` (n,) are as in `studies.answer.intervals.intervals`. The last
    `n_priors` rows are those of priors.
    """
    m = C.shape[1]
    cross = J.T @ C
    B = inverse(J.T @ J) @ cross
    H = C.T @ C
    values, axes = np.linalg.eigh(H - cross.T @ B)
    shown = values > VISIBLE * max(float(np.diag(H).max()), 1e-300)
    V, scale = axes[:, shown], values[shown]
    scores = _sums_by_frame(C, r, frames) - _sums_by_frame(J, r, frames) @ B
    estimate = -(V.T @ scores.sum(axis=0)) / scale
    clusters = scores[1:]
    priors = J[len(J) - n_priors :] @ B  # rows of C without what theta makes up for
    noise = len(clusters) * clusters.T @ clusters + priors.T @ priors / EVIDENCE
    R = V.T @ noise @ V / np.outer(scale, scale) + KNOWN_BY_DATA**2 * np.eye(len(scale))
    gain = V @ np.linalg.inv(np.eye(len(scale)) + R)
    moved = gain @ estimate
    return np.eye(m) - gain @ V.T + np.outer(moved, moved)


def _sums_by_frame(J: Jacobian, r: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """Return J_t^T r_t of every frame t, (n_frames + 1, p), that of the priors first."""
    at, count = frames[J.rows] + 1, int(frames.max()) + 2
    columns = [np.bincount(at, column * r[J.rows], count) for column in J.values.T]
    return np.stack(columns, axis=1)


class AnswerChange:
    """How theta follows a change of the residuals, by their Jacobian, (n, p)."""

    def __init__(self, parameters: Parameters, jacobian: Jacobian) -> None:
        is_camera = _of_cameras(parameters) & np.isfinite(parameters.prior_error)
        p = parameters.size
        prior = np.where(
            is_camera, np.diag(np.asarray(jacobian[-p:])), 0.0
        )  # the last rows are the priors
        factors = TIGHTER if is_camera.any() else TIGHTER[:1]
        H = jacobian.T @ jacobian
        tighter = H + np.eye(p) * ((factors[:, None] ** 2 - 1.0) * prior**2)[:, None, :]
        self.jacobian = jacobian
        self.inverses = np.stack([inverse(each) for each in tighter])

    def change_for(self, slope: np.ndarray, *, is_place: bool = False) -> np.ndarray:
        """Return the change of theta, (p,), for one of the residuals, (n,).

        Of every component it is the largest that any tighter priors of the cameras give, with the
        sign that the declared ones give; of a place or a direction, which residuals show, that of
        the declared ones.
        """
        changes = -self.inverses @ (self.jacobian.T @ slope)
        if is_place:
            return changes[0]
        return np.copysign(np.abs(changes).max(axis=0), changes[0])


def _of_cameras(parameters: Parameters) -> np.ndarray:
    """Return which components of theta are of cameras and fitted beside the answers, (p,)."""
    return parameters.each(
        [one.path.startswith("cameras.") and not one.is_answer for one in parameters.free]
    )


def inverse(H: np.ndarray) -> np.ndarray:
    """Return the inverse of a symmetric matrix, scaled so that units do not matter."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(H), 1e-300))
    return np.outer(scale, scale) * np.linalg.pinv(H * np.outer(scale, scale), hermitian=True)


@dataclass(frozen=True, eq=False)
class Budget:
    """The parts of the interval of every answer, as half-widths whose squares add up."""

    labels: tuple[str, ...]  # of the answers
    half_width: np.ndarray  # with model error, relative, of a logarithm if that is searched, (n,)
    parts: dict[str, np.ndarray]  # by name, (n,) each
    numbers: dict[str, DeclaredNumber]  # the declared ones among them, by name
    is_log: np.ndarray  # which half-widths are of a logarithm, (n,)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts of every answer by label, the largest first, ready for JSON.

        Answers that nothing determines are left out.
        """
        out = {}
        for k in np.flatnonzero(self.half_width < WIDEST).tolist():
            rows = sorted(self.parts.items(), key=lambda item: -item[1][k])
            out[self.labels[k]] = {
                "half_width": self._shown(k, self.half_width[k]),
                "parts": [self._row(name, self._shown(k, each[k])) for name, each in rows],
                "advice": self.advice(k),
            }
        return out

    def _shown(self, k: int, half_width: float) -> float:
        """Return a half-width of answer k as a part of its value, towards the upper end."""
        return float(np.expm1(half_width) if self.is_log[k] else half_width)

    def _row(self, name: str, half_width: float) -> dict[str, Any]:
        number = self.numbers.get(name)
        row: dict[str, Any] = {"name": name, "half_width": half_width}
        if number is not None:
            row |= {"key": number.key, "error": number.error, "unit": number.unit,
                    "is_chosen": number.is_chosen}  # fmt: skip
        return row

    def advice(self, k: int, least: float = LEAST_SHARE) -> str:
        """Return how the interval of answer k would narrow, in a sentence.

        It is empty where no declared number has so large a part in the half-width.
        """
        name = max(self.numbers, key=lambda name: self.parts[name][k], default=None)
        total = float(self.half_width[k])
        if name is None or not least * total < self.parts[name][k] < WIDEST:
            return ""
        number, share = self.numbers[name], float(self.parts[name][k])
        narrower = np.sqrt(max(total**2 - 0.75 * share**2, 0.0))
        widths = [percent(self._shown(k, width)) for width in (total, share, narrower)]
        errors = [uncertainty(size, number.unit) for size in (number.error, 0.5 * number.error)]
        return (
            f"{self.labels[k]}: ± {widths[0]}, of this {widths[1]} for {name}, "
            f"{'taken' if number.is_chosen else 'declared'} to be known to {errors[0]}. If it were "
            f"known to {errors[1]} (`{number.key}`), the interval would be ± {widths[2]}."
        )


def budget_at(
    problem: SceneProblem,
    theta: np.ndarray,
    intervals: Intervals,
    jacobian: Jacobian,
    *,
    numbers: Sequence[DeclaredNumber],
    residuals: np.ndarray | None = None,
    is_rough: bool = False,
) -> tuple[Budget, Intervals, list[str]]:
    """Return the budget of the answers at theta, intervals that count it, and notes.

    The arguments are those of `declared_changes`; `intervals` count all but declared numbers. What
    `residuals` (n,) show of these counts; None: nothing.
    """
    parameters, chosen = problem.parameters, list(problem.answers)
    changes = declared_changes(problem, theta, numbers, jacobian, is_rough=is_rough)
    D = changes.answer
    moment = np.eye(len(changes.numbers))
    # a camera that is fitted absorbs sizes, masses and rates: only places show beside it
    is_shown = np.array([bool(number.unit) for number in changes.numbers], bool)
    is_shown |= not _of_cameras(parameters).any()
    if residuals is not None and is_shown.any() and not is_rough:
        pairs = list(zip(changes.residuals, is_shown, strict=True))
        C = Jacobian.beside([column for column, shows in pairs if shows])
        J = Jacobian.beside([jacobian, *(column for column, shows in pairs if not shows)])
        frames, n_priors = clusters_of_rows(problem), len(theta)
        moment[np.ix_(is_shown, is_shown)] = second_moment(
            C, J, residuals, frames, n_priors=n_priors
        )
    more = D @ moment @ D.T * (QUANTILE / intervals.quantile) ** 2
    intervals = widened(intervals, parameters, theta, more, source=DECLARED)
    rate = np.abs(np.diag(parameters.natural_jacobian(theta)))
    scale = np.maximum(value_scale(parameters, theta), 1e-300)
    # a logarithm counts as the part of the value that it is
    to_part = np.where(is_log(parameters), 1.0, rate / scale)[chosen] * intervals.quantile
    widths = {name: deviation[chosen] * to_part for name, deviation in intervals.parts.items()}
    total = np.sqrt(np.maximum(np.diag(intervals.covariance), 0.0))[chosen] * to_part
    shares = np.square(D[chosen]) * np.diag(moment)  # squares, up to what numbers share
    shares *= (widths.pop(DECLARED) ** 2 / np.maximum(shares.sum(axis=1), 1e-300))[:, None]
    of_numbers: dict[str, np.ndarray] = {}
    for number, share in zip(changes.numbers, shares.T, strict=True):
        of_numbers[number.name] = np.hypot(of_numbers.get(number.name, 0.0), np.sqrt(share))
    noise = np.square(widths.pop("pixel"))
    others = {NAMES[name]: width for name, width in widths.items() if name in NAMES}
    left = total**2 - sum(np.square(width) for width in (*others.values(), *of_numbers.values()))
    left = np.maximum(left, 0.0)
    noise, camera = np.minimum(noise, left), camera_share(parameters, jacobian)[chosen]
    parts = {
        "noise": np.sqrt(noise * (1.0 - camera)),
        "what is left of the picture": np.sqrt((left - noise) * (1.0 - camera)),
        "the camera": np.sqrt(left * camera),
        **others,
        **of_numbers,
    }
    parts = {name: width for name, width in parts.items() if width.any()}
    shown = {number.name: number for number in changes.numbers if number.name in parts}
    labels = tuple(parameters.labels[i] for i in chosen)
    budget = Budget(labels, total, parts, shown, is_log(parameters)[chosen])
    return budget, intervals, changes.notes


def camera_share(parameters: Parameters, jacobian: Jacobian) -> np.ndarray:
    """Return the part of each variance of theta that is due to fitted cameras, (p,)."""
    is_camera = _of_cameras(parameters)
    share = np.zeros(len(is_camera))
    if not is_camera.any() or is_camera.all():
        return share
    H = jacobian.T @ jacobian
    rest = ~is_camera
    with_cameras = np.diag(inverse(H))[rest]
    held = np.diag(inverse(H[np.ix_(rest, rest)]))
    share[rest] = np.clip(1.0 - held / np.maximum(with_cameras, 1e-300), 0.0, 1.0)
    return share
