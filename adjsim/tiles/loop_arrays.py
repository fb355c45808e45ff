"""What compiled loops are given, by name: the same on the CPU and on a GPU.

A loop takes few arguments, each a named tuple of arrays; compiled code knows the names and pays
nothing for them. `adjsim/engine/packing.py` fills them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np


class Elements(NamedTuple):
    """Elements of all forces, flat by tiles, as `adjsim/tiles/assembly.py` lays them out.

    `table` (n_rows, 7) int64 says where each force's blocks begin; `nodes` uint32, the rows of X
    that elements touch; `consts`, `params`, `series`, their numbers.
    """

    table: Any
    nodes: Any
    consts: Any
    params: Any
    series: Any


class Nodes(NamedTuple):
    """Nodes, and which slots each row of X adds up.

    `w` (n_nodes,) inverse masses [1/kg]; `gravity` (n_worlds, 3) [m/s^2]; `ptr`, `slots_of`: row n
    adds slots_of[ptr[n]:ptr[n + 1]]; `velocity_ptr`, `velocity_slots_of`: the same for the forces
    that read velocities; `world_of` (n_nodes + n_bodies,): the world of each node, then body; `led`
    (n_nodes, 2) int64: where the place of a led node in step 0 lies in `Elements.series`, -1 if no
    grip leads it, and how far from there that in the next step.
    """

    w: Any
    gravity: Any
    ptr: Any
    slots_of: Any
    velocity_ptr: Any
    velocity_slots_of: Any
    world_of: Any
    led: Any


class Bodies(NamedTuple):
    """Rigid bodies, as `adjsim/rigid/rows.py` has them."""

    point_ptr: Any
    arms: Any
    params: Any


class ModelArrays(NamedTuple):
    """All that a loop reads of packed models."""

    elements: Elements
    nodes: Nodes
    bodies: Bodies


class States(NamedTuple):
    """States of nodes and bodies: `x`, `v` (..., n_rows, 3), `p` (..., n_bodies, 13)."""

    x: Any
    v: Any
    p: Any


class Span(NamedTuple):
    """A run of nodes and a run of bodies, their ends excluded."""

    node_lo: Any
    node_hi: Any
    body_lo: Any
    body_hi: Any


class Steps(NamedTuple):
    """Steps of `dt` [s] from state `first` on; `rows[k]` of the fields holds state first + k."""

    dt: Any
    first: Any
    rows: Any


class Work(NamedTuple):
    """Work arrays of forward loops: `slots` of forces, and `scratch`, a row for each part."""

    slots: Any
    scratch: Any


def named_type(kind: type, parts: Sequence[Any]) -> Any:
    """Return Numba's type of a named tuple of arrays or numbers of these types."""
    return numba.types.BaseTuple.from_types(tuple(parts), kind)


def types_of(dtype: np.dtype) -> dict[type, Any]:
    """Return the types of the named tuples whose arrays hold numbers of a dtype, and are rows."""
    real, i, u = numba.from_dtype(dtype), numba.int64, numba.uint32[::1]
    a, m = real[::1], real[:, ::1]
    parts = {
        Nodes: (a, m, u, u, u, u, i[::1], i[:, ::1]),
        Bodies: (i[::1], m, m),
        States: (m, m, m),
        Span: (i, i, i, i),
    }
    return {kind: named_type(kind, fields) for kind, fields in parts.items()}
