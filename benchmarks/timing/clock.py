"""Timing on a machine that others use too: interleaved rounds, minimum and median.

Noise from other processes only ever adds time, and comes in bursts. So every lap is timed once in
a round, and the rounds are repeated: a burst touches all laps of a round alike. The minimum over
the rounds estimates what the machine can do, the median shows what it did, and ratios are taken
within a round before their median.

Where a process lays out its memory moves its times by up to 6 %, in all rounds alike: compare two
versions of the code by several processes of each.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


SETTLE = 0.002  # pause before a lap [s]: threads of the lap before stop spinning


@dataclass(eq=False)
class Lap:
    """One thing to be timed."""

    table: str  # which table it stands in
    case: str  # which row
    kind: str  # forward, forward+reverse, ...
    threads: int  # 0 on a GPU
    call: Callable[[], object]
    prepare: Callable[[], object] = lambda: None  # before each call, not timed
    work: float = 1.0  # units of work in one call, e.g. tetrahedra times steps
    facts: dict[str, Any] = field(default_factory=dict)  # what else the result should hold
    beside: "Lap | None" = None  # what it is compared with, by time per unit of work
    wall: list[float] = field(default_factory=list)  # time of every round [s]
    core: list[float] = field(default_factory=list)  # the part of it on a core, of this thread

    def run(self) -> None:
        """Time it once."""
        self.prepare()
        time.sleep(SETTLE)
        wall, core = time.perf_counter(), time.thread_time()
        self.call()
        self.wall.append(time.perf_counter() - wall)
        self.core.append(time.thread_time() - core)

    def result(self) -> dict[str, Any]:
        """Return its labels and facts, seconds per unit of work, and the ratio to `beside`.

        "on_core" leaves out what other processes took, and is known of one thread only. Of the
        ratio, "min" is that of the minima, "median" the median of the ratios in a round.
        """
        each = np.array(self.wall) / self.work
        ratio = None
        if self.beside is not None:
            other = np.array(self.beside.wall) / self.beside.work
            ratio = {"min": each.min() / other.min(), "median": float(np.median(each / other))}
        return {
            "part": self.table,
            **{key: getattr(self, key) for key in ("case", "kind", "threads")},
            **self.facts,
            "min": float(each.min()),
            "median": float(np.median(each)),
            "on_core": min(self.core) / self.work if self.threads == 1 else None,
            "ratio": ratio,
        }


def run_rounds(laps: Sequence[Lap], rounds: int, say: Callable[[str], object]) -> None:
    """Run every lap once to compile and to touch its memory, then time `rounds` rounds.

    Odd rounds go backwards.
    """
    say(f"compiling {len(laps)} laps")
    for lap in laps:
        lap.prepare()
        lap.call()
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for lap in laps if number % 2 == 0 else reversed(laps):
            lap.run()
