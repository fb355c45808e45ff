"""A packed model with its compiled loop and work arrays, on the CPU or on a GPU."""

from abc import abstractmethod

import numpy as np

from adjsim.assembly import N_TILES, PackedModel, pack
from adjsim.backend import Device, array_module, check_device, thread_count, to_host, using_threads
from adjsim.cuda_timeloop import advance_on_gpu
from adjsim.model import Model, State, Trajectory
from adjsim.rigid.bodies import pack_bodies
from adjsim.rigid.placing import place_kernel
from adjsim.rigid.pose import BodyTrajectory
from adjsim.rigid.rows import STATE_SIZE
from adjsim.system import Fields, RolloutError, Stepper, make_stepper
from adjsim.timeloop import advance_kernel, cuts, force_kernels, step_kernel


# Work below this many tiles is done before a second thread has woken up; measured with
# `adjsim run timing`.
PARALLEL_TILES = 256


class ModelStepper(Stepper[State, Trajectory]):
    """A packed model that can be advanced; its fields are X, V and P.

    X and V hold the nodes and the points of the bodies, (n_rows, model.n_rows, 3); P holds
    the states of the bodies, (n_rows, n_bodies, 13).
    """

    def __init__(
        self, model: Model, packed: PackedModel, dtype: np.dtype, dt: float, n_steps: int
    ) -> None:
        self.model = model
        self.packed = packed
        self.dtype = dtype
        self.dt = dt
        self.n_steps = n_steps
        self.bodies = pack_bodies(model.bodies, model.n_nodes, dtype)

    def allocate(self, n_rows: int) -> Fields:
        """Return X, V and P with so many rows."""
        nodes, bodies = (n_rows, self.model.n_rows, 3), (n_rows, self.model.n_bodies, STATE_SIZE)
        return tuple(self.xp.empty(shape, self.dtype) for shape in (nodes, nodes, bodies))

    def load(self, state: State, fields: Fields, row: int) -> None:
        """Write positions and velocities to a row, those of body points from their bodies."""
        for field, part in zip(fields, self.initial(state), strict=True):
            field[row] = self.xp.asarray(part)

    def initial(self, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a row of X, V and P for an initial state, on the host."""
        n, bodies = self.model.n_nodes, pack_bodies(self.model.bodies, 0, self.dtype)
        x, v = (np.empty((self.model.n_rows, 3), self.dtype) for _ in range(2))
        x[:n], v[:n] = state.x, state.v
        p = np.zeros((self.model.n_bodies, STATE_SIZE), self.dtype)
        for name, part in self.model.body_slices().items():
            p[part] = state.bodies[name].pack()
        if len(p):
            place_kernel()(bodies, p, x[n:], v[n:])
        return x, v, p

    def trajectory(self, steps: np.ndarray, fields: Fields) -> Trajectory:
        """Return copies of the first rows: the frames."""
        x, v, p = (to_host(part[: len(steps)].copy()) for part in fields)
        n, slices = self.model.n_nodes, self.model.body_slices()
        bodies = {name: BodyTrajectory.unpack(p[:, part]) for name, part in slices.items()}
        if bodies:
            x, v = x[:, :n].copy(), v[:, :n].copy()
        return Trajectory(steps, self.dt, x, v, bodies)

    @abstractmethod
    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> int:
        """Advance as `advance` does; return how many of the steps stayed finite."""

    def advance(self, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Run from state k0, in compiled code from the first step to the last."""
        self.check_finite(self.run(k0, rows, fields), k0, rows, fields)

    def check_finite(self, done: int, k0: int, rows: np.ndarray, fields: Fields) -> None:
        """Complain if fewer steps stayed finite than were to be done."""
        if done >= len(rows) - 1:
            return
        X, _, P = fields
        step, row = k0 + done, int(rows[done + 1])
        stable = self.model.stable_dt()
        smaller = f"`dt` below {stable:.3g} s" if self.dt > 0.5 * stable else "a smaller `dt`"
        raise RolloutError(
            f"The rollout left the finite numbers in step {step} (t = {step * self.dt:.6g} s), "
            f"first at {self.culprit(to_host(X[row]), to_host(P[row]))}. With dt = {self.dt:g} s; "
            f"the estimated stable dt is {stable:.3g} s. Try {smaller}, a softer material or "
            "contact, or more damping."
        )

    def culprit(self, x: np.ndarray, p: np.ndarray) -> str:
        """Return the name of the first node or body that is not finite."""
        lost = ~np.isfinite(x[: self.model.n_nodes]).all(axis=1)
        if lost.any():
            return f"node {int(lost.argmax())}"
        b = int((~np.isfinite(p).all(axis=1)).argmax())
        for name, part in self.model.body_slices().items():
            if b < part.stop:
                return f"body {b - part.start} of `{name}`"
        raise AssertionError


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
        self.row_cuts = np.stack([cuts(n, n_chunks) for n in (model.n_nodes, model.n_bodies)])

    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> int:
        """Run the loop on so many threads as there are chunks."""
        p = self.packed
        run = advance_kernel(parallel=self.n_chunks > 1)
        with using_threads(self.n_chunks):
            return run(
                force_kernels(p, self.dtype), (step_kernel(self.dtype),), p.arrays,
                p.w, p.gravity, p.node_ptr, p.node_slots, self.bodies, self.slots, self.scratch,
                self.dtype.type(self.dt), k0, rows, *fields, self.tile_cuts, self.row_cuts,
            )  # fmt: skip


class CudaStepper(ModelStepper):
    """Runs on the current GPU, the whole time loop in one cooperative kernel."""

    device = Device.CUDA

    def __init__(
        self, model: Model, packed: PackedModel, dtype: np.dtype, dt: float, n_steps: int
    ) -> None:
        self.xp = array_module(Device.CUDA)
        super().__init__(model, packed.moved(self.xp), dtype, dt, n_steps)
        self.bodies = tuple(self.xp.asarray(part) for part in self.bodies)
        self.slots = self.xp.zeros(packed.n_slots + 1, dtype)

    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> int:
        """Run the loop in one launch."""
        return advance_on_gpu(self.packed, self.bodies, self.dt, self.slots, k0, rows, fields)


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
