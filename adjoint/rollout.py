"""`record` and `rollout_jvp`: the reverse sweep and the tangent of `adjsim.rollout`.

The forward run keeps the states that a checkpoint schedule asks for; `Record.vjp` walks the
schedule's actions backwards through the steps. The schedule knows no physics and the
executor here knows no schedule; every schedule gives the same bits, since a step's adjoint
needs the state at its start and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from adjoint.actions import Action, EndForward, Forward, Free, Restore, Reverse, Store
from adjoint.parameters import (
    check_gradient,
    check_tangents,
    check_wrt,
    collect_gradient,
    pack_tangents,
)
from adjoint.schedules import Schedule, ScheduleCost, as_schedule
from adjoint.sweep import ReverseSweep, run_tangent
from adjsim import checks
from adjsim.backend import Device, to_host
from adjsim.model import Model, State, Trajectory
from adjsim.rollout import check_frames, check_rollout, chunks, frame_rows
from adjsim.stepper import Stepper, make_stepper


class _States:
    """The states that a schedule's actions move about: frames, two in turn, a buffer."""

    def __init__(self, stepper: Stepper, steps: np.ndarray, buffered: int) -> None:
        shape = (len(steps) + 2 + buffered, stepper.model.n_nodes, 3)
        self.X, self.V = (stepper.xp.empty(shape, stepper.dtype) for _ in range(2))
        self.stepper = stepper
        self.steps = steps
        self.first = len(steps) + 2  # row of the buffer's first state
        self.current = 0
        self.stored: dict[int, tuple[Any, Any]] = {}
        self.is_fresh = False  # the forward part was run, and nothing overwritten since
        self.lock = Lock()  # one sweep at a time: they share these states and the stepper

    def begin(self, state: State) -> None:
        """Make the initial state the current one."""
        self.stored.clear()
        self.current = int(frame_rows(self.steps, 0)[0])
        xp = self.stepper.xp
        self.X[self.current], self.V[self.current] = xp.asarray(state.x), xp.asarray(state.v)

    def run(self, start: int, stop: int, *, keep: bool) -> None:
        """Advance the current state from `start` to `stop`; keep start..stop-1 if asked."""
        at = start
        if keep:
            self.refill(start, stop)
            at = stop - 1
        for k, end in chunks(at, stop):
            rows = frame_rows(self.steps, end, k)
            rows[0] = self.current
            self.stepper.advance(k, rows, self.X, self.V)
            self.current = int(rows[-1])
        if keep:  # frames inside the buffer have rows of their own to go to
            first, last = np.searchsorted(self.steps, [start, stop])
            inside = self.first + self.steps[first:last] - start
            self.X[first:last], self.V[first:last] = self.X[inside], self.V[inside]

    def refill(self, start: int, stop: int) -> None:
        """Run the current state from `start` to `stop` - 1 and keep them all."""
        self.X[self.first], self.V[self.first] = self.X[self.current], self.V[self.current]
        for k, end in chunks(start, stop - 1):
            self.stepper.advance(k, self.buffer_rows(start, k, end + 1), self.X, self.V)
        self.current = self.first + stop - 1 - start

    def buffer_rows(self, start: int, k: int, end: int) -> np.ndarray:
        """Return the rows of states k..end - 1 in a buffer that begins with state `start`."""
        return self.first - start + np.arange(k, end)

    def run_forward(self, schedule: Schedule, state: State, n_steps: int) -> None:
        """Carry out the forward part of a schedule from the initial state."""
        self.is_fresh = False  # until the end: an interrupted run leaves half of it
        self.begin(state)
        actions = schedule.actions(n_steps, bytes_per_state(self.stepper))
        for action in takewhile(is_forward_part, actions):
            self.do(action)
        self.is_fresh = True

    def do(self, action: Action) -> None:
        """Carry out an action that moves states."""
        match action:
            case Forward(start, stop, keep):
                self.run(start, stop, keep=keep)
            case Store(step):
                self.stored[step] = (self.X[self.current].copy(), self.V[self.current].copy())
            case Restore(step):
                self.current = len(self.steps) + step % 2  # a row that no frame owns
                self.X[self.current], self.V[self.current] = self.stored[step]
            case Free(step):
                del self.stored[step]
            case _:
                raise TypeError(f"Unexpected action {action!r}.")


@dataclass(frozen=True, eq=False)
class Record:
    """A rollout that can be reversed, made by `record`.

    Attributes
    ----------
    trajectory : Trajectory
        The states at the frames, the same to the bit as `adjsim.rollout` gives.
    cost : ScheduleCost
        What the schedule takes, as predicted before running.
    """

    trajectory: Trajectory
    cost: ScheduleCost
    model: Model
    state: State
    n_steps: int
    _schedule: Schedule
    _stepper: Stepper
    _states: _States

    def vjp(
        self,
        adj_x: npt.ArrayLike,
        adj_v: npt.ArrayLike | None = None,
        *,
        wrt: Sequence[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Pull cotangents of the frames back to every parameter.

        It may be called again with other cotangents; unless all states are stored, that
        runs the forward sweep once more. Calls from several threads take turns.

        Parameters
        ----------
        adj_x, adj_v : array
            Cotangents of the trajectory's x and v, (n_frames, n_nodes, 3); None: zero.
        wrt : sequence of str, optional
            Paths whose gradient is wanted, e.g. ("beam.mu", "state.v"). None: all. Without
            "mass" the forces need not be computed again, which saves time.

        Returns
        -------
        dict
            Gradient by path, each in the shape of its parameter.

        Raises
        ------
        ValueError
            If a cotangent has the wrong shape or is not finite, or a path is unknown.
        RolloutError
            If the gradient leaves the finite numbers.
        """
        shape, dtype = self.trajectory.x.shape, self._stepper.dtype
        wanted = check_wrt(self.model, wrt)
        frames_x = checks.array("adj_x", adj_x, shape, dtype=dtype)
        frames_v = np.zeros(shape, dtype)
        if adj_v is not None:
            frames_v = checks.array("adj_v", adj_v, shape, dtype=dtype)
        # A read-only array is of another type to the compiled loop.
        frames = (np.require(part, requirements="W") for part in (frames_x, frames_v))
        sweep = ReverseSweep(
            self._stepper, self.trajectory.steps, *frames, with_mass="mass" in wanted
        )
        with self._states.lock:
            if not self._states.is_fresh:
                self._states.run_forward(self._schedule, self.state, self.n_steps)
            self._run_backward(sweep)
        return check_gradient(collect_gradient(self.model, sweep.finish(), wanted))

    def _run_backward(self, sweep: ReverseSweep) -> None:
        states = self._states
        actions = self._schedule.actions(self.n_steps, bytes_per_state(self._stepper))
        for action in islice(dropwhile(is_forward_part, actions), 1, None):
            match action:
                case Reverse(start, stop, kept):
                    if not kept:
                        states.refill(start, stop)
                        states.is_fresh = False
                    for k, end in reversed(list(chunks(start, stop))):
                        rows = states.buffer_rows(start, k, end)
                        sweep.undo(k, rows, states.X, states.V)
                case _:
                    states.is_fresh = False
                    states.do(action)


def is_forward_part(action: Action) -> bool:
    """Whether an action comes before `EndForward`."""
    return not isinstance(action, EndForward)


def bytes_per_state(stepper: Stepper) -> int:
    """Return the size of one state, positions and velocities."""
    return 6 * stepper.model.n_nodes * stepper.dtype.itemsize


def record(
    model: Model,
    state: State,
    dt: float,
    n_steps: int,
    *,
    frames: Sequence[int] | npt.ArrayLike | None = None,
    checkpoint: Schedule | str | int | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> Record:
    """Run `adjsim.rollout` and keep what its reverse sweep needs.

    Parameters
    ----------
    model, state, dt, n_steps, frames, dtype, threads, device
        As in `adjsim.rollout`.
    checkpoint : Schedule, str or int, optional
        Which states to keep: None stores all, a size such as "500MB" is a memory budget,
        or give a schedule of `adjoint.schedules`. All give the same bits.

    Returns
    -------
    Record
        The trajectory, the predicted cost, and `vjp`.

    Raises
    ------
    ValueError
        As `adjsim.rollout`, or if `checkpoint` cannot be met.
    RolloutError
        If a node leaves the finite numbers.
    """
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = make_stepper(
        model, float(dt), n_steps, checks.float_dtype(dtype), threads=threads, device=device
    )
    schedule = as_schedule(checkpoint)
    cost = schedule.cost(n_steps, bytes_per_state(stepper))
    states = _States(stepper, steps, cost.buffered_states)
    states.run_forward(schedule, state, n_steps)
    x, v = (to_host(part[: len(steps)]).copy() for part in (states.X, states.V))  # not a view
    trajectory = Trajectory(steps, float(dt), x, v)
    return Record(trajectory, cost, model, state, n_steps, schedule, stepper, states)


def rollout_jvp(
    model: Model,
    state: State,
    dt: float,
    n_steps: int,
    tangents: Mapping[str, npt.ArrayLike],
    *,
    frames: Sequence[int] | npt.ArrayLike | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> tuple[Trajectory, Trajectory]:
    """Run the rollout and its tangent, the derivative along one direction.

    Parameters
    ----------
    model, state, dt, n_steps, frames, dtype, threads, device
        As in `adjsim.rollout`.
    tangents : mapping
        Direction by path, each in the shape of its parameter; missing ones are zero.

    Returns
    -------
    trajectory, tangent : Trajectory
        The states at the frames and their derivatives along the direction.

    Raises
    ------
    ValueError
        As `adjsim.rollout`, or if a path is unknown or a tangent has the wrong shape.
    RolloutError
        If a node leaves the finite numbers.
    """
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = make_stepper(
        model, float(dt), n_steps, checks.float_dtype(dtype), threads=threads, device=device
    )
    packed = pack_tangents(model, check_tangents(model, tangents), stepper.dtype)
    xp, n = stepper.xp, len(steps)
    shape = (n + 2, model.n_nodes, 3)
    X, V, TX, TV = (xp.empty(shape, stepper.dtype) for _ in range(4))
    row = frame_rows(steps, 0)[0]
    X[row], V[row] = xp.asarray(state.x), xp.asarray(state.v)
    TX[row], TV[row] = xp.asarray(packed.x), xp.asarray(packed.v)
    run_tangent(stepper, packed, frame_rows(steps, n_steps), (X, V, TX, TV))
    return (
        Trajectory(steps, float(dt), to_host(X[:n]), to_host(V[:n])),
        Trajectory(steps, float(dt), to_host(TX[:n]), to_host(TV[:n])),
    )
