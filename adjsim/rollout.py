"""`rollout`: advance a model by many steps and return the states at chosen frames."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from adjsim import checks
from adjsim.backend import Device, to_host
from adjsim.model import Model, State, Trajectory
from adjsim.stepper import make_stepper


CHUNK = 1 << 16  # steps a call of the compiled loop is told of: its rows take 8 bytes a step


def check_frames(frames: Sequence[int] | npt.ArrayLike | None, n_steps: int) -> np.ndarray:
    """Return the steps of the frames, (n_frames,) int64; None is the last state only."""
    steps = np.array([n_steps]) if frames is None else np.asarray(frames)
    if steps.ndim != 1 or steps.size == 0 or steps.dtype.kind not in "iu":
        raise ValueError(
            f"`frames` must be a list of step numbers, got {frames!r}. For every k-th state: "
            f"range(0, n_steps + 1, k)."
        )
    steps = steps.astype(np.int64)  # differences of unsigned numbers wrap around
    if (np.diff(steps) <= 0).any() or steps[0] < 0 or steps[-1] > n_steps:
        raise ValueError(
            f"`frames` must increase from 0 or more to at most n_steps = {n_steps}, got "
            f"{steps.tolist() if steps.size < 12 else f'{steps[:5].tolist()}...'}."
        )
    steps.setflags(write=False)
    return steps


def check_rollout(model: Model, state: State, dt: float, n_steps: int) -> int:
    """Complain of what does not fit together; return `n_steps` as a Python integer."""
    checks.positive("dt", checks.array("dt", dt, ()))
    if not isinstance(n_steps, int | np.integer) or n_steps < 1:
        raise ValueError(f"`n_steps` must be an integer of at least 1, got {n_steps!r}.")
    if state.x.shape != (model.n_nodes, 3):
        raise ValueError(
            f"`state.x` must have one row per node of the model: expected "
            f"({model.n_nodes}, 3), got {state.x.shape}."
        )
    return int(n_steps)


def frame_rows(steps: np.ndarray, stop: int, start: int = 0) -> np.ndarray:
    """Return the row of each state start..stop: frames have their own, others take turns.

    Rows 0 to n_frames - 1 are the frames; the two after them are scratch.
    """
    rows = len(steps) + np.arange(start, stop + 1, dtype=np.int64) % 2
    first, last = np.searchsorted(steps, [start, stop + 1])
    rows[steps[first:last] - start] = np.arange(first, last)
    return rows


def chunks(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cut steps start..stop - 1 into parts whose rows take no memory to speak of."""
    for k in range(start, stop, CHUNK):
        yield k, min(k + CHUNK, stop)


def rollout(
    model: Model,
    state: State,
    dt: float,
    n_steps: int,
    *,
    frames: Sequence[int] | npt.ArrayLike | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> Trajectory:
    r"""Advance `state` by `n_steps` steps of semi-implicit Euler.

        v' = v + dt (w f(x, v) + [w > 0] g),   x' = x + dt v',   w = 1/m, 0 where pinned

    Parameters
    ----------
    model : Model
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
        None: one for small models, all for large ones. The bits are the same.
    device : Device or str
        "cpu", the reference, or "cuda".

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
    Adjoint: `adjoint.record`. Tangent: `adjoint.rollout_jvp`. Source: gradSim eq. 4.
    """
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    kind = checks.float_dtype(dtype)
    stepper = make_stepper(model, float(dt), n_steps, kind, threads=threads, device=device)
    X = stepper.xp.empty((len(steps) + 2, model.n_nodes, 3), kind)
    V = stepper.xp.empty_like(X)
    row = frame_rows(steps, 0)[0]
    X[row], V[row] = stepper.xp.asarray(state.x), stepper.xp.asarray(state.v)
    for start, stop in chunks(0, n_steps):
        stepper.advance(start, frame_rows(steps, stop, start), X, V)
    return Trajectory(steps, float(dt), *(to_host(part[: len(steps)]) for part in (X, V)))
