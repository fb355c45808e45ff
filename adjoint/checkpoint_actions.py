"""The actions of a checkpoint schedule, and what an executor of them does.

An executor knows no schedule. It holds

- one current state, at step 0 when the iteration begins;
- a set of stored restart states (`Store`, `Restore`, `Discard`);
- one transient buffer of consecutive states, which `Reverse` consumes.

Every iteration has the same two parts. The actions up to `EndForward` make the forward
sweep, once, from step 0 to the last; those after it reverse every step exactly once, in
descending order. Step k leads from state k to state k + 1. The reverse of a step needs the
state at its start and nothing else, so to reverse steps start, ..., stop - 1 the buffer
holds the states start, ..., stop - 1.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Forward:
    """`Forward(3, 7)` is read: advance the current state from step 3 to step 7.

    With `keep=True`: and leave the states 3, 4, 5, 6 in the transient buffer.
    """

    start: int
    stop: int
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """`Store(3)` is read: keep a copy of the current state, which is at step 3."""

    step: int


@dataclass(frozen=True, slots=True)
class Restore:
    """`Restore(3)` is read: make a copy of the stored state 3 the current one."""

    step: int


@dataclass(frozen=True, slots=True)
class Discard:
    """`Discard(3)` is read: the stored state 3 is not needed again."""

    step: int


@dataclass(frozen=True, slots=True)
class EndForward:
    """`EndForward()` is read: the current state is the last; from here on, backwards."""


@dataclass(frozen=True, slots=True)
class Reverse:
    """`Reverse(3, 7)` is read: undo steps 6, 5, 4, 3, in this order.

    The current state is at step 3: run on to step 6 (three forward steps), keep states 3 to
    6 in the transient buffer, then reverse. With `kept=True` the buffer holds them already
    and nothing is run. Afterwards there is no current state and the buffer is empty.
    """

    start: int
    stop: int
    kept: bool = False


Action: TypeAlias = Forward | Store | Restore | Discard | EndForward | Reverse
