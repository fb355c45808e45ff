r"""The error budget of an answer: how much of its interval is due to each thing that was declared.

An answer a minimises |r(a; q)|^2/2, r with its priors, where q is declared and not fitted. To first
order, with the Jacobian J of r at the answer,

    da/dq = -(J^T J)^-1 J^T dr/dq,    cov(a) += (da/dq)(da/dq)^T s_q^2

for a standard uncertainty s_q. dr/dq is a central difference over `STEP` s_q, which agrees with the
exact tangent to `STEP`^2 and serves every number alike, the size of a mesh and the rate of a film
too: two evaluations each. Where gradients are no slopes of the loss, it is one over s_q.

Cameras are fitted beside the answer, and a camera that is known less well takes more of an error
upon itself. That must not make an interval narrower. So of every component of da/dq the largest
counts that any tighter priors of the cameras give, down to cameras that are held: the wider the
prior, the more of these there are.

Source: BIPM, Guide to the expression of uncertainty in measurement (GUM), JCGM 100:2008, sec. 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.answer.intervals import Intervals, widened
from studies.answer.scales import percent, uncertainty, value_scale
from studies.optimizers.problem import NOT_FINITE
from studies.problem.declared_errors import DeclaredNumber
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.search.coarse import is_log


STEP = 1e-3  # of an uncertainty, over which differences are taken
TIGHTER = np.logspace(0.0, 4.0, 81)  # factors by which priors of cameras are made tighter
LEAST_SHARE = 0.1  # of a half-width: smaller parts are not named in a sentence
# What the parts of an interval that are not of a declared number are called.
NAMES = {
    "drift": "frames that were held back",
    "floor": "model error that leaves no trace",
    "trial": "the roughness of the loss",
    "mesh": "the mesh",
    "step": "the time step",
    "contact": "the stiffness of contacts, which was chosen",
    "loss": "the dissipation of contacts, which was chosen",
    "law": "the law of the material",
    "term": "a term that the scene lacks",
    "shading": "flat or smooth shading",
}


@dataclass(frozen=True, eq=False)
class DeclaredPart:
    """What one key of the scene file contributes to the covariance of theta."""

    name: str  # in words, e.g. "the size of `beam`"
    key: str
    error: float
    unit: str
    is_chosen: bool
    covariance: np.ndarray  # of theta, (p, p)


def declared_parts(
    problem: SceneProblem,
    theta: np.ndarray,
    numbers: Sequence[DeclaredNumber],
    jacobian: np.ndarray,
    *,
    is_rough: bool = False,
) -> tuple[list[DeclaredPart], list[str]]:
    """Return what declared numbers contribute, by key, and notes on those without a derivative.

    `jacobian` is that of the residuals with their priors, (n, p). `is_rough` says that it is no
    slope of the loss.
    """
    parts: dict[str, DeclaredPart] = {}
    notes: list[str] = []
    solve = AnswerChange(problem.parameters, jacobian)
    precise = problem.with_dtype("float64")
    for number in numbers:
        size = number.error * (1.0 if is_rough else STEP)
        try:
            ahead, behind = (number.moved(precise, h).residuals(theta) for h in (size, -size))
        except NOT_FINITE as error:
            notes.append(f"What {number.name} does to the answer is not known. {error}")
            continue
        slope = (ahead - behind) * (0.5 * number.error / size)
        change = solve.by(slope)
        covariance = np.outer(change, change)
        if number.key in parts:
            covariance = covariance + parts[number.key].covariance
        parts[number.key] = DeclaredPart(
            number.name, number.key, number.error, number.unit, number.is_chosen, covariance
        )
    return list(parts.values()), notes


class AnswerChange:
    """How theta follows a change of the residuals, by their Jacobian, (n, p)."""

    def __init__(self, parameters: Parameters, jacobian: np.ndarray) -> None:
        is_camera = _of_cameras(parameters) & np.isfinite(parameters.prior_error)
        p = parameters.size
        prior = np.where(is_camera, np.diag(jacobian[-p:]), 0.0)  # the last rows are the priors
        factors = TIGHTER if is_camera.any() else TIGHTER[:1]
        H = jacobian.T @ jacobian
        tighter = H + np.eye(p) * ((factors[:, None] ** 2 - 1.0) * prior**2)[:, None, :]
        self.jacobian = jacobian
        self.inverses = np.stack([inverse(each) for each in tighter])

    def by(self, slope: np.ndarray) -> np.ndarray:
        """Return the change of theta, (p,), for one of the residuals, (n,).

        Of every component it is the largest that any tighter priors of the cameras give, with the
        sign that the declared ones give.
        """
        changes = -self.inverses @ (self.jacobian.T @ slope)
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
    declared: dict[str, DeclaredPart]  # those of declared numbers, by name
    is_log: np.ndarray  # which half-widths are of a logarithm, (n,)

    def to_dict(self) -> dict[str, Any]:
        """Return the parts of every answer by label, the largest first, ready for JSON."""
        out = {}
        for k, label in enumerate(self.labels):
            rows = sorted(self.parts.items(), key=lambda item: -item[1][k])
            out[label] = {
                "half_width": self._shown(k, self.half_width[k]),
                "parts": [self._row(name, self._shown(k, each[k])) for name, each in rows],
                "advice": self.advice(k),
            }
        return out

    def _shown(self, k: int, half_width: float) -> float:
        """Return a half-width of answer k as a part of its value, towards the upper end."""
        return float(np.expm1(half_width) if self.is_log[k] else half_width)

    def _row(self, name: str, half_width: float) -> dict[str, Any]:
        number = self.declared.get(name)
        row: dict[str, Any] = {"name": name, "half_width": half_width}
        if number is not None:
            row |= {"key": number.key, "error": number.error, "unit": number.unit,
                    "is_chosen": number.is_chosen}  # fmt: skip
        return row

    def advice(self, k: int, least: float = LEAST_SHARE) -> str:
        """Return how the interval of answer k would narrow, in a sentence.

        It is empty where no declared number has so large a part in the half-width.
        """
        name = max(self.declared, key=lambda name: self.parts[name][k], default=None)
        if name is None or not self.parts[name][k] > least * self.half_width[k]:
            return ""
        number, own = self.declared[name], float(self.parts[name][k])
        total = float(self.half_width[k])
        better = np.sqrt(max(total**2 - 0.75 * own**2, 0.0))
        total, own, better = (percent(self._shown(k, each)) for each in (total, own, better))
        known, halved = (
            uncertainty(size, number.unit) for size in (number.error, 0.5 * number.error)
        )
        return (
            f"{self.labels[k]}: ± {total}, of this {own} for {name}, "
            f"{'taken' if number.is_chosen else 'declared'} to be known to {known}. Known to "
            f"{halved} (`{number.key}`), it is ± {better}."
        )


def budget_at(
    problem: SceneProblem,
    theta: np.ndarray,
    own: Intervals,
    jacobian: np.ndarray,
    *,
    numbers: Sequence[DeclaredNumber],
    is_rough: bool = False,
) -> tuple[Budget, Intervals, list[str]]:
    """Return the budget of the answers at theta, intervals that count it, and notes.

    The arguments are those of `declared_parts`; `own` counts all but declared numbers.
    """
    parameters = problem.parameters
    declared, notes = declared_parts(problem, theta, numbers, jacobian, is_rough=is_rough)
    for number in declared:
        own = widened(own, parameters, theta, number.covariance, source=number.key)
    shares = camera_share(parameters, jacobian)
    budget = budget_of(
        parameters, theta, own, answers=problem.answers, declared=declared, camera_share=shares
    )
    return budget, own, notes


def budget_of(
    parameters: Parameters,
    theta: np.ndarray,
    own: Intervals,
    *,
    answers: Sequence[int],
    declared: Sequence[DeclaredPart],
    camera_share: np.ndarray,
) -> Budget:
    """Return the budget of intervals that count everything.

    `camera_share` is the part of the variance by noise that cameras are to blame for, (p,).
    """
    chosen = list(answers)
    rate = np.abs(np.diag(parameters.natural_jacobian(theta)))
    scale = np.maximum(value_scale(parameters, theta), 1e-300)
    # a logarithm counts as the part of the value that it is
    to_part = np.where(is_log(parameters), 1.0, rate / scale)[chosen] * own.quantile
    deviations = {name: deviation[chosen] * to_part for name, deviation in own.parts.items()}
    total = np.sqrt(np.maximum(np.diag(own.covariance), 0.0))[chosen] * to_part
    by_key = {number.key: number for number in declared}
    others = {
        NAMES.get(name, name): each
        for name, each in deviations.items()
        if name not in (*by_key, "pixel", "lasting", "jackknife")
    }
    numbers = {by_key[key].name: deviations[key] for key in by_key if key in deviations}
    left = total**2 - sum(each**2 for each in (*others.values(), *numbers.values()))
    left = np.maximum(left, 0.0)
    noise = np.minimum(deviations["pixel"] ** 2, left)
    camera = camera_share[chosen]
    parts = {
        "noise": np.sqrt(noise * (1.0 - camera)),
        "what is left of the picture": np.sqrt((left - noise) * (1.0 - camera)),
        "the camera": np.sqrt(left * camera),
        **others,
        **numbers,
    }
    labels = tuple(parameters.labels[i] for i in chosen)
    shown = {name: each for name, each in parts.items() if each.any()}
    counted = {number.name: number for number in declared if number.name in shown}
    return Budget(labels, total, shown, counted, is_log(parameters)[chosen])


def camera_share(parameters: Parameters, jacobian: np.ndarray) -> np.ndarray:
    """Return the part of each variance of theta that is there since cameras are fitted, (p,)."""
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
