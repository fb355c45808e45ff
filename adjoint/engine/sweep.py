"""The work arrays of the reverse sweep and of the tangent, around their compiled loops."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adjoint.engine.cuda_timeloop import (
    TeamReverse,
    TeamTangent,
    advance_tangent_on_gpu,
    undo_on_gpu,
)
from adjoint.engine.packing import part_rows
from adjoint.engine.parameters import collect_gradient, needs_forces, require_rest_adjoints
from adjoint.engine.timeloop import (
    REVERSE,
    REVERSE_PAIRS,
    TURNS_BESIDES_STEPS,
    Frames,
    ReverseCalls,
    ReverseWork,
    Turn,
    turn_kernel,
)
from adjoint.forces.element import TwinKind
from adjoint.forces.registry import twin_of
from adjoint.rigid.pose import pack_cotangents
from adjoint.system import Sweep, SystemTwin, Tangent, check_cotangents, frames_of
from adjoint.tiles.assembly import REST_VJP_LOOP, VJP_LOOP
from adjsim.engine.cuda_teams import Worlds
from adjsim.engine.stepper import NEVER, CpuStepper, CudaStepper, ModelStepper
from adjsim.engine.tangent_packing import (
    PackedVector,
    needs_arms,
    needs_rest,
    packed_tangents,
    tangent_fields,
)
from adjsim.engine.tangents import TANGENT, TANGENT_PAIRS, TangentWork, tangent_calls
from adjsim.engine.timeloop import force_table
from adjsim.jit.calls import function_table
from adjsim.jit.device_arrays import to_device, to_host
from adjsim.model import Model, State, Trajectory
from adjsim.rigid.pose import BodyTrajectory
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE
from adjsim.system import Fields
from adjsim.tiles.assembly import SLOTS, tile_kernel
from adjsim.tiles.loop_arrays import Span, States


def twin_kinds(stepper: ModelStepper) -> tuple[TwinKind, ...]:
    """Return the twins of the columns of forces, in order."""
    force_of = {}
    for model, columns in zip(stepper.models, stepper.packed.columns, strict=True):
        for column, force in zip(columns, model.forces.values(), strict=True):
            force_of.setdefault(column, force)
    return tuple(twin_of(force_of[c]).twin_kind(force_of[c]) for c in range(len(force_of)))


def scratch_of(stepper: ModelStepper) -> Any:
    """Return the scratch of the threads; lanes of a GPU need none."""
    if isinstance(stepper, CpuStepper):
        return stepper.scratch
    return stepper.xp.zeros((0, 0), stepper.dtype)


class ReverseSweep(Sweep):
    """Cotangents on their way from the last frame to the first state."""

    def __init__(
        self,
        stepper: ModelStepper,
        state: Any,
        steps: np.ndarray,
        adj_frames: Fields,
        wanted: Sequence[str],
    ) -> None:
        dtype, p, xp = stepper.dtype, stepper.packed, stepper.xp
        n, n_bodies = p.n_nodes, p.n_bodies
        self.stepper = stepper
        self.state = state
        self.steps = steps
        self.wanted = wanted
        self.frames = States(*to_device(adj_frames, stepper.device))
        self.with_forces = any(needs_forces(model, wanted) for model in stepper.models)
        for model in stepper.models:
            require_rest_adjoints(model, wanted)
        self.twins = twin_kinds(stepper)
        v_shape = p.slot_shape
        if not (p.velocity_slots.size or p.stands_apart):
            v_shape = (1, *p.slot_shape[1:])
        self.work = ReverseWork(
            xp.zeros(p.slot_shape, dtype),
            xp.zeros(p.slot_shape, dtype),
            xp.zeros(v_shape, dtype),
            xp.zeros((p.n_rows, 3), dtype),
            scratch_of(stepper),
        )
        self.adj = PackedVector(
            x=xp.zeros((n, 3), dtype),
            v=xp.zeros((n, 3), dtype),
            gravity=xp.zeros((n + n_bodies, 3), dtype),
            w=xp.zeros(n, dtype),
            params=xp.zeros(p.params.shape, dtype),
            series=xp.zeros(p.series.shape, dtype),
            consts=xp.zeros(p.consts.size if needs_rest(wanted) else 0, dtype),
            p=xp.zeros((n_bodies, STATE_SIZE), dtype),
            bodies=xp.zeros((n_bodies, PARAMS_SIZE), dtype),
            arms=xp.zeros((p.n_rows - n if needs_arms(wanted) else 0, 3), dtype),
        )
        if isinstance(stepper, CpuStepper):
            vjps = [tile_kernel(VJP_LOOP, twin.kind, twin.vjp, dtype) for twin in self.twins]
            rests = [
                tile_kernel(REST_VJP_LOOP, twin.kind, twin.vjp_consts, dtype)
                if twin.vjp_consts is not None and needs_rest(wanted)
                else None
                for twin in self.twins
            ]
            self.calls = ReverseCalls(
                vjps=function_table(vjps),
                rests=function_table(rests),
                forces=force_table(p, dtype) if self.with_forces else function_table([]),
                turn=function_table([turn_kernel(dtype)]),
            )

    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo len(rows) steps, in compiled code from the last one to the first."""
        s, n = self.stepper, len(rows)
        while n and s.changing is not None:
            first = s.serve_back(start, rows[:n], fields[0])
            self.undo_piece(start + first, rows[first:n], fields)
            n = first
        if n:
            self.undo_piece(start, rows, fields)

    def undo_piece(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo steps; pairs that change serve them all."""
        s = self.stepper
        frames = Frames(frames_of(self.steps, start, start + len(rows)), *self.frames)
        if isinstance(s, CudaStepper):
            numbers = np.array([s.dt], s.dtype)
            own_rows = np.concatenate([[start, int(self.with_forces)], rows]).astype(np.int64)
            head = (s.packed.arrays, s.patches, s.pieces)
            args = (*head, self.work, frames, self.adj, numbers, own_rows)
            args = TeamReverse(*args, States(*fields), Worlds(s.packed.starts), s.with_cotangents())
            kinds = s.packed.kinds
            twins = [
                replace(twin, kind=kind) if kind.pairs else twin
                for twin, kind in zip(self.twins, kinds, strict=True)
            ]
            undo_on_gpu(tuple(twins), s.sizes, args)
            return
        assert isinstance(s, CpuStepper)
        job = s.job(start, rows, fields, self.calls, self.work)
        job = job._replace(vector=self.adj, fields=frames)
        n_turns = len(rows) + TURNS_BESIDES_STEPS
        if s.changing is None:
            s.sweep("reverse", REVERSE, n_turns, job)
        else:
            s.sweep("reverse_pairs", REVERSE_PAIRS, n_turns, job, s.changing.with_cotangents())

    def adjoint(self) -> Fields:
        """Return the adjoint of x, v and the states of bodies."""
        return to_host(self.adj.x), to_host(self.adj.v), to_host(self.adj.p)

    def by_force(self, row: int, fields: Fields) -> dict[str, Fields]:
        """Return what each force of the one model added in the step undone last.

        The slots that elements wrote are still there: they are added up again, force by force.
        A GPU has them elsewhere: forces are not separated there.
        """
        s, packed = self.stepper, self.stepper.packed
        if not isinstance(s, CpuStepper):
            return {}
        (_, nodes, bodies), work, adj, p = s.arrays, self.work, self.adj, fields[2][row]
        starts = packed.table[:, SLOTS]
        ends = [*starts[1:].tolist(), packed.n_slots]
        turn, added = turn_kernel(s.dtype), {}
        for column, name in zip(packed.columns[0], s.models[0].forces, strict=True):
            span = slice(int(starts[column]), ends[column])
            slots = [np.zeros_like(array) for array in (work.adj_x_slots, work.adj_v_slots)]
            slots[0][span], slots[1][span] = work.adj_x_slots[span], work.adj_v_slots[span]
            only = work._replace(adj_x_slots=slots[0], adj_v_slots=slots[1])
            out = States(*map(np.zeros_like, (adj.x, adj.v, adj.p)))
            turn(
                Span(0, packed.n_nodes, 0, packed.n_bodies), s.dtype.type(s.dt),
                Turn(step=0, ends=True, begins=False, has_frame=False, with_forces=False),
                nodes, bodies, only, p, p, out, adj._replace(**out._asdict(), arms=adj.arms[:0]),
            )  # fmt: skip
            added[name] = tuple(out)
        return added

    def finish(self) -> Any:
        """Add the cotangent of state 0, if it is a frame, and return the wanted gradient."""
        if self.steps[0] == 0:
            self.adj.x[:] += self.frames.x[0]
            self.adj.v[:] += self.frames.v[0]
            self.adj.p[:] += self.frames.p[0]
        return self.gradient(self.wanted)

    def gradient(self, wanted: Sequence[str], adj_mass: Any = 0.0) -> Any:
        """Return the gradient of the steps that are undone, of wanted parameters.

        `adj_mass`, (n_nodes,), is that of masses which act beside the steps, as of pinned nodes.
        """
        s = self.stepper
        own_rows = part_rows(self.adj, s.packed, s.models)
        worlds = zip(s.models, s.states(self.state), own_rows, strict=True)
        gradients = [collect_gradient(*world, wanted, adj_mass) for world in worlds]
        for gradient in itertools.compress(gradients, s.diverged != NEVER):
            gradient.update({path: np.full_like(value, np.nan) for path, value in gradient.items()})
        return gradients if s.is_batch else gradients[0]


class ModelTangent(Tangent):
    """Tangents of the states of models, run beside the states themselves."""

    def __init__(self, stepper: ModelStepper, state: Any, tangents: Any) -> None:
        self.stepper = s = stepper
        packed = packed_tangents(s, state, tangents)
        self.initial = to_device(tangent_fields(s, state, packed), s.device)
        self.tan = to_device(packed, s.device)
        slots, tan_slots = (s.xp.zeros(s.packed.slot_shape, s.dtype) for _ in range(2))
        self.work = TangentWork(slots, tan_slots, scratch_of(s))
        if isinstance(s, CpuStepper):
            self.calls = tangent_calls(s.packed, s.dtype, with_rest=packed.consts.size > 0)

    def advance(self, k0: int, rows: np.ndarray, fields: Fields, tan_fields: Fields) -> None:
        """Run from state k0, in compiled code from the first step to the last."""
        s, run_on = self.stepper, self.run_on_cpu
        if not isinstance(s, CpuStepper):
            run_on = self.run_on_gpu

        def run(k: int, rows: np.ndarray) -> tuple[np.ndarray, int]:
            return run_on(k, rows, States(*fields), States(*tan_fields)), s.n_run

        s.check_finite(s.in_pieces(run, k0, rows, fields), k0, rows, fields)

    def run_on_cpu(self, k0: int, rows: np.ndarray, states: States, tan: States) -> np.ndarray:
        """Run the loop; return the finite steps of each world."""
        s = self.stepper
        assert isinstance(s, CpuStepper)
        job = s.job(k0, rows, states, self.calls, self.work)
        job = job._replace(parts=s.world_parts, vector=self.tan, fields=tan)
        if s.changing is None:
            return s.sweep("tangent", TANGENT, len(rows) - 1, job)
        pairs = s.changing.with_tangents(self.tan.params)
        return s.sweep("tangent_pairs", TANGENT_PAIRS, len(rows) - 1, job, pairs)

    def run_on_gpu(self, k0: int, rows: np.ndarray, states: States, tan: States) -> np.ndarray:
        """Run the loop in one launch; return the finite steps of each world."""
        s = self.stepper
        assert isinstance(s, CudaStepper)
        numbers = np.array([s.dt], s.dtype)
        finite = s.xp.full(s.packed.n_worlds, len(rows) - 1, np.int64)
        steps = np.concatenate([[k0], rows]).astype(np.int64)
        head = (s.packed.arrays, s.patches, s.pieces)
        args = (*head, self.tan, self.work, numbers, steps, states, tan, finite)
        with s.watched(k0, len(rows) - 1) as pairs:
            tan_pairs = s.changing.with_tangents(pairs, self.tan.params) if pairs else ()
            args = TeamTangent(*args, Worlds(s.packed.starts), tan_pairs)
            return advance_tangent_on_gpu(s.packed.kinds, s.sizes, args)


class ModelTwin(SystemTwin[State, Trajectory]):
    """The twin of `Model`."""

    FIELDS = ("x", "v")
    sweep = ReverseSweep
    tangent = ModelTangent

    def parts(self, system: Model, fields: Fields) -> dict[str, np.ndarray]:
        """Return x and v of nodes, and the parts of the states of every set of bodies."""
        x, v, p = fields
        parts = {"x": x, "v": v} if system.n_nodes else {}
        for name, body_slice in system.body_slices().items():
            states = vars(BodyTrajectory.unpack(p[..., body_slice, :]))
            parts |= {f"{name}.{key}": value for key, value in states.items()}
        return parts

    def cotangents(self, trajectory: Trajectory, given: Sequence[Any], dtype: np.dtype) -> Fields:
        """Return the cotangents of x and v, 0 at body points, and of the states of the bodies.

        Those of a trajectory that diverged count for nothing: the loss of what is NaN is NaN.
        """
        adj_x, adj_v, *bodies = given
        if trajectory.diverged is not None:
            adj_x, adj_v, bodies = np.zeros(trajectory.x.shape), None, []
        adj_p = pack_cotangents(trajectory, bodies[0] if bodies else {}, dtype)
        if any(bodies) and adj_x is None:
            adj_x = np.zeros(trajectory.x.shape)
        frames = {"x": trajectory.x, "v": trajectory.v}
        return (*check_cotangents(frames, (adj_x, adj_v), dtype), adj_p)
