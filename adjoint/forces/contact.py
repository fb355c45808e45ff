"""The twin of the packing that every obstacle shares, `adjsim/forces/contact.py`."""

import math
from collections.abc import Callable

import numpy as np

from adjoint.forces.ball import ball_twin
from adjoint.forces.carried import carried_twin
from adjoint.forces.contact_law import make_contact_vjp
from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.tracks import ROW_ADJOINTS
from adjoint.series import series_rows_vjp
from adjoint.values import unbroadcast
from adjsim.forces.contact import SCALARS, Contact
from adjsim.series import series_rows


class ContactTwin(ForceTwin[Contact]):
    """The twin of a class of contacts, from the adjoint of its shape's gap function."""

    def __init__(self, contact: type[Contact], gap_vjp: Callable) -> None:
        super().__init__()
        gap = contact.GEOMETRY.gap
        self._shape = TwinKind(contact.KIND, make_contact_vjp(gap, gap_vjp, contact.KIND))
        self._ball = ball_twin(contact.BALL, gap, gap_vjp)

    def twin_kind(self, force: Contact) -> TwinKind:
        """Return the twin of contact of nodes or balls, in the world or with a body's shape."""
        twin = self._ball if force.balls else self._shape
        return twin if force.fixed_to is None else carried_twin(twin)

    def pack_vjp(
        self, force: Contact, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the scalars, sizes and tracks."""
        adj = {
            name: unbroadcast(adj_params[:, SCALARS.index(name)], getattr(force, name).shape)
            for name in force.scalars
        }
        sizes, at = adj_params.sum(axis=0), len(SCALARS)  # one size serves every contact
        for name, shape in force.SIZES:
            adj[name] = sizes[at : at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
        adj_rows, at = adj_series.sum(axis=1), 0  # as does one pose
        for track in force.TRACKS:
            value = getattr(force, track.name)
            values = series_rows(value, track.shape, len(adj_rows))
            width = track.rows(values, force.axes).shape[1]
            block = adj_rows[:, at : at + width]
            if len(values) == 1:  # a constant beside something that varies
                block = block.sum(axis=0, keepdims=True)
            adj_values = ROW_ADJOINTS[track.rows](values, block, force.axes)
            adj[track.name] = series_rows_vjp(value, track.shape, adj_values)
            at += width
        return adj
