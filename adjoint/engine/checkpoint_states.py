"""The states that a checkpoint schedule moves about, and the rows of fields that hold them.

A system's loops run in rows of whole states. Where most of a state can be found again from the
rest, as the points of rigid bodies from their poses, only the rest is kept: the loops run a few
steps at a time in rows that are used over and over, and what is kept is copied to and fro.
"""

from abc import ABC, abstractmethod
from itertools import takewhile
from threading import Lock
from typing import Any

import numpy as np

from adjoint.checkpoint_actions import Action, Discard, EndForward, Forward, Restore, Store
from adjoint.schedules import Schedule, ScheduleCost, as_schedule
from adjoint.system import Sweep
from adjsim.rollout import chunks, frame_rows
from adjsim.system import Fields, Stepper


WORK_BYTES = 1 << 20  # of whole states that are used over and over: they stay in the cache
LEAST_STEPS = 4  # at a time, however large a state is: a call takes its time
# What a segment that is reversed takes beside its steps: to restore a state, and calls into
# compiled code. Measured with tetrahedra on the CPU: 0.1 to 0.2 ms.
SEGMENT_SECONDS = 2e-4


def is_forward_part(action: Action) -> bool:
    """Whether an action comes before `EndForward`."""
    return not isinstance(action, EndForward)


def copy_rows(source: Fields, rows: Any, target: Fields, to: Any) -> None:
    """Copy rows of every field."""
    for old, new in zip(source, target, strict=True):
        new[to] = old[rows]


class CheckpointStates(ABC):
    """The current state, the frames, restart states, and a buffer of states in a row.

    `frames` are fields whose first rows are the frames. `is_fresh` says that the forward part was
    run, and nothing overwritten since. One sweep at a time has the `lock`: they share the states
    and the stepper.
    """

    frames: Fields

    def __init__(self, stepper: Stepper[Any, Any], steps: np.ndarray) -> None:
        self.stepper = stepper
        self.steps = steps
        self.current = 0  # the row of the current state
        self.is_fresh = False
        self.lock = Lock()

    @abstractmethod
    def begin(self, state: Any) -> None:
        """Make the initial state the current one, and forget the others."""

    @abstractmethod
    def run(self, start: int, stop: int, *, keep: bool) -> None:
        """Advance the current state from `start` to `stop`; keep start..stop-1 if asked."""

    @abstractmethod
    def refill(self, start: int, stop: int) -> None:
        """Run the current state from `start` to `stop` - 1 and keep them all."""

    @abstractmethod
    def undo(self, sweep: Sweep, start: int, stop: int) -> None:
        """Undo the steps from the states `start` to `stop` - 1, which the buffer holds."""

    @abstractmethod
    def store(self, step: int) -> None:
        """Keep the current state to restart from."""

    @abstractmethod
    def restore(self, step: int) -> None:
        """Make a stored state the current one."""

    @abstractmethod
    def discard(self, step: int) -> None:
        """Forget a stored state."""

    def run_forward(self, schedule: Schedule, state: Any, n_steps: int) -> None:
        """Carry out the forward part of a schedule from the initial state."""
        self.is_fresh = False  # until the end: an interrupted run leaves half of it
        self.begin(state)
        for action in takewhile(is_forward_part, schedule.actions(n_steps)):
            self.do(action)
        self.is_fresh = True

    def do(self, action: Action) -> None:
        """Carry out an action that moves states."""
        match action:
            case Forward(start, stop, keep):
                self.run(start, stop, keep=keep)
            case Store(step):
                self.store(step)
            case Restore(step):
                self.restore(step)
            case Discard(step):
                self.discard(step)
            case _:
                raise TypeError(f"Unexpected action {action!r}.")


class WholeStates(CheckpointStates):
    """All in rows of the same fields, where the loops run: frames, two in turn, a buffer."""

    def __init__(self, stepper: Stepper[Any, Any], steps: np.ndarray, cost: ScheduleCost) -> None:
        super().__init__(stepper, steps)
        self.frames = stepper.allocate(len(steps) + 2 + cost.buffered_states)
        self.first = len(steps) + 2  # row of the buffer's first state
        self.stored: dict[int, Fields] = {}

    def begin(self, state: Any) -> None:
        """Load the initial state."""
        self.stored.clear()
        self.current = int(frame_rows(self.steps, 0)[0])
        self.stepper.load(state, self.frames, self.current)

    def copy_row(self, source: int | np.ndarray, target: int | slice) -> None:
        """Copy rows of every field."""
        copy_rows(self.frames, source, self.frames, target)

    def run(self, start: int, stop: int, *, keep: bool) -> None:
        """Run in the two rows, or in the buffer."""
        at = start
        if keep:
            self.refill(start, stop)
            at = stop - 1
        for k, end in chunks(self.stepper, at, stop):
            rows = frame_rows(self.steps, end, k)
            rows[0] = self.current
            self.stepper.advance(k, rows, self.frames)
            self.current = int(rows[-1])
        if keep:  # frames inside the buffer have rows of their own to go to
            first, last = np.searchsorted(self.steps, [start, stop])
            inside = self.first + self.steps[first:last] - start
            self.copy_row(inside, slice(first, last))

    def refill(self, start: int, stop: int) -> None:
        """Run in the buffer."""
        self.copy_row(self.current, self.first)
        for k, end in chunks(self.stepper, start, stop - 1):
            self.stepper.advance(k, self.buffer_rows(start, k, end + 1), self.frames)
        self.current = self.first + stop - 1 - start

    def buffer_rows(self, start: int, k: int, end: int) -> np.ndarray:
        """Return the rows of states k..end - 1 in a buffer that begins with state `start`."""
        return self.first - start + np.arange(k, end)

    def undo(self, sweep: Sweep, start: int, stop: int) -> None:
        """Undo them where they are."""
        for k, end in reversed(list(chunks(self.stepper, start, stop))):
            sweep.undo(k, self.buffer_rows(start, k, end), self.frames)

    def store(self, step: int) -> None:
        """Copy the current state."""
        self.stored[step] = tuple(field[self.current].copy() for field in self.frames)

    def restore(self, step: int) -> None:
        """Copy it to a row that no frame owns."""
        self.current = len(self.steps) + step % 2
        for field, kept in zip(self.frames, self.stored[step], strict=True):
            field[self.current] = kept

    def discard(self, step: int) -> None:
        """Drop the copy."""
        del self.stored[step]


class PartialStates(CheckpointStates):
    """Kept without what the stepper can complete; the loops run in `work`, a few whole states.

    The rows of `frames` hold the frames, then the buffer, then the states to restart from.
    """

    def __init__(self, stepper: Stepper[Any, Any], steps: np.ndarray, cost: ScheduleCost) -> None:
        super().__init__(stepper, steps)
        self.first = len(steps)  # row of the buffer's first state
        n_before = len(steps) + cost.buffered_states
        self.frames = stepper.allocate_kept(n_before + cost.stored_states)
        self.vacant = list(range(n_before, n_before + cost.stored_states))
        self.stored: dict[int, int] = {}  # rows by step
        whole = sum(field.nbytes for field in stepper.allocate(1))
        self.length = min(max(WORK_BYTES // whole, LEAST_STEPS), stepper.n_steps)
        self.work = stepper.allocate(self.length + 1)
        self.parts = stepper.kept(self.work)

    def begin(self, state: Any) -> None:
        """Load the initial state."""
        for step in list(self.stored):
            self.discard(step)
        self.current = 0
        self.stepper.load(state, self.work, 0)
        if self.steps[0] == 0:
            copy_rows(self.parts, 0, self.frames, 0)

    def run(self, start: int, stop: int, *, keep: bool) -> None:
        """Run, and copy the frames and what is to be kept."""
        self.advance(start, stop, keep_from=start if keep else None)

    def advance(self, start: int, stop: int, keep_from: int | None) -> None:
        """Run the current state a few steps at a time; the buffer begins with `keep_from`."""
        for k in range(start, stop, self.length):
            end = min(k + self.length, stop)
            if self.current:
                copy_rows(self.work, self.current, self.work, 0)
            self.stepper.advance(k, np.arange(end - k + 1), self.work)
            self.current = end - k
            first, last = np.searchsorted(self.steps, [k + 1, end + 1])
            copy_rows(self.parts, self.steps[first:last] - k, self.frames, slice(first, last))
            if keep_from is not None:
                row = self.first + k - keep_from
                copy_rows(self.parts, slice(end - k), self.frames, slice(row, row + end - k))

    def refill(self, start: int, stop: int) -> None:
        """Run to the last state, which is kept too."""
        self.advance(start, stop - 1, keep_from=start)
        copy_rows(self.parts, self.current, self.frames, self.first + stop - 1 - start)

    def undo(self, sweep: Sweep, start: int, stop: int) -> None:
        """Complete a few states at a time, from the last ones on, and undo them."""
        for end in range(stop, start, -self.length):
            k = max(start, end - self.length)
            rows, row = np.arange(end - k), self.first + k - start
            copy_rows(self.frames, slice(row, row + end - k), self.parts, slice(end - k))
            self.stepper.complete(rows, self.work)
            sweep.undo(k, rows, self.work)

    def store(self, step: int) -> None:
        """Copy what is kept of the current state."""
        self.stored[step] = self.vacant.pop()
        copy_rows(self.parts, self.current, self.frames, self.stored[step])

    def restore(self, step: int) -> None:
        """Complete it."""
        self.current = 0
        copy_rows(self.frames, self.stored[step], self.parts, 0)
        self.stepper.complete(np.arange(1), self.work)

    def discard(self, step: int) -> None:
        """Leave its row to another."""
        self.vacant.append(self.stored.pop(step))


def states_of(
    stepper: Stepper[Any, Any], steps: np.ndarray, cost: ScheduleCost
) -> CheckpointStates:
    """Return where a schedule of this cost keeps states: whole, or what suffices of them."""
    return (PartialStates if stepper.places_again else WholeStates)(stepper, steps, cost)


def choose_schedule(
    checkpoint: Schedule | str | int | None, stepper: Stepper[Any, Any]
) -> tuple[Schedule, ScheduleCost]:
    """Return the schedule that a `checkpoint=` argument means for a stepper, and its cost.

    What is left of the budget goes to the stepper, for the contact pairs that it keeps.
    """
    price = SEGMENT_SECONDS / stepper.step_seconds
    size = stepper.bytes_per_state()
    asked = as_schedule(checkpoint)
    schedule = asked.choose(stepper.n_steps, size, price)
    cost = schedule.cost(stepper.n_steps, size)
    stepper.spare_bytes = asked.spare_bytes(cost)
    return schedule, cost
