"""Checkpoint schedules: which states to keep, in what order to recompute the others.

A schedule is an iterator of `adjoint.checkpoint_actions`; it knows no physics, and the
executor knows no schedule. `Schedule.cost` predicts time and memory before anything runs, in two
units: one forward step, and one state (a stored and a buffered one cost the same). Beside its
steps, each segment that is reversed has a fixed price, of restoring a state and of calls into
compiled code; `MemoryBudget` weighs that too.

Source: Griewank & Walther, ACM TOMS 26 (2000), algorithm 799 (revolve), sec. 2.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral

from adjoint.checkpoint_actions import Action, Discard, EndForward, Forward, Restore, Reverse, Store
from adjsim import checks


ALL = "all"  # as good as None: every state is stored
MOST_BYTES = 2**63
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([kMGT]?i?B)\s*")
_UNITS = {f"{prefix}B": 1000**power for power, prefix in enumerate(("", "k", "M", "G", "T"))}
_UNITS |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("kMGT", start=1)}


@dataclass(frozen=True, slots=True)
class ScheduleCost:
    """What a schedule costs, known before it runs.

    Attributes
    ----------
    extra_forward_steps : int
        Forward steps beyond the one sweep that every gradient needs.
    total_forward_steps : int
        All forward steps, `n_steps + extra_forward_steps`.
    stored_states, buffered_states : int
        Most restart states held at once; longest transient buffer.
    bytes : int
        Memory of both together [bytes]. The current state comes on top; of bodies, whose
        points are not kept but placed again, a few states with all points: 1 MB, or four. On a GPU,
        of surfaces that touch also the pairs that were found, in `Schedule.spare_bytes`.
    """

    extra_forward_steps: int
    total_forward_steps: int
    stored_states: int
    buffered_states: int
    bytes: int


class Schedule(ABC):
    """A plan for reversing `n_steps` steps: a stream of actions and its cost."""

    def actions(self, n_steps: int) -> Iterator[Action]:
        """Return the actions that reverse `n_steps` steps, forward sweep included."""
        return self._plan(checks.whole("n_steps", n_steps, 0))

    def cost(self, n_steps: int, bytes_per_state: int, segment_price: float = 0.0) -> ScheduleCost:
        """Predict forward steps and memory; the arguments are those of `choose`."""
        chosen = self.choose(n_steps, bytes_per_state, segment_price)
        if n_steps == 0:
            return ScheduleCost(0, 0, 0, 0, 0)
        extra, stored, buffered = chosen._measure(n_steps)
        size = (stored + buffered) * bytes_per_state
        return ScheduleCost(extra, n_steps + extra, stored, buffered, size)

    def choose(self, n_steps: int, bytes_per_state: int, segment_price: float = 0.0) -> "Schedule":
        """Return the schedule itself, or the one that a `MemoryBudget` takes.

        `bytes_per_state` is the size of one state [bytes], `segment_price` how many forward steps
        take as long as what reversing a segment takes beside its steps.
        """
        del segment_price
        checks.whole("n_steps", n_steps, 0)
        checks.whole("bytes_per_state", bytes_per_state, 1)
        return self

    def spare_bytes(self, cost: ScheduleCost) -> int:
        """Return how many bytes a run may keep beside its states: at most as many again."""
        return cost.bytes

    @abstractmethod
    def _plan(self, n_steps: int) -> Iterator[Action]: ...

    @abstractmethod
    def _measure(self, n_steps: int) -> tuple[int, int, int]:
        """Return extra forward steps, stored states and buffered states; n_steps > 0."""


@dataclass(frozen=True)
class StoreAll(Schedule):
    """Keep every state of the forward sweep: no extra steps, `n_steps` states."""

    def _plan(self, n_steps: int) -> Iterator[Action]:
        yield from _segments([0], n_steps)

    def _measure(self, n_steps: int) -> tuple[int, int, int]:
        return 0, 0, n_steps


@dataclass(frozen=True)
class EveryK(Schedule):
    """Store every k-th state, run each segment of k steps once more to reverse it.

    Extra forward steps: fewer than one sweep. States: about n_steps / k + k, least for
    k = sqrt(n_steps). The last segment stays in the buffer and is not run again.
    """

    k: int

    def __post_init__(self) -> None:
        checks.whole("k", self.k, 1)

    def _plan(self, n_steps: int) -> Iterator[Action]:
        yield from _segments(range(0, n_steps, self.k), n_steps)

    def _measure(self, n_steps: int) -> tuple[int, int, int]:
        n_earlier = -(-n_steps // self.k) - 1
        return n_earlier * (self.k - 1), n_earlier, min(self.k, n_steps)


@dataclass(frozen=True)
class Segments(Schedule):
    """Two levels with a long last segment: `stored` restart states, `buffered` the longest.

    The last `buffered` steps are reversed straight from the forward sweep; those before are
    cut into `stored` nearly equal segments. Every choice with the same sum of the two costs
    the same number of extra steps, n_steps - (stored + buffered): it is all in the sum.
    """

    stored: int
    buffered: int

    def __post_init__(self) -> None:
        checks.whole("stored", self.stored, 0)
        checks.whole("buffered", self.buffered, 1)

    def _plan(self, n_steps: int) -> Iterator[Action]:
        yield from _segments(self._starts(n_steps), n_steps)

    def _measure(self, n_steps: int) -> tuple[int, int, int]:
        starts = self._starts(n_steps)
        n_earlier = len(starts) - 1
        return starts[-1] - n_earlier, n_earlier, min(self.buffered, n_steps)

    def _starts(self, n_steps: int) -> list[int]:
        head = max(0, n_steps - self.buffered)
        if head > self.stored * self.buffered:
            raise ValueError(
                f"`Segments(stored={self.stored}, buffered={self.buffered})` reverses at most "
                f"{(self.stored + 1) * self.buffered} steps, got n_steps = {n_steps}. Store more "
                "states, or use `Binomial`."
            )
        n_earlier = min(self.stored, head)
        return [head * i // n_earlier for i in range(n_earlier)] + [head]


@dataclass(frozen=True)
class Binomial(Schedule):
    """Griewank-Walther: the fewest forward steps that `snapshots` restart states allow.

    With segments longer than one step the plan treats `segment` steps as one: fewer
    actions, a buffer of `segment` states, and each segment is run once more as it is
    reversed. With `segment=1` no schedule needs fewer steps.

    Notes
    -----
    To reverse l segments with s snapshots, Griewank & Walther (2000), eq. 5, need
    t(l, s) = r l - beta(s + 1, r - 1) advances, with beta(s, r) = (s + r)! / (s! r!) and r
    the one integer with beta(s, r - 1) < l <= beta(s, r): no step is run more often than r
    times before its reversal.
    """

    snapshots: int
    segment: int = 1

    def __post_init__(self) -> None:
        checks.whole("snapshots", self.snapshots, 1)
        checks.whole("segment", self.segment, 1)

    def _plan(self, n_steps: int) -> Iterator[Action]:
        if n_steps == 0:
            yield EndForward()
            return
        end = -(-n_steps // self.segment)  # segments end, end + 1, ... are reversed already
        here = 0  # segment at whose start the current state stands
        stored: list[int] = []
        in_forward_sweep = True
        while True:
            while end - here > 1:
                if not stored or stored[-1] != here:
                    yield Store(here * self.segment)
                    stored.append(here)
                ahead = here + _advance(end - here, self.snapshots - len(stored) + 1)
                yield Forward(here * self.segment, ahead * self.segment)
                here = ahead
            start, stop = here * self.segment, min(end * self.segment, n_steps)
            if in_forward_sweep:
                yield Forward(start, stop, keep=True)
                yield EndForward()
            yield Reverse(start, stop, kept=in_forward_sweep)
            in_forward_sweep = False
            end = here
            if end == 0:
                return
            here = stored[-1]
            yield Restore(here * self.segment)
            if end - here == 1:
                yield Discard(here * self.segment)
                stored.pop()

    def _measure(self, n_steps: int) -> tuple[int, int, int]:
        size = self.segment
        n_segments = -(-n_steps // size)
        advances = size * _least_advances(n_segments, self.snapshots)
        last = n_steps - (n_segments - 1) * size
        rerun = (n_segments - 1) * (size - 1)
        extra = advances + last + rerun - n_steps
        return extra, min(self.snapshots, n_segments - 1), min(size, n_steps)


@dataclass(frozen=True)
class MemoryBudget(Schedule):
    """The cheapest schedule whose states fit in `budget`.

    Parameters
    ----------
    budget : str or int
        `"100MB"` (10^8 bytes), `"1.5GiB"` (1.5 * 2^30 bytes), or a number of bytes.

    Notes
    -----
    If all states fit, `StoreAll`. Else, if two levels fit, `Segments`: less than one extra
    sweep. Else `Binomial`: of a budget of S states, s are snapshots and S - s the segment, with
    the least sum of forward steps and the price of the segments. A state of a small model takes
    microseconds, and a segment as long as hundreds of them: then segments are long.
    """

    budget: str | int

    def __post_init__(self) -> None:
        size_in_bytes(self.budget)

    def choose(self, n_steps: int, bytes_per_state: int, segment_price: float = 0.0) -> Schedule:
        """Return the schedule taken: a function of these numbers, and of no clock."""
        n_steps = checks.whole("n_steps", n_steps, 0)
        size = checks.whole("bytes_per_state", bytes_per_state, 1)
        n_states = size_in_bytes(self.budget) // size
        if n_states >= n_steps:
            return StoreAll()
        if n_states < 2:
            raise ValueError(
                f"`checkpoint` must allow at least two states, 2 x {size} = {2 * size} bytes, "
                f"got {self.budget!r}. Raise the budget to at least {2 * size}."
            )
        # The fewest segments, hence the longest: least m with (m + 1) (S - m) >= n.
        half = (n_states - 1) // 2
        if (half + 1) * (n_states - half) >= n_steps:
            root = math.isqrt((n_states + 1) ** 2 - 4 * n_steps)
            m = max(1, (n_states - 1 - root) // 2)
            while (m + 1) * (n_states - m) < n_steps:
                m += 1
            return Segments(m, n_states - m)

        def work(plan: Binomial) -> float:
            return plan._measure(n_steps)[0] + segment_price * -(-n_steps // plan.segment)

        return min((Binomial(n_states - k, k) for k in range(1, n_states)), key=work)

    def spare_bytes(self, cost: ScheduleCost) -> int:
        """Return what the states leave of the budget."""
        return size_in_bytes(self.budget) - cost.bytes

    def _plan(self, n_steps: int) -> Iterator[Action]:
        raise ValueError(
            "`actions` needs a schedule that has been chosen, got a `MemoryBudget`. "
            f"Call `budget.choose({n_steps}, bytes_per_state).actions({n_steps})`."
        )

    def _measure(self, n_steps: int) -> tuple[int, int, int]:
        raise NotImplementedError  # `cost` measures what was chosen


def as_schedule(checkpoint: Schedule | str | int | None) -> Schedule:
    """Return the schedule that a `checkpoint=` argument means.

    None and "all" store all states, any other text or a number is a `MemoryBudget`, a schedule
    is itself.
    """
    if checkpoint is None or (isinstance(checkpoint, str) and checkpoint == ALL):
        return StoreAll()
    if isinstance(checkpoint, Schedule):
        return checkpoint
    return MemoryBudget(checkpoint)


def size_in_bytes(size: str | int) -> int:
    """Return a size such as "100MB" or "1.5 GiB" as a whole number of bytes."""
    if isinstance(size, Integral) and not isinstance(size, bool):
        n_bytes = int(size)
    else:
        match = _SIZE.fullmatch(size) if isinstance(size, str) else None
        if match is None or match[2] not in _UNITS:
            raise ValueError(
                f'`checkpoint` must be None or "{ALL}", a schedule, a number of bytes or a size '
                f'such as "100MB" or "1.5GiB" (units {", ".join(_UNITS)}), got {size!r}.'
            )
        number = float(match[1]) * _UNITS[match[2]]
        n_bytes = math.floor(number) if number < MOST_BYTES else MOST_BYTES + 1
    if n_bytes > MOST_BYTES:
        raise ValueError("`checkpoint` must be at most 8 EiB, which no machine has.")
    return checks.positive("checkpoint", n_bytes, hint="It is a number of bytes.")


def _segments(starts: Sequence[int], n_steps: int) -> Iterator[Action]:
    """Reverse the segments that begin at `starts`, the last one straight from its run."""
    if n_steps == 0:
        yield EndForward()
        return
    earlier = list(pairwise(starts))
    for start, stop in earlier:
        yield Store(start)
        yield Forward(start, stop)
    yield Forward(starts[-1], n_steps, keep=True)
    yield EndForward()
    yield Reverse(starts[-1], n_steps, kept=True)
    for start, stop in reversed(earlier):
        yield Restore(start)
        yield Discard(start)
        yield Reverse(start, stop)


def _repetitions(length: int, snapshots: int) -> int:
    """Return the r with beta(snapshots, r - 1) < length <= beta(snapshots, r)."""
    r, beta = 0, 1
    while beta < length:
        r += 1
        beta = beta * (snapshots + r) // r  # beta(s, r) = (s + r)! / (s! r!)
    return r


def _least_advances(length: int, snapshots: int) -> int:
    """Return t(length, snapshots) of Griewank & Walther (2000), eq. 5; 0 for length 1."""
    r = _repetitions(length, snapshots)
    return r * length - math.comb(snapshots + r, r - 1) if r else 0


def _advance(length: int, snapshots: int) -> int:
    """Return how far to go before the next store; `snapshots` counts the one held here.

    Any m with beta(s, r-2) <= m <= beta(s, r-1) and beta(s-1, r-1) <= length - m <=
    beta(s-1, r) is optimal (Griewank & Walther 2000, sec. 2); this is the largest.
    """
    r = _repetitions(length, snapshots)
    far = math.comb(snapshots + r - 1, r - 1)
    return min(far, length - math.comb(snapshots + r - 2, r - 1))
