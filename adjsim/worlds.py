"""Worlds: many models that do not touch, advanced and reversed at once.

    batch = stack([model_a, model_b, ...])
    trajectories = rollout(batch, [state_a, state_b, ...], dt, n_steps)

What a world does, and its gradient, is the same to the bit however many worlds run beside it,
and as if its model ran alone. Threads share out the worlds and each carries its own through
the whole rollout, so that thousands of small ones stay in its cache.

Adjoint: `adjoint/engine/sweep.py`. Tests: `tests/test_worlds.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.model import Model, State, Trajectory
from adjsim.system import System


@dataclass(frozen=True, eq=False)
class Batch(System[Sequence[State], list[Trajectory]]):
    """Models, each a world of its own; made by `stack`.

    Its states, trajectories, cotangents, tangents and gradients are lists with one entry per
    world. A path begins with the number of its world: "3.beam.mu".

    Attributes
    ----------
    models : tuple of Model
        The worlds.
    """

    CAN_MARK: ClassVar[bool] = True

    models: tuple[Model, ...]

    @property
    def n_worlds(self) -> int:
        """Number of worlds."""
        return len(self.models)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the parameters of all worlds, e.g. "3.beam.mu"."""
        return numbered([model.parameters() for model in self.models])

    def state_parameters(self, state: Sequence[State]) -> dict[str, np.ndarray]:
        """Return those of all initial states, e.g. "3.state.x"."""
        worlds = zip(self.models, state, strict=True)
        return numbered([model.state_parameters(world_state) for model, world_state in worlds])

    def with_values(
        self, state: Sequence[State], values: Mapping[str, Any]
    ) -> tuple["Batch", list[State]]:
        """Return batch and states with other values of some parameters, by path.

        Raises
        ------
        ValueError
            If a path is unknown, or a value is out of range.
        """
        values = checks.mapping("values", values, "{'3.beam.mu': 1e4}")
        self.check_state(state)
        by_world: list[dict[str, Any]] = [{} for _ in self.models]
        paths = [*self.parameters(), *self.state_parameters(state)]
        for path, value in values.items():
            world, _, name = checks.known_key("parameter", path, paths).partition(".")
            by_world[int(world)][name] = value
        models, states = list(self.models), list(state)
        for world, changed in enumerate(by_world):
            if changed:
                models[world], states[world] = models[world].with_values(states[world], changed)
        return stack(models), states

    def stable_dt(self) -> float:
        """Estimate the largest step [s] that is stable in all worlds, as `Model.stable_dt`."""
        return min(model.stable_dt() for model in self.models)

    def check_state(self, state: Sequence[State]) -> None:
        """Raise on states that do not fit, one for each world."""
        states = checks.one_each("state", state, self.n_worlds, "world")
        for world, (model, world_state) in enumerate(zip(self.models, states, strict=True)):
            try:
                model.check_state(world_state)
            except (TypeError, ValueError) as error:
                raise type(error)(f"World {world}: {error}") from None


def stack(models: Sequence[Model]) -> Batch:
    """Put models, equal or different, in one batch of worlds that do not touch.

    Parameters
    ----------
    models : sequence of Model
        Equal or different in everything: forces, bodies, meshes, values. Each has its own
        paths of parameters. Worlds of the same kinds of force in the same order run fastest.

    Returns
    -------
    Batch
        For `rollout`, `adjoint.record` and `adjoint.rollout_jvp`, with a list of states.

    Raises
    ------
    ValueError
        If there is no model.
    TypeError
        If one is no Model.

    Examples
    --------
    >>> from adjsim import Model, State, rollout, stack
    >>> worlds = stack([Model(mass=[2.0]), Model(mass=[2.0], gravity=(0.0, 0.0, 0.0))])
    >>> here, in_space = rollout(worlds, [State([[0.0, 6.0, 0.0]])] * 2, dt=0.1, n_steps=10)
    >>> print(here.x.round(4), in_space.x)
    [[[0.   0.61 0.  ]]] [[[0. 6. 0.]]]
    """
    worlds = tuple(models) if isinstance(models, Iterable) else (models,)
    if not worlds:
        raise ValueError("`models` must have at least one Model, got none.")
    for world, model in enumerate(worlds):
        if not isinstance(model, Model):
            raise TypeError(
                f"`models` must be Models, got {type(model).__name__} for world {world}. Other "
                "systems run one by one."
            )
    return Batch(worlds)


def numbered(of_worlds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what worlds have by path as one mapping, e.g. "3.beam.mu"."""
    return {
        f"{world}.{path}": value
        for world, values in enumerate(of_worlds)
        for path, value in values.items()
    }
