"""The twin of the packing that every obstacle shares, `adjsim/forces/contact.py`."""

from abc import abstractmethod
from typing import TypeVar

import numpy as np

from adjoint.element import ForceTwin, TwinKind, unbroadcast
from adjsim.element import broadcast
from adjsim.forces.contact import SCALARS, Contact


C = TypeVar("C", bound=Contact)


class ContactTwin(ForceTwin[C]):
    """The twin of a class of contacts of one kind. Packing: the scalars are broadcast."""

    def __init__(self, twin_kind: TwinKind) -> None:
        self._twin_kind = twin_kind

    def twin_kind(self, force: C) -> TwinKind:
        """Return the one kind of the class."""
        return self._twin_kind

    @abstractmethod
    def shape_vjp(self, force: C, adj_rows: np.ndarray) -> dict[str, np.ndarray]:
        """Pull the cotangents of `shape_rows`, (n_rows,), back to the shape's parameters."""

    @abstractmethod
    def shape_jvp(self, force: C, tangents: dict[str, np.ndarray]) -> np.ndarray:
        """Push tangents of the shape's parameters to `shape_rows`, (n_rows,)."""

    def pack_vjp(
        self, force: C, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the scalars and the shape."""
        adj = self.shape_vjp(force, adj_params[:, len(SCALARS) :].sum(axis=0))
        for k, name in enumerate(SCALARS):
            adj[name] = unbroadcast(adj_params[:, k], getattr(force, name).shape)
        return adj

    def pack_jvp(
        self, force: C, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of the parameters to rows."""
        count = len(force.nodes)
        scalars = [tangents.get(name, np.zeros(())) for name in SCALARS]
        rows = [broadcast(value, count) for value in (*scalars, *self.shape_jvp(force, tangents))]
        return np.stack(rows, axis=-1), np.zeros((1, count, 0))
