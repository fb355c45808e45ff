"""What the reverse sweep needs to know of a force: the twins of `adjsim/forces/element.py`.

    vjp(x, v, consts, params, series, adj_f) -> adj_x, adj_v, adj_params, adj_series

It is a pure element function; `v` and `adj_v` are () for a kind that has no use for velocities.
The rest shape has an adjoint of its own, run only where a derivative in the rest positions is asked
for, so that it costs nothing elsewhere:

    vjp_consts(x, v, consts, params, series, adj_f) -> adj_consts

The tangents, `jvp` and `jvp_consts`, belong to the kind: they stand beside its force.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from adjoint.series import series_rows_vjp
from adjoint.values import unbroadcast
from adjsim.forces.element import Force
from adjsim.tiles.element_kind import ElementKind


F = TypeVar("F", bound=Force)


@dataclass(frozen=True)
class TwinKind:
    """The adjoint of one kind of element; None where no rest shape is read."""

    kind: ElementKind
    vjp: Callable
    vjp_consts: Callable | None = None


class ForceTwin(Generic[F]):
    """The adjoint of one class of forces: its kernels and the twin of its packing.

    It is made with the twin of each kind of element, and is complete for a force whose parameters
    are all in `PACKED` and `SERIES`.
    """

    def __init__(self, *kinds: TwinKind) -> None:
        self._kinds = kinds

    def twin_kind(self, force: F) -> TwinKind:
        """Return the kernels that undo `force.kind`."""
        if not self._kinds:
            raise NotImplementedError(f"{type(self).__name__} must be made with its TwinKind.")
        if len(self._kinds) == 1:
            return self._kinds[0]
        return next(twin for twin in self._kinds if twin.kind == force.kind)

    def pack_vjp(
        self, force: F, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull cotangents of packed rows back to the force's parameters, in their shapes.

        `adj_params` (n_elements, n_params), `adj_series` (n_rows, n_elements, n_series).
        """
        adj, at, present = {}, 0, force.parameters()
        for name, shape in force.PACKED.items():
            rows = adj_params[:, at : at + math.prod(shape)].reshape(-1, *shape)
            if name in present:
                adj[name] = unbroadcast(rows, present[name].shape)
            at += math.prod(shape)
        name, shape = force.SERIES
        if name in present:
            rows = adj_series if shape else adj_series[..., 0]
            adj[name] = series_rows_vjp(getattr(force, name), rows.shape[1:], rows)
        return adj

    @property
    def _without(self) -> str:
        """What a contributor reads whose force declares more than its twin undoes."""
        return (
            f"{type(self).__name__} must define rest_vjp if its force declares `rest_positions`, "
            "mass_vjp if it declares `density`."
        )

    def rest_vjp(self, force: F, adj_consts: np.ndarray, adj_params: np.ndarray) -> np.ndarray:
        """Pull row cotangents back to the rest positions, (n_nodes, 3).

        For a force with a parameter `rest_positions` only. `adj_consts` (n_elements, n_consts).
        """
        raise NotImplementedError(self._without)

    def mass_vjp(self, force: F, adj_mass: np.ndarray) -> dict[str, np.ndarray]:
        """Pull a cotangent of `force.node_mass()` back to `density` and `rest_positions`.

        For a force with a parameter `density` only.
        """
        raise NotImplementedError(self._without)

    def with_mass_vjp(self, force: F, adj_params: np.ndarray, n_nodes: int) -> np.ndarray | float:
        """Pull row cotangents back to the masses that the force was given, (n_nodes,)."""
        del force, adj_params, n_nodes
        return 0.0
