"""The work arrays of the reverse sweep and of the tangent, around their compiled loops."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjoint.assembly import (
    JVP_LAYOUT,
    REST_JVP_LAYOUT,
    REST_VJP_LAYOUT,
    VJP_LAYOUT,
    jvp_kernel,
    rest_jvp_kernel,
    rest_vjp_kernel,
    vjp_kernel,
)
from adjoint.cuda_timeloop import advance_tangent_on_gpu, undo_on_gpu
from adjoint.element import TwinKind
from adjoint.parameters import (
    PackedVector,
    collect_gradient,
    needs_forces,
    needs_rest,
    pack_tangents,
)
from adjoint.registry import twin_of
from adjoint.rigid.pose import pack_cotangents
from adjoint.system import Sweep, SystemTwin, Tangent, check_cotangents, frames_of
from adjoint.timeloop import (
    idle_kernel,
    place_tangents_kernel,
    reverse_kernel,
    tangent_kernel,
    tangent_loop_kernel,
    turn_kernel,
)
from adjsim.backend import using_threads
from adjsim.model import State, Trajectory
from adjsim.rigid.bodies import pack_bodies
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE
from adjsim.stepper import CpuStepper, ModelStepper
from adjsim.system import Fields
from adjsim.timeloop import force_kernels, padded, step_kernel


def twin_kinds(stepper: ModelStepper) -> tuple[TwinKind, ...]:
    """Return the twins of the model's forces, in order."""
    return tuple(twin_of(force).twin_kind(force) for force in stepper.model.forces.values())


class ReverseSweep(Sweep):
    """Cotangents on their way from the last frame to the first state."""

    def __init__(
        self,
        stepper: ModelStepper,
        state: State,
        steps: np.ndarray,
        adj_frames: Fields,
        wanted: Sequence[str],
    ) -> None:
        dtype, p, xp = stepper.dtype, stepper.packed, stepper.xp
        n, n_bodies = stepper.model.n_nodes, stepper.model.n_bodies
        self.stepper = stepper
        self.state = state
        self.steps = steps
        self.wanted = wanted
        self.frames = tuple(xp.asarray(part) for part in adj_frames)
        self.with_forces = needs_forces(stepper.model, wanted)
        self.twins = twin_kinds(stepper)
        self.loads = (p.w, p.node_ptr, p.node_slots, p.velocity_ptr, p.velocity_slots)
        v_slots = p.n_slots if p.velocity_slots.size else 0
        self.slots = (
            xp.zeros(p.n_slots + 1, dtype),
            xp.zeros(p.n_slots + 1, dtype),
            xp.zeros(v_slots + 1, dtype),
        )
        self.adj = PackedVector(
            x=xp.zeros((n, 3), dtype),
            v=xp.zeros((n, 3), dtype),
            gravity=xp.zeros((n + n_bodies, 3), dtype),
            w=xp.zeros(n, dtype),
            params=xp.zeros_like(p.params),
            series=xp.zeros_like(p.series),
            consts=xp.zeros(p.consts.size if needs_rest(wanted) else 0, dtype),
            p=xp.zeros((n_bodies, STATE_SIZE), dtype),
            bodies=xp.zeros((n_bodies, PARAMS_SIZE), dtype),
        )
        self.f = xp.zeros((stepper.model.n_rows, 3), dtype)

    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo len(rows) steps, in compiled code from the last one to the first."""
        s = self.stepper
        frames = (frames_of(self.steps, start, start + len(rows)), *self.frames)
        a = self.adj
        parameters = (a.gravity, a.w, a.params, a.series, a.consts)
        adj = (a.x, a.v, self.f, *parameters, a.p, a.bodies)
        if not isinstance(s, CpuStepper):
            numbers, head = np.array([s.dt], s.dtype), [start, int(self.with_forces)]
            packed_rows = np.concatenate([head, rows]).astype(np.int64)
            args = (s.packed.arrays, self.loads, s.bodies, self.slots, frames, adj, numbers)
            undo_on_gpu(self.twins, (*args, packed_rows, fields))
            return
        vjps = [vjp_kernel(twin, s.dtype) for twin in self.twins]
        rests = rest_kernels(self.twins, REST_VJP_LAYOUT, s.dtype, wanted=a.consts.size > 0)
        kernels = (
            padded(vjps, idle_kernel(VJP_LAYOUT, s.dtype)),
            force_kernels(s.packed, s.dtype),
            rests,
            (turn_kernel(s.dtype),),
        )
        with using_threads(s.n_chunks):
            reverse_kernel(parallel=s.n_chunks > 1)(
                kernels, s.packed.arrays, self.loads, s.bodies, self.slots, frames, adj,
                s.dtype.type(s.dt), start, rows, *fields, self.with_forces,
                s.scratch, s.tile_cuts, s.row_cuts,
            )  # fmt: skip

    def finish(self) -> dict[str, np.ndarray]:
        """Add the cotangent of state 0, if it is a frame, and return the wanted gradient."""
        if self.steps[0] == 0:
            self.adj.x[:] += self.frames[0][0]
            self.adj.v[:] += self.frames[1][0]
            self.adj.p[:] += self.frames[2][0]
        s = self.stepper
        return collect_gradient(s.model, self.state, s.n_steps, self.adj.on_host(), self.wanted)


def rest_kernels(
    twins: tuple[TwinKind, ...], layout: str, dtype: np.dtype, *, wanted: bool
) -> tuple[Callable, ...]:
    """Return the loops over the rest shapes, idle where there is none or it is not wanted."""
    make, key = rest_jvp_kernel, "jvp_consts"
    if layout == REST_VJP_LAYOUT:
        make, key = rest_vjp_kernel, "vjp_consts"
    idle = idle_kernel(layout, dtype)
    elements = [getattr(twin, key) if wanted else None for twin in twins]
    kernels = [
        make(twin.kind, element, dtype) if element else idle
        for twin, element in zip(twins, elements, strict=True)
    ]
    return padded(kernels, idle)


class ModelTangent(Tangent):
    """Tangents of a model's states, run beside the states themselves."""

    def __init__(self, stepper: ModelStepper, state: State, tangents: PackedVector) -> None:
        p, dtype, xp = stepper.packed, stepper.dtype, stepper.xp
        self.stepper = stepper
        self.twins = twin_kinds(stepper)
        self.initial = tuple(xp.asarray(part) for part in self.initial_rows(state, tangents))
        rows = (tangents.params, tangents.series, tangents.consts)
        self.rows = tuple(xp.asarray(part) for part in rows)
        tan_loads = (tangents.w, tangents.gravity, tangents.bodies)
        self.tan_loads = tuple(xp.asarray(part) for part in tan_loads)
        self.loads = (p.w, p.gravity, p.node_ptr, p.node_slots)
        self.slots = (xp.zeros(p.n_slots + 1, dtype), xp.zeros(p.n_slots + 1, dtype))

    def initial_rows(self, state: State, tangents: PackedVector) -> Fields:
        """Return the tangents of X, V and P at the start, on the host."""
        s, n = self.stepper, self.stepper.model.n_nodes
        tan_x, tan_v = (np.zeros((s.model.n_rows, 3), s.dtype) for _ in range(2))
        tan_x[:n], tan_v[:n] = tangents.x, tangents.v
        if len(tangents.p):
            bodies, p = pack_bodies(s.model.bodies, 0, s.dtype), s.initial(state)[2]
            place_tangents_kernel()(bodies, p, tangents.p, tan_x[n:], tan_v[n:])
        return tan_x, tan_v, tangents.p

    def load(self, tan_fields: Fields, row: int) -> None:
        """Write the tangents of the initial state to a row."""
        for field, part in zip(tan_fields, self.initial, strict=True):
            field[row] = part

    def advance(self, k0: int, rows: np.ndarray, fields: Fields, tan_fields: Fields) -> None:
        """Run from state k0, in compiled code from the first step to the last."""
        s, run = self.stepper, self.run_on_cpu
        if not isinstance(s, CpuStepper):
            run = self.run_on_gpu
        s.check_finite(run(k0, rows, (*fields, *tan_fields)), k0, rows, fields)

    def run_on_cpu(self, k0: int, rows: np.ndarray, states: Fields) -> int:
        """Run the loop on so many threads as there are chunks; return the finite steps."""
        s, dtype = self.stepper, self.stepper.dtype
        assert isinstance(s, CpuStepper)
        jvps = padded(
            [jvp_kernel(twin, dtype) for twin in self.twins], idle_kernel(JVP_LAYOUT, dtype)
        )
        rests = rest_kernels(self.twins, REST_JVP_LAYOUT, dtype, wanted=self.rows[2].size > 0)
        forces = force_kernels(s.packed, dtype)
        kernels = (forces, jvps, rests, (step_kernel(dtype),), (tangent_kernel(dtype),))
        with using_threads(s.n_chunks):
            return tangent_loop_kernel(parallel=s.n_chunks > 1)(
                kernels, s.packed.arrays, self.rows, self.loads, self.tan_loads, s.bodies,
                *self.slots, dtype.type(s.dt), k0, rows, *states,
                s.scratch, s.tile_cuts, s.row_cuts,
            )  # fmt: skip

    def run_on_gpu(self, k0: int, rows: np.ndarray, states: Fields) -> int:
        """Run the loop in one launch; return the finite steps."""
        s = self.stepper
        numbers, finite = np.array([s.dt], s.dtype), np.array([len(rows) - 1], np.int64)
        steps = np.concatenate([[k0], rows]).astype(np.int64)
        args = (s.packed.arrays, self.rows, self.loads, self.tan_loads, s.bodies, self.slots)
        return advance_tangent_on_gpu(self.twins, (*args, numbers, steps, states, finite))


class ModelTwin(SystemTwin[State, Trajectory]):
    """The twin of `Model`."""

    def cotangents(self, trajectory: Trajectory, given: Sequence[Any], dtype: np.dtype) -> Fields:
        """Return the cotangents of x and v and of the packed states of the bodies."""
        adj_x, adj_v, *bodies = given
        adj_p = pack_cotangents(trajectory, bodies[0] if bodies else {}, dtype)
        if bodies and adj_x is None:
            adj_x = np.zeros(trajectory.x.shape)
        frames = {"x": trajectory.x, "v": trajectory.v}
        return (*check_cotangents(frames, (adj_x, adj_v), dtype), adj_p)

    def sweep(
        self,
        stepper: ModelStepper,
        state: State,
        steps: np.ndarray,
        adj_frames: Fields,
        wanted: Sequence[str],
    ) -> ReverseSweep:
        """Begin a reverse sweep."""
        return ReverseSweep(stepper, state, steps, adj_frames, wanted)

    def tangent(
        self, stepper: ModelStepper, state: State, tangents: Mapping[str, np.ndarray]
    ) -> ModelTangent:
        """Begin a tangent."""
        packed = pack_tangents(stepper.model, state, stepper.n_steps, tangents, stepper.dtype)
        return ModelTangent(stepper, state, packed)
