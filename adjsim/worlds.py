"""Worlds: many models that do not touch, advanced and reversed at once.

    batch = stack([model_a, model_b, ...])
    trajectories = rollout(batch, [state_a, state_b, ...], dt, n_steps)

What a world does, and its gradient, is the same to the bit however many worlds run beside it,
and as if its model ran alone. Threads share out the worlds and each carries its own through
the whole rollout, so that thousands of small ones stay in its cache.

Adjoint: `adjoint/sweep.py`. Tests: `tests/test_worlds.py`.
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
    """Models of one layout of parameters, each a world of its own; made by `stack`.

    Its states, trajectories, cotangents, tangents and gradients are lists with one entry per
    world. Paths of its own are those of the worlds after their number: "3.beam.mu".

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
        return numbered([model.state_parameters(own) for model, own in worlds])

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
        own: list[dict[str, Any]] = [{} for _ in self.models]
        known = [*self.parameters(), *self.state_parameters(state)]
        for path, value in values.items():
            world, _, name = checks.known_key("parameter", path, known).partition(".")
            own[int(world)][name] = value
        models, states = list(self.models), list(state)
        for world, changed in enumerate(own):
            if changed:
                models[world], states[world] = models[world].with_values(states[world], changed)
        return stack(models), states

    def check_state(self, state: Sequence[State]) -> None:
        """Complain of states that do not fit, one for each world."""
        states = checks.one_each("state", state, self.n_worlds, "world")
        for world, (model, own) in enumerate(zip(self.models, states, strict=True)):
            try:
                model.check_state(own)
            except (TypeError, ValueError) as error:
                raise type(error)(f"World {world}: {error}") from None


def stack(models: Sequence[Model]) -> Batch:
    """Put models, equal or different, in one batch of worlds that do not touch.

    Parameters
    ----------
    models : sequence of Model
        With the same forces and sets of bodies, by name, class and order, and the same paths of
        parameters. Meshes and sizes, values, masses and series may differ from world to world.

    Returns
    -------
    Batch
        For `rollout`, `adjoint.record` and `adjoint.rollout_jvp`, with a list of states.

    Raises
    ------
    ValueError
        If there is no model, or the worlds share no layout of parameters.
    TypeError
        If one is no Model.
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
    first = _layout(worlds[0])
    for world, model in enumerate(worlds):
        if model is not worlds[0] and list((own := _layout(model)).items()) != list(first.items()):
            raise ValueError(
                f"`models` must share one layout of parameters, but world {world} has "
                f"{_difference(own, first)}. Worlds may differ in meshes and values; stack those "
                "with other forces in batches of their own."
            )
    return Batch(worlds)


def numbered(of_worlds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what worlds have by path as one mapping, e.g. "3.beam.mu"."""
    return {
        f"{world}.{path}": value
        for world, own in enumerate(of_worlds)
        for path, value in own.items()
    }


def _layout(model: Model) -> dict[str, Any]:
    """Return what worlds of one batch share: by name, kinds of force, bodies, parameters."""
    forces = {f"`{name}`, a {type(f).__name__}": f.kind for name, f in model.forces.items()}
    bodies = {f"`{name}`, a set of bodies": None for name in model.bodies}
    return forces | bodies | {f"the parameter {path!r}": None for path in model.parameters()}


def _difference(own: dict[str, Any], first: dict[str, Any]) -> str:
    """Return in words how a world's layout differs from the first's."""
    if more := next((part for part in own if part not in first), None):
        return f"{more}, which world 0 has not"
    if less := next((part for part in first if part not in own), None):
        return f"not {less}, which world 0 has"
    if other := next((part for part, kind in own.items() if kind != first[part]), None):
        return f"{other} of another kind than in world 0"
    return "them in another order than world 0"
