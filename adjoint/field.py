r"""The adjoint of `adjsim/field.py`.

    pull:  J^T adj_f      of a cotangent of the forces

Tests: `tests/test_field.py`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from adjoint.engine.field_loops import pull_loop, pull_pairs_loop
from adjoint.engine.sweep import ReverseSweep
from adjsim import checks
from adjsim.engine.tangent_packing import PackedVector
from adjsim.field import Field
from adjsim.jit.backend import loop_kernel
from adjsim.model import Model, State
from adjsim.tiles.loop_arrays import States


def pull(
    field: Field, state: State, adj_forces: Any, wrt: Iterable[str] | None = None, step: int = 0
) -> dict[str, np.ndarray]:
    """Pull a cotangent of the forces back to the state and to parameters.

    Parameters
    ----------
    field : Field
    state : State
    adj_forces : array_like
        (n_rows, 3).
    wrt : iterable of str, optional
        Paths of the gradients wanted, by default all.
    step : int
        Of the series.

    Returns
    -------
    dict of str to numpy.ndarray
        Path to gradient, each of the shape of its parameter.
    """
    step = field.check_step(step)
    adj = checks.array("adj_forces", adj_forces, (field.model.n_rows, 3))
    paths = _wanted(field, state, wrt)
    sweep = sweep_of(field, state, paths)
    pull_at(field, sweep, field.row(state), adj, step)
    if field.with_weight:
        _weight_vjp(field.model, sweep.adj, adj)
    if {"state.x", "state.v"}.issuperset(paths):  # nothing has to be unpacked
        return {path: getattr(sweep.adj, path.removeprefix("state.")).copy() for path in paths}
    return sweep.gradient(paths)


def sweep_of(field: Field, state: State, paths: list[str]) -> ReverseSweep:
    """Return a sweep with zero cotangents; the last one serves again for the same paths."""
    last = field.beside.get(ReverseSweep)
    if last is None or last.wanted != paths:
        none = tuple(np.zeros((1, *x.shape[1:])) for x in field.stepper.allocate(1))
        last = ReverseSweep(field.stepper, state, np.array([1]), none, paths)
        field.beside[ReverseSweep] = last
        return last
    last.state = state
    for cotangents in last.adj:
        cotangents[:] = 0.0
    return last


def pull_at(
    field: Field, sweep: ReverseSweep, row: States, adj_forces: np.ndarray, step: int
) -> None:
    """Add to the cotangents of a sweep what one of the forces without weight gives."""
    s, (elements, nodes, bodies) = field.stepper, field.stepper.arrays
    sweep.work.adj_f[:] = adj_forces
    loop, changing = pull_loop, field.changing_at(row)
    if changing is not None:
        loop, elements = pull_pairs_loop, changing.with_cotangents()
    loop_kernel(loop)(
        sweep.calls, elements, nodes, bodies, s.parts, sweep.work, step, row, sweep.adj
    )


def _wanted(field: Field, state: State, wrt: Iterable[str] | None) -> list[str]:
    """Return the paths of gradients that are asked for, checked; by default all."""
    known = {**field.model.parameters(), **field.model.state_parameters(state)}
    paths = list(known) if wrt is None else list(wrt)
    return [checks.known_key("parameter", path, known) for path in paths]


def _weight_vjp(model: Model, adj: PackedVector, adj_forces: np.ndarray) -> None:
    """Add the cotangents of 1/m and of gravity that a cotangent of m g gives."""
    m = model.mass
    adj_weight = adj_forces[: len(m)]
    adj.gravity[: len(m)] += m[:, None] * adj_weight
    adj.w[:] -= np.where(model.pinned, 0.0, np.square(m) * (adj_weight @ model.gravity))
