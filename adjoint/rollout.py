"""`record` and `rollout_jvp`: the reverse sweep and the tangent of `adjsim.rollout`.

`Record.hvp` is the second derivative, by differences of the reverse sweep (`adjoint/hessian.py`).

The forward run keeps the states that a checkpoint schedule asks for; `Record.vjp` walks the
schedule's actions backwards through the steps, and `adjoint/engine/checkpoint_states.py` moves the
states. The schedule knows no physics, and the code that moves states no schedule. Every schedule
gives the same bits: a step's adjoint needs the state at its start and nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from adjoint.checkpoint_actions import Reverse
from adjoint.engine.checkpoint_states import (
    CheckpointStates,
    choose_schedule,
    is_forward_part,
    states_of,
)
from adjoint.hessian import differentiate, first_step
from adjoint.inspector import (
    LEAST_MEMORY,
    PAUSES,
    SLOW,
    Inspection,
    PausingSweep,
    check_inspected,
    choose_pauses,
    make_inspection,
)
from adjoint.schedules import Schedule, ScheduleCost
from adjoint.system import Sweep, SystemTwin, require_one_world
from adjoint.system_registry import system_twin_of
from adjoint.vectors import Layout
from adjsim import checks
from adjsim.jit.devices import Device
from adjsim.rollout import (
    StepSize,
    WatchedStep,
    check_frames,
    check_rollout,
    chunks,
    frame_rows,
    ready_stepper,
    step_size,
    warn_of_long_steps,
)
from adjsim.steps.semi_implicit import SEMI_IMPLICIT
from adjsim.system import Fields, OnDivergence, Stepper, System, TimeStep


S = TypeVar("S")
T = TypeVar("T")
Gradient: TypeAlias = dict[str, NDArray[np.float64]]  # by path


@dataclass(frozen=True, eq=False, repr=False)
class Record(Generic[S, T]):
    """A rollout that can be reversed, made by `record`.

    Attributes
    ----------
    trajectory : Trajectory, or what the system has for one
        The states at the frames, the same to the bit as `adjsim.rollout` gives.
    cost : ScheduleCost
        What the schedule takes, as predicted before running.
    """

    trajectory: T
    cost: ScheduleCost
    model: System[S, T]
    state: S
    n_steps: int
    _schedule: Schedule
    _stepper: Stepper[S, T]
    _steps: np.ndarray
    _states: CheckpointStates
    _settings: Mapping[str, Any]  # that `record` was given, but for the model, its state and frames

    def __repr__(self) -> str:
        """Return what was run and what is kept, in a line."""
        kept = self.cost.stored_states + self.cost.buffered_states
        return (
            f"Record({type(self.model).__name__}, n_steps={self.n_steps}, "
            f"frames={len(self._steps)}, states kept: {kept})"
        )

    @overload
    def vjp(
        self: "Record[Any, list[Any]]",
        *adjoints: Any,
        bodies: Any = None,
        wrt: Sequence[str] | None = None,
        **named: Any,
    ) -> list[Gradient]: ...

    @overload
    def vjp(
        self, *adjoints: Any, bodies: Any = None, wrt: Sequence[str] | None = None, **named: Any
    ) -> Gradient: ...

    def vjp(
        self, *adjoints: Any, bodies: Any = None, wrt: Sequence[str] | None = None, **named: Any
    ) -> Any:
        """Pull cotangents of the frames back to every parameter.

        It may be called again with other cotangents; unless all states are stored, that
        runs the forward sweep once more. Calls from several threads take turns.

        Parameters
        ----------
        *adjoints, **named : array
            Cotangents of the trajectory's two fields, in their order or by name, each in the
            shape of its field: `adj_x` and `adj_v` of a model, (n_frames, n_nodes, 3),
            `adj_angle` and `adj_rate` of a pendulum, `adj_velocity` and `adj_density` of smoke.
            None, or left out: zero. They may be CuPy's if the trajectory is.
        bodies : mapping, optional
            Cotangents of the trajectory's sets of bodies, by name: a BodyTrajectory of them,
            as `adjoint.rigid.pose.vertices_vjp` returns it, or a mapping with some of
            "position", "orientation", "velocity", "angular_velocity"; what is missing is 0.
            For a batch of worlds all cotangents are lists, with None for a world without.
        wrt : sequence of str, optional
            Paths whose gradient is wanted, e.g. ("beam.mu", "state.v"). None: all. Time is
            saved without masses or densities, for which the forces are computed again, and
            without rest positions.

        Returns
        -------
        dict
            Gradient by path, each in the shape of its parameter; of a batch of worlds, a list.
            Where a divergence is marked, all NaN for a world that left the finite numbers, or
            whose gradient did; the cotangents of such a world count for nothing.

        Raises
        ------
        ValueError
            If a cotangent is unknown, has the wrong shape or is not finite, or a path is unknown.
        RolloutError
            If the gradient leaves the finite numbers, unless that is marked.

        Examples
        --------
        >>> from adjoint import record
        >>> from adjsim import Model, State
        >>> run = record(Model(mass=[2.0]), State([[0.0, 6.0, 0.0]]), dt=0.1, n_steps=10)
        >>> gradient = run.vjp([[[0.0, 1.0, 0.0]]], wrt=["state.v", "gravity"])  # of its height
        >>> print(gradient["state.v"], gradient["gravity"])
        [[0. 1. 0.]] [0.   0.55 0.  ]
        """
        twin = self._twin
        wanted = twin.check_wrt(self.model, self.state, wrt)
        frames = self._cotangents(adjoints, bodies, named)
        sweep = twin.sweep(self._stepper, self.state, self._steps, frames, wanted)
        return self._reverse(sweep)

    def inspect(
        self,
        *adjoints: Any,
        bodies: Any = None,
        wrt: Sequence[str] | None = None,
        most_pauses: int = PAUSES,
        thorough: bool = False,
        **named: Any,
    ) -> Inspection:
        """Pull cotangents back and look at the adjoint on its way: what makes it what it is.

        Parameters
        ----------
        *adjoints, bodies, wrt, **named
            As in `vjp`.
        most_pauses : int
            At how many steps the sweep pauses at most, 2 or more; a shorter rollout is looked at
            in every step. What is kept of them takes no more memory than the states of the
            schedule, or 16 MB: where it would, there are fewer pauses, and `contributions` leaves
            out the parameters that are too large.
        thorough : bool
            Whether to run a tangent along every wanted parameter too, for the shares of frames.

        Returns
        -------
        Inspection

        Raises
        ------
        TypeError
            If the record is of a batch of worlds.
        ValueError, RolloutError
            As `vjp`, or if the only frame is the first state.

        Examples
        --------
        >>> from adjoint import record
        >>> from adjsim import Model, State
        >>> run = record(Model(mass=[2.0]), State([[0.0, 6.0, 0.0]]), dt=0.1, n_steps=10)
        >>> inspection = run.inspect([[[0.0, 1.0, 0.0]]])  # of its height at the end
        >>> print(inspection.gradient["gravity"])
        [0.   0.55 0.  ]
        """
        check_inspected(self.model, self._steps, most_pauses)
        twin, stepper = self._twin, self._stepper
        wanted = twin.check_wrt(self.model, self.state, wrt)
        fields = self._cotangents(adjoints, bodies, named)
        start = self.model.state_parameters(self.state)
        all_paths = [*dict.fromkeys([*wanted, *start])]
        inner = twin.sweep(stepper, self.state, self._steps, fields, all_paths)
        room = max(self.cost.bytes, LEAST_MEMORY)
        fitting = max(room // (2 * stepper.bytes_per_state()), 2)
        pauses = choose_pauses(self._steps, min(most_pauses, fitting))
        values = self.model.parameters()
        quick = wanted if wrt is not None else [path for path in wanted if not path.endswith(SLOW)]
        kept = []
        for path in (path for path in quick if path in values):
            taken = values[path].nbytes * len(pauses)
            if taken <= room:
                kept.append(path)
                room -= taken
        cotangents = (self._steps, twin.parts(self.model, fields))
        sweep = PausingSweep(inner, twin, self.model, cotangents, pauses, stepper, kept)
        gradient = self._reverse(sweep)
        return make_inspection(sweep, gradient, stepper, wanted, self.jvp if thorough else None)

    @property
    def _twin(self) -> SystemTwin[Any, Any]:
        return system_twin_of(self.model, self._stepper)

    def _cotangents(self, adjoints: Sequence[Any], bodies: Any, named: Mapping[str, Any]) -> Fields:
        twin = self._twin
        given = [*twin.in_order(adjoints, named), *([] if bodies is None else [bodies])]
        return twin.cotangents(self.trajectory, given, self._stepper.dtype)

    def _reverse(self, sweep: Sweep) -> Any:
        with self._states.lock:
            if not self._states.is_fresh:
                self._states.run_forward(self._schedule, self.state, self.n_steps)
            self._run_backward(sweep)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told
            gradient = sweep.finish()
        marks = self._stepper.on_divergence is OnDivergence.MARK
        return self._twin.check_gradient(gradient, marks=marks)

    def jvp(self, tangents: Any) -> T:
        """Push tangents of the parameters forward to the frames.

        The states are run once more beside their tangents.

        Parameters
        ----------
        tangents : mapping
            Direction by path, as `rollout_jvp` takes it.

        Returns
        -------
        Trajectory, or what the system has for one
            The derivatives of the states at the frames along the direction.

        Raises
        ------
        ValueError
            If a path is unknown or a tangent has the wrong shape.

        Examples
        --------
        >>> from adjoint import record
        >>> from adjsim import Model, State
        >>> run = record(Model(mass=[2.0]), State([[0.0, 6.0, 0.0]]), dt=0.1, n_steps=10)
        >>> print(run.jvp({"gravity": (0.0, 1.0, 0.0)}).x)
        [[[0.   0.55 0.  ]]]
        """
        with self._states.lock:
            return _push(
                self._twin, self._stepper, self.model, self.state, self._steps,
                tangents,
            )[1]  # fmt: skip

    def hvp(
        self,
        direction: Mapping[str, Any],
        cotangents: Callable[[T], Any],
        *,
        wrt: Sequence[str] | None = None,
    ) -> dict[str, np.ndarray]:
        r"""Return the product of the Hessian of a loss of the frames with a direction.

            H d = d/dh gradient(theta + h d) at h = 0,   gradient = vjp(cotangents(trajectory))

        It is found by differences of exact gradients, extrapolated until they agree
        (`adjoint/hessian.py`): mostly 8 to 14 gradients in float64, each with its rollout. It is
        then known to ten digits or more, and symmetric to these; a warning says where less than
        six are known, as next to a touch.

        Parameters
        ----------
        direction : mapping
            Direction by path, as `jvp` takes it. Parameters that are left out are held.
        cotangents : callable
            The gradient of the loss in the frames, at any trajectory: it takes one, and returns
            what `vjp` takes. That is one array, the cotangent of the first field; or a mapping by
            the names of the arguments, such as {"adj_x": ..., "adj_v": ..., "bodies": ...}. A loss
            of pictures draws the frames here and returns what `ImageRecord.vjp` pulls back to them.
        wrt : sequence of str, optional
            Paths of the product to return. None: the paths of the direction.

        Returns
        -------
        dict
            The product by path, each in the shape of its parameter.

        Raises
        ------
        TypeError
            If the record is of a batch of worlds.
        ValueError
            If a path is unknown, the direction has the wrong shape, is not finite or leads out of
            the range of a parameter, or cotangents do not fit.
        RolloutError
            If the rollouts beside this one leave the finite numbers.

        Examples
        --------
        >>> from adjoint import record
        >>> from adjsim import Model, State
        >>> run = record(Model(mass=[2.0]), State([[0.0, 6.0, 0.0]]), dt=0.1, n_steps=10)
        >>> upwards = {"state.v": [[0.0, 1.0, 0.0]]}
        >>> product = run.hvp(upwards, lambda trajectory: trajectory.x)  # of |x|^2 / 2
        >>> print(product["state.v"].round(6))
        [[0. 1. 0.]]
        """
        require_one_world("hvp", self.model)
        d = self._twin.check_tangents(self.model, self.state, direction)
        if not d:
            raise ValueError("`direction` must name at least one parameter, got none.")
        paths = list(d) if wrt is None else checks.paths("wrt", wrt)
        values = {**self.model.parameters(), **self.model.state_parameters(self.state)}
        start = {path: values[path] for path in d}
        moved = Layout.of("direction", d)
        gradient = _pulled(self, cotangents, paths)  # refuses what does not fit
        out = Layout.of("wrt", gradient)
        scale = out.block_scale(out.flat("wrt", {path: values[path] for path in paths}))

        def along(h: float) -> np.ndarray:
            try:
                beside = self.model.with_values(
                    self.state, {path: value + h * d[path] for path, value in start.items()}
                )
            except ValueError as error:
                raise OutOfRangeError(
                    "`direction` must lead to values that are in range on both sides, got: "
                    f"{error} Leave it out of the direction, or record a point off its bound."
                ) from error
            run = record(*beside, WatchedStep(self._stepper.dt), self.n_steps, frames=self._steps,
                         **self._settings)  # fmt: skip
            return out.flat("wrt", _pulled(run, cotangents, paths))

        flat = moved.flat("direction", d)
        first = first_step(flat, moved.block_scale(moved.flat("direction", start)))
        eps = float(np.finfo(self._stepper.dtype).eps)
        return out.split(differentiate(along, first, scale, eps))

    def _run_backward(self, sweep: Sweep) -> None:
        states = self._states
        actions = self._schedule.actions(self.n_steps)
        for action in islice(dropwhile(is_forward_part, actions), 1, None):
            match action:
                case Reverse(start, stop, kept):
                    if not kept:
                        states.refill(start, stop)
                        states.is_fresh = False
                    states.undo(sweep, start, stop)
                case _:
                    states.is_fresh = False
                    states.do(action)


class OutOfRangeError(ValueError, ArithmeticError):
    """A step along a direction left the range of a parameter; a shorter one may not."""


def _pulled(
    run: Record[S, T], cotangents: Callable[[T], Any], wrt: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the gradient of a loss of the frames, whose cotangents are a function of these."""
    adj = cotangents(run.trajectory)
    return run.vjp(**adj, wrt=wrt) if isinstance(adj, Mapping) else run.vjp(adj, wrt=wrt)


def record(
    model: System[S, T],
    state: S,
    dt: StepSize,
    n_steps: int,
    *,
    step: TimeStep = SEMI_IMPLICIT,
    frames: Sequence[int] | np.ndarray | None = None,
    checkpoint: Schedule | str | int | None = None,
    dtype: Any = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
    on_divergence: OnDivergence | str = OnDivergence.RAISE,
    on_device: bool = False,
) -> Record[S, T]:
    """Run `adjsim.rollout` and keep what its reverse sweep needs.

    Parameters
    ----------
    model, state, dt, n_steps, step, frames, dtype, threads, device, on_divergence, on_device
        As `adjsim.rollout` takes them.
    checkpoint : Schedule, str or int, optional
        Which states to keep: None or "all" stores all, a size such as "500MB", or a number of
        bytes, is a memory budget, or give a schedule of `adjoint.schedules`. All give the same
        bits.

    Returns
    -------
    Record
        The trajectory, the predicted cost, `vjp`, `jvp` and `hvp`.

    Raises
    ------
    ValueError
        As `adjsim.rollout`, or if `checkpoint` cannot be met.
    RolloutError
        If a node leaves the finite numbers, unless that is to be marked.
    MemoryError
        If a GPU has no room, before anything runs; it names how many bytes are needed.

    Examples
    --------
    >>> from adjoint import record
    >>> from adjsim import Model, State
    >>> model, state = Model(mass=[2.0]), State([[0.0, 6.0, 0.0]])  # one node, 6 m high
    >>> run = record(model, state, dt=0.1, n_steps=10)
    >>> gradient = run.vjp([[[0.0, 1.0, 0.0]]])  # of its height at the end
    >>> print(gradient["state.v"], gradient["gravity"])
    [[0. 1. 0.]] [0.   0.55 0.  ]
    """
    dt = step_size(model, dt, step)
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = ready_stepper(model, dt, n_steps, dtype, threads, device, on_divergence, step)
    warn_of_long_steps(model, dt, n_steps, step)
    schedule, cost = choose_schedule(checkpoint, stepper)
    kept = cost.buffered_states + cost.stored_states
    stepper.require_room(
        2 * len(steps) + 2 + kept,
        'Keep fewer with `checkpoint`, as in checkpoint="500MB" or `--checkpoint 500MB`, pass '
        "fewer `frames`, or fewer worlds at once.",
    )
    states = states_of(stepper, steps, cost)
    states.run_forward(schedule, state, n_steps)
    trajectory = stepper.trajectory(steps, states.frames, on_device=on_device)
    settings = {"step": step, "checkpoint": schedule, "dtype": dtype, "threads": threads,
                "device": device, "on_device": on_device}  # fmt: skip
    return Record(
        trajectory, cost, model, state, n_steps, schedule, stepper, steps, states, settings
    )


def rollout_jvp(
    model: System[S, T],
    state: S,
    dt: StepSize,
    n_steps: int,
    tangents: Mapping[str, Any] | Sequence[Mapping[str, Any] | None],
    *,
    step: TimeStep = SEMI_IMPLICIT,
    frames: Sequence[int] | np.ndarray | None = None,
    dtype: Any = np.float64,
    threads: int | None = None,
    device: Device | str = Device.CPU,
    on_divergence: OnDivergence | str = OnDivergence.RAISE,
) -> tuple[T, T]:
    """Run the rollout and its tangent, the derivative along one direction.

    Parameters
    ----------
    model, state, dt, n_steps, step, frames, dtype, threads, device, on_divergence
        As `adjsim.rollout` takes them.
    tangents : mapping
        Direction by path, each in the shape of its parameter; missing ones are zero. For a
        batch of worlds, a list.

    Returns
    -------
    trajectory, tangent : Trajectory
        The states at the frames and their derivatives along the direction.

    Raises
    ------
    ValueError
        As `adjsim.rollout`, or if a path is unknown or a tangent has the wrong shape.
    RolloutError
        If a node leaves the finite numbers, unless that is to be marked.

    Examples
    --------
    >>> from adjoint import rollout_jvp
    >>> from adjsim import Model, State
    >>> model, state = Model(mass=[2.0]), State([[0.0, 6.0, 0.0]])  # one node, 6 m high
    >>> end, tangent = rollout_jvp(model, state, 0.1, 10, {"gravity": (0.0, 1.0, 0.0)})
    >>> print(end.x.round(4), tangent.x)
    [[[0.   0.61 0.  ]]] [[[0.   0.55 0.  ]]]
    """
    dt = step_size(model, dt, step)
    n_steps = check_rollout(model, state, dt, n_steps)
    steps = check_frames(frames, n_steps)
    stepper = ready_stepper(model, dt, n_steps, dtype, threads, device, on_divergence, step)
    return _push(system_twin_of(model, stepper), stepper, model, state, steps, tangents)


def _push(
    twin: SystemTwin[Any, Any],
    stepper: Stepper[Any, Any],
    model: Any,
    state: Any,
    steps: np.ndarray,
    tangents: Any,
) -> tuple[Any, Any]:
    """Return the states at the frames and their derivatives along a direction."""
    tangent = twin.tangent(stepper, state, twin.check_tangents(model, state, tangents))
    fields, tan_fields = (stepper.allocate(len(steps) + 2) for _ in range(2))
    row = int(frame_rows(steps, 0)[0])
    stepper.load(state, fields, row)
    tangent.load(tan_fields, row)
    for start, stop in chunks(stepper, 0, stepper.n_steps):
        tangent.advance(start, frame_rows(steps, stop, start), fields, tan_fields)
    return stepper.trajectory(steps, fields), stepper.trajectory(steps, tan_fields)
