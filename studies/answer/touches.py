r"""How far an optimum is from the next touch that moves to another step.

A node touches an obstacle at the first step whose state has a penetration c > 0. As theta
moves, a touch jumps from one step to the next where some c crosses 0, and the loss has a kink
there, or with contact damping a jump. To first order the nearest such theta is

    min over steps and contacts of |c| / |dc/dtheta|

away, with central differences of c along every theta_i, or for a long theta along random
directions, of which |dc/dtheta| is estimated. Obstacles of every shape count, moving ones too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from adjsim.contact_margins import ContactMargins, contact_margins
from adjsim.forces.contact import Contact
from adjsim.model import Model
from adjsim.rollout import CHUNK, ready_stepper
from adjsim.system import OnDivergence
from studies.runs.memory import state_bytes, states_within
from studies.scene.motion import Motion


PROBE = 1e-6  # step of the differences in theta
MOST_DIRECTIONS = 16
COPIES = 6  # of a state that is looked at: in windows of two motions, and made ready for contact


@dataclass(frozen=True)
class Touch:
    """The touch that is nearest to moving to another step."""

    force: str  # name of the contact
    # Which node, or vertex of the force's `body`, and in which state
    node: int
    step: int
    time: float  # of that state [s]
    depth: float  # |c| there [m]
    distance: float  # how far theta may move; inf if no node's depth moves with it

    def to_dict(self) -> dict[str, Any]:
        """Return the touch as plain values, ready for JSON."""
        return {**asdict(self), "distance": self.distance if np.isfinite(self.distance) else None}


def nearest_touch(problem: Any, theta: np.ndarray) -> Touch | None:
    """Return the touch nearest to moving to another step; None without contact.

    The motion of the scene's problem has as many steps at every theta.
    """
    exact = problem.with_dtype("float64")
    squares = [
        {name: np.zeros(own.touch.shape) for name, own in window.items()}
        for window in margins_by_window(exact.motion_at(theta))
    ]
    directions = _directions(len(theta)) if squares else np.zeros((0, len(theta)))
    for direction in PROBE * directions:
        ahead = margins_by_window(exact.motion_at(theta + direction))
        behind = margins_by_window(exact.motion_at(theta - direction))
        for sums, far, near in zip(squares, ahead, behind, strict=True):
            for name in sums:
                slope = (far[name].touch - near[name].touch) / (2.0 * PROBE)
                sums[name] += slope**2 * len(theta) / len(directions)
    depths = margins_by_window(exact.motion_at(theta))
    touches = (
        _nearest(name, own, np.sqrt(sums[name]), exact.motion_at(theta).dt)
        for sums, window in zip(squares, depths, strict=True)
        for name, own in window.items()
    )
    return min(touches, key=lambda touch: touch.distance, default=None)


def _directions(n: int) -> np.ndarray:
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
    model = motion.system
    if isinstance(model, Model) and any(isinstance(one, Contact) for one in model.forces.values()):
        for run in _windows(motion):
            yield contact_margins(model, run)


def _windows(motion: Motion) -> Iterator[Any]:
    """Yield the states 0 to n_steps - 1 of one rollout in float64, in parts."""
    n = motion.n_steps
    size = COPIES * state_bytes(motion.system, motion.state, "float64")
    count = states_within(motion.checkpoint, size, min(n, CHUNK))
    system: Any = motion.system
    stepper = ready_stepper(
        system, motion.dt, n, np.float64, None, motion.device, OnDivergence.RAISE
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
    series = ("steps", "touch", "leaving", "slip", "shape")
    joined = {key: np.concatenate([getattr(part, key) for part in parts]) for key in series}
    return replace(parts[0], **joined)


def _nearest(name: str, margins: ContactMargins, slope: np.ndarray, dt: float) -> Touch:
    depth = np.abs(margins.touch)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.where(slope > 0.0, depth / slope, np.inf)
    at, node, step = margins.least(away)
    return Touch(name, node, step, step * dt, float(depth[at]), float(away[at]))
