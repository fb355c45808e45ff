r"""Kinks of contact around a point: how far the nearest one is, and what a gradient is worth there.

A node touches an obstacle at the first step whose state has a penetration c > 0. As theta
moves, a touch jumps from one step to the next where some c crosses 0, and the loss has a kink
there, or with contact damping a jump. To first order the nearest such theta is

    min over steps and contacts of |c| / |dc/dtheta|

away, with central differences of c along every theta_i, or for a long theta along random
directions, of which |dc/dtheta| is estimated. Obstacles of every shape count, moving ones too, and
surfaces of bodies and limits of joints.

Contact and friction make a loss smooth in pieces. A sweep along d stays in its piece while no
margin of contact (`adjsim.contact_margins`: touch, damping, slip, shape) changes its sign between
theta and theta + eps d. The largest such eps, the reach of d, is found by halving, and a sweep
within it judges like any other. But a piece can be so small that rounding hides the remainders in
it, as where feet stand nearly still and slip and stick by turns; no slope can be read there. What
is left are differences to either side,

    q+-(h, d) = +-(phi(theta +- h d) - phi(theta)) / h.

A kink bends them by its change of slope, and only over the part of h that is beyond it: many weak
kinks leave them right, while a wrong gradient is wrong at every h. Of an error e of the gradient,
in n dimensions, a random d of length 1 shows <e, d>, whose mean square is |e|^2 / n. So

    error(h) = max( sqrt(n mean_d (q - <g, d>)^2), |q(h, g/|g|) - |g|| ) / |g|

of the worse side estimates |e| / |g|. Differences that disagree prove nothing: the gradient then
counts as wrong, unless the loss is so rough that they cannot agree with any.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from adjoint.vectors import unit
from adjsim.contact_margins import contact_margins
from adjsim.forces.margins import ContactMargins
from adjsim.rollout import CHUNK, ready_stepper
from adjsim.system import OnDivergence
from studies.problem.problem import SceneProblem
from studies.runs.memory import state_bytes, states_within
from studies.scene.motion import Motion, Settled, model_of


PROBE = 1e-6  # step of the differences in theta
MOST_DIRECTIONS = 16  # of the nearest touch
COPIES = 6  # of a state that is looked at: in windows of two motions, and made ready for contact
WINDOW = "64MB"  # what they take at most: longer windows gain nothing
STEPS = (1e-5, 1e-6, 1e-7, 1e-8)  # of the differences, in theta; the first that agrees is told
DIRECTIONS = 8
AGREES = 1e-4  # error(h) of differences that agree
LONGEST, MOST_HALVINGS = 1e-3, 40  # where the search for a reach begins, and how far it goes


@dataclass(frozen=True)
class Touch:
    """The touch that is nearest to moving to another step."""

    force: str  # name of the contact
    # Which node, vertex or joint, as the force counts them, and in which state
    node: int
    step: int
    time: float  # of that state [s]
    depth: float  # |c| there [m]
    distance: float  # how far theta may move; inf if no node's depth moves with it

    def to_dict(self) -> dict[str, Any]:
        """Return the touch as plain values, ready for JSON."""
        return {**asdict(self), "distance": self.distance if np.isfinite(self.distance) else None}


def nearest_touch(problem: SceneProblem, theta: np.ndarray) -> Touch | None:
    """Return the touch nearest to moving to another step; None if nothing is near a touch.

    The motion of the scene's problem has as many steps at every theta.
    """
    exact = problem.with_dtype("float64")
    squares = [
        {name: np.zeros(margin.touch.shape) for name, margin in window.items()}
        for window in margins_by_window(exact.motion_at(theta))
    ]
    is_view = exact.parameters.each([free.is_view for free in exact.parameters.free])
    moving = np.eye(len(theta))[~is_view]  # cameras, lights and looks move nothing
    directions = _axes(len(moving)) @ moving if squares else moving[:0]
    for direction in PROBE * directions:
        ahead = margins_by_window(exact.motion_at(theta + direction))
        behind = margins_by_window(exact.motion_at(theta - direction))
        for sums, far, near in zip(squares, ahead, behind, strict=True):
            for name in sums:
                slope = (far[name].touch - near[name].touch) / (2.0 * PROBE)
                sums[name] += slope**2 * len(moving) / len(directions)
    depths = margins_by_window(exact.motion_at(theta))
    touches = (
        _nearest(name, margin, np.sqrt(sums[name]), exact.motion_at(theta).dt)
        for sums, window in zip(squares, depths, strict=True)
        for name, margin in window.items()
        if np.isfinite(margin.touch).any()
    )
    return min(touches, key=lambda touch: touch.distance, default=None)


def _axes(n: int) -> np.ndarray:
    """Return orthonormal directions, (min(n, MOST_DIRECTIONS), n): every axis where n is small."""
    if n <= MOST_DIRECTIONS:
        return np.eye(n)
    rng = np.random.default_rng(0)
    return np.linalg.qr(rng.standard_normal((n, MOST_DIRECTIONS)))[0].T


def margins(motion: Motion) -> dict[str, ContactMargins]:
    """Return the margins of every contact, in the states that a force was computed for."""
    windows = list(margins_by_window(motion))
    names = windows[0] if windows else ()
    return {name: _joined([window[name] for window in windows]) for name in names}


def margins_by_window(motion: Motion) -> Iterator[dict[str, ContactMargins]]:
    """Yield the margins of windows of states that keep to the budget; nothing without contact."""
    model = model_of(motion.system)
    if model is not None and any(force.touches for force in model.forces.values()):
        settled = isinstance(motion.system, Settled)
        for run in [motion.at(np.zeros(1, int)).run()] if settled else _windows(motion):
            yield contact_margins(model, run)


def _windows(motion: Motion) -> Iterator[Any]:
    """Yield the states 0 to n_steps - 1 of one rollout in float64, in parts."""
    n = motion.n_steps
    size = COPIES * state_bytes(motion.system, motion.state, "float64")
    count = states_within(motion.checkpoint, size, states_within(WINDOW, size, min(n, CHUNK)))
    system: Any = motion.system
    stepper = ready_stepper(
        system, motion.dt, n, np.float64, None, motion.device, OnDivergence.RAISE, motion.step
    )
    fields = stepper.allocate(count + 1)
    stepper.load(motion.state, fields, 0)
    for start in range(0, n, count):
        stop = min(start + count, n)
        stepper.advance(start, np.arange(stop - start + 1), fields)
        yield stepper.trajectory(np.arange(start, stop), fields)
        for field in fields:
            field[0] = field[stop - start]


def _joined(parts: Sequence[ContactMargins]) -> ContactMargins:
    """Return the margins of windows that follow each other as one."""
    if len(parts) == 1:
        return parts[0]
    series = ("steps", "touch", "leaving", "damping", "slip", "shape")
    joined = {key: np.concatenate([getattr(window, key) for window in parts]) for key in series}
    return replace(parts[0], **joined)


def _nearest(name: str, margins: ContactMargins, slope: np.ndarray, dt: float) -> Touch:
    depth = np.abs(margins.touch)
    away = np.full(depth.shape, np.inf)
    np.divide(depth, slope, out=away, where=slope > 0.0)
    at, node, step = margins.least(away)
    return Touch(name, node, step, step * dt, float(depth[at]), float(away[at]))


@dataclass(frozen=True)
class BetweenKinks:
    """Differences to either side of a point among kinks."""

    step: float  # h, of the differences that are told [in theta]
    error: float  # error(h), relative to the size of the gradient
    reach: float  # how far the longest sweep goes that crosses no event of contact, 0 if none

    @property
    def agrees(self) -> bool:
        """Whether kinks are near, and differences agree with the gradient all the same."""
        return self.reach < LONGEST and self.error <= AGREES

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, ready for JSON."""
        return {**asdict(self), "error": self.error if np.isfinite(self.error) else None}


def events_between(problem: SceneProblem, theta: np.ndarray) -> Callable[[np.ndarray], int] | None:
    """Return what counts the margins that have another sign elsewhere; None without contact."""
    if not has_one_clock(problem):
        return None
    here = _sides(problem, theta)
    if not here.size:
        return None
    return lambda there: int(np.count_nonzero(_sides(problem, there) != here))


def has_one_clock(problem: SceneProblem) -> bool:
    """Whether something moves, and its frames are at the same steps whatever theta is."""
    moves_frames = any(path.startswith("observations.") for path in problem.parameters.paths)
    return not (problem.is_still or moves_frames)


def _sides(problem: SceneProblem, theta: np.ndarray) -> np.ndarray:
    """Return which margins of contact are positive at theta, flat: not those at 0, or of none."""
    windows = margins_by_window(problem.motion_at(theta))
    sides = [margins.all() > 0.0 for window in windows for margins in window.values()]
    return np.concatenate([np.zeros(0, bool), *sides])


def reach(events: Callable[[np.ndarray], int], theta: np.ndarray, direction: np.ndarray) -> float:
    """Return how far a sweep may go without an event; 0 if it may go nowhere.

    The greatest `LONGEST` 2^-k without one, by bisection of k: margins are linear in a step that
    is this small, so that an event that is crossed stays crossed.
    """

    def crosses_none(k: int) -> bool:
        return events(theta + LONGEST * 0.5**k * direction) == 0

    k = bisect_left(range(MOST_HALVINGS + 1), x=True, key=crosses_none)  # behind the last: none
    return LONGEST * 0.5**k if k <= MOST_HALVINGS else 0.0


def compare_sides(
    loss_at: Callable[[np.ndarray], float],
    gradient: np.ndarray,
    theta: np.ndarray,
    *,
    reach: float,
    seed: int,
) -> BetweenKinks:
    """Return differences to either side, of the largest step that agrees, or of the best one.

    The gradient is not 0, and `reach` that of the longest sweep that crosses no event.
    """
    rng = np.random.default_rng([seed, 3])
    size = float(np.linalg.norm(gradient))
    directions = np.array([gradient / size, *(unit(rng, theta.size) for _ in range(DIRECTIONS))])
    here, best = loss_at(theta), BetweenKinks(STEPS[0], np.inf, reach)
    for step in STEPS:
        sides = []
        for sign in (1.0, -1.0):
            ahead = [loss_at(theta + sign * step * d) for d in directions]
            off = sign * (np.array(ahead) - here) / step - directions @ gradient
            sides += [abs(off[0]), np.sqrt(theta.size * np.mean(off[1:] ** 2))]
        error = float(np.max(sides)) / size
        if error < best.error:
            best = BetweenKinks(step, error, reach)
        if error <= AGREES:
            break
    return best
