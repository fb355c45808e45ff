r"""A base for steps in Python, from the forces of a model at any state: of one's own, and implicit.

    a(x, v, theta_k) = w f(x, v, theta_k) + [w > 0] g        w = 1/m, 0 pins a node

A subclass of `FieldStepper` says where a step ends; here are rows, frames, pairs of surfaces and
what is done where a step fails. Its `FieldStep` is what `rollout` takes as `step`.

Adjoint: `adjoint/steps/field_step.py`. Tests: `tests/steps/test_own_step.py`.
"""

import itertools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from adjsim.engine.stepper import NEVER, ModelStepper
from adjsim.field import Field
from adjsim.jit.backend import thread_count
from adjsim.jit.devices import Device, check_device
from adjsim.model import Model
from adjsim.system import Fields, OnDivergence, RolloutError, RunSettings, TimeStep
from adjsim.tiles.loop_arrays import States
from adjsim.worlds import Batch


class FieldStep(TimeStep):
    """A step of one model, on the CPU and in float64.

    Attributes
    ----------
    STEPPER : type
        The subclass of `FieldStepper` that takes it.
    """

    STEPPER: ClassVar[type["FieldStepper"]]
    IS_STABLE: ClassVar[bool] = False
    IS_FOR_ALL: ClassVar[bool] = False

    def stepper(self, system: Any, run: RunSettings) -> "FieldStepper":
        """Make a model ready to be advanced; the number of threads does not matter."""
        here = f"where `step` is {type(self).__name__}()"
        if isinstance(system, Batch):
            raise ValueError(
                f"`model` must be one world {here}, got a Batch. Run its worlds one after the "
                "other, or leave `step` out."
            )
        if not isinstance(system, Model):
            raise TypeError(
                f"`model` must be a Model {here}, got {type(system).__name__}. Leave `step` out."
            )
        if system.n_bodies and not self.STEPPER.HAS_BODIES:
            raise ValueError(
                f"`model` must have no rigid bodies {here}, got {', '.join(system.bodies)}. Leave "
                "`step` out."
            )
        if not self.STEPPER.HAS_GRIPS:
            for name, force in system.forces.items():
                if force.leads:
                    raise ValueError(
                        f"`model` must have no grips {here}, which does not lead nodes, got "
                        f"`{name}`. Leave `step` out."
                    )
        if run.device == Device.CUDA:
            raise ValueError(f'`device` must be "cpu" {here}, got "cuda": it runs in Python.')
        check_device(run.device)
        if run.dtype != np.float64:
            raise ValueError(f"`dtype` must be float64 {here}, got {run.dtype.name}.")
        thread_count(run.threads, large=False)
        return self.STEPPER(system, self, run.dt, run.n_steps)


class FieldStepper(ModelStepper):
    """Runs the steps of a model, one after the other, in Python on its `Field`.

    Attributes
    ----------
    HAS_BODIES : bool
        Whether it moves rigid bodies too.
    HAS_GRIPS : bool
        Whether it puts the nodes of grips where these lead them (`Leads`).
    field : Field
        The forces at any state.
    is_free : array
        Which nodes are not pinned, (n_nodes,).
    """

    HAS_BODIES: ClassVar[bool] = False
    HAS_GRIPS: ClassVar[bool] = False
    device = Device.CPU
    xp = np
    step_seconds = 1e-2

    def __init__(self, model: Model, step: FieldStep, dt: float, n_steps: int) -> None:
        self.field = Field(model, n_steps=n_steps)
        packed = self.field.stepper.packed
        super().__init__(model, packed, np.dtype(np.float64), dt, n_steps)
        self.model, self.step = model, step
        self.is_free = ~model.pinned

    @abstractmethod
    def end(self, k: int, before: States) -> States:
        """Return x, v and p at the end of step k, in new arrays, from those before it.

        Raises
        ------
        RolloutError
            If there is no such state.
        """

    def acceleration(self, k: int, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return a of all nodes with the series of step k, (n_nodes, 3) [m/s2]: no bodies."""
        w = self.model.inverse_mass[:, None]
        f = self.field.forces_at(nodes_at(x, v), k)
        return w * f + self.is_free[:, None] * self.model.gravity

    def run(self, k0: int, rows: np.ndarray, fields: Fields) -> np.ndarray:
        """Run the steps."""
        return self.run_each(k0, rows, States(*fields), lambda _, __, ___: None)

    def run_each(
        self,
        k0: int,
        rows: np.ndarray,
        states: States,
        then: Callable[[int, int, int], None],
    ) -> np.ndarray:
        """Run the steps, and call `then` after each with its number and rows before and after."""
        for k, (before, after) in enumerate(itertools.pairwise(rows.tolist())):
            end = self._sound_end(k0 + k, state_in(states, before))
            for field, value in zip(states, end or (np.nan,) * 3, strict=True):
                field[rows[k + 1 :] if end is None else after] = value
            if end is None or not (np.isfinite(end.x).all() and np.isfinite(end.p).all()):
                return np.array([k])
            then(k0 + k, before, after)
        return np.array([len(rows) - 1])

    def _sound_end(self, k: int, before: States) -> States | None:
        """Return the state at the end of step k; None: there is none, and that is to be marked."""
        marks = self.on_divergence is OnDivergence.MARK
        if k == 0:
            if marks and self.field.crossing(before.x):
                return None
            self.field.check_start(before.x)
        try:
            end = self.end(k, before)
            if crossing := self.field.crossing(end.x, before.x):
                self.raise_crossing(crossing[0], 0, k + 1, crossing[1])
        except RolloutError:
            if marks:
                return None
            raise
        return end

    @property
    def has_diverged(self) -> bool:
        """Whether it is marked that a step failed."""
        return int(self.diverged[0]) != NEVER


def state_in(states: States, row: int) -> States:
    """Return the state in a row."""
    return States(*(field[row] for field in states))


def nodes_at(x: np.ndarray, v: np.ndarray) -> States:
    """Return a state without bodies as loops read it; (n_nodes, 3) each."""
    return States(np.ascontiguousarray(x), np.ascontiguousarray(v), np.zeros((0, 13)))
