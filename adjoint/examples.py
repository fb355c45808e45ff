"""Scenes whose gradients are checked: examples that forces bring, systems of the coverage table."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim.rollout import rollout
from adjsim.steps.semi_implicit import SEMI_IMPLICIT
from adjsim.system import TimeStep


@dataclass(frozen=True)
class Example:
    """A model, or another system, at its initial state, and how it is run."""

    model: Any
    state: Any
    dt: float
    n_steps: int
    inert: tuple[str, ...] = ()
    step: TimeStep = SEMI_IMPLICIT

    @property
    def frames(self) -> list[int]:
        """Steps whose states are the outputs: one in the middle, and the last."""
        return sorted({max(1, self.n_steps // 2), self.n_steps})

    def parameters(self) -> dict[str, np.ndarray]:
        """Return every differentiable parameter by path."""
        return {**self.model.parameters(), **self.model.state_parameters(self.state)}

    def owners(self) -> dict[str, tuple[str, str]]:
        """Return for each path the class that declares it and its name there."""
        owners = {path: ("Model", path) for path in ("mass", "gravity")}
        owners |= {f"state.{name}": ("State", name) for name in ("x", "v")}
        parts = [self.model.forces, self.model.bodies, self.state.bodies]
        for name, owner in (item for named in parts for item in named.items()):
            owners |= {f"{name}.{key}": (type(owner).__name__, key) for key in owner.parameters()}
        return {path: owners[path] for path in self.parameters()}

    def at(self, values: Mapping[str, np.ndarray]) -> "Example":
        """Return the scene with other values of some parameters."""
        model, state = self.model.with_values(self.state, values)
        return dataclasses.replace(self, model=model, state=state)

    @property
    def touches(self) -> bool:
        """Whether there are contacts, whose kinks are the margins."""
        return any(force.touches for force in self.model.forces.values())

    def run(self, frames: Sequence[int]) -> Any:
        """Return the states at some steps."""
        return rollout(self.model, self.state, self.dt, self.n_steps, step=self.step, frames=frames)
