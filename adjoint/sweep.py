"""The work arrays of the reverse sweep and of the tangent, around their compiled loops."""

import numpy as np

from adjoint.assembly import jvp_kernel, vjp_kernel
from adjoint.parameters import PackedTangents, SweepResult
from adjoint.registry import twin_of
from adjoint.timeloop import (
    idle_kernels,
    node_kernels,
    reverse_kernel,
    tangent_kernel,
    tangent_loop_kernel,
)
from adjsim.backend import using_threads
from adjsim.rollout import Stepper
from adjsim.timeloop import force_kernels, padded, step_kernel


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
        dtype, p = stepper.dtype, stepper.packed
        n = stepper.model.n_nodes
        twins = [twin_of(force).twin_kind(force) for force in stepper.model.forces.values()]
        vjps = padded([vjp_kernel(twin, dtype) for twin in twins], idle_kernels(dtype)[0])
        self.stepper = stepper
        self.steps, self.frames = steps, (adj_frames_x, adj_frames_v)
        self.with_mass = with_mass
        self.kernels = (vjps, force_kernels(p, dtype), *node_kernels(dtype))
        self.loads = (p.w, p.node_ptr, p.node_slots, p.velocity_ptr, p.velocity_slots)
        v_slots = p.n_slots if p.velocity_slots.size else 0
        self.slots = (
            stepper.slots,
            np.zeros(p.n_slots + 1, dtype),
            np.zeros(v_slots + 1, dtype),
        )
        self.x, self.v, self.f, self.gravity = (np.zeros((n, 3), dtype) for _ in range(4))
        self.w = np.zeros(n, dtype)
        self.params, self.series = np.zeros_like(p.params), np.zeros_like(p.series)

    def undo(self, start: int, rows: np.ndarray, X: np.ndarray, V: np.ndarray) -> None:
        """Undo len(rows) steps down to `start`; `rows[k]` of X, V holds state start + k."""
        s = self.stepper
        states = start + 1 + np.arange(len(rows))
        index = np.searchsorted(self.steps, states)
        shown = self.steps[np.minimum(index, len(self.steps) - 1)] == states
        frame_of = np.where(shown, index, -1).astype(np.int64)
        adj = (self.x, self.v, self.f, self.gravity, self.w, self.params, self.series)
        with using_threads(s.n_chunks):
            reverse_kernel(parallel=s.n_chunks > 1)(
                self.kernels, s.packed.arrays, self.loads, self.slots,
                (frame_of, *self.frames), adj, s.dtype.type(s.dt), start, rows, X, V,
                self.with_mass, s.scratch, s.tile_cuts, s.node_cuts,
            )  # fmt: skip

    def finish(self) -> SweepResult:
        """Add the cotangent of state 0, if it is a frame, and return everything."""
        if self.steps[0] == 0:
            self.x += self.frames[0][0]
            self.v += self.frames[1][0]
        return SweepResult(self.x, self.v, self.gravity, self.w, self.params, self.series)


def run_tangent(
    stepper: Stepper,
    tangents: PackedTangents,
    rows: np.ndarray,
    states: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Run X, V and their tangents TX, TV forward together from state 0.

    Raises
    ------
    RolloutError
        If a node leaves the finite numbers.
    """
    dtype, p, s = stepper.dtype, stepper.packed, stepper
    twins = [twin_of(force).twin_kind(force) for force in s.model.forces.values()]
    jvps = padded([jvp_kernel(twin, dtype) for twin in twins], idle_kernels(dtype)[1])
    kernels = (force_kernels(p, dtype), jvps, step_kernel(dtype), tangent_kernel(dtype))
    with using_threads(s.n_chunks):
        done = tangent_loop_kernel(parallel=s.n_chunks > 1)(
            kernels, p.arrays, (tangents.params, tangents.series),
            (p.w, p.gravity, p.node_ptr, p.node_slots), (tangents.w, tangents.gravity),
            s.slots, np.zeros_like(s.slots), dtype.type(s.dt), rows, *states,
            s.scratch, s.tile_cuts, s.node_cuts,
        )  # fmt: skip
    s.check_finite(done, 0, rows, states[0])
