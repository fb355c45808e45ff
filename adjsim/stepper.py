"""A packed model with its compiled loop and work arrays, on the CPU or on a GPU."""

from abc import abstractmethod
from typing import Any

import numpy as np

from adjsim.assembly import N_TILES, PackedModel, pack
from adjsim.backend import Device, array_module, check_device, thread_count, to_host, using_threads
from adjsim.cuda_timeloop import advance_on_gpu
from adjsim.model import Model, State, Trajectory
from adjsim.system import Fields, RolloutError, Stepper, make_stepper
from adjsim.timeloop import advance_kernel, cuts, force_kernels, step_kernel


# Work below this many tiles is done before a second thread has woken up; measured with
# `adjsim run timing`.
PARALLEL_TILES = 256


class ModelStepper(Stepper[State, Trajectory]):
    """A packed model that can be advanced; its fields are X and V, (n_rows, n_nodes, 3)."""

    def __init__(
        self, model: Model, packed: PackedModel, dtype: np.dtype, dt: float, n_steps: int
    ) -> None:
        self.model = model
        self.packed = packed
        self.dtype = dtype
        self.dt = dt
        self.n_steps = n_steps

    def allocate(self, n_rows: int) -> Fields:
        """Return X and V with so many rows."""
        shape = (n_rows, self.model.n_nodes, 3)
        return tuple(self.xp.empty(shape, self.dtype) for _ in range(2))

    def load(self, state: State, fields: Fields, row: int) -> None:
        """Write positions and velocities to a row."""
        for field, part in zip(fields, (state.x, state.v), strict=True):
            field[row] = self.xp.asarray(part)

    def trajectory(self, steps: np.ndarray, fields: Fields) -> Trajectory:
        """Return copies of the first rows: the frames."""
        return Trajectory(steps, self.dt, *(to_host(part[: len(steps)].copy()) for part in fields))

    @abstractmethod
    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> int:
        """Advance as `advance` does; return how many of the steps stayed finite."""

    def advance(self, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Run from state k0, in compiled code from the first step to the last."""
        self.check_finite(self.run(k0, rows, fields), k0, rows, fields[0])

    def check_finite(self, done: int, k0: int, rows: np.ndarray, X: Any) -> None:
        """Complain if fewer steps stayed finite than were to be done."""
        if done >= len(rows) - 1:
            return
        step, x = k0 + done, X[int(rows[done + 1])]
        node = int((~self.xp.isfinite(x).all(axis=1)).argmax())
        stable = self.model.stable_dt()
        smaller = f"`dt` below {stable:.3g} s" if self.dt > 0.5 * stable else "a smaller `dt`"
        raise RolloutError(
            f"The rollout left the finite numbers in step {step} (t = {step * self.dt:.6g} s), "
            f"first at node {node}. With dt = {self.dt:g} s; the estimated stable dt is "
            f"{stable:.3g} s. Try {smaller}, a softer material or contact, or more damping."
        )


class CpuStepper(ModelStepper):
    """Runs on one thread or several; the bits are the same."""

    device = Device.CPU
    xp = np

    def __init__(
        self,
        model: Model,
        packed: PackedModel,
        dtype: np.dtype,
        dt: float,
        n_steps: int,
        n_chunks: int,
    ) -> None:
        super().__init__(model, packed, dtype, dt, n_steps)
        self.n_chunks = n_chunks
        self.slots = np.zeros(packed.n_slots + 1, dtype)
        self.scratch = np.zeros((n_chunks, packed.scratch_size), dtype)
        ends = [cuts(int(n), n_chunks) for n in packed.table[:, N_TILES]]
        self.tile_cuts = np.array(ends, np.int64).reshape(-1, n_chunks + 1)
        self.node_cuts = cuts(model.n_nodes, n_chunks)

    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> int:
        """Run the loop on so many threads as there are chunks."""
        p = self.packed
        run = advance_kernel(parallel=self.n_chunks > 1)
        with using_threads(self.n_chunks):
            return run(
                force_kernels(p, self.dtype), (step_kernel(self.dtype),), p.arrays,
                p.w, p.gravity, p.node_ptr, p.node_slots, self.slots, self.scratch,
                self.dtype.type(self.dt), k0, rows, *fields, self.tile_cuts, self.node_cuts,
            )  # fmt: skip


class CudaStepper(ModelStepper):
    """Runs on the current GPU, the whole time loop in one cooperative kernel."""

    device = Device.CUDA

    def __init__(
        self, model: Model, packed: PackedModel, dtype: np.dtype, dt: float, n_steps: int
    ) -> None:
        self.xp = array_module(Device.CUDA)
        super().__init__(model, packed.moved(self.xp), dtype, dt, n_steps)
        self.slots = self.xp.zeros(packed.n_slots + 1, dtype)

    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> int:
        """Run the loop in one launch."""
        return advance_on_gpu(self.packed, self.dt, self.slots, k0, rows, fields)


@make_stepper.register
def _(
    model: Model,
    dt: float,
    n_steps: int,
    dtype: np.dtype,
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> ModelStepper:
    """Pack a model and lay out its work arrays."""
    packed = pack(model, n_steps, dtype)
    if check_device(device) is Device.CUDA:
        return CudaStepper(model, packed, dtype, dt, n_steps)
    large = int(packed.table[:, N_TILES].sum()) >= PARALLEL_TILES
    n_chunks = thread_count(threads, large=large)
    return CpuStepper(model, packed, dtype, dt, n_steps, n_chunks)
