"""The twin of `adjsim/worlds.py`: lists, with one entry per world, of what a model has one of."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjoint.sweep import ModelTwin
from adjoint.system import check_gradient, check_tangents, check_wrt
from adjsim.model import State, Trajectory
from adjsim.system import Fields
from adjsim.worlds import Batch


class BatchTwin(ModelTwin):
    """The twin of `Batch`."""

    def check_wrt(
        self, system: Batch, state: Sequence[State], wrt: Sequence[str] | None
    ) -> list[str]:
        """Return the wanted paths, those of one world: all worlds have the same."""
        return check_wrt(system.models[0], state[0], wrt)

    def check_tangents(
        self, system: Batch, state: Sequence[State], tangents: Any
    ) -> list[dict[str, np.ndarray]]:
        """Return the checked tangents of each world; None: zero."""
        if isinstance(tangents, Mapping):
            raise TypeError(
                f"`tangents` must be a list of one mapping per world, {system.n_worlds}, got one "
                "mapping."
            )
        _check_count("tangents", tangents, system.n_worlds)
        worlds = zip(system.models, state, tangents, strict=True)
        return [check_tangents(model, own, tan or {}) for model, own, tan in worlds]

    def check_gradient(self, gradient: Any) -> Any:
        """Return the gradients of worlds whose every entry is finite."""
        return [check_gradient(own, f" of world {world}") for world, own in enumerate(gradient)]

    def cotangents(self, trajectory: Any, given: Sequence[Any], dtype: np.dtype) -> Fields:
        """Return the cotangents of all worlds side by side; what is None is zero."""
        if all(part is None or all(own is None for own in part) for part in given):
            raise ValueError("A cotangent of x or v must be given for some world, got None.")
        for name, part in zip(("adj_x", "adj_v", "bodies"), given, strict=False):
            if part is not None:
                _check_count(name, part, len(trajectory))
        worlds = [
            self._of_world(world, frames, given, dtype) for world, frames in enumerate(trajectory)
        ]
        return tuple(np.concatenate(parts, axis=1) for parts in zip(*worlds, strict=True))

    def _of_world(
        self, world: int, trajectory: Trajectory, given: Sequence[Any], dtype: np.dtype
    ) -> Fields:
        """Return the cotangents of one world."""
        adj_x, adj_v, bodies = (
            given[k][world] if k < len(given) and given[k] is not None else None for k in range(3)
        )
        adj_x = np.zeros(trajectory.x.shape) if adj_x is None else adj_x
        try:
            return super().cotangents(trajectory, (adj_x, adj_v, bodies or {}), dtype)
        except ValueError as error:
            raise ValueError(f"World {world}: {error}") from None


def _check_count(name: str, given: Any, n_worlds: int) -> None:
    """Complain of a list that has not one entry per world."""
    if len(given) != n_worlds:
        raise ValueError(f"`{name}` must have one entry per world, {n_worlds}, got {len(given)}.")
