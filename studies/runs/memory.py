"""What the states of a rollout may take of this machine's memory: the option `--checkpoint`.

A reverse sweep needs the states of its rollout, the last one first. Those that do not fit into the
budget are computed again (`adjoint/schedules.py`): that takes time, and the bits are the same.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from adjoint.schedules import ALL, ScheduleCost, size_in_bytes
from adjsim.engine.stepper import keeps_no_points
from adjsim.jit.devices import Device
from adjsim.model import Model
from adjsim.rigid.rows import STATE_SIZE
from studies.runs.errors import StudyError


OPTION, EXAMPLE = "--checkpoint", "--checkpoint 500MB"
PREFIXES = ("", "k", "M", "G", "T")


def check_budget(budget: str) -> None:
    """Raise if a budget is neither a size nor `ALL`."""
    if budget == ALL:
        return
    try:
        size_in_bytes(budget)
    except (ValueError, OverflowError) as error:
        raise StudyError(
            f'`{OPTION}` must be a size with its unit, such as "500MB" or "1.5GiB", or "{ALL}" to '
            f"keep every state; got {budget!r}. For example: `{EXAMPLE}`."
        ) from error


def states_within(budget: str, size: int, most: int) -> int:
    """Return how many things of `size` bytes the budget has room for, 1 to `most`."""
    return most if budget == ALL else int(np.clip(size_in_bytes(budget) // size, 1, most))


def state_bytes(system: Any, state: Any, dtype: str, device: str | None = None) -> int:
    """Return the size of a state as a sweep on a device keeps it, or else of a whole one [bytes].

    A whole one has the points of bodies, which most sweeps place again.
    """
    if isinstance(system, Model):
        n_rows = system.n_rows
        if device == Device.CPU and keeps_no_points(system.n_nodes, n_rows):
            n_rows = system.n_nodes
        count = 6 * n_rows + STATE_SIZE * system.n_bodies
    else:
        count = sum(np.size(getattr(state, field.name)) for field in fields(state))
    return count * np.dtype(dtype).itemsize


@dataclass(frozen=True)
class Plan:
    """How a rollout is reversed within a budget."""

    budget: str
    n_steps: int
    cost: ScheduleCost  # what the schedule takes, as predicted before anything runs

    def in_words(self) -> str:
        """Return the schedule in words."""
        cost = self.cost
        power = min(max(len(str(cost.bytes)) - 1, 0) // 3, len(PREFIXES) - 1)
        size = f"{cost.bytes / 1000**power:.4g} {PREFIXES[power]}B"
        if not cost.extra_forward_steps:
            return f"store all: {cost.stored_states + cost.buffered_states} states, {size}"
        more = 100.0 * cost.extra_forward_steps / self.n_steps
        return (
            f"{self.budget} for {self.n_steps} states: {cost.stored_states} to restart from and "
            f"{cost.buffered_states} in a row, {size}, with {more:.3g} % more forward steps"
        )


def check_room(budget: str, size: int) -> None:
    """Raise if a budget has no room for two states of `size` bytes."""
    if budget != ALL and size_in_bytes(budget) < 2 * size:
        raise StudyError(
            f"`{OPTION}` must have room for two states, 2 x {size} = {2 * size} bytes, got "
            f'{budget!r}. Give more, as in `{EXAMPLE}`, or "{ALL}".'
        )
