"""Timing on a machine that others use too: interleaved rounds, minimum and median.

Noise from other processes only ever adds time, and comes in bursts. So all laps are timed
once in a round, and rounds are repeated: a burst touches all laps of a round alike. The
minimum over the rounds estimates what the machine can do, the median shows what it did,
and ratios are taken within a round before their median.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


SETTLE = 0.002  # pause before a lap [s]: threads of the lap before stop spinning
Round = Mapping[str, tuple[float, float]]


def nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, eq=False)
class Lap:
    """One thing to be timed.

    Attributes
    ----------
    labels : dict
        What it is: names a lap in the log, and returns in its result.
    units : float
        Work in one call, e.g. tetrahedra times steps.
    call : callable
        What is timed.
    prepare : callable
        What comes before each call, not timed.
    every : int
        Timed in rounds 0, every, 2 every, ...
    """

    labels: dict[str, Any]
    units: float
    call: Callable[[], object]
    prepare: Callable[[], object] = nothing
    every: int = 1

    @property
    def name(self) -> str:
        """Name in the log."""
        return " ".join(f"{key}={value}" for key, value in self.labels.items())


def warm_up(laps: Iterable[Lap], tick: Callable[[], object] = nothing) -> None:
    """Run every lap once: compile, and touch the memory."""
    for lap in laps:
        lap.prepare()
        lap.call()
        tick()


def run_round(
    laps: Sequence[Lap], number: int, tick: Callable[[], object] = nothing
) -> dict[str, tuple[float, float]]:
    """Time every lap once; odd rounds go backwards.

    Returns
    -------
    dict
        By name of the lap: wall time and time this thread was on a core [s].
    """
    times = {}
    for lap in laps if number % 2 == 0 else reversed(laps):
        if number % lap.every:
            continue
        lap.prepare()
        time.sleep(SETTLE)
        wall, cpu = time.perf_counter(), time.thread_time()
        lap.call()
        times[lap.name] = (time.perf_counter() - wall, time.thread_time() - cpu)
        tick()
    return times


def wall_times(rounds: Iterable[Round], name: str) -> np.ndarray:
    """Return the wall times of a lap [s], one of each round that timed it."""
    return np.array([times[name][0] for times in rounds if name in times])


def summary(rounds: Sequence[Round], lap: Lap) -> dict[str, float]:
    """Return minimum and median of the seconds per unit of work, and the least on a core.

    The last is that of this thread, and means something for single-threaded laps only.
    """
    each = wall_times(rounds, lap.name) / lap.units
    on_core = min(times[lap.name][1] for times in rounds if lap.name in times) / lap.units
    return {"min": float(each.min()), "median": float(np.median(each)), "on_core": float(on_core)}


def ratio(rounds: Sequence[Round], above: Lap, below: Lap) -> dict[str, float]:
    """Return time per unit of work of `above` over that of `below`.

    "min" is the ratio of the minima, "median" the median of the ratios within a round.
    """
    both = [times for times in rounds if above.name in times and below.name in times]
    a = wall_times(both, above.name) / above.units
    b = wall_times(both, below.name) / below.units
    return {"min": float(a.min() / b.min()), "median": float(np.median(a / b))}


def time_off_core(rounds: Sequence[Round], laps: Iterable[Lap]) -> float:
    """Return the share of wall time that single-threaded laps waited for a core."""
    names = [lap.name for lap in laps if lap.labels.get("threads") == 1]
    pairs = np.array([times[name] for times in rounds for name in names if name in times])
    if not len(pairs):
        return 0.0
    wall, cpu = pairs.sum(axis=0)
    return float(max(0.0, 1.0 - cpu / wall))
