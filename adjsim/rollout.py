"""`rollout`: advance a model by many steps and return the states at chosen frames."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from adjsim import checks
from adjsim.backend import Device, to_host
from adjsim.model import Model, State, Trajectory
from adjsim.stepper import make_stepper


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
    check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    kind = checks.float_dtype(dtype)
    stepper = make_stepper(model, float(dt), n_steps, kind, threads=threads, device=device)
    rows = frame_rows(steps, n_steps)
    X = stepper.xp.empty((len(steps) + 2, model.n_nodes, 3), kind)
    V = stepper.xp.empty_like(X)
    X[rows[0]], V[rows[0]] = stepper.xp.asarray(state.x), stepper.xp.asarray(state.v)
    stepper.advance(0, rows, X, V)
    n = len(steps)
    return Trajectory(steps, float(dt), to_host(X[:n]), to_host(V[:n]))
