r"""The error budget of an answer: how much of its interval is due to each thing that was declared.

An answer a minimises |r(a; q)|^2/2, r with its priors, where q is declared and not fitted. To first
order, with the Jacobian J of r at the answer,

    da/dq = -(J^T J)^-1 J^T dr/dq,    cov(a) += (da/dq)(da/dq)^T s_q^2

for a standard uncertainty s_q. dr/dq is the tangent of pictures and points along a central
difference of what moves, over `STEP` s_q: differences of pictures are full of edges that pass over
the middle of a pixel. It serves every number alike, the size of a mesh and the rate of a film too:
two rollouts each. Where gradients are not the slopes of the loss, it is one over s_q (GUM, 5.1.3).

The residuals may show a number better than it was declared: a body that is too large is seen to
be, as far as no camera makes up for it. To first order it is the same whether a number is free with
its prior or counts by what the residuals leave of its uncertainty. So all numbers q, in their
uncertainties, are estimated as if they were free, beside theta and the looks and lights that were
fitted where all is as declared. With C = dr/dq s_q, C' what of it those do not make up for, and its
visible directions C'^T C' = V L V^T, the residuals show z = -L^-1 V^T C'^T r up to a covariance R,
by residuals that last, priors and errors of the model. The second moment of what is left of q,

    M = 1 - V (1 + R)^-1 V^T + q q^T,   q = V (1 + R)^-1 z,      cov(a) += D M D^T,   D = da/dq s_q

is 1 where they show nothing. The law of a solid is such an error: with b' what another law changes,
beyond what those make up for, R has L^-1 V^T C'^T b' b'^T C' V L^-1. Forces on a bar show E times
its size, and how they bend over the displacement is the law's as well as the size's.

Errors of a shape are more numbers than a film has frames, by which R
is estimated: residuals are not asked for them. They are where these are free: then what is declared
is the mean of their prior, whose rows of r are all that it changes. Of numbers that are not asked
for, dr/dq itself is not needed, only J^T dr/dq: one reverse sweep for each column of J in place of
two rollouts for each mode of a shape. It is exact, where differences are of order (`STEP` s_q)^2.

A standard uncertainty is itself known to about a quarter of it, which is as good as an estimate
with nu = (1/4)^-2/2, or about 7, degrees of freedom (GUM, G.4.2). So half-widths are 2.36 s_q, that
of the other parts where the jackknife has 8 blocks.

Cameras are fitted beside the answer. One that is known less well absorbs more of an error, which
makes D smaller, and hides it, which makes M larger. Of all priors together the posterior covariance
only shrinks as one gets tighter, but estimates of parts of it need not. So the largest D M D^T
counts that any tighter priors of the cameras give, about where these end, down to cameras that are
held: the wider the prior, the more of these there are.

Source: BIPM, Guide to the expression of uncertainty in measurement (GUM), JCGM 100:2008, sec. 5.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from studies.answer.discretisation import WHOLE
from studies.answer.intervals import Intervals, widened
from studies.answer.scales import percent, uncertainty, value_scale
from studies.optimizers.jacobian import Jacobian
from studies.optimizers.problem import NOT_FINITE
from studies.problem.clusters import clusters_of_rows
from studies.problem.declared_errors import DeclaredNumber
from studies.problem.losses import EVIDENCE
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.problem.refining import with_shorter_steps
from studies.runs.errors import StudyError
from studies.search.coarse import is_log


STEP = 0.1  # of an uncertainty, over which differences are taken: farther than most kinks reach
LEAST_STEP = 1e-5  # of a number: instants that are nearer to a step of time are taken for it
# Student's with 7 degrees of freedom: an uncertainty is itself known to about a quarter of it.
QUANTILE = 2.365
# As well as residuals may show a declared number, over its uncertainty: a model has errors too.
# Sizes, masses and rates show less where cameras make up for them up to how edges are drawn.
KNOWN_BY_DATA, KNOWN_BESIDE_CAMERA = 0.25, 0.5
HIDDEN = 1e3  # of the lean of a floor on which something slides: its friction makes up for it
MOST_OF_LOOK = 27  # numbers of a look or of lights that are fitted: not of a texture
VISIBLE = 1e-6  # part of the largest change of the residuals, in squares, that is a trace
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
    residuals: Jacobian  # C, (n, m)
    looks: Jacobian  # what looks and lights change that were fitted and are held now, (n, l)
    law: Jacobian  # what another law of solids changes, (n, 1), or nothing, (n, 0)
    notes: list[str]  # on numbers without a derivative


def declared_changes(
    problem: SceneProblem,
    theta: np.ndarray,
    numbers: Sequence[DeclaredNumber],
    *,
    is_rough: bool = False,
    other_law: SceneProblem | None = None,
) -> DeclaredChanges:
    """Return what declared numbers change of the residuals at theta, (p,).

    `is_rough` says that gradients are not the slopes of the loss, and `other_law` is the problem
    with another law of solids.
    """
    precise, kept, notes, columns = problem.with_dtype("float64"), [], [], []
    moved, samplings, values = precise.run_at(theta)
    records = [
        observer.shown(observer.seen(moved, sampling), values)
        for observer, sampling in zip(precise.observers, samplings, strict=True)
    ]
    reached, places = precise.reached([record.rows for record in records])
    rows, count = np.concatenate(places), sum(problem.residual_counts()) + len(theta)

    def column(tan_rows: Iterable[np.ndarray]) -> Jacobian:
        pushed = [block.jvp(tan) for block, tan in zip(reached, tan_rows, strict=True)]
        return Jacobian(rows, np.concatenate(pushed)[:, None], count)  # no prior

    drawn = {path for observer in precise.observers for path in observer.looks()}
    looks = [
        column(record.jvp({}, {path: unit.reshape(value.shape)}) for record in records)
        for path, value in problem.fixed.items()
        if path in drawn and value.size <= MOST_OF_LOOK
        for unit in np.eye(value.size)
    ]

    def between(ends: Sequence[SceneProblem], factor: float) -> Jacobian:
        """Return how residuals of the first problem differ from the second's, times a factor."""
        seen, tan_rows = [end.seen_at(theta) for end in ends], []
        for k, (record, far, near) in enumerate(zip(records, *seen, strict=True)):
            if precise.observers[k].IS_CARRIED:  # other vertices carry the places of a larger body
                there = [
                    end.observers[k].shown(fields, {**values, **end.fixed}).rows
                    for end, fields in zip(ends, (far, near), strict=True)
                ]
                tan_rows.append((there[0] - there[1]) * factor)
            else:
                slopes = {name: (far[name] - near[name]) * factor for name in far}
                tan_rows.append(record.jvp(slopes, {}))
        return column(tan_rows)

    for number in numbers:
        step = number.error * (1.0 if is_rough else STEP)
        step = step if number.unit else max(step, LEAST_STEP)
        try:
            ends = [number.moved(precise, h) for h in (step, -step)]
            columns.append(between(ends, 0.5 * number.error / step))
        except (*NOT_FINITE, StudyError) as error:
            notes.append(f"What {number.name} does to the answer is not known. {error}")
            continue
        kept.append(number)
    nothing = Jacobian.of(np.zeros((count, 0)))
    of_law = nothing
    if other_law is not None and kept:
        other = with_shorter_steps(other_law.with_dtype("float64"), theta, precise.steps.count)
        same = replace(precise, steps=other.steps)
        with suppress(*NOT_FINITE):  # then the law's own row of the budget is not known either
            of_law = between([other, same], WHOLE)
    C, L = (Jacobian.beside(each) if each else nothing for each in (columns, looks))
    return DeclaredChanges(kept, C, L, of_law, notes)


def _changes_of_shapes(
    problem: SceneProblem,
    theta: np.ndarray,
    J: Jacobian,
    numbers: Sequence[DeclaredNumber],
    *,
    is_rough: bool,
) -> tuple[dict[DeclaredNumber, np.ndarray], list[str]]:
    """Return J^T C, a column (p + l,) for each number, J being that of theta and looks; notes."""
    columns, notes = {}, []
    fixed = [number for number in numbers if not number.prior_of]
    paths = list(dict.fromkeys(path for number in fixed for path in number.paths))
    if is_rough and fixed:
        changes = declared_changes(problem, theta, fixed, is_rough=True)
        columns = dict(zip(changes.numbers, (J.T @ changes.residuals).T, strict=True))
        notes = changes.notes
    elif fixed:
        by_path = problem.with_dtype("float64").products_with(theta, J, paths)
        for number in fixed:
            slopes = sum(by_path[path][:, number.component] for path in number.paths)
            columns[number] = number.error * slopes
    priors = np.asarray(J[len(J) - len(theta) :])
    for number in numbers:
        if number.prior_of:
            row = problem.parameters.labels.index(number.prior_of)
            columns[number] = -priors[row] / np.sqrt(EVIDENCE)
    return columns, notes


class PropagatedErrors(NamedTuple):
    """The covariance of theta by m declared numbers, (p, p), and what each adds to its diagonal."""

    covariance: np.ndarray
    shares: np.ndarray  # (p, m); they add up to it but for what numbers share


def propagated_errors(
    J: Jacobian,
    C: Jacobian,
    r: np.ndarray | None,
    frames: np.ndarray,
    *,
    is_camera: np.ndarray | bool = False,
    known: np.ndarray | float = KNOWN_BY_DATA,
    hidden: np.ndarray | None = None,
    law: Jacobian | None = None,
) -> PropagatedErrors:
    """Return the covariance of theta by declared numbers, the largest by any camera's priors.

    J (n, p + l) are the changes of the residuals r (n,) by theta and what else may make up for
    numbers, and C (n, m) those by the numbers. `frames` (n,) are as in
    `studies.answer.intervals.intervals`, and the last p rows are priors. `is_camera` (p,) says
    which of these are of cameras, and `known` (m,) to what part of its uncertainty residuals may
    show a number. r is None where they show nothing. `hidden` (p + l, k) are J^T C of k more
    numbers, for which residuals are not asked, and `law` (n, k) are errors of the model.
    """
    p, count = int((frames < 0).sum()), J.shape[1]
    H, of_numbers, cross, prior = J.T @ J, C.T @ C, J.T @ C, np.zeros(count)
    prior[:p] = np.diag(np.asarray(J[len(J) - p :])[:, :p])
    of_camera = np.where(np.append(np.broadcast_to(is_camera, p), [False] * (count - p)), prior, 0)
    m = C.shape[1]
    every = cross if hidden is None else np.column_stack([cross, hidden])
    sums = None if r is None else [_sums_by_frame(each, r, frames) for each in (C, J)]
    covariances, shares = [], []
    for factor in TIGHTER if of_camera.any() else TIGHTER[:1]:
        more = (factor**2 - 1.0) * of_camera**2
        D = -inverse(H + np.diag(more)) @ every
        M = np.eye(every.shape[1])
        if sums is not None:
            scores = sums[0] + sums[1] @ D[:, :m]
            of_priors = np.hypot(prior, np.sqrt(more))[:, None] * D[:, :m]
            noise = len(scores[1:]) * scores[1:].T @ scores[1:]
            noise = noise + of_priors.T @ of_priors / EVIDENCE
            if law is not None:
                trace = law.T @ C + (law.T @ J) @ D[:, :m]
                noise = noise + trace.T @ trace
            least = VISIBLE * np.diag(of_numbers).max(initial=1e-300)
            M[:m, :m] = _second_moment(
                of_numbers + cross.T @ D[:, :m], scores.sum(axis=0), noise, least=least, known=known
            )
        covariances.append(D[:p] @ M @ D[:p].T)
        shares.append(np.square(D[:p]) * np.diag(M))
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    worst, covariance = variances.argmax(axis=0), covariances[0]
    covariance = covariance + np.diag(variances.max(axis=0) - np.diag(covariance))
    return PropagatedErrors(covariance, np.stack(shares)[worst, np.arange(p)])


def _second_moment(
    visible: np.ndarray,
    score: np.ndarray,
    noise: np.ndarray,
    *,
    least: float,
    known: np.ndarray | float,
) -> np.ndarray:
    """Return what residuals leave of the uncertainty of declared numbers, (m, m), in its squares.

    `visible` is C'^T C' (m, m), of which less than `least` is no trace, `score` is C'^T r (m,) and
    `noise` its covariance.
    """
    m = len(score)
    values, axes = np.linalg.eigh(visible)
    V, scale = axes[:, values > least], values[values > least]
    R = V.T @ noise @ V / np.outer(scale, scale) + (V.T * np.broadcast_to(known, m) ** 2) @ V
    gain = V @ np.linalg.inv(np.eye(len(scale)) + R)
    moved = -gain @ (V.T @ score / scale)
    return np.eye(m) - gain @ V.T + np.outer(moved, moved)


def _sums_by_frame(J: Jacobian, r: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """Return J_t^T r_t of every frame t, (n_frames + 1, p), that of the priors first."""
    at, count = frames[J.rows] + 1, int(frames.max()) + 2
    columns = [np.bincount(at, column * r[J.rows], count) for column in J.values.T]
    return np.reshape(columns, (J.shape[1], count)).T


def _of_cameras(parameters: Parameters) -> np.ndarray:
    """Return which components of theta are of cameras and fitted beside the answers, (p,)."""
    return parameters.each(
        [free.path.startswith("cameras.") and not free.is_answer for free in parameters.free]
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
    residuals: np.ndarray,
    is_rough: bool = False,
    other_law: SceneProblem | None = None,
) -> tuple[Budget, Intervals, list[str]]:
    """Return the budget of the answers at theta, intervals that count it, and notes.

    The arguments are those of `declared_changes`; `intervals` count all but declared numbers, of
    which `residuals` (n,) may show some.
    """
    parameters, chosen = problem.parameters, list(problem.answers)
    shapes = [number for number in numbers if number.key.endswith(".shape_error")]
    others = [number for number in numbers if number not in shapes]
    changes = declared_changes(problem, theta, others, is_rough=is_rough, other_law=other_law)
    J = Jacobian.beside([jacobian, changes.looks])
    of_shapes, more_notes = _changes_of_shapes(problem, theta, J, shapes, is_rough=is_rough)
    hidden = np.reshape(list(of_shapes.values()), (len(of_shapes), J.shape[1])).T
    of_cameras = _of_cameras(parameters)
    is_scale = np.array([not number.unit for number in changes.numbers], bool)
    visible = np.where(is_scale & of_cameras.any(), KNOWN_BESIDE_CAMERA, KNOWN_BY_DATA)
    rubbing = [path.removesuffix(".friction") for path in parameters.paths if ".friction" in path]
    leaning = [f"obstacles.{name}.tilt_error" for name in rubbing
               if f"{name}.restitution" not in parameters.paths]  # fmt: skip
    visible[[number.key in leaning for number in changes.numbers]] = HIDDEN
    errors = propagated_errors(
        J,
        changes.residuals,
        None if is_rough else residuals,
        clusters_of_rows(problem),
        is_camera=of_cameras & np.isfinite(parameters.prior_error),
        known=visible,
        hidden=hidden,
        law=changes.law,
    )
    more = errors.covariance * (QUANTILE / intervals.quantile) ** 2
    intervals = widened(intervals, parameters, theta, more, source=DECLARED)
    rate = np.abs(parameters.natural_rates(theta))
    scale = np.maximum(value_scale(parameters, theta), 1e-300)
    # a logarithm counts as the part of the value that it is
    to_part = np.where(is_log(parameters), 1.0, rate / scale)[chosen] * intervals.quantile
    widths = {name: deviation[chosen] * to_part for name, deviation in intervals.parts.items()}
    total = np.sqrt(np.maximum(np.diag(intervals.covariance), 0.0))[chosen] * to_part
    shares = errors.shares[chosen]
    shares = shares * (widths.pop(DECLARED) ** 2 / np.maximum(shares.sum(axis=1), 1e-300))[:, None]
    of_numbers: dict[str, np.ndarray] = {}
    counted = [*changes.numbers, *of_shapes]
    for number, share in zip(counted, shares.T, strict=True):
        of_numbers[number.name] = np.hypot(of_numbers.get(number.name, 0.0), np.sqrt(share))
    noise = np.square(widths.pop("pixel"))
    others = {NAMES[name]: width for name, width in widths.items() if name in NAMES}
    left = total**2 - sum(np.square(width) for width in (*others.values(), *of_numbers.values()))
    left = np.maximum(left, 0.0)
    noise, camera = np.minimum(noise, left), _camera_share(parameters, jacobian)[chosen]
    parts = {
        "noise": np.sqrt(noise * (1.0 - camera)),
        "what is left unexplained (grows with the misfit)": np.sqrt(
            (left - noise) * (1.0 - camera)
        ),
        "the camera": np.sqrt(left * camera),
        **others,
        **of_numbers,
    }
    parts = {name: width for name, width in parts.items() if width.any()}
    of_parts = {number.name: number for number in counted if number.name in parts}
    labels = tuple(parameters.labels[i] for i in chosen)
    budget = Budget(labels, total, parts, of_parts, is_log(parameters)[chosen])
    notes = changes.notes + more_notes
    return budget, intervals, notes + _thickness(problem, theta, jacobian, of_shapes)


def _thickness(
    problem: SceneProblem,
    theta: np.ndarray,
    J: Jacobian,
    of_shapes: dict[DeclaredNumber, np.ndarray],
) -> list[str]:
    """Return in sentences what numbers of a body would be if it were a little thicker.

    J (n, p) is that of theta (p,), and `of_shapes` has J^T C first; the shape is held there, also
    where it is free.
    """
    parameters, notes = problem.parameters, []
    labels, steps = parameters.labels, is_log(parameters)
    for name, shape in problem.built.shapes.items():
        amplitudes = shape.thicker / shape.error
        held = [k for k, label in enumerate(labels) if label.startswith(f"{shape.path}[")]
        H, key = J.T @ J, f"bodies.{name}.shape_error"
        products = [
            column[: len(theta)]
            for number, column in of_shapes.items()
            if number.key == key and not number.prior_of
        ]
        columns = H[held] if held else np.reshape(products, (-1, len(theta)))
        if len(columns) != len(amplitudes):  # some have no derivative
            continue
        others = np.setdiff1d(np.arange(len(theta)), held)
        moved = np.zeros(len(theta))
        moved[others] = -inverse(H[np.ix_(others, others)]) @ (amplitudes @ columns)[others]
        ways = np.where(moved > 0.0, "higher", "lower")
        notes += [
            f"If `{name}` were 1 % thicker along its shortest side ({shape.side:.3g} m, along an "
            f"axis of its mesh), {labels[k]} would come out {percent(abs(moved[k]))} {ways[k]}."
            for k in problem.answers
            if steps[k] and labels[k].startswith(f"{name}.")
        ]
    return notes


def _camera_share(parameters: Parameters, jacobian: Jacobian) -> np.ndarray:
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
