"""The loss and its gradient at many points: motions with the same time step side by side."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from adjsim.jit.device_arrays import joined, to_host
from studies.optimizers.problem import NOT_FINITE
from studies.problem.losses import SceneLosses
from studies.problem.predict import Back, Moment
from studies.problem.steps import TimeSteps
from studies.problem.worlds import Failure, Sample, run_worlds, worlds_at_once


def samples(
    problem: SceneLosses,
    thetas: Sequence[np.ndarray],
    *,
    with_gradient: bool = True,
    steps: Sequence[TimeSteps] | None = None,
) -> list[Sample | Failure]:
    """Return loss and gradient at many points, or why there is none.

    `steps` are the time steps of every point; by default those of `with_rounded_steps`.
    """
    out: list[Sample | Failure] = [Failure("")] * len(thetas)
    for points, failures in _batches(problem, thetas, steps, keeps=with_gradient):
        for k, failure in failures.items():
            out[k] = failure
        if not points:
            continue
        sampled = _sampled(thetas, points, with_gradient=with_gradient)
        for (k, *_), sample in zip(points, sampled, strict=True):
            out[k] = sample
    return out


def residuals_at(problem: SceneLosses, thetas: Sequence[np.ndarray]) -> Iterator[np.ndarray | None]:
    """Yield r at many points, all with the time step of the problem; None where it blows up.

    All motions come first, and each is compared in its turn: few residuals are held at once.
    """
    moved: dict[int, tuple[SceneLosses, Moment, Any]] = {}
    steps = [problem.steps] * len(thetas)
    for points, _ in _batches(problem, thetas, steps, keeps=False):
        if points:
            runs, _ = run_worlds([moment[1] for _, _, moment in points], keeps=False)
            pairs = zip(points, runs, strict=True)
            moved |= {k: (stepped, moment, run) for (k, stepped, moment), run in pairs}
    for k, theta in enumerate(thetas):
        r = None
        if k in moved and not isinstance(moved[k][2], Failure):
            stepped, (values, motion, samplings), run = moved.pop(k)
            with suppress(*NOT_FINITE):  # a camera that there is not
                moved_then = stepped.moved_by(motion, run)
                r = to_host(
                    stepped.residuals_of(joined(stepped.rows_of(moved_then, samplings, values)))
                )
                r = stepped.with_priors(theta, r)
        yield r if r is not None and np.isfinite(r).all() else None


def _batches(
    problem: SceneLosses,
    thetas: Sequence[np.ndarray],
    steps: Sequence[TimeSteps] | None,
    *,
    keeps: bool,
) -> Iterator[tuple[list[Any], dict[int, Failure]]]:
    """Yield points (number, problem, moment) with one time step, and those that have no motion."""
    alike: dict[Any, list[Any]] = {}
    failures: dict[int, Failure] = {}
    for k, theta in enumerate(thetas):
        try:
            if steps is None:
                stepped = problem.with_rounded_steps(theta)
            else:
                stepped = replace(problem, steps=steps[k])
            moment = stepped.moment(theta)
        except (ValueError, ArithmeticError) as error:
            failures[k] = Failure(str(error) or type(error).__name__)
            continue
        key = (moment[1].dt, moment[1].frames.tobytes())
        alike.setdefault(key, []).append((k, stepped, moment))
    if failures:
        yield [], failures
    for points in alike.values():
        count = worlds_at_once(points[0][2][1], keeps=keeps)
        for first in range(0, len(points), count):
            yield points[first : first + count], {}


def _sampled(
    thetas: Sequence[np.ndarray], points: Sequence[Any], *, with_gradient: bool
) -> list[Sample | Failure]:
    """Return loss and gradient at points (number, problem, moment) with one time step."""
    runs, pull = run_worlds([moment[1] for _, _, moment in points], keeps=with_gradient)
    pulled: list[Back | None] = []
    losses: list[tuple[float, np.ndarray]] = []
    for (_, stepped, moment), run in zip(points, runs, strict=True):
        back, r = None, np.empty(0)
        if not isinstance(run, Failure):
            values, motion, samplings = moment
            if with_gradient:
                records = stepped.recorded(moment, run)
                rows = np.concatenate([record.rows for record in records])
                r = stepped.residuals_of(rows)
                adj_rows = stepped.reached_cotangent(rows, r)
                back = stepped.pull_rows_back(motion, run, records, adj_rows)
            else:
                parts = stepped.rows_of(stepped.moved_by(motion, run), samplings, values)
                r = stepped.residuals_of(np.concatenate(parts))
        pulled.append(back)
        losses.append((float(r @ r), stepped.frame_losses_of(r) if r.size else r))
    adjoints: list[dict[str, np.ndarray]] = [{} for _ in points]
    if with_gradient:
        frames = [{} if pair is None else pair[0].frames for pair in pulled]
        wanted = points[0][1].reached_parameters()
        adjoints = pull(frames, wanted) if wanted and any(frames) else adjoints
    out: list[Sample | Failure] = []
    for (k, stepped, moment), run, back, adjoint, (value, by_frame) in zip(
        points, runs, pulled, adjoints, losses, strict=True
    ):
        if isinstance(run, Failure):
            out.append(run)
            continue
        more, slope = stepped.penalty(thetas[k])
        gradient = np.empty(0)
        if back is not None:
            gradient = stepped.gradient_of(thetas[k], moment[0], back, adjoint) + slope
        out.append(_checked(Sample(float(value + more), gradient, by_frame)))
    return out


def _checked(sample: Sample) -> Sample | Failure:
    if not np.isfinite(sample.loss):
        return Failure("The loss is not finite.")
    if not np.isfinite(sample.gradient).all():
        return Failure("The gradient leaves the finite numbers; the loss does not.")
    return sample
