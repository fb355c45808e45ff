"""The twin of the packing that every obstacle shares, `adjsim/forces/contact.py`."""

import math

import numpy as np

from adjoint.forces.element import ForceTwin, unbroadcast
from adjoint.forces.tracks import ROW_TWINS
from adjoint.series import series_rows_jvp, series_rows_vjp
from adjsim.forces.contact import SCALARS, Contact
from adjsim.forces.tracks import stack_rows
from adjsim.series import series_rows
from adjsim.values import broadcast


class ContactTwin(ForceTwin[Contact]):
    """The twin of a class of contacts."""

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
            adj_values = ROW_TWINS[track.rows].vjp(values, block, force.axes)
            adj[track.name] = series_rows_vjp(value, track.shape, adj_values)
            at += width
        return adj

    def pack_jvp(
        self, force: Contact, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of the parameters to rows."""
        count = len(force.nodes)
        params = [tangents.get(name, np.zeros(())) for name in SCALARS]
        for name, shape in force.SIZES:
            params += list(tangents.get(name, np.zeros(shape)).ravel())
        blocks = []
        for track in force.TRACKS:
            value = getattr(force, track.name)
            values = series_rows(value, track.shape, n_steps)
            tan = series_rows_jvp(value, track.shape, tangents.get(track.name), n_steps)
            blocks.append(ROW_TWINS[track.rows].jvp(values, tan, force.axes))
        rows = np.stack([broadcast(value, count) for value in params], axis=-1)
        return rows, stack_rows(blocks, count)
