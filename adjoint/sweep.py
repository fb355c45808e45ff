"""The work arrays of the reverse sweep and of the tangent, around their compiled loops."""

from typing import Any

import numpy as np

from adjoint.assembly import jvp_kernel, vjp_kernel
from adjoint.cuda_timeloop import advance_tangent_on_gpu, undo_on_gpu
from adjoint.element import TwinKind
from adjoint.parameters import PackedVector
from adjoint.registry import twin_of
from adjoint.timeloop import (
    idle_kernels,
    reverse_kernel,
    tangent_kernel,
    tangent_loop_kernel,
    turn_kernel,
)
from adjsim.backend import to_host, using_threads
from adjsim.stepper import CpuStepper, Stepper
from adjsim.timeloop import force_kernels, padded, step_kernel


def twin_kinds(stepper: Stepper) -> tuple[TwinKind, ...]:
    """Return the twins of the model's forces, in order."""
    return tuple(twin_of(force).twin_kind(force) for force in stepper.model.forces.values())


class ReverseSweep:
    """Cotangents on their way from the last frame to the first state."""

    def __init__(
        self,
        stepper: Stepper,
        steps: np.ndarray,
        adj_frames_x: np.ndarray,
        adj_frames_v: np.ndarray,
        *,
        with_mass: bool,
    ) -> None:
        dtype, p, xp = stepper.dtype, stepper.packed, stepper.xp
        n = stepper.model.n_nodes
        self.stepper = stepper
        self.steps = steps
        self.frames = (xp.asarray(adj_frames_x), xp.asarray(adj_frames_v))
        self.with_mass = with_mass
        self.twins = twin_kinds(stepper)
        self.loads = (p.w, p.node_ptr, p.node_slots, p.velocity_ptr, p.velocity_slots)
        v_slots = p.n_slots if p.velocity_slots.size else 0
        self.slots = (
            xp.zeros(p.n_slots + 1, dtype),
            xp.zeros(p.n_slots + 1, dtype),
            xp.zeros(v_slots + 1, dtype),
        )
        self.x, self.v, self.f, self.gravity = (xp.zeros((n, 3), dtype) for _ in range(4))
        self.w = xp.zeros(n, dtype)
        self.params, self.series = xp.zeros_like(p.params), xp.zeros_like(p.series)

    def undo(self, start: int, rows: np.ndarray, X: Any, V: Any) -> None:
        """Undo len(rows) steps down to `start`; `rows[k]` of X, V holds state start + k."""
        s = self.stepper
        states = start + 1 + np.arange(len(rows))
        index = np.searchsorted(self.steps, states)
        shown = self.steps[np.minimum(index, len(self.steps) - 1)] == states
        frame_of = np.where(shown, index, -1).astype(np.int64)
        frames = (frame_of, *self.frames)
        adj = (self.x, self.v, self.f, self.gravity, self.w, self.params, self.series)
        if not isinstance(s, CpuStepper):
            numbers = np.array([s.dt], s.dtype)
            head = [start, int(self.with_mass)]
            packed_rows = np.concatenate([head, rows]).astype(np.int64)
            undo_on_gpu(
                self.twins,
                (s.packed.arrays, self.loads, self.slots, frames, adj, numbers, packed_rows, X, V),
            )
            return
        vjps = [vjp_kernel(twin, s.dtype) for twin in self.twins]
        kernels = (
            padded(vjps, idle_kernels(s.dtype)[0]),
            force_kernels(s.packed, s.dtype),
            (turn_kernel(s.dtype),),
        )
        with using_threads(s.n_chunks):
            reverse_kernel(parallel=s.n_chunks > 1)(
                kernels, s.packed.arrays, self.loads, self.slots, frames, adj,
                s.dtype.type(s.dt), start, rows, X, V, self.with_mass,
                s.scratch, s.tile_cuts, s.node_cuts,
            )  # fmt: skip

    def finish(self) -> PackedVector:
        """Add the cotangent of state 0, if it is a frame, and return everything."""
        if self.steps[0] == 0:
            self.x += self.frames[0][0]
            self.v += self.frames[1][0]
        parts = (self.x, self.v, self.gravity, self.w, self.params, self.series)
        return PackedVector(*(to_host(part) for part in parts))


def run_tangent(
    stepper: Stepper,
    tangents: PackedVector,
    rows: np.ndarray,
    states: tuple[Any, Any, Any, Any],
) -> None:
    """Run X, V and their tangents TX, TV forward together from state 0.

    Raises
    ------
    RolloutError
        If a node leaves the finite numbers.
    """
    s, p, dtype, xp = stepper, stepper.packed, stepper.dtype, stepper.xp
    twins = twin_kinds(s)
    tan_rows = (xp.asarray(tangents.params), xp.asarray(tangents.series))
    tan_loads = (xp.asarray(tangents.w), xp.asarray(tangents.gravity))
    loads = (p.w, p.gravity, p.node_ptr, p.node_slots)
    slots = (xp.zeros(p.n_slots + 1, dtype), xp.zeros(p.n_slots + 1, dtype))
    if not isinstance(s, CpuStepper):
        numbers, finite = np.array([s.dt], dtype), np.array([len(rows) - 1], np.int64)
        done = advance_tangent_on_gpu(
            twins,
            (p.arrays, tan_rows, (*loads, *tan_loads), slots, numbers, rows, states, finite),
        )
        s.check_finite(done, 0, rows, states[0])
        return
    jvps = padded([jvp_kernel(twin, dtype) for twin in twins], idle_kernels(dtype)[1])
    kernels = (force_kernels(p, dtype), jvps, (step_kernel(dtype),), (tangent_kernel(dtype),))
    with using_threads(s.n_chunks):
        done = tangent_loop_kernel(parallel=s.n_chunks > 1)(
            kernels, p.arrays, tan_rows, loads, tan_loads, *slots, dtype.type(s.dt), rows,
            *states, s.scratch, s.tile_cuts, s.node_cuts,
        )  # fmt: skip
    s.check_finite(done, 0, rows, states[0])
