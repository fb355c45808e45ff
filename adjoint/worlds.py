"""The twin of `adjsim/worlds.py`: lists, with one entry per world, of what a model has one of."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.engine.sweep import ModelTwin
from adjoint.system import check_gradient, check_paths, check_tangents, known_paths
from adjsim import checks
from adjsim.model import State, Trajectory
from adjsim.system import Fields
from adjsim.worlds import Batch


class BatchTwin(ModelTwin):
    """The twin of `Batch`."""

    def check_wrt(
        self, system: Batch, state: Sequence[State], wrt: Sequence[str] | None
    ) -> list[str]:
        """Return the wanted paths, each of which some world has."""
        worlds = zip(system.models, state, strict=True)
        paths = dict.fromkeys(path for world in worlds for path in known_paths(*world))
        return check_paths(wrt, paths)

    def check_tangents(
        self, system: Batch, state: Sequence[State], tangents: Any
    ) -> list[dict[str, np.ndarray]]:
        """Return the checked tangents of each world; None: zero."""
        tangents = checks.one_each("tangents", tangents, system.n_worlds, "world")
        worlds = zip(system.models, state, tangents, strict=True)
        return [
            check_tangents(model, start, {} if tan is None else tan) for model, start, tan in worlds
        ]

    def check_gradient(self, gradient: Any, *, marks: bool) -> Any:
        """Return the gradients of worlds; every entry is finite, or all those of a world NaN."""
        return [
            check_gradient(world_gradient, f" of world {world}", marks=marks)
            for world, world_gradient in enumerate(gradient)
        ]

    def cotangents(self, trajectory: Any, given: Sequence[Any], dtype: np.dtype) -> Fields:
        """Return the cotangents of all worlds side by side; what is None is zero."""
        n = len(trajectory)
        parts = [
            [None] * n if by_world is None else checks.one_each(name, by_world, n, "world")
            for name, by_world in zip(("adj_x", "adj_v", "bodies"), given, strict=False)
        ]
        if all(cotangent is None for by_world in parts for cotangent in by_world):
            raise ValueError("`adj_x`, `adj_v` or `bodies` must be given for some world, got None.")
        worlds = [
            self._of_world(world, frames, [by_world[world] for by_world in parts], dtype)
            for world, frames in enumerate(trajectory)
        ]
        return tuple(np.concatenate(parts, axis=1) for parts in zip(*worlds, strict=True))

    def _of_world(
        self, world: int, trajectory: Trajectory, cotangents: Sequence[Any], dtype: np.dtype
    ) -> Fields:
        """Return the cotangents of one world."""
        adj_x, adj_v, *bodies = cotangents
        adj_x = np.zeros(trajectory.x.shape) if adj_x is None else adj_x
        adj_bodies = bodies[0] if bodies and bodies[0] is not None else {}
        try:
            return super().cotangents(trajectory, (adj_x, adj_v, adj_bodies), dtype)
        except (TypeError, ValueError) as error:
            raise type(error)(f"World {world}: {error}") from None
