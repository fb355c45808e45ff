"""A packed model, or a batch of them, with its compiled loop and work arrays, on CPU or GPU."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from adjsim.engine.changing import ChangingPairs, has_changing
from adjsim.engine.cuda_own_nodes import owns_nodes
from adjsim.engine.cuda_pairs import TeamPairs, serves_from
from adjsim.engine.cuda_search import PairSearch, ServedSteps
from adjsim.engine.cuda_teams import PROCESSORS, Sizes, fits_blocks, pieces_of
from adjsim.engine.cuda_timeloop import advance_on_gpu
from adjsim.engine.layouts import count_elements
from adjsim.engine.packing import PackedModels, pack
from adjsim.engine.partition import even_shares, whole_groups
from adjsim.engine.phases import Job, Turns, sweep_kernel
from adjsim.engine.timeloop import (
    ADVANCE,
    ADVANCE_PAIRS,
    Calls,
    force_table,
    place_states_kernel,
    step_table,
)
from adjsim.jit.backend import thread_count, using_threads
from adjsim.jit.device_arrays import constants, kept_on_device, leaves, to_host
from adjsim.jit.devices import Device, array_module, check_device, module_of, require_room
from adjsim.model import Model, State, Trajectory
from adjsim.pairs.near import NearPairs, serves_from_kernel
from adjsim.pairs.search import FoundPairs
from adjsim.rigid.bodies import pack_bodies
from adjsim.rigid.points import place_kernel
from adjsim.rigid.pose import BodyTrajectory
from adjsim.rigid.rows import STATE_SIZE
from adjsim.system import Fields, OnDivergence, RolloutError, RunSettings, Stepper, make_stepper
from adjsim.tiles.assembly import TILE
from adjsim.tiles.loop_arrays import States, Steps, Work
from adjsim.worlds import Batch


# Work below this many tiles is done before a second thread has woken up; measured with
# `python -m benchmarks.timing`. Worlds meet at no barrier in every step.
PARALLEL_TILES = 256
PARALLEL_TILES_OF_WORLDS = 32
NEVER = np.iinfo(np.int64).max


class ModelStepper(Stepper[Any, Any]):
    """Packed models that can be advanced; the fields are X, V and P of all worlds.

    X and V hold the nodes and then the points of the bodies, (n_rows, packed.n_rows, 3); P
    holds the states of the bodies, (n_rows, packed.n_bodies, 13). A state and a trajectory are
    those of the one model, or, if `is_batch`, lists of them.
    """

    def __init__(
        self, system: Model | Batch, packed: PackedModels, dtype: np.dtype, dt: float, n_steps: int
    ) -> None:
        self.is_batch = isinstance(system, Batch)
        self.models = worlds_of(system)
        self.packed = packed
        self.changing: Any = None  # the `ChangingPairs` of the CPU, or the `PairSearch` of a GPU
        # The state that a run forward has reached since its pairs were found; None: not from one.
        self.reached: int | None = None
        self.dtype = dtype
        self.dt = dt
        self.n_steps = n_steps
        self.diverged = np.full(len(self.models), NEVER)  # step, of each marked world

    def allocate(self, n_rows: int) -> Fields:
        """Return X, V and P with so many rows."""
        return self.fields_of(n_rows, self.packed.n_rows)

    def fields_of(self, n_rows: int, n_nodes: int) -> Fields:
        """Return X and V of so many nodes or points, and P."""
        nodes, bodies = (n_rows, n_nodes, 3), (n_rows, self.packed.n_bodies, STATE_SIZE)
        return tuple(self.xp.empty(shape, self.dtype) for shape in (nodes, nodes, bodies))

    def load(self, state: Any, fields: Fields, row: int) -> None:
        """Write positions and velocities to a row, those of body points from their bodies."""
        initial = constants(self.initial(state), self.device)
        for field, values in zip(fields, initial, strict=True):
            field[row] = values

    def initial(self, state: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a row of X, V and P for an initial state, on the host."""
        x, v = (np.empty((self.packed.n_rows, 3), self.dtype) for _ in range(2))
        p = np.zeros((self.packed.n_bodies, STATE_SIZE), self.dtype)
        for world, (model, start) in enumerate(zip(self.models, self.states(state), strict=True)):
            nodes, points, bodies = self.packed.slices(world)
            x[nodes], v[nodes] = start.x, start.v
            for name, body_slice in model.body_slices().items():
                p[bodies][body_slice] = start.bodies[name].pack()
            if model.n_bodies:
                packed, n = pack_bodies(model.bodies, 0, self.dtype), model.n_bodies
                place_kernel(self.dtype)(0, n, packed, States(x[points], v[points], p[bodies]))
        return x, v, p

    def states(self, state: Any) -> Sequence[State]:
        """Return the states of the worlds."""
        return state if self.is_batch else [state]

    def trajectory(self, steps: np.ndarray, fields: Fields, *, on_device: bool = False) -> Any:
        """Return copies of the first rows: the frames, of every world in a batch."""
        copies = tuple(field[: len(steps)].copy() for field in fields)
        x, v, p = (*copies[:2], to_host(copies[2])) if on_device else to_host(copies)
        trajectories = []
        for world, model in enumerate(self.models):
            lost = int(self.diverged[world])
            nodes, _, rows = self.packed.slices(world)
            slices = model.body_slices()
            if lost != NEVER:
                after = slice(int(np.searchsorted(steps, lost, "right")), None)
                p[after, rows] = x[after, nodes] = v[after, nodes] = np.nan
            bodies = {name: BodyTrajectory.unpack(p[:, rows][:, s]) for name, s in slices.items()}
            own_x, own_v = (module_of(x).ascontiguousarray(field[:, nodes]) for field in (x, v))
            diverged = None if lost == NEVER else lost
            trajectories.append(Trajectory(steps, self.dt, own_x, own_v, bodies, diverged))
        return trajectories if self.is_batch else trajectories[0]

    @abstractmethod
    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> np.ndarray:
        """Advance; return for each world how many of the steps stayed finite.

        Where worlds that diverge end the rollout, at least one of a group says it.
        """

    def serves_from(self, x: Any, rows: np.ndarray) -> int:
        """Return the first of several states, `x[rows]`, from which on the pairs serve.

        They serve the last one.
        """
        return serves_from_kernel()(self.changing.near, x, rows)

    def advance(self, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Run from state k0, in compiled code from the first step to the last."""

        def run(k: int, rows: np.ndarray) -> tuple[np.ndarray, int]:
            return self.run(k, rows, fields), self.n_run

        self.check_finite(self.in_pieces(run, k0, rows, fields), k0, rows, fields)

    n_run = 0  # how many steps the last run took: fewer than asked for where pairs no longer serve

    def in_pieces(
        self, run: Callable[..., tuple[np.ndarray, int]], k0: int, rows: np.ndarray, fields: Fields
    ) -> np.ndarray:
        """Run steps, finding pairs again where they change; return the finite steps of each world.

        `run(k, rows)` returns the same and how many steps it took.
        """
        if self.changing is None:
            return run(k0, rows)[0]
        done, n = 0, len(rows) - 1
        finite = np.full(self.packed.n_worlds, n)
        while done < n:
            self.find_pairs(fields[0][rows[done]], k0 + done)
            n_finite, steps = run(k0 + done, rows[done:])
            lost = n_finite < steps
            finite[lost] = np.minimum(finite[lost], done + n_finite[lost])
            if lost.any() and self.on_divergence is OnDivergence.RAISE:
                break
            done += steps
            self.reached = k0 + done
        return finite

    def serve_back(self, start: int, rows: np.ndarray, x: Any) -> int:
        """Have pairs serve the last of several states, `x[rows]`; return from which one on.

        `start`: the step of the first.
        """
        self.find_pairs(x[rows[-1]])
        return self.serves_from(x, rows)

    def find_pairs(self, x: Any, step: int | None = None) -> None:
        """Find the pairs near positions of all rows, unless those found before serve.

        With a step, raise if surfaces go through each other in the state before it.
        """
        pairs = self.changing
        if pairs.serve(x):
            return
        before = pairs.found_pairs, pairs.away
        last = pairs.x if self.reached == step is not None else None
        pairs.find(x)
        self.reached = None
        if step is None:
            return
        then = None if last is None else pairs.by_contact(last)
        searched = before, (pairs.found_pairs, pairs.away)
        self.check_apart(step, pairs.by_contact(x), then, searched, pairs.changed)

    def check_apart(
        self,
        step: int,
        now: Sequence[np.ndarray],
        last: Sequence[np.ndarray] | None,
        searched: Sequence[tuple[Sequence[FoundPairs], Sequence[Any]]],
        changed: Sequence[np.ndarray | None],
    ) -> None:
        """Raise if surfaces go through each other, or did so after the positions `last`.

        All are by contact. `searched` has the pairs of the search at `last` and of the search now,
        each with how far rows have moved from the positions it started from. `changed` are the
        rows that are looked at; None: all.
        """
        for k, contact in enumerate(self.changing.sets):
            if self.diverged[contact.world] <= step:
                continue
            force = contact.force
            if step == 0:
                force.check_radii(now[k], contact.name)
                place = force.crossing_at_start(now[k])
            else:
                place = force.crossing(now[k], changed[k])
            if last is not None:
                for pairs, away in searched:
                    place = place or force.passed(pairs[k], last[k], now[k], away[k])
                place = place or force.leapt(last[k], now[k], self.changing.reaches[k])
            if place and self.on_divergence is OnDivergence.MARK:
                self.diverged[contact.world] = step
            elif place:
                self.raise_crossing(contact.name, contact.world, step, place)

    def raise_crossing(self, name: str, world: int, step: int, crossing: str) -> None:
        """Raise for surfaces that go through each other."""
        of = f" of world {world}" if self.is_batch else ""
        if step == 0:
            raise ValueError(
                f"`state` must have the surfaces of `{name}`{of} apart, but {crossing}. Move one "
                "of them, or mend the mesh."
            )
        raise RolloutError(
            f"The surfaces of `{name}`{of} went through each other before step {step} "
            f"(t = {step * self.dt:.6g} s): {crossing}.",
            "Try a larger stiffness or radius, or a smaller {dt}.",
        )

    def check_finite(self, finite: np.ndarray, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Raise if fewer steps stayed finite than were to be done, or mark the worlds."""
        done = int(finite.min())
        if done >= len(rows) - 1:
            return
        if self.on_divergence is OnDivergence.MARK:
            lost = np.where(finite < len(rows) - 1, k0 + finite, NEVER)
            self.diverged = np.minimum(self.diverged, lost)  # a sweep may run a step again
            return
        X, _, P = fields
        step, row = k0 + done, int(rows[done + 1])
        x, p, before = to_host((X[row], P[row], X[int(rows[done])]))
        lost = np.searchsorted(self.packed.group_ends, np.flatnonzero(finite == done), "right") - 1
        world, culprit = self.culprit(x, p, np.unique(lost))
        where = f"{culprit} of world {world}" if self.is_batch else culprit
        happened = (
            f"The rollout left the finite numbers in step {step} (t = {step * self.dt:.6g} s), "
            f"first at {where}"
        )
        collapsed = self.collapsed(before, world)
        if collapsed:
            raise RolloutError(
                f"{happened}: {collapsed}.",
                "Try a smaller {dt}, more stiffness or damping, or a start from which its nodes "
                "do not meet.",
            )
        stable = self.models[world].stable_dt()
        smaller = f"{{dt}} below {stable:.3g} s" if self.dt > 0.5 * stable else "a smaller {dt}"
        raise RolloutError(
            f"{happened}.",
            f"A step is {self.dt:g} s, the estimated stable dt is {stable:.3g} s. Try {smaller}, "
            "a softer material or contact, or more damping.",
        )

    def collapsed(self, x: np.ndarray, world: int) -> str | None:
        """Return which element of a world has no force at these positions, and why."""
        nodes, _, _ = self.packed.slices(world)
        forces = self.models[world].forces.items()
        with np.errstate(all="ignore"):  # on a GPU the state may be a later one, not finite
            why = (force.collapsed(x[nodes], name) for name, force in forces if force.is_of_nodes)
            return next(filter(None, why), None)

    def culprit(self, x: np.ndarray, p: np.ndarray, groups: np.ndarray) -> tuple[int, str]:
        """Return the first world of these groups that is not finite, and which node or body."""
        ends = self.packed.group_ends
        for world in (w for g in groups for w in range(ends[g], ends[g + 1])):
            nodes, _, rows = self.packed.slices(world)
            lost = (~np.isfinite(x[nodes])).any(axis=1)
            if lost.any():
                return world, f"node {int(lost.argmax())}"
            for name, body_slice in self.models[world].body_slices().items():
                lost = (~np.isfinite(p[rows][body_slice])).any(axis=1)
                if lost.any():
                    return world, f"body {int(lost.argmax())} of `{name}`"
        raise AssertionError


# A launch cannot be interrupted, and a display's watchdog ends one of a few seconds. Times are
# those of a slow GPU.
LAUNCH_SECONDS, STEP_SECONDS, SLOT_SECONDS = 0.2, 2e-5, 2e-10
CPU_STEP_SECONDS, CPU_SLOT_SECONDS = 5e-7, 6e-9


class CpuStepper(ModelStepper):
    """Runs on one thread or several; the bits are the same."""

    device = Device.CPU
    xp = np

    def __init__(
        self,
        system: Model | Batch,
        packed: PackedModels,
        dtype: np.dtype,
        dt: float,
        n_steps: int,
        n_threads: int,
    ) -> None:
        super().__init__(system, packed, dtype, dt, n_steps)
        self.n_threads = n_threads
        self.calls = Calls(force_table(packed, dtype), step_table(dtype))
        self.places_again = keeps_no_points(packed.n_nodes, packed.n_rows)
        self.step_seconds = CPU_STEP_SECONDS + CPU_SLOT_SECONDS * packed.n_slots
        self.stands_apart = packed.n_groups >= n_threads
        self.parts = whole_groups(packed) if self.stands_apart else even_shares(packed, n_threads)
        self.world_parts = self.parts  # the same, every world a range of its own
        if self.stands_apart and packed.n_worlds > 1:
            self.world_parts = whole_groups(packed, merged=False)
        n_parts = len(self.parts.tile_ptr) - 1
        self.slots = np.zeros(packed.n_slots + 1, dtype)
        self.scratch = np.zeros((n_parts, packed.scratch_size), dtype)
        self.arrays = packed.arrays
        if has_changing(self.models):
            self.changing = ChangingPairs(self.models, packed, n_parts, apart=self.stands_apart)

    def allocate_kept(self, n_rows: int) -> Fields:
        """Return X and V of the nodes alone, and P, where the points of bodies are many."""
        p = self.packed
        return self.fields_of(n_rows, p.n_nodes if self.places_again else p.n_rows)

    def kept(self, fields: Fields) -> Fields:
        """Return views without the points of bodies, where these are many."""
        if not self.places_again:
            return fields
        (x, v, p), n = fields, self.packed.n_nodes
        return x[:, :n], v[:, :n], p

    def complete(self, rows: np.ndarray, fields: Fields) -> None:
        """Place the points of the bodies, by the function that a step places them with."""
        place = place_states_kernel(self.n_threads)
        with using_threads(self.n_threads):
            place(self.calls.steps, self.packed.bodies, rows, States(*fields))

    def job(self, k0: int, rows: np.ndarray, fields: Fields, calls: Any, work: Any) -> Job:
        """Return what the phases of steps from state k0 are given."""
        steps = Steps(self.dtype.type(self.dt), k0, rows)
        finite = np.full(self.packed.n_worlds, len(rows) - 1)
        elements, nodes, bodies = self.arrays
        return Job(
            calls, elements, nodes, bodies, self.parts, work, steps, States(*fields), finite,
            vector=(), fields=(),
        )  # fmt: skip

    def sweep(
        self,
        name: str,
        phases: tuple[Callable, ...],
        n_turns: int,
        job: Job,
        pairs: NearPairs | None = None,
    ) -> np.ndarray:
        """Run phases; return how many turns stayed finite, of each world.

        Where worlds that diverge end the rollout, a part ends with the first of its worlds. Where
        there are pairs that change, no part runs ahead of others.
        """
        stops = self.on_divergence is OnDivergence.RAISE
        if not stops:
            job = job._replace(parts=self.world_parts)
        if pairs is not None:
            job = job._replace(elements=pairs)
        together = pairs is not None or (not self.stands_apart and self.n_threads > 1)
        run = sweep_kernel(name, phases, threads=self.n_threads, together=together)
        with using_threads(self.n_threads):
            self.n_run = run(Turns(n_turns, stops), *job) or n_turns
        return job.finite

    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> np.ndarray:
        """Run the loop."""
        job = self.job(k0, rows, fields, self.calls, Work(self.slots, self.scratch))
        if self.changing is None:
            return self.sweep("advance", ADVANCE, len(rows) - 1, job)
        return self.sweep("advance_pairs", ADVANCE_PAIRS, len(rows) - 1, job, self.changing.near)


class CudaStepper(ModelStepper):
    """Runs on the current GPU, many steps in one kernel: of the grid, or of a block per world."""

    device = Device.CUDA

    def __init__(
        self, system: Model | Batch, packed: PackedModels, dtype: np.dtype, dt: float, n_steps: int
    ) -> None:
        self.xp = array_module(Device.CUDA)
        super().__init__(system, packed, dtype, dt, n_steps)
        self.packed = packed.on_gpu()
        self.slots = self.xp.zeros(packed.slot_shape, dtype)
        self.sums = self.xp.zeros((2, *packed.slot_shape), dtype) if owns_nodes(packed) else None
        self.patches = self.packed.patches or ()
        pieces = pieces_of(packed, dtype)
        sums = self.xp.zeros(pieces.loads.shape, dtype)
        self.pieces = kept_on_device(pieces._replace(loads=sums))
        self.sizes = Sizes.of(packed) if packed.stands_apart else None  # of what a block works on
        slots = max(packed.n_slots, PROCESSORS * self.sizes.slots if self.sizes else 0)
        self.step_seconds = STEP_SECONDS + SLOT_SECONDS * slots
        self.most_steps = max(1, int(LAUNCH_SECONDS / self.step_seconds))
        if has_changing(self.models):
            self.changing = PairSearch(self.models, packed, self.packed.params)

    def require_room(self, n_states: int, remedy: str) -> None:
        """Raise a MemoryError unless there is room for states, slots and a gradient."""
        p = self.packed
        work = 3 * self.slots.nbytes + sum(array.nbytes for array in (p.consts, p.params, p.series))
        n_bytes = n_states * self.bytes_per_state() + work
        what = f"{n_states} states of the rollout"
        try:
            require_room(n_bytes + self.spare_bytes, what, remedy)
        except MemoryError:
            self.spare_bytes = 0
            require_room(n_bytes, what, remedy)

    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> np.ndarray:
        """Run the loop in one launch."""
        with self.watched(k0, len(rows) - 1) as pairs:
            return advance_on_gpu(
                self.packed, self.sizes, self.pieces, self.dt, self.slots, k0, rows, fields, pairs,
                self.sums,
            )  # fmt: skip

    def find_pairs(self, x: Any, step: int | None = None) -> None:
        """Find the pairs near positions of all rows on the device, as the CPU does on the host.

        After steps that ended in these positions the pairs serve unless a row has moved too far.
        """
        search = self.changing
        goes_on = self.reached == step is not None
        if goes_on and not search.moved_on:
            return
        is_first, last = search.tables is None, search.found_at
        if is_first:
            search.begin(to_host(x))
        is_trouble = search.find(x, checked=step is not None, since_last=goes_on) or is_first
        self.reached = None
        if step is None or not is_trouble:
            return
        now = search.by_contact(to_host(search.found_at))
        then, searched = None, []
        if goes_on:
            then = search.by_contact(to_host(last))
            searched = [search.find_on_host(positions) for positions in (then, now)]
        self.check_apart(step, now, then, searched, [None] * len(now))

    def serve_back(self, start: int, rows: np.ndarray, x: Any) -> int:
        """Have pairs serve as on the CPU: those that served the steps forward, if they are kept."""
        steps = self.changing.kept.of_step(start + len(rows) - 1)
        if steps is None:
            return super().serve_back(start, rows, x)
        self.changing.use(steps.pairs, steps.found_at)
        self.reached = None
        return max(steps.first - start, 0)

    def serves_from(self, x: Any, rows: np.ndarray) -> int:
        """Return the first of several states, `x[rows]`, from which on the pairs serve."""
        return serves_from(self.changing.pairs, x, rows)

    def with_cotangents(self) -> TeamPairs | tuple[()]:
        """Return the pairs that change with room for cotangents."""
        if self.changing is None:
            return ()
        pairs = self.changing.pairs
        x, v, params = map(self.zeros_like, (pairs.slots, pairs.slots, pairs.pair_params))
        return pairs._replace(more_slots=x, v_slots=v, more_params=params)

    def zeros_like(self, array: Any) -> Any:
        """Return zeros in the form of an array."""
        return self.xp.zeros(array.shape, array.dtype)

    @contextmanager
    def watched(self, k0: int, n_turns: int) -> Iterator[TeamPairs | tuple[()]]:
        """Give a sweep from state k0 the pairs that change; note how many turns it ran."""
        if self.changing is None:
            yield ()
            return
        search, turns = self.changing, self.xp.full(1, n_turns + 1, np.int64)
        yield search.pairs._replace(turns=turns)
        most = int(to_host(turns)[0])  # n at most where a row has moved too far
        self.n_run, search.moved_on = min(most, n_turns), most <= n_turns
        steps = ServedSteps(k0, k0 + self.n_run, search.found_pairs, search.found_at)
        search.kept.add(steps, self.spare_bytes)


def keeps_no_points(n_nodes: int, n_rows: int) -> bool:
    """Whether states are kept without the points of bodies: where these are the most of them.

    On the CPU: a GPU compiles the function that places them again for every loop, and a copy may
    contract differently and lose the bits.
    """
    return n_rows > 2 * n_nodes


def worlds_of(system: Model | Batch) -> tuple[Model, ...]:
    """Return the models of a batch, or the one model."""
    return system.models if isinstance(system, Batch) else (system,)


@make_stepper.register(Model)
@make_stepper.register(Batch)
def _(system: Model | Batch, run: RunSettings) -> ModelStepper:
    """Pack the models and lay out their work arrays."""
    models, (dt, n_steps, dtype, threads, device) = worlds_of(system), run
    n_parts, apart = 0, False
    if check_device(device) is Device.CPU:
        n_elements = [count_elements(model) for model in models]
        n_tiles = sum(-(-n // TILE) for n in n_elements)
        least = PARALLEL_TILES_OF_WORLDS if len(models) > 1 else PARALLEL_TILES
        n_parts = thread_count(threads, large=n_tiles >= least)
    else:
        sizes = [count_elements(model) + model.n_rows for model in models]
        apart = fits_blocks(sizes) and not has_changing(models)

    packed = pack(models, n_steps, dtype, n_parts, apart=apart)
    if n_parts:
        return CpuStepper(system, packed, dtype, dt, n_steps, n_parts)
    n_bytes = sum(array.nbytes for array in leaves(packed.arrays))
    require_room(n_bytes, "The model", "Take a coarser mesh, or fewer worlds at once.")
    return CudaStepper(system, packed, dtype, dt, n_steps)
