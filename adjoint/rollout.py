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
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from adjoint.actions import Action, EndForward, Forward, Free, Restore, Reverse, Store
from adjoint.schedules import Schedule, ScheduleCost, as_schedule
from adjoint.system import Sweep
from adjoint.system_registry import system_twin_of
from adjsim.backend import Device
from adjsim.rollout import check_frames, check_rollout, chunks, frame_rows, ready_stepper
from adjsim.system import OnDivergence, Stepper, System


S = TypeVar("S")
T = TypeVar("T")


class _States:
    """The states that a schedule's actions move about: frames, two in turn, a buffer."""

    def __init__(self, stepper: Stepper[Any, Any], steps: np.ndarray, buffered: int) -> None:
        self.fields = stepper.allocate(len(steps) + 2 + buffered)
        self.stepper = stepper
        self.steps = steps
        self.first = len(steps) + 2  # row of the buffer's first state
        self.current = 0
        self.stored: dict[int, tuple[Any, ...]] = {}
        self.is_fresh = False  # the forward part was run, and nothing overwritten since
        self.lock = Lock()  # one sweep at a time: they share these states and the stepper

    def begin(self, state: Any) -> None:
        """Make the initial state the current one."""
        self.stored.clear()
        self.current = int(frame_rows(self.steps, 0)[0])
        self.stepper.load(state, self.fields, self.current)

    def copy_row(self, source: int | slice | np.ndarray, target: int | slice) -> None:
        """Copy rows of every field."""
        for field in self.fields:
            field[target] = field[source]

    def run(self, start: int, stop: int, *, keep: bool) -> None:
        """Advance the current state from `start` to `stop`; keep start..stop-1 if asked."""
        at = start
        if keep:
            self.refill(start, stop)
            at = stop - 1
        for k, end in chunks(at, stop):
            rows = frame_rows(self.steps, end, k)
            rows[0] = self.current
            self.stepper.advance(k, rows, self.fields)
            self.current = int(rows[-1])
        if keep:  # frames inside the buffer have rows of their own to go to
            first, last = np.searchsorted(self.steps, [start, stop])
            inside = self.first + self.steps[first:last] - start
            self.copy_row(inside, slice(first, last))

    def refill(self, start: int, stop: int) -> None:
        """Run the current state from `start` to `stop` - 1 and keep them all."""
        self.copy_row(self.current, self.first)
        for k, end in chunks(start, stop - 1):
            self.stepper.advance(k, self.buffer_rows(start, k, end + 1), self.fields)
        self.current = self.first + stop - 1 - start

    def buffer_rows(self, start: int, k: int, end: int) -> np.ndarray:
        """Return the rows of states k..end - 1 in a buffer that begins with state `start`."""
        return self.first - start + np.arange(k, end)

    def run_forward(self, schedule: Schedule, state: Any, n_steps: int) -> None:
        """Carry out the forward part of a schedule from the initial state."""
        self.is_fresh = False  # until the end: an interrupted run leaves half of it
        self.begin(state)
        actions = schedule.actions(n_steps, self.stepper.bytes_per_state())
        for action in takewhile(is_forward_part, actions):
            self.do(action)
        self.is_fresh = True

    def do(self, action: Action) -> None:
        """Carry out an action that moves states."""
        match action:
            case Forward(start, stop, keep):
                self.run(start, stop, keep=keep)
            case Store(step):
                self.stored[step] = tuple(field[self.current].copy() for field in self.fields)
            case Restore(step):
                self.current = len(self.steps) + step % 2  # a row that no frame owns
                for field, kept in zip(self.fields, self.stored[step], strict=True):
                    field[self.current] = kept
            case Free(step):
                del self.stored[step]
            case _:
                raise TypeError(f"Unexpected action {action!r}.")


@dataclass(frozen=True, eq=False, repr=False)
class Record(Generic[S, T]):
    """A rollout that can be reversed, made by `record`.

    Attributes
    ----------
    trajectory : Trajectory, or what the system has for one
        The states at the frames, the same to the bit as `adjsim.rollout` gives.
    cost : ScheduleCost
        What the schedule takes, as predicted before running.
    """

    trajectory: T
    cost: ScheduleCost
    model: System[S, T]
    state: S
    n_steps: int
    _schedule: Schedule
    _stepper: Stepper[S, T]
    _steps: np.ndarray
    _states: _States

    def __repr__(self) -> str:
        """Return what was run and what is kept, in a line."""
        kept = self.cost.stored_states + self.cost.buffered_states
        return (
            f"Record({type(self.model).__name__}, n_steps={self.n_steps}, "
            f"frames={len(self._steps)}, states kept: {kept})"
        )

    def vjp(
        self,
        adj_x: Any = None,
        adj_v: Any = None,
        *,
        bodies: Any = None,
        wrt: Sequence[str] | None = None,
    ) -> Any:
        """Pull cotangents of the frames back to every parameter.

        It may be called again with other cotangents; unless all states are stored, that
        runs the forward sweep once more. Calls from several threads take turns.

        Parameters
        ----------
        adj_x, adj_v : array
            Cotangents of the trajectory's x and v, (n_frames, n_nodes, 3), or of another
            system's two fields in their shapes; None: zero.
        bodies : mapping, optional
            Cotangents of the trajectory's sets of bodies, by name: a BodyTrajectory of them,
            as `adjoint.rigid.pose.vertices_vjp` returns it, or a mapping with some of
            "position", "rotation", "velocity", "angular_velocity"; what is missing is zero.
            For a batch of worlds all cotangents are lists, with None for a world without.
        wrt : sequence of str, optional
            Paths whose gradient is wanted, e.g. ("beam.mu", "state.v"). None: all. Time is
            saved without masses or densities, for which the forces are computed again, and
            without rest positions.

        Returns
        -------
        dict
            Gradient by path, each in the shape of its parameter; of a batch of worlds, a list.
            Where a divergence is marked, all NaN for a world that left the finite numbers, or
            whose gradient did; the cotangents of such a world count for nothing.

        Raises
        ------
        ValueError
            If a cotangent has the wrong shape or is not finite, or a path is unknown.
        RolloutError
            If the gradient leaves the finite numbers, unless that is marked.
        """
        twin = system_twin_of(self.model)
        wanted = twin.check_wrt(self.model, self.state, wrt)
        given = (adj_x, adj_v) if bodies is None else (adj_x, adj_v, bodies)
        frames = twin.cotangents(self.trajectory, given, self._stepper.dtype)
        sweep = twin.sweep(self._stepper, self.state, self._steps, frames, wanted)
        with self._states.lock:
            if not self._states.is_fresh:
                self._states.run_forward(self._schedule, self.state, self.n_steps)
            self._run_backward(sweep)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told
            gradient = sweep.finish()
        marks = self._stepper.on_divergence is OnDivergence.MARK
        return twin.check_gradient(gradient, marks=marks)

    def _run_backward(self, sweep: Sweep) -> None:
        states = self._states
        actions = self._schedule.actions(self.n_steps, self._stepper.bytes_per_state())
        for action in islice(dropwhile(is_forward_part, actions), 1, None):
            match action:
                case Reverse(start, stop, kept):
                    if not kept:
                        states.refill(start, stop)
                        states.is_fresh = False
                    for k, end in reversed(list(chunks(start, stop))):
                        rows = states.buffer_rows(start, k, end)
                        sweep.undo(k, rows, states.fields)
                case _:
                    states.is_fresh = False
                    states.do(action)


def is_forward_part(action: Action) -> bool:
    """Whether an action comes before `EndForward`."""
    return not isinstance(action, EndForward)


def record(
    model: System[S, T],
    state: S,
    dt: float,
    n_steps: int,
    *,
    frames: Sequence[int] | npt.ArrayLike | None = None,
    checkpoint: Schedule | str | int | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
    on_divergence: OnDivergence | str = OnDivergence.RAISE,
) -> Record[S, T]:
    """Run `adjsim.rollout` and keep what its reverse sweep needs.

    Parameters
    ----------
    model, state, dt, n_steps, frames, dtype, threads, device, on_divergence
        As in `adjsim.rollout`.
    checkpoint : Schedule, str or int, optional
        Which states to keep: None stores all, a size such as "500MB", or a number of bytes,
        is a memory budget, or give a schedule of `adjoint.schedules`. All give the same bits.

    Returns
    -------
    Record
        The trajectory, the predicted cost, and `vjp`.

    Raises
    ------
    ValueError
        As `adjsim.rollout`, or if `checkpoint` cannot be met.
    RolloutError
        If a node leaves the finite numbers, unless that is to be marked.
    """
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = ready_stepper(model, dt, n_steps, dtype, threads, device, on_divergence)
    schedule = as_schedule(checkpoint)
    cost = schedule.cost(n_steps, stepper.bytes_per_state())
    states = _States(stepper, steps, cost.buffered_states)
    states.run_forward(schedule, state, n_steps)
    trajectory = stepper.trajectory(steps, states.fields)
    return Record(trajectory, cost, model, state, n_steps, schedule, stepper, steps, states)


def rollout_jvp(
    model: System[S, T],
    state: S,
    dt: float,
    n_steps: int,
    tangents: Mapping[str, npt.ArrayLike] | Sequence[Mapping[str, npt.ArrayLike] | None],
    *,
    frames: Sequence[int] | npt.ArrayLike | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
    on_divergence: OnDivergence | str = OnDivergence.RAISE,
) -> tuple[T, T]:
    """Run the rollout and its tangent, the derivative along one direction.

    Parameters
    ----------
    model, state, dt, n_steps, frames, dtype, threads, device, on_divergence
        As in `adjsim.rollout`.
    tangents : mapping
        Direction by path, each in the shape of its parameter; missing ones are zero. For a
        batch of worlds, a list.

    Returns
    -------
    trajectory, tangent : Trajectory
        The states at the frames and their derivatives along the direction.

    Raises
    ------
    ValueError
        As `adjsim.rollout`, or if a path is unknown or a tangent has the wrong shape.
    RolloutError
        If a node leaves the finite numbers, unless that is to be marked.
    """
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = ready_stepper(model, dt, n_steps, dtype, threads, device, on_divergence)
    twin = system_twin_of(model)
    tangent = twin.tangent(stepper, state, twin.check_tangents(model, state, tangents))
    fields, tan_fields = (stepper.allocate(len(steps) + 2) for _ in range(2))
    row = int(frame_rows(steps, 0)[0])
    stepper.load(state, fields, row)
    tangent.load(tan_fields, row)
    for start, stop in chunks(0, n_steps):
        tangent.advance(start, frame_rows(steps, stop, start), fields, tan_fields)
    return stepper.trajectory(steps, fields), stepper.trajectory(steps, tan_fields)
