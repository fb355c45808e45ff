"""The gradient certificate of a run: Taylor and dot tests of its own loss, as JSON.

- The loss of a video jumps where two faces swap their depth order at a pixel, and a Taylor
  remainder does not fall there. Pixels that jump within a sweep, whose deviation from their tangent
  does not fall with the square of the step, are counted and left out of its loss. The dot test
  takes all.
- Small kinks, as where a lookup of smoke crosses into the next cell, stay outside a sweep with
  small enough steps. So smaller steps are tried where no sweep passes. A wrong gradient passes with
  none.
- Where a search hits its video to the last bit, loss and gradient are 0. The test is then made a
  little beside that point, and the certificate says how far.
- Where a rollout leaves the finite numbers, or the loss is too rough for any slope, the certificate
  could not be made and says why. That is no pass; the rest of the run is written all the same.
- A loss may be rough at longer steps alone. A body that rattles on a stiff contact has events of
  contact so near that rounding hides all slopes between them, and differences over longer steps
  mean nothing. Only where both are so, the certificate could not be made, if the dot test passes:
  it shows a wrong gradient there too.
"""

import enum
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from adjoint.verify.dot_test import dot_test
from adjoint.verify.taylor_test import LEAST_HALVINGS, TaylorTest, taylor_test
from studies.answer import kinks, verdict as answer_verdict
from studies.optimizers.problem import NOT_FINITE
from studies.problem.problem import SceneProblem
from studies.runs.manifest import machine, now, versions
from studies.runs.options import RunOptions


EPS0 = (1e-3, 1e-4, 1e-5, 1e-6)  # largest step in theta; a later one if no sweep passed before
HALVINGS = 8  # of a step
DIRECTIONS = 4
ROUNDING = 1e-11  # of a pixel
LEAST_FALL, MOST_FALL = 2.0, 12.0  # of a smooth pixel's deviation in a halving; 4 is exact
MOST_LEFT_OUT = 0.1  # part of the pixels
BESIDE = 1e-2  # from a point whose gradient is 0 [in theta]
SHORTEST, LONGER = 1e-12, 1e3  # step in theta that shows a rough loss first, and times so many
ROUGH, FLAT = 1e-7, 0.1  # part of the loss, and of the change over the longer step
MOST_SMOOTH = 0.25  # part of the steps that may change little; a jump leaves one side smooth: half

AT_ONCE = 1 << 14  # rows of pictures that are compared, so that they stay in the cache
MOST_KEPT = 2**28  # bytes of the images that a sweep keeps, in each process that certifies

Say = Callable[[str], None]
Images = Callable[[np.ndarray], np.ndarray]


class RoughLossError(ArithmeticError):
    """A loss in which no slope can be read, however short the steps are."""


class Outcome(enum.StrEnum):
    """What a certificate says of a gradient, from good to bad."""

    PASSED = "passed"
    SKIPPED = "not made (--no-certificate)"
    BETWEEN_KINKS = "between kinks"
    NOT_MADE = "not made"
    FAILED = "failed"


def in_words(verdict: Outcome) -> str:
    """Return a verdict for the terminal: one that is neither good nor bad says so."""
    words = {
        Outcome.BETWEEN_KINKS: f"{verdict}, not judged",
        Outcome.NOT_MADE: "could not be made",
        Outcome.FAILED: "FAILED",
    }
    return words.get(verdict, str(verdict))


def why_not_made(certified: dict[str, Any]) -> list[str]:
    """Return why points of a certificate could not be made, in sentences."""
    return [
        f"no certificate at the {name}: {point['reason']}"
        for name, point in certified["points"].items()
        if verdict_of(point) is Outcome.NOT_MADE
    ]


def verdict_of(certified: dict[str, Any]) -> Outcome:
    """Return the verdict of a certificate, or of a point of one, as it was written."""
    return Outcome(certified["verdict"])


def certificate(
    problem: SceneProblem, theta: np.ndarray, options: RunOptions, say: Say = lambda _: None
) -> dict[str, Any]:
    """Return the certificate at the optimum `theta`, computed in float64.

    It has no points with `--no-certificate`. `say` gets a line for every sweep that cannot be
    judged, for then others follow, and for the one that passes after them.
    """
    exact, points, verdict = problem.with_dtype("float64"), {}, str(Outcome.SKIPPED)
    if options.certificate:
        point = check_point(exact, theta, options.seed, lambda text: say(f"optimum: {text}"))
        points, verdict = {"optimum": point}, point["verdict"]
    return {
        "passed": verdict == Outcome.PASSED,
        "verdict": verdict,
        "loss": repr(problem.loss),
        "points": points,
        "schedule": exact.schedule,
        "dtype": "float64",
        "seed": options.seed,
        "versions": versions(),
        "machine": machine(),
        "made": now(),
    }


def with_certificate(
    verdict: answer_verdict.Verdict, certified: dict[str, Any]
) -> answer_verdict.Verdict:
    """Return the verdict on an answer, which is not *found* where its gradient is not certified."""
    outcome = verdict_of(certified)
    if verdict.kind is not answer_verdict.Kind.FOUND or outcome not in (
        Outcome.NOT_MADE,
        Outcome.FAILED,
    ):
        return verdict
    why = "; ".join(why_not_made(certified)) or "the gradient certificate failed"
    return answer_verdict.Verdict(
        answer_verdict.Kind.NOT_FINISHED,
        f"The gradient at the answer is not certified, and the search rests on it: {why}.",
        {**verdict.numbers, "certificate": str(outcome)},
    )


def check_point(
    problem: SceneProblem, theta: np.ndarray, seed: int, say: Say = lambda _: None
) -> dict[str, Any]:
    """Return the outcome of both tests at theta, or why there is none."""
    try:
        return _tested(problem, theta, seed, say)
    except (*NOT_FINITE, RoughLossError) as error:
        return {
            "passed": False,
            "verdict": str(Outcome.NOT_MADE),
            "reason": str(error) or type(error).__name__,
            "theta": theta.tolist(),
        }


def _tested(problem: SceneProblem, theta: np.ndarray, seed: int, say: Say) -> dict[str, Any]:
    loss, gradient = problem.loss_and_gradient(theta)
    beside = 0.0
    if not gradient.any():
        beside = BESIDE
        direction = np.random.default_rng([seed, 2]).standard_normal(theta.size)
        step = BESIDE * direction / np.linalg.norm(direction)
        low, high = problem.bounds
        is_inside = ((low < theta + step) & (theta + step < high)).all()
        theta = theta + step if is_inside else theta - step
        loss, gradient = problem.loss_and_gradient(theta)
    sweeps, between = taylor_sweeps(problem, theta, seed, say), None
    dot = dot_test(
        lambda tangent: problem.residuals_jvp(theta, tangent),
        lambda adj: problem.residuals_vjp(theta, adj),
        theta,
        scale=np.ones_like(theta),
        seed=seed,
    )
    if (
        not sweeps[-1][0].passed
        and (events := kinks.events_between(problem, theta))
        and gradient.any()
    ):
        reaches = ((d, kinks.reach(events, theta, d)) for d in _directions(theta, seed))
        short = ((d, eps0) for d, eps0 in reaches if eps0)
        within = _sweeps(problem, theta, short, "between events of contact", say=say)
        sweeps += within
        if all(test.halvings < LEAST_HALVINGS for test, _ in within):  # rounding hides all slopes
            far = max((float(test.eps[0]) for test, _ in within), default=0.0)
            say("no slope can be read; comparing differences to either side")
            between = kinks.compare_sides(problem.loss_at, gradient, theta, reach=far, seed=seed)
            if dot.passed and not between.agrees:  # a rough loss agrees with no gradient
                for step in kinks.STEPS:
                    require_smooth(problem.loss_at, theta, _directions(theta, seed), step / LONGER)
    best, left_out = next((sweep for sweep in sweeps if sweep[0].passed), sweeps[0])
    shown = covered_pixels(problem, theta)
    touch = kinks.nearest_touch(problem, theta) if kinks.has_one_clock(problem) else None
    verdict = Outcome.FAILED
    if dot.passed and gradient.any() and shown != 0.0:  # both tests also pass on nothing at all
        if best.passed:
            verdict = Outcome.PASSED
        elif between is not None and between.agrees:
            verdict = Outcome.BETWEEN_KINKS
    return {
        "passed": verdict is Outcome.PASSED,
        "verdict": str(verdict),
        "between_kinks": None if between is None else between.to_dict(),
        "theta": theta.tolist(),
        "beside": beside,
        "loss": loss,
        "gradient": gradient.tolist(),
        "gradient_norm": float(np.linalg.norm(gradient)),
        "covered_pixels": shown,
        "nearest_touch": None if touch is None else touch.to_dict(),
        "taylor": best.to_dict(),
        "left_out_pixels": left_out,
        "pixels": int(np.prod(problem.targets.shape[:-1])),
        "sweeps": [
            {"passed": test.passed, "slope1": test.to_dict()["slope1"], "left_out_pixels": count}
            for test, count in sweeps
        ],
        "dot": dot.to_dict(),
    }


def covered_pixels(problem: SceneProblem, theta: np.ndarray) -> float | None:
    """Return the part of the pictures' pixels that the bodies cover; None without pictures."""
    rows = problem.by_observer(problem.predicted_rows(theta))
    alpha = [pixels[:, 3] for observer, pixels in rows if observer.IS_PICTURE]
    return float(np.mean(np.concatenate(alpha) > 0.5)) if alpha else None


def taylor_sweeps(
    problem: SceneProblem, theta: np.ndarray, seed: int, say: Say
) -> list[tuple[TaylorTest, int]]:
    """Return sweeps of `EPS0`; raise after the first one if the loss is rough."""
    directions = _directions(theta, seed)
    tried = [(direction, eps0) for eps0 in EPS0 for direction in directions]
    among = f"of at most {len(tried)}"
    first = _sweeps(problem, theta, tried[:1], among, say=say)
    if first[0][0].passed:
        return first
    require_smooth(problem.loss_at, theta, directions)
    return first + _sweeps(problem, theta, tried[1:], among, say=say, done=1)


def _sweeps(
    problem: SceneProblem,
    theta: np.ndarray,
    tried: Iterable[tuple[np.ndarray, float]],
    among: str,
    *,
    say: Say,
    done: int = 0,
) -> list[tuple[TaylorTest, int]]:
    """Return sweeps with their count of pixels left out, up to the first that passes.

    `tried` has directions and largest steps; `among` says which sweeps these are.
    """
    sweeps: list[tuple[TaylorTest, int]] = []
    for number, (direction, eps0) in enumerate(tried, start=1 + done):
        sweeps.append(_sweep(problem, theta, direction, eps0))
        test = sweeps[-1][0]
        # a reason goes on with steps, which are not the user's to set
        outcome = "passed" if test.passed else test.reason.partition(": raise")[0]
        if number > 1 or not test.passed:
            say(f"Taylor sweep {number} {among}, steps of {test.eps[0]:.0e}: {outcome}")
        if test.passed:
            break
    return sweeps


def require_smooth(
    loss_at: Callable[[np.ndarray], float],
    theta: np.ndarray,
    directions: np.ndarray,
    step: float = SHORTEST,
) -> None:
    """Raise if a loss changes as much over a step in theta as over one `LONGER` times as long.

    A jump at theta does so to one side only, a kink not at all; a gradient, right or wrong, has no
    part in it.
    """
    here = loss_at(theta)
    signed = [sign * k * d for k, d in enumerate(directions, start=1) for sign in (1.0, -1.0)]

    def changes(step: float) -> np.ndarray:
        return np.abs([loss_at(theta + step * d) - here for d in signed])

    short = changes(step)
    if np.mean(short <= ROUGH * abs(here)) > MOST_SMOOTH:
        return
    long = changes(LONGER * step)
    if np.median(short) > FLAT * np.median(long):
        raise RoughLossError(
            f"no slope can be read in this loss of {here:.3g}: a step of {step:.0e} in theta "
            f"changes it by {np.median(short):.1e}, one {LONGER:g} times as long by "
            f"{np.median(long):.1e}. So it is where the motion is chaotic, as with a `world.dt` "
            "too long for the stiffness reached, or with contacts so stiff that a body rattles on "
            "them: give the obstacle a lower `stiffness`. Pixels that jump do it too, for example "
            "where a camera looks straight at a symmetric body: turn the camera a little."
        )


def _directions(theta: np.ndarray, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((DIRECTIONS, theta.size))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _sweep(
    problem: SceneProblem, theta: np.ndarray, direction: np.ndarray, eps0: float
) -> tuple[TaylorTest, int]:
    drawn = _kept_images(problem)
    smooth = smooth_pixels(problem, theta, direction, eps0, drawn=drawn)
    loss_at, gradient = partial_loss(problem, smooth, drawn)
    test = taylor_test(
        loss_at, gradient(theta), theta, direction,
        eps0=eps0, n_halvings=HALVINGS, scale=np.ones_like(theta),
    )  # fmt: skip
    if np.mean(~smooth) > MOST_LEFT_OUT:
        test = replace(test, reason="more pixels jump than may be left out")
    return test, int(np.sum(~smooth))


def _kept_images(problem: SceneProblem) -> Images:
    """Return what gives the images at a point, and draws those of a sweep once if they are few.

    Most of its points are asked for twice: to find pixels that jump, and for the loss without them.
    """
    kept: dict[bytes, np.ndarray] = {}

    def images(theta: np.ndarray) -> np.ndarray:
        key = theta.tobytes()
        if key in kept:
            return kept[key]
        drawn = problem.predicted_rows(theta)
        if (len(kept) + 1) * drawn.nbytes <= MOST_KEPT:
            kept[key] = drawn
        return drawn

    return images


def smooth_pixels(
    problem: SceneProblem, theta: np.ndarray, direction: np.ndarray, eps0: float, *, drawn: Images
) -> np.ndarray:
    """Return the pixels that do not jump within a sweep, (n_frames, height, width) bool."""
    images, tangent = problem.predicted_rows_jvp(theta, direction)
    smooth = np.ones(images.shape[:-1], bool)
    before = None
    for eps in eps0 * 0.5 ** np.arange(HALVINGS + 1):
        deviation = _deviation(drawn(theta + eps * direction), images, tangent, eps)
        if before is not None:
            smooth &= LEAST_FALL * deviation <= before + ROUNDING
            smooth &= before <= MOST_FALL * deviation + ROUNDING
        before = deviation
    return smooth


def _deviation(
    moved: np.ndarray, images: np.ndarray, tangent: np.ndarray, eps: float
) -> np.ndarray:
    """Return the largest deviation of a pixel from its tangent, (n_rows,), of rows (n_rows, k)."""
    out = np.empty(len(images), images.dtype)
    for first in range(0, len(out), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        off = np.abs(moved[rows] - images[rows] - eps * tangent[rows])
        out[rows] = reduce(np.maximum, off.T)
    return out


def partial_loss(
    problem: SceneProblem, kept: np.ndarray, drawn: Images
) -> tuple[Callable[[np.ndarray], float], Callable[[np.ndarray], np.ndarray]]:
    """Return the loss and its gradient with all but the `kept` pixels set to the target."""
    (jumps,) = np.nonzero(~kept)
    targets = problem.targets[jumps]

    def shown(images: np.ndarray) -> np.ndarray:
        out = images.copy()
        out[jumps, :3] = targets
        return out

    def loss_at(theta: np.ndarray) -> float:
        return problem.loss_of(shown(drawn(theta))) + problem.penalty(theta)[0]

    def judge(images: np.ndarray) -> tuple[float, np.ndarray]:
        _, adj_images = problem.judge(shown(images))
        adj_images[jumps, :3] = 0.0
        return 0.0, adj_images

    def gradient(theta: np.ndarray) -> np.ndarray:
        return problem.pull_back(theta, judge)[1] + problem.penalty(theta)[1]

    return loss_at, gradient
