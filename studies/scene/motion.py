"""What moves in a study: a system, its initial state, and the steps that are filmed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import numpy as np

from adjoint.engine.checkpoint_states import choose_schedule
from adjoint.equilibria import equilibria_jvp, equilibria_vjp
from adjoint.inspector import Inspection
from adjoint.rollout import Record, record, rollout_jvp
from adjoint.schedules import ALL
from adjsim import RolloutError
from adjsim.equilibria import Equilibria, equilibria
from adjsim.equilibrium import Cause, EquilibriumError
from adjsim.jit.device_arrays import to_host
from adjsim.model import Model, Trajectory
from adjsim.rollout import ready_stepper, rollout
from adjsim.steps.semi_implicit import SEMI_IMPLICIT
from adjsim.system import OnDivergence, System, TimeStep
from studies.runs.errors import NotFiniteError
from studies.runs.memory import Plan, state_bytes
from studies.scene.maps import Arrays


DT = "world.dt"  # what settings call the size of a step
SETTLING = "finding where the bodies rest at the start values"
# What to do in a scene where nothing rests.
WAYS_OUT = {
    Cause.LOOSE: "Nothing holds a part of the bodies: give them `held`, or check where it selects.",
    Cause.SLIDES: "Nothing but contact holds a part of the bodies, and friction does not act on "
    "what is at rest: give them `held`, so that they cannot slide.",
    Cause.FAR: "Make the bodies stiffer (`E`, `stiffness`) or lighter (`density`), hold more of "
    "them (`held`), or declare them nearer to where they rest (`position`, `rotation`, `mesh`).",
}


@dataclass(frozen=True, eq=False)
class AtRest:
    """What does not move, in place of a system: its parameters by path. Its state is empty."""

    points: Mapping[str, np.ndarray]

    def with_values(self, state: Any, values: Mapping[str, Any]) -> tuple["AtRest", Any]:
        """Return it with other values of some parameters, by path."""
        return AtRest({**self.points, **values}), state

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the parameters by path."""
        return dict(self.points)


@dataclass(frozen=True, eq=False)
class RestingRun:
    """A trajectory of what does not move: the steps of its frames, (n_frames,), and dt [s]."""

    steps: np.ndarray
    dt: float

    @property
    def times(self) -> np.ndarray:
        """Times of the frames, (n_frames,) [s]."""
        return self.steps * self.dt

    @property
    def trajectory(self) -> "RestingRun":
        """Itself: it is its own record, for nothing has to be kept."""
        return self

    def vjp(self, **_: Any) -> dict[str, np.ndarray]:
        """Return nothing: what is seen depends on the parameters directly."""
        return {}

    def jvp(self, _: Mapping[str, Any]) -> "RestingRun":
        """Return itself, in the place of its tangent."""
        return self


@dataclass(frozen=True, eq=False)
class Settled:
    """A model whose nodes are seen where they rest, in place of a system that moves."""

    model: Model

    def with_values(self, state: Any, values: Mapping[str, Any]) -> tuple["Settled", Any]:
        """Return it with other values of some parameters, by path."""
        model, state = self.model.with_values(state, values)
        return Settled(model), state

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the parameters by path."""
        return self.model.parameters()


@dataclass(frozen=True, eq=False)
class SettledRun:
    """Equilibria as the frames of a trajectory, alike without a path, and what pulls them back."""

    rest: Equilibria
    trajectory: Trajectory

    @classmethod
    def of(cls, motion: "Motion") -> "SettledRun":
        """Return where the nodes of a `Settled` system rest.

        Raise a NotFiniteError if no equilibrium is found, or bodies start in each other.
        """
        assert isinstance(motion.system, Settled)
        try:
            states = motion.frames.tolist()
            rest = equilibria(motion.system.model, motion.state, states, motion.n_steps)
        except EquilibriumError as error:
            raise NotFiniteError(f"{error.seen} {WAYS_OUT[error.cause]}") from error
        except ValueError as error:
            _pass_over_crossing(motion.system.model, error)
        return cls(rest, _at_rest(motion.frames, motion.dt, rest.x))

    def vjp(
        self, adj_x: Any = None, adj_v: Any = None, *, bodies: Any = None, wrt: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Pull the cotangents of the frames back; velocities are 0 whatever the parameters are."""
        x = self.trajectory.x
        adj = np.zeros_like(x) if adj_x is None else np.asarray(to_host(adj_x), float)
        return equilibria_vjp(self.rest, adj, wrt)

    def jvp(self, tangents: Mapping[str, Any]) -> Trajectory:
        """Return the tangent of the frames."""
        tan = equilibria_jvp(self.rest, tangents)
        return _at_rest(self.trajectory.steps, self.trajectory.dt, tan)


def _at_rest(steps: np.ndarray, dt: float, x: np.ndarray) -> Trajectory:
    """Return a trajectory of positions, or of their tangents, without velocities."""
    return Trajectory(steps, dt, x, np.zeros_like(x))


def model_of(system: Any) -> Model | None:
    """Return the model that moves or has settled, or None: of a pendulum, smoke, still things."""
    system = system.model if isinstance(system, Settled) else system
    return system if isinstance(system, Model) else None


@dataclass(frozen=True, eq=False)
class Motion:
    """A system and how it is run."""

    # What `adjsim.rollout` advances and where it begins, e.g. a `Model` and a `State`.
    system: System[Any, Any] | AtRest | Settled
    state: Any
    dt: float  # step [s]
    # Steps that are filmed, increasing, (n_frames,); the last one ends the rollout.
    frames: np.ndarray
    dtype: str = "float64"  # float64 or float32
    device: str = field(default="cpu", kw_only=True)  # cpu or cuda
    threads: int | None = field(default=None, kw_only=True)  # as `adjsim.rollout` takes it
    # What the states of a reverse sweep may take, such as "500MB", or "all".
    checkpoint: str = field(default=ALL, kw_only=True)
    step: TimeStep = field(default=SEMI_IMPLICIT, kw_only=True)

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return int(self.frames[-1])

    def with_values(self, values: Mapping[str, Any]) -> "Motion":
        """Return the motion with parameters by path replaced, e.g. "beam.mu", "state.v"."""
        system, state = self.system.with_values(self.state, values)
        return replace(self, system=system, state=state)

    def at(self, frames: np.ndarray) -> "Motion":
        """Return the motion filmed at other steps."""
        return replace(self, frames=np.asarray(frames))

    def run(self, *, on_device: bool = False) -> Any:
        """Run forward; `on_device` leaves what a `Model` does on the device."""
        if (still := self._without_rollout()) is not None:
            return still.trajectory
        return self._tried(rollout, on_device=on_device)

    def record(self, *, on_device: bool = False) -> Any:
        """Run forward and keep what the reverse sweep needs, within the budget: a `Record`."""
        if (still := self._without_rollout()) is not None:
            return still
        return self._tried(record, checkpoint=self.checkpoint, on_device=on_device)

    @property
    def state_bytes(self) -> int:
        """Size of a state as a sweep keeps it [bytes]."""
        return state_bytes(self.system, self.state, self.dtype, self.device)

    def plan(self) -> Plan:
        """Return the schedule by which `record` keeps the states of a rollout; nothing is run."""
        assert isinstance(self.system, System)
        stepper = ready_stepper(
            self.system, self.dt, self.n_steps, self.dtype, self.threads, self.device,
            OnDivergence.RAISE, self.step,
        )  # fmt: skip
        return Plan(self.checkpoint, self.n_steps, choose_schedule(self.checkpoint, stepper)[1])

    def jvp(self, tangents: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the trajectory and its derivative along tangents by path."""
        if (still := self._without_rollout()) is not None:
            return still.trajectory, still.jvp(tangents)
        return self._tried(rollout_jvp, tangents)

    def _without_rollout(self) -> RestingRun | SettledRun | None:
        """Return what is seen where nothing is rolled out."""
        if isinstance(self.system, AtRest):
            return RestingRun(self.frames, self.dt)
        return SettledRun.of(self) if isinstance(self.system, Settled) else None

    def _tried(self, sweep: Any, *more: Any, on_device: bool = False, **kept: Any) -> Any:
        if on_device and isinstance(self.system, Model):
            kept["on_device"] = True
        try:
            return sweep(
                self.system, self.state, self.dt, self.n_steps, *more,
                step=self.step, frames=self.frames, dtype=self.dtype, device=self.device,
                threads=self.threads, **kept,
            )  # fmt: skip
        except RolloutError as error:
            raise NotFiniteError(error.message(DT)) from error
        except ValueError as error:
            _pass_over_crossing(model_of(self.system), error)


def _pass_over_crossing(model: Model | None, error: ValueError) -> NoReturn:
    """Raise what a search passes over where values let surfaces cross, else the error itself."""
    if model is None or not any(force.changes for force in model.forces.values()):
        raise error
    raise NotFiniteError(str(error)) from error


def trajectory_fields(run: Any) -> dict[str, np.ndarray]:
    """Return a trajectory's fields by name, such as x, v and "block.position" of bodies."""
    arrays = {}
    for attribute in fields(run):
        if attribute.name == "bodies":
            for name, states in run.bodies.items():
                arrays |= {f"{name}.{key}": value for key, value in vars(states).items()}
        elif attribute.name not in ("steps", "dt", "diverged"):
            arrays[attribute.name] = getattr(run, attribute.name)
    return arrays


def pull_frames(
    recorded: Record[Any, Any], adj_frames: Mapping[str, np.ndarray], wrt: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Pull cotangents of a trajectory's fields, by name, back to parameters by path."""
    adj_fields, bodies = _cotangents(recorded.trajectory, adj_frames)
    with _told_by_key():
        return recorded.vjp(*adj_fields, bodies=bodies, wrt=wrt)


def inspect_frames(
    recorded: Record[Any, Any], adj_frames: Arrays, wrt: tuple[str, ...], **options: Any
) -> Inspection:
    """Return what `Record.inspect` finds for cotangents of a trajectory's fields, by name."""
    adj_fields, bodies = _cotangents(recorded.trajectory, adj_frames)
    with _told_by_key():
        return recorded.inspect(*adj_fields, bodies=bodies, wrt=wrt, **options)


def pull_worlds(
    recorded: Record[Any, Any], adj_frames: Sequence[Mapping[str, np.ndarray]], wrt: tuple[str, ...]
) -> list[dict[str, np.ndarray]]:
    """Pull those of every world of a batch back; the gradients are NaN where one diverged."""
    worlds = zip(recorded.trajectory, adj_frames, strict=True)
    adj_fields, bodies = zip(*(_cotangents(run, frames) for run, frames in worlds), strict=True)
    fields_of_all = [list(field) for field in zip(*adj_fields, strict=True)]
    with _told_by_key():
        return recorded.vjp(*fields_of_all, bodies=list(bodies), wrt=wrt)


@contextmanager
def _told_by_key() -> Iterator[None]:
    """Have a sweep that fails name the step by its key."""
    try:
        yield
    except RolloutError as error:
        raise RolloutError(error.message(DT)) from error


def _cotangents(
    run: Any, adj_frames: Mapping[str, np.ndarray]
) -> tuple[list[np.ndarray | None], dict[str, dict[str, np.ndarray]] | None]:
    """Return the cotangents of a trajectory's own fields, and of those of its bodies."""
    adj_fields: list[np.ndarray | None] = []
    bodies: dict[str, dict[str, np.ndarray]] = {}
    for name in trajectory_fields(run):
        owner, _, key = name.rpartition(".")
        if not owner:
            adj_fields.append(adj_frames.get(name))
        elif name in adj_frames:
            bodies.setdefault(owner, {})[key] = adj_frames[name]
    return adj_fields, bodies or None
