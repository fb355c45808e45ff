"""`rollout`: advance a model by many steps and return the states at chosen frames."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adjsim import checks
from adjsim.assembly import N_TILES, PackedModel, pack
from adjsim.backend import thread_count, using_threads
from adjsim.model import Model, State, Trajectory
from adjsim.timeloop import advance_kernel, cuts, force_kernels, step_kernel


# Work below this many tiles is done before a second thread has woken up; measured with
# `adjsim run timing`.
PARALLEL_TILES = 256


class RolloutError(ArithmeticError):
    """A rollout left the finite numbers."""


@dataclass(frozen=True)
class Stepper:
    """A packed model with its compiled loop and its work arrays."""

    model: Model
    packed: PackedModel
    dtype: np.dtype
    dt: float
    n_chunks: int
    slots: np.ndarray
    scratch: np.ndarray
    tile_cuts: np.ndarray
    node_cuts: np.ndarray

    def advance(self, k0: int, rows: np.ndarray, X: np.ndarray, V: np.ndarray) -> None:
        """Run from state k0; `rows[k]` is the row of X and V that holds state k0 + k.

        Raises
        ------
        RolloutError
            If a node leaves the finite numbers.
        """
        p = self.packed
        run = advance_kernel(parallel=self.n_chunks > 1)
        with using_threads(self.n_chunks):
            done = run(
                force_kernels(p, self.dtype), step_kernel(self.dtype), p.arrays,
                p.w, p.gravity, p.node_ptr, p.node_slots, self.slots, self.scratch,
                self.dtype.type(self.dt), k0, rows, X, V, self.tile_cuts, self.node_cuts,
            )  # fmt: skip
        self.check_finite(done, k0, rows, X)

    def check_finite(self, done: int, k0: int, rows: np.ndarray, X: np.ndarray) -> None:
        """Complain if fewer steps stayed finite than were to be done."""
        if done < len(rows) - 1:
            raise RolloutError(self._explain(k0 + done, X[rows[done + 1]]))

    def _explain(self, step: int, x: np.ndarray) -> str:
        node = int(np.argmax(~np.isfinite(x).all(axis=1)))
        stable = self.model.stable_dt()
        smaller = f"`dt` below {stable:.3g} s" if self.dt > 0.5 * stable else "a smaller `dt`"
        return (
            f"The rollout left the finite numbers in step {step} (t = {step * self.dt:.6g} s), "
            f"first at node {node}. With dt = {self.dt:g} s; the estimated stable dt is "
            f"{stable:.3g} s. Try {smaller}, a softer material or contact, or more damping."
        )


def make_stepper(
    model: Model, dt: float, n_steps: int, dtype: np.dtype, threads: int | None
) -> Stepper:
    """Pack a model and lay out its work arrays."""
    packed = pack(model, n_steps, dtype)
    n_tiles = packed.table[:, N_TILES]
    n_chunks = thread_count(threads, large=int(n_tiles.sum()) >= PARALLEL_TILES)
    return Stepper(
        model,
        packed,
        dtype,
        dt,
        n_chunks,
        np.zeros(packed.n_slots + 1, dtype),
        np.zeros((n_chunks, packed.scratch_size), dtype),
        np.array([cuts(n, n_chunks) for n in n_tiles], np.int64).reshape(-1, n_chunks + 1),
        cuts(model.n_nodes, n_chunks),
    )


def check_frames(frames: Sequence[int] | npt.ArrayLike | None, n_steps: int) -> np.ndarray:
    """Return the steps of the frames, (n_frames,) int64; None is the last state only."""
    steps = np.array([n_steps]) if frames is None else np.asarray(frames)
    if steps.ndim != 1 or steps.size == 0 or steps.dtype.kind not in "iu":
        raise ValueError(
            f"`frames` must be a list of step numbers, got {frames!r}. For every k-th state: "
            f"range(0, n_steps + 1, k)."
        )
    if (np.diff(steps) <= 0).any() or steps[0] < 0 or steps[-1] > n_steps:
        raise ValueError(
            f"`frames` must increase from 0 or more to at most n_steps = {n_steps}, got "
            f"{steps.tolist() if steps.size < 12 else f'{steps[:5].tolist()}...'}."
        )
    return steps.astype(np.int64)


def check_rollout(model: Model, state: State, dt: float, n_steps: int) -> None:
    """Complain of what does not fit together."""
    checks.positive("dt", checks.array("dt", dt, ()))
    if not isinstance(n_steps, int | np.integer) or n_steps < 1:
        raise ValueError(f"`n_steps` must be an integer of at least 1, got {n_steps!r}.")
    if state.x.shape != (model.n_nodes, 3):
        raise ValueError(
            f"`state.x` must have one row per node of the model: expected "
            f"({model.n_nodes}, 3), got {state.x.shape}."
        )


def frame_rows(steps: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the row of each state 0..n_steps: frames have their own, others take turns.

    Rows 0 to n_frames - 1 are the frames; the two after them are scratch.
    """
    rows = len(steps) + np.arange(n_steps + 1) % 2
    rows[steps] = np.arange(len(steps))
    return rows.astype(np.int64)


def rollout(
    model: Model,
    state: State,
    dt: float,
    n_steps: int,
    *,
    frames: Sequence[int] | npt.ArrayLike | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
) -> Trajectory:
    r"""Advance `state` by `n_steps` steps of semi-implicit Euler.

        v' = v + dt (w f(x, v) + [w > 0] g),   x' = x + dt v',   w = 1/m, 0 where pinned

    Parameters
    ----------
    model : Model
        Masses, gravity and forces.
    state : State
        Positions (n_nodes, 3) [m] and velocities (n_nodes, 3) [m/s] at step 0.
    dt : float
        Step size [s], positive; stable below about `model.stable_dt()`.
    n_steps : int
        Number of steps, at least 1.
    frames : sequence of int, optional
        Steps whose states are returned, increasing, 0 to n_steps. None: the last one.
    dtype : dtype
        float64 or float32.
    threads : int, optional
        Threads to use. None: one for small models, all for large ones. The result is
        the same to the bit.

    Returns
    -------
    Trajectory
        x and v at the frames, (n_frames, n_nodes, 3).

    Raises
    ------
    ValueError
        If an argument is out of range, or the state does not fit the model.
    RolloutError
        If a node leaves the finite numbers; the message names the step and the node.

    Notes
    -----
    Adjoint: `adjoint.record(...).vjp`. Tangent: `adjoint.rollout_jvp`.
    Source: gradSim (ICLR 2021) eq. 4.
    """
    check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = make_stepper(model, float(dt), n_steps, checks.float_dtype(dtype), threads)
    rows = frame_rows(steps, n_steps)
    X = np.empty((len(steps) + 2, model.n_nodes, 3), stepper.dtype)
    V = np.empty_like(X)
    X[rows[0]], V[rows[0]] = state.x, state.v
    stepper.advance(0, rows, X, V)
    return Trajectory(steps, float(dt), X[: len(steps)], V[: len(steps)])
