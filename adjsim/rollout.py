"""`rollout`: advance a system by many steps and return the states at chosen frames."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from adjsim import checks
from adjsim.jit.devices import Device
from adjsim.model import Model
from adjsim.steps.semi_implicit import SEMI_IMPLICIT
from adjsim.system import OnDivergence, RunSettings, Stepper, System, TimeStep


S = TypeVar("S")
T = TypeVar("T")
StepSize: TypeAlias = float | Literal["auto"]  # [s]
LEAST_DT = 1e-30  # above the least of float32 [s]
MOST_STEPS = 1 << 40
AUTO, ROOM = "auto", 0.5  # the step that is chosen, of the estimated stable one
LONG = 500  # steps from which on a rollout is worth the time to look at its step
CHUNK = 1 << 16  # steps a call of the compiled loop is told of: its rows take 8 bytes a step


def check_frames(frames: Sequence[int] | np.ndarray | None, n_steps: int) -> np.ndarray:
    """Return the steps of the frames, (n_frames,) int64; None is the last state only."""
    try:
        steps = np.array([n_steps]) if frames is None else np.asarray(frames)
    except ValueError:  # a ragged list
        steps = np.empty(0)
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


def step_size(model: System[S, T], dt: StepSize, step: TimeStep = SEMI_IMPLICIT) -> float:
    """Return `dt`, or half of the estimated stable step for "auto"."""
    checks.instance("step", step, TimeStep)
    if not isinstance(dt, str):
        return dt
    if dt != AUTO:
        raise ValueError(f"`dt` must be a number of seconds or {AUTO!r}, got {dt!r}.")
    if step.IS_STABLE:
        raise ValueError(
            f"`dt` must be a number of seconds where `step` is {type(step).__name__}(): every size "
            "is stable, and how exact it is depends on the motion. Try the time between frames."
        )
    stable = model.stable_dt() if isinstance(model, System) else np.inf
    if not np.isfinite(stable):
        raise ValueError(
            f"`dt` must be a number of seconds: a {type(model).__name__} without forces that are "
            "stiff or damped has no estimate of a stable step to take half of."
        )
    return ROOM * stable


class WatchedStep(float):
    """A step size [s] whose caller watches that it is stable, so that rollouts do not warn."""


def warn_of_long_steps(model: System[S, T], dt: float, n_steps: int, step: TimeStep) -> None:
    """Warn if nodes are above the estimated stable step; short rollouts are not looked at."""
    is_watched = step.IS_STABLE or isinstance(dt, WatchedStep)
    if n_steps < LONG or not isinstance(model, Model) or is_watched:
        return
    if dt > model.stable_dt_of_nodes():
        warnings.warn(
            f"`dt` = {dt:g} s is above the estimated stable step of the nodes: what moves may be "
            'the error, which grows. Take less than `model.stable_dt()`, or dt="auto".',
            stacklevel=3,
        )


def check_rollout(model: System[S, T], state: S, dt: float, n_steps: int) -> int:
    """Raise on what does not fit together; return `n_steps` as a Python integer."""
    checks.positive("dt", checks.array("dt", dt, ()))
    n_steps = checks.whole("n_steps", n_steps, 1)
    if not (LEAST_DT < dt < 1.0 / LEAST_DT and n_steps <= MOST_STEPS):
        raise ValueError(
            f"`dt` must be above {LEAST_DT:g} s and `n_steps` at most {MOST_STEPS}, got dt = "
            f"{float(dt):g} and n_steps = {n_steps:.3g}."
        )
    check_system(model, state)
    return n_steps


def check_system(model: Any, state: Any) -> None:
    """Raise a TypeError or ValueError unless this is a system with a state of it."""
    if not isinstance(model, System):
        raise TypeError(
            f"`model` must be something that rollouts can advance, such as a `Model`, got "
            f"{type(model).__name__}."
        )
    model.check_state(state)


def ready_stepper(
    model: System[S, T],
    dt: float,
    n_steps: int,
    dtype: Any,
    threads: int | None,
    device: Device | str,
    on_divergence: OnDivergence | str,
    step: TimeStep = SEMI_IMPLICIT,
) -> Stepper[Any, Any]:
    """Return the system ready to be advanced, as the checked arguments of `rollout` say."""
    if on_divergence not in list(OnDivergence):
        raise ValueError(f"`on_divergence` must be raise or mark, got {on_divergence!r}.")
    if on_divergence == OnDivergence.MARK and not model.CAN_MARK:
        raise ValueError(
            f"`on_divergence` must be raise for a {type(model).__name__}, got mark: only rollouts "
            "of a Model or of a Batch can be marked. Catch `RolloutError`."
        )
    run = RunSettings(float(dt), n_steps, checks.float_dtype(dtype), threads, device)
    stepper = step.stepper(model, run)
    stepper.on_divergence = OnDivergence(on_divergence)
    return stepper


def frame_rows(steps: np.ndarray, stop: int, start: int = 0) -> np.ndarray:
    """Return the row of each state start..stop: frames have their own, others take turns.

    Rows 0 to n_frames - 1 are the frames; the two after them are scratch.
    """
    rows = len(steps) + np.arange(start, stop + 1, dtype=np.int64) % 2
    first, last = np.searchsorted(steps, [start, stop + 1])
    rows[steps[first:last] - start] = np.arange(first, last)
    return rows


def chunks(stepper: Stepper[Any, Any], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Cut steps start..stop - 1 into parts whose rows take no memory to speak of."""
    most = min(stepper.most_steps, CHUNK)
    for k in range(start, stop, most):
        yield k, min(k + most, stop)


def rollout(
    model: System[S, T],
    state: S,
    dt: StepSize,
    n_steps: int,
    *,
    step: TimeStep = SEMI_IMPLICIT,
    frames: Sequence[int] | np.ndarray | None = None,
    dtype: Any = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
    on_divergence: OnDivergence | str = OnDivergence.RAISE,
    on_device: bool = False,
) -> T:
    r"""Advance `state` by `n_steps` steps; those of a `Model`, by default, semi-implicit Euler's.

        v' = v + dt (w f(x, v) + [w > 0] g),   x' = x + dt v',   w = 1/m, 0 where pinned

    Parameters
    ----------
    model, state : Model and State, or another System and its state
        At step 0: positions (n_nodes, 3) [m] and velocities (n_nodes, 3) [m/s] of a model.
    dt : float or "auto"
        Step size [s], positive; a model is stable below about `model.stable_dt()`, of which
        "auto" is half. A rollout of 500 steps or more whose nodes are above it warns.
    n_steps : int
        Number of steps, at least 1.
    step : TimeStep
        `SemiImplicitEuler()`, or for stiff models `ImplicitEuler()`, which is stable at
        any `dt` and solves a system in every step.
    frames : sequence of int, optional
        Steps whose states are returned, increasing, 0 to n_steps. None: the last one.
    dtype : dtype
        float64 or float32.
    threads : int, optional
        None: one for small models, all for large ones. The bits are the same. Threads of one
        model meet twice in every step: a small one, or a machine that is busy with other work,
        is slower with two.
    device : Device or str
        "cpu", the reference, or "cuda".
    on_divergence : OnDivergence or str
        "raise", or "mark", for models and batches: a trajectory that diverges says in which
        step and is NaN from there on, and the other worlds go on, their bits unchanged.
    on_device : bool
        On "cuda" leave the trajectory on the device: its arrays, but for those of rigid bodies,
        are CuPy's, which `adjoint.record_images` takes.

    Returns
    -------
    Trajectory, or what the system has for one
        The states at the frames: x and v, (n_frames, n_nodes, 3), of a model.

    Raises
    ------
    ValueError
        If an argument is out of range, or the state does not fit the model.
    RolloutError
        If a node leaves the finite numbers, or an implicit step does not converge, unless that is
        marked; it names the step.
    MemoryError
        If a GPU has no room, before anything runs; it names how many bytes are needed.

    Notes
    -----
    Adjoint: `adjoint.record`. Tangent: `adjoint.rollout_jvp`. Source: gradSim eq. 4.

    Examples
    --------
    >>> from adjsim import Model, State, rollout
    >>> model, state = Model(mass=[2.0]), State([[0.0, 6.0, 0.0]])  # one node, 6 m high
    >>> print(rollout(model, state, dt=0.1, n_steps=10).x.round(4))
    [[[0.   0.61 0.  ]]]
    """
    dt = step_size(model, dt, step)
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = ready_stepper(model, dt, n_steps, dtype, threads, device, on_divergence, step)
    warn_of_long_steps(model, dt, n_steps, step)
    stepper.require_room(2 * len(steps) + 2, "Pass fewer `frames`, or fewer worlds at once.")
    fields = stepper.allocate(len(steps) + 2)
    stepper.load(state, fields, int(frame_rows(steps, 0)[0]))
    for start, stop in chunks(stepper, 0, n_steps):
        stepper.advance(start, frame_rows(steps, stop, start), fields)
    return stepper.trajectory(steps, fields, on_device=on_device)
