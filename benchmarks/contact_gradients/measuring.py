"""Errors of values and gradients, and the orders with which they fall.

Where in its step a touch begins and ends moves a gradient to and fro. So every measurement is the
root mean square over copies of the scene whose touches begin at places spread over a step, and
whose contacts take numbers of steps whose fractions are spread over 0 to 1. Copies are
worlds of one batch.
"""

from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np
from scipy.stats import t as student

from adjoint.rollout import record
from adjsim.rollout import rollout
from adjsim.worlds import stack
from benchmarks.contact_gradients.problems import Problem, Values


# A lattice: even over both spreads and over their sums, since the number is prime; and
# also at half the step, since it is odd.
COPIES, STRIDE = 89, 55
POINTS = 5  # of every line through errors
WIDE = 0.02  # part of a parameter over which a slope is that of the loss, not of its ripples
Copies = list[tuple[Values, float]]


@dataclass(frozen=True)
class Errors:
    """Errors of the value and of the gradient over steps or rates."""

    over: np.ndarray
    value: np.ndarray
    gradient: np.ndarray


@dataclass(frozen=True)
class Fit:
    """The slope of a line through logarithms, and how far the order may be from it.

    `width` is half the 95 % interval of the slope, for the scatter, and what terms of the next
    order may still add. These fade by a factor R from the first half of the points to the second,
    as steps or 1/rates do; where slopes of the halves differ by D, the slope in the middle is off
    by D sqrt(R)/(R - 1). Twice that is allowed, for the terms after.
    """

    slope: float
    width: float


def copies_of(problem: Problem, rate: float, dt: float) -> Copies:
    """Return parameters and contact rates of the copies; they differ by less than a step."""
    copies = []
    for i in range(COPIES):
        begin, inside = i / COPIES, STRIDE * i % COPIES / COPIES
        p = dict(problem.start)
        for name, shift in problem.one_step(p, rate).items():
            p[name] += begin * dt * shift
        copies.append((p, rate * (1 + rate * dt / np.pi * inside)))
    return copies


def run(problem: Problem, copies: Copies, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return values (n_copies,) and gradients (n_copies, n_parameters) of our engine."""
    models, states = zip(*(problem.scene(p, rate) for p, rate in copies), strict=True)
    batch = record(
        stack(models), states, problem.end / n_steps, n_steps, checkpoint="200MB", threads=1
    )
    ends = batch.trajectory
    values = [problem.value(end, p) for end, (p, _) in zip(ends, copies, strict=True)]
    adjoints = [problem.observe(end)[1] for end in ends]
    adj = {key: [each[key] for each in adjoints] for key in adjoints[0]}
    pulled = [
        problem.pull(g, p, rate) for g, (p, rate) in zip(batch.vjp(**adj), copies, strict=True)
    ]
    return np.array(values), np.array([list(each.values()) for each in pulled])


def limits(problem: Problem, copies: Copies) -> tuple[np.ndarray, np.ndarray]:
    """Return the same in closed form."""
    values = [problem.limit(p) for p, _ in copies]
    return np.array(values), np.array([list(problem.slopes(p).values()) for p, _ in copies])


def distance(
    computed: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    """Return root mean squares over copies of what values, and lengths of gradients, are off."""
    value, gradient = (np.square(a - b) for a, b in zip(computed, right, strict=True))
    return float(np.sqrt(value.mean())), float(np.sqrt(gradient.sum(axis=1).mean()))


def steps_of(problem: Problem, dt: float) -> int:
    """Return the number of steps of about dt."""
    return round(problem.end / dt)


def over_steps(problem: Problem) -> Errors:
    """Return the errors at the first rate: the change from every step to half of it.

    These fall with the order of the errors, and need no reference.
    """
    n = steps_of(problem, problem.dt)
    copies = copies_of(problem, problem.rate, problem.end / n)
    counts = n * 2 ** np.arange(POINTS + 1)
    results = [run(problem, copies, int(each)) for each in counts]
    return Errors(problem.end / counts[:-1], *np.transpose([*starmap(distance, pairwise(results))]))


def to_limit(problem: Problem, growth: float = 1.5) -> Errors:
    """Return the errors against the closed form over growing rates, with dt ~ rate^-path."""
    factors = growth ** np.arange(POINTS)
    rates, steps = problem.rate * factors, problem.dt / factors**problem.orders.path
    errors = [at(problem, rate, dt) for rate, dt in zip(rates, steps, strict=True)]
    return Errors(rates, *np.transpose(errors))


def over_both(problem: Problem, rates: int = 3, halvings: int = 6) -> list[tuple[float, Errors]]:
    """Return the errors against the closed form over steps, at several rates."""
    steps = problem.dt / 2.0 ** np.arange(halvings)
    return [
        (rate, Errors(steps, *np.transpose([at(problem, rate, dt) for dt in steps])))
        for rate in problem.rate * 2.0 ** np.arange(rates)
    ]


def at(problem: Problem, rate: float, dt: float) -> tuple[float, float]:
    """Return the errors of value and gradient against the closed form."""
    n = steps_of(problem, dt)
    copies = copies_of(problem, rate, problem.end / n)
    return distance(run(problem, copies, n), limits(problem, copies))


def wide_slope(problem: Problem, rate: float, dt: float, name: str) -> float:
    """Return the slope of the value over `WIDE` of a parameter to both sides, mean of the copies.

    Over so many steps of the event, ripples and jumps average out.
    """
    n = steps_of(problem, dt)
    copies = copies_of(problem, rate, problem.end / n)
    half = WIDE * problem.start[name]
    up, down = (
        run(problem, [(p | {name: p[name] + d}, copy_rate) for p, copy_rate in copies], n)[0]
        for d in (half, -half)
    )
    return float(np.mean(up - down) / (2 * half))


def fit(over: np.ndarray, errors: np.ndarray) -> Fit:
    """Return the order of errors over steps or rates."""
    x, y = np.log(over), np.log(errors)
    (slope, intercept), n = np.polyfit(x, y, 1), len(x)
    scatter = np.square(y - slope * x - intercept).sum() / (n - 2) / np.square(x - x.mean()).sum()
    halves = slice(n // 2 + 1), slice(n // 2, n)
    first, second = (np.polyfit(x[half], y[half], 1)[0] for half in halves)
    R = np.exp(abs(x[halves[1]].mean() - x[halves[0]].mean()))
    width = student.ppf(0.975, n - 2) * np.sqrt(scatter)
    width += 2 * abs(second - first) * np.sqrt(R) / (R - 1)
    return Fit(float(slope), float(width))


def derivative_error(problem: Problem, rate: float, dt: float, step: float = 1e-6) -> float:
    """Return how far adjoint and central differences of the same program are apart, relative."""
    n = steps_of(problem, dt)
    (p, copy_rate), *_ = copies_of(problem, rate, dt)[1:]
    gradient = run(problem, [(p, copy_rate)], n)[1][0]
    moved = [p | {name: p[name] + sign * step} for name in p for sign in (1, -1)]
    models, states = zip(*(problem.scene(q, copy_rate) for q in moved), strict=True)
    ends = rollout(stack(models), states, problem.end / n, n, threads=1)
    values = np.array([problem.value(end, q) for end, q in zip(ends, moved, strict=True)])
    differences = (values[::2] - values[1::2]) / (2 * step)
    return float(np.linalg.norm(gradient - differences) / np.linalg.norm(differences))
