"""The laps over our own loops: tetrahedra, cloth, smoke, worlds, checkpoints.

The loops of the tetrahedra and of the cloth are called as the rollout and the reverse sweep
call them, on memory that was touched before; packing, allocation and the shaping of the
gradient, paid once a gradient, are in the laps of smoke and of the checkpoints. The rest shape
is not differentiated.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from adjoint.rollout import record
from adjoint.schedules import as_schedule, size_in_bytes
from adjoint.sweep import ReverseSweep
from adjsim.model import Model, State
from adjsim.rollout import frame_rows, rollout
from adjsim.stepper import ModelStepper, make_stepper
from adjsim.worlds import Batch, stack
from studies.timing_clock import Lap
from studies.timing_scenes import Block, make_block, make_cloth, make_smoke


GUESS = 15e-9  # forward time per element and step [s], to choose the number of steps
MIN_STEPS = 4
FORWARD, BOTH, BOTH_MASS = "forward", "forward+reverse", "forward+reverse+mass"
STORED, BUDGETED = "store-all", "budget"
WORLDS, WHOLE = "worlds", "whole"


def sample_steps(n_elements: int, sample: float) -> int:
    """Return how many steps take about `sample` seconds."""
    return max(MIN_STEPS, round(sample / (GUESS * n_elements)))


class Loops:
    """The compiled loops of one scene on one stepper, with memory for every state."""

    def __init__(self, stepper: ModelStepper, state: Any, n_steps: int) -> None:
        self.stepper = stepper
        self.n_steps = n_steps
        model, first = stepper.models[0], stepper.states(state)[0]
        known = [*model.parameters(), *model.state_parameters(first)]
        self.wanted = [path for path in known if not path.endswith(".rest_positions")]
        self.state = state
        self.fields = stepper.allocate(n_steps + 1)
        self.end = np.array([n_steps])
        self.two_rows = frame_rows(self.end, n_steps)
        self.tape_rows = np.arange(n_steps + 1)
        self.sweep: ReverseSweep | None = None

    def begin(self, rows: np.ndarray) -> None:
        """Set the initial state."""
        self.stepper.load(self.state, self.fields, int(rows[0]))

    def forward(self) -> None:
        """Run as `adjsim.rollout` does: two states in turn."""
        self.stepper.advance(0, self.two_rows, self.fields)

    def begin_both(self, *, with_mass: bool) -> None:
        """Set the initial state, and a cotangent of ones on the last positions."""
        self.begin(self.tape_rows)
        adj = [np.zeros((1, *field.shape[1:]), self.stepper.dtype) for field in self.fields]
        adj[0][:] = 1.0
        wanted = [path for path in self.wanted if with_mass or path != "mass"]
        self.sweep = ReverseSweep(self.stepper, self.state, self.end, tuple(adj), wanted)

    def both(self) -> None:
        """Run forward, keeping every state, and back."""
        assert self.sweep is not None
        self.stepper.advance(0, self.tape_rows, self.fields)
        self.sweep.undo(0, self.tape_rows[:-1], self.fields)

    def laps(self, labels: dict[str, Any], units: float) -> Iterator[Lap]:
        """Give the laps forward, with reverse, and with reverse and the gradient of mass."""
        yield Lap(
            {**labels, "pass": FORWARD}, units, self.forward, lambda: self.begin(self.two_rows)
        )
        for name, with_mass in ((BOTH, False), (BOTH_MASS, True)):
            yield Lap(
                {**labels, "pass": name},
                units,
                self.both,
                lambda with_mass=with_mass: self.begin_both(with_mass=with_mass),
            )


def tet_laps(
    sizes: list[int],
    dtypes: list[str],
    threads: list[int],
    *,
    viscosity: list[bool],
    sample: float,
    device: str,
) -> Iterator[Lap]:
    """Give the laps of all sizes, dtypes, numbers of threads, and viscosities.

    Parameters
    ----------
    sizes : list of int
        Tetrahedra.
    dtypes : list of str
    threads : list of int
        [0] on a GPU.
    viscosity : list of bool
        Whether the block has viscosity.
    sample : float
        Length of a forward sample [s].
    device : str
        "cpu" or "cuda".
    """
    for size in sizes:
        for viscous in viscosity:
            block = make_block(size, viscous=viscous)
            n_steps = sample_steps(block.n_tets, sample)
            for dtype in dtypes:
                for n_threads in threads:
                    stepper = make_stepper(
                        block.model, block.dt, n_steps, np.dtype(dtype),
                        threads=n_threads, device=device,
                    )  # fmt: skip
                    assert isinstance(stepper, ModelStepper)
                    labels = {
                        "part": "tets",
                        "size": size,
                        "tets": block.n_tets,
                        "dtype": dtype,
                        "threads": n_threads,
                        "viscosity": viscous,
                        "steps": n_steps,
                        "tape_bytes": stepper.bytes_per_state(),
                    }
                    units = float(block.n_tets * n_steps)
                    yield from Loops(stepper, block.state, n_steps).laps(labels, units)


def cloth_laps(
    sizes: list[int], dtypes: list[str], threads: list[int], *, sample: float, device: str
) -> Iterator[Lap]:
    """Give the laps of sheets with hinges of all sizes (triangles), dtypes, numbers of threads."""
    for size in sizes:
        cloth = make_cloth(size)
        n_steps = sample_steps(cloth.n_triangles + cloth.n_hinges, sample)
        for dtype in dtypes:
            for n_threads in threads:
                stepper = make_stepper(
                    cloth.model, cloth.dt, n_steps, np.dtype(dtype),
                    threads=n_threads, device=device,
                )  # fmt: skip
                assert isinstance(stepper, ModelStepper)
                labels = {
                    "part": "cloth",
                    "triangles": cloth.n_triangles,
                    "hinges": cloth.n_hinges,
                    "dtype": dtype,
                    "threads": n_threads,
                    "steps": n_steps,
                }
                yield from Loops(stepper, cloth.state, n_steps).laps(labels, float(n_steps))


def world_blocks(size: int, count: int) -> Iterator[tuple[Block, Block]]:
    """Give small blocks, and beside each a block a tenth as large as `count` of them.

    Without a floor; with one; and with one that as few of the small block's nodes may touch, per
    tetrahedron, as of the large one's.
    """
    small = make_block(size)
    whole = max(small.n_tets, small.n_tets * count // 10)
    large = make_block(whole)
    yield make_block(size, has_floor=False), make_block(whole, has_floor=False)
    yield small, large
    alike = max(1, round(large.contacts_per_tet * small.n_tets))
    if large.n_tets > small.n_tets:
        yield make_block(size, n_contacts=alike), large


def world_laps(settings: Mapping[str, Any], threads: list[int], *, device: str) -> Iterator[Lap]:
    """Give batches of equal small blocks, and one block a tenth as large as a batch, float64.

    It takes ten times the steps, so that both do the same work. Without a floor, with one, where
    the skin of small blocks has more nodes per tetrahedron, and with one that as many nodes of
    both may touch.
    """
    for count, size in product(settings["counts"], settings["tets"]):
        for small, large in world_blocks(size, count):
            n_tets, batch = small.n_tets * count, stack([small.model] * count)
            systems: dict[str, tuple[Model | Batch, State | list[State], int]] = {
                WORLDS: (batch, [small.state] * count, settings["steps"]),
                WHOLE: (large.model, large.state, settings["steps"] * n_tets // large.n_tets),
            }
            for name, (system, state, n_steps) in systems.items():
                for n_threads in threads:
                    stepper = make_stepper(
                        system, small.dt, n_steps, np.dtype(np.float64),
                        threads=n_threads, device=device,
                    )  # fmt: skip
                    assert isinstance(stepper, ModelStepper)
                    labels = {
                        "part": "worlds",
                        "system": name,
                        "worlds": count,
                        "each": small.n_tets,
                        "whole": large.n_tets,
                        "contacts": small.contacts_per_tet,
                        "whole_contacts": large.contacts_per_tet,
                        "threads": n_threads,
                    }
                    units = (n_tets if name == WORLDS else large.n_tets) * n_steps
                    yield from list(Loops(stepper, state, n_steps).laps(labels, units))[:2]


def smoke_laps(
    sizes: list[int], dtypes: list[str], threads: list[int], *, n_steps: int, device: str
) -> Iterator[Lap]:
    """Give the laps of smoke on square grids, forward and to the gradient of its first velocity.

    Both are the public calls; sizes are cells along an edge.
    """
    for size in sizes:
        smoke, state = make_smoke(size)
        for dtype in dtypes:
            for n_threads in threads:
                options: dict[str, Any] = {"dtype": dtype, "device": device}
                options["threads"] = n_threads or None
                labels = {"part": "smoke", "cells": size, "steps": n_steps}
                labels |= {"dtype": dtype, "threads": n_threads}
                args = (smoke, state, 1.0, n_steps)
                yield from _smoke_laps(labels, args, options)


def _smoke_laps(labels: dict[str, Any], args: tuple, options: dict[str, Any]) -> Iterator[Lap]:
    adj = np.ones((1, labels["cells"], labels["cells"]), options["dtype"])

    def both() -> None:
        record(*args, **options).vjp(None, adj, wrt=("state.velocity",))

    yield Lap({**labels, "pass": FORWARD}, 1.0, lambda: rollout(*args, **options))
    yield Lap({**labels, "pass": BOTH}, 1.0, both)


def checkpoint_laps(size: int, budget: str, horizon: float, *, device: str) -> Iterator[Lap]:
    """Give a gradient through the public calls with all states stored, and in a budget."""
    block = make_block(size)
    state_bytes = 6 * 8 * block.model.n_nodes
    n_steps = max(MIN_STEPS, round(horizon * size_in_bytes(budget) / state_bytes))
    adj_x = np.ones((1, block.model.n_nodes, 3))

    def gradient(checkpoint: str | None) -> None:
        run = record(
            block.model, block.state, block.dt, n_steps, checkpoint=checkpoint, device=device
        )
        run.vjp(adj_x, wrt=("block.mu", "block.lam", "state.x", "state.v"))

    for name, checkpoint in ((STORED, None), (BUDGETED, budget)):
        cost = as_schedule(checkpoint).cost(n_steps, state_bytes)
        labels = {
            "part": "checkpoint",
            "tets": block.n_tets,
            "checkpoint": name,
            "steps": n_steps,
            "forward_steps": cost.total_forward_steps,
            "bytes": cost.bytes,
        }
        yield Lap(
            labels,
            float(block.n_tets * n_steps),
            lambda checkpoint=checkpoint: gradient(checkpoint),
            every=3,
        )
