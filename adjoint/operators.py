"""Derivatives of a recorded rollout as linear operators of SciPy, without their matrices.

With J = `jacobian_operator(run, wrt)`, J @ d is a tangent, J.T @ c a reverse sweep, and J.T @ J the
Gauss-Newton matrix of |frames|^2 / 2.

Tests: `tests/test_operators.py`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from adjoint.rollout import Record
from adjoint.system import (
    check_paths,
    cotangents_of,
    fields_of,
    known_paths,
    require_one_world,
)
from adjoint.vectors import Layout
from adjsim import checks


def jacobian_operator(
    run: Record[Any, Any], wrt: Sequence[str], *, fields: Sequence[str] = ("x",)
) -> LinearOperator:
    """Return the Jacobian of the frames by parameters.

    Parameters
    ----------
    run : Record
        Of one world.
    wrt : sequence of str
        Paths of the parameters: the columns, flat, in this order.
    fields : sequence of str
        Fields of the trajectory: the rows, flat, in this order. Those of bodies are "BODY.FIELD",
        as in "cube.position".

    Raises
    ------
    ValueError
        If a path or a field is unknown.
    TypeError
        If the record is of a batch of worlds.

    Examples
    --------
    >>> from adjoint import jacobian_operator, record
    >>> from adjsim import Model, State
    >>> run = record(Model(mass=[2.0]), State([[0.0, 6.0, 0.0]]), dt=0.1, n_steps=10)
    >>> J = jacobian_operator(run, ["gravity"])
    >>> print(J @ [0.0, 1.0, 0.0])
    [0.   0.55 0.  ]
    """
    columns = _columns(run, wrt)
    known = fields_of(run.trajectory)
    rows = Layout.of(
        "fields", {name: known[checks.known_key("field", name, known)] for name in fields}
    )

    def push(d: np.ndarray) -> np.ndarray:
        tangent = fields_of(run.jvp(columns.split(checks.array("a vector", d).ravel())))
        return rows.flat("fields", {name: tangent[name] for name in rows.shapes})

    def pull(c: np.ndarray) -> np.ndarray:
        adjoints = cotangents_of(rows.split(checks.array("a vector", c).ravel()))
        gradient = run.vjp(**adjoints, wrt=list(columns.shapes))
        return columns.flat("wrt", gradient)

    return _operator((rows.size, columns.size), push, pull)


def hessian_operator(
    run: Record[Any, Any], cotangents: Callable[[Any], Any], wrt: Sequence[str]
) -> LinearOperator:
    """Return the Hessian of a loss of the frames by parameters, symmetric.

    Parameters
    ----------
    run : Record
        Of one world.
    cotangents : callable
        The gradient of the loss in the frames, as `Record.hvp` takes it.
    wrt : sequence of str
        Paths of the parameters: rows and columns, flat, in this order.

    Raises
    ------
    ValueError
        If a path is unknown.
    TypeError
        If the record is of a batch of worlds.

    Examples
    --------
    >>> from adjoint import hessian_operator, record
    >>> from adjsim import Model, State
    >>> run = record(Model(mass=[2.0]), State([[0.0, 6.0, 0.0]]), dt=0.1, n_steps=10)
    >>> H = hessian_operator(run, lambda trajectory: trajectory.x, ["state.v"])  # of |x|^2 / 2
    >>> print((H @ [0.0, 1.0, 0.0]).round(6))
    [0. 1. 0.]
    """
    layout = _columns(run, wrt)

    def product(d: np.ndarray) -> np.ndarray:
        direction = layout.split(checks.array("a vector", d).ravel())
        return layout.flat("wrt", run.hvp(direction, cotangents))

    return _operator((layout.size, layout.size), product, product)


def _operator(
    shape: tuple[int, int],
    product: Callable[[np.ndarray], np.ndarray],
    transposed: Callable[[np.ndarray], np.ndarray],
) -> LinearOperator:
    made: Any = LinearOperator  # a class that makes one of its own subclasses
    return made(shape, matvec=product, rmatvec=transposed, dtype=np.float64)


def _columns(run: Record[Any, Any], wrt: Sequence[str]) -> Layout:
    require_one_world("run", checks.instance("run", run, Record).model)
    values = {**run.model.parameters(), **run.model.state_parameters(run.state)}
    paths = check_paths(wrt, known_paths(run.model, run.state))
    return Layout.of("wrt", {path: values[path] for path in paths})
