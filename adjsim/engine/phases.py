r"""Sweeps over the steps of a rollout: lists of phases, and the loops that run them.

A phase does one thing to one part of the work (`adjsim/engine/partition.py`) in one turn of a
sweep, such as the forces of its elements or the step of its nodes:

    phase(part, turn, job) -> how many of the part's nodes and bodies are lost

The phases of a turn follow each other, and a part may read what other parts wrote in the phases
before. A sweep forward has a turn per step; one backward, a turn per step and two more.

There are two loops. Parts that stand apart, such as groups of worlds, share nothing: each runs
through all its turns alone. Other parts run together and wait for each other after each phase. The
phases do arithmetic only in functions that they call through tables: the bits are equal.

On a GPU: `run_team` in `adjsim/engine/cuda_teams.py`. Tests: `tests/engine/test_timeloop.py`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from numba import prange

from adjsim.jit.backend import cpu_kernel, device_fn, shared_fn, specialise


class Job(NamedTuple):
    """What the phases of a sweep over models are given.

    `calls`: tables of compiled functions. `finite`: for each world the number of turns, which
    becomes how many of them stayed finite. `vector`, `fields`: the tangents or cotangents of
    parameters, and the tangents of states or the cotangents of frames; () where there are none.
    """

    calls: Any
    elements: Any
    nodes: Any
    bodies: Any
    parts: Any
    work: Any
    steps: Any
    states: Any
    finite: Any
    vector: Any
    fields: Any


class Turns(NamedTuple):
    """How many turns a sweep has, and whether a part stops after one in which it lost something."""

    n: Any
    stop: Any


STALE = 1 << 40  # what a phase returns after which no turn may follow, whoever is lost

# Bound by `specialise`.
PHASE: Any = None
N_PHASES = 0
RUN_PART: Any = None


def run_part(i_part, turns, job):
    """Run a part through its turns."""
    for turn in range(turns.n):
        lost = 0
        for phase in range(N_PHASES):
            lost += PHASE(phase, i_part, turn, job)
        if lost > 0 and turns.stop:
            return


# Inside `prange` Numba takes tuples that are arguments and hold no tuples: a job goes in pieces.
def run_alone(
    turns, calls, elements, nodes, bodies, parts, work, steps, states, finite, vector, fields
):
    """Run every part alone; `finite` of a part that stops does so for one of its worlds."""
    for i_part in prange(work.scratch.shape[0]):
        job = Job(
            calls, elements, nodes, bodies, parts, work, steps, states, finite, vector, fields
        )  # fmt: skip
        RUN_PART(i_part, turns, job)


def run_together(
    turns, calls, elements, nodes, bodies, parts, work, steps, states, finite, vector, fields
):
    """Run all parts phase by phase; return how many turns were run."""
    n_parts = work.scratch.shape[0]
    for turn in range(turns.n):
        lost = 0
        for phase in range(N_PHASES):
            for i_part in prange(n_parts):
                job = Job(
                    calls, elements, nodes, bodies, parts, work, steps, states, finite, vector,
                    fields,
                )  # fmt: skip
                lost += PHASE(phase, i_part, turn, job)
        if lost >= STALE or (lost > 0 and turns.stop):
            return turn + 1
    return turns.n


@device_fn
def no_phase(phase, i_part, turn, job):
    """End a list of phases."""
    return 0


def one_of(phases: tuple[Callable, ...]) -> Callable:
    """Return the function that does the phase with a given number."""
    chain = no_phase
    for number, phase in reversed(list(enumerate(phases))):
        chain = _or(number, phase, chain)
    return chain


def _or(number: int, first: Callable, others: Callable) -> Callable:
    @device_fn
    def do(phase, i_part, turn, job):
        if phase == number:
            return first(i_part, turn, job)
        return others(phase, i_part, turn, job)

    return do


@cache
def sweep_kernel(
    name: str, phases: tuple[Callable, ...], *, threads: int, together: bool
) -> Callable:
    """Return the compiled loop over some phases, of parts that run together or alone."""
    loop = run_together if together else run_alone
    bound: dict[str, Any] = {"PHASE": one_of(phases), "N_PHASES": len(phases)}
    bound["RUN_PART"] = shared_fn(specialise(run_part, f"{name}_part", **bound))
    how = "parallel" if threads > 1 else "serial"
    return cpu_kernel(
        specialise(loop, f"{name}_{loop.__name__}_{how}", **bound), parallel=threads > 1
    )
