"""A packed model with its compiled loop and work arrays, on the CPU or on a GPU."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from adjsim.assembly import N_TILES, PackedModel, pack
from adjsim.backend import Device, array_module, check_device, thread_count, using_threads
from adjsim.cuda_timeloop import advance_on_gpu
from adjsim.model import Model
from adjsim.timeloop import advance_kernel, cuts, force_kernels, step_kernel


# Work below this many tiles is done before a second thread has woken up; measured with
# `adjsim run timing`.
PARALLEL_TILES = 256


class RolloutError(ArithmeticError):
    """A rollout left the finite numbers."""


class Stepper(ABC):
    """A packed model that can be advanced; `xp` makes arrays where its loop reads them."""

    def __init__(self, model: Model, packed: PackedModel, dtype: np.dtype, dt: float) -> None:
        self.model = model
        self.packed = packed
        self.dtype = dtype
        self.dt = dt

    device: Device
    xp: Any

    @abstractmethod
    def advance(self, k0: int, rows: np.ndarray, X: Any, V: Any) -> None:
        """Run from state k0; `rows[k]` is the row of X and V that holds state k0 + k.

        Raises
        ------
        RolloutError
            If a node leaves the finite numbers.
        """

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


class CpuStepper(Stepper):
    """Runs on one thread or several; the bits are the same."""

    device = Device.CPU
    xp = np

    def __init__(
        self, model: Model, packed: PackedModel, dtype: np.dtype, dt: float, n_chunks: int
    ) -> None:
        super().__init__(model, packed, dtype, dt)
        self.n_chunks = n_chunks
        self.slots = np.zeros(packed.n_slots + 1, dtype)
        self.scratch = np.zeros((n_chunks, packed.scratch_size), dtype)
        ends = [cuts(int(n), n_chunks) for n in packed.table[:, N_TILES]]
        self.tile_cuts = np.array(ends, np.int64).reshape(-1, n_chunks + 1)
        self.node_cuts = cuts(model.n_nodes, n_chunks)

    def advance(self, k0: int, rows: np.ndarray, X: Any, V: Any) -> None:
        """Run from state k0, in compiled code from the first step to the last."""
        p = self.packed
        run = advance_kernel(parallel=self.n_chunks > 1)
        with using_threads(self.n_chunks):
            done = run(
                force_kernels(p, self.dtype), (step_kernel(self.dtype),), p.arrays,
                p.w, p.gravity, p.node_ptr, p.node_slots, self.slots, self.scratch,
                self.dtype.type(self.dt), k0, rows, X, V, self.tile_cuts, self.node_cuts,
            )  # fmt: skip
        self.check_finite(done, k0, rows, X)


class CudaStepper(Stepper):
    """Runs on the current GPU, the whole time loop in one cooperative kernel."""

    device = Device.CUDA

    def __init__(self, model: Model, packed: PackedModel, dtype: np.dtype, dt: float) -> None:
        self.xp = array_module(Device.CUDA)
        super().__init__(model, packed.moved(self.xp), dtype, dt)
        self.slots = self.xp.zeros(packed.n_slots + 1, dtype)

    def advance(self, k0: int, rows: np.ndarray, X: Any, V: Any) -> None:
        """Run from state k0, in one launch."""
        done = advance_on_gpu(self.packed, self.dt, self.slots, k0, rows, (X, V))
        self.check_finite(done, k0, rows, X)


def make_stepper(
    model: Model,
    dt: float,
    n_steps: int,
    dtype: np.dtype,
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> Stepper:
    """Pack a model and lay out its work arrays.

    Raises
    ------
    ValueError
        If the device is unknown, or a series does not fit `n_steps`.
    RuntimeError
        If no GPU can be used; the message says why and the way out.
    """
    packed = pack(model, n_steps, dtype)
    if check_device(device) is Device.CUDA:
        return CudaStepper(model, packed, dtype, dt)
    large = int(packed.table[:, N_TILES].sum()) >= PARALLEL_TILES
    return CpuStepper(model, packed, dtype, dt, thread_count(threads, large=large))
