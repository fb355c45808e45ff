r"""Bodies of many points on a GPU: pieces of at most 32 points, each the work of one thread.

What acts on a body is summed over its pieces in order, so no bits depend on threads. A piece is
given to the functions of `adjsim/rigid/points.py` as a body is: `Pieces.point_ptr` in place of that
of the bodies. Where no body has more points there are no pieces: a thread does a whole body, and
nobody waits for anybody.

    sum_pieces     partial loads, then a barrier
    step_body      a body's load from those of its pieces, and its new state, then a barrier
    place_pieces   the points at the new state

Adjoint: `adjoint/rigid/pieces.py`. Tests: `tests/rigid/test_pieces.py`, `tests/cuda`.
"""

from typing import Any, NamedTuple

import numpy as np

from adjsim.algebra.vec3 import add
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.points import (
    advance_body,
    body_load,
    place_points,
    place_tangents,
    tangent_loads,
    tangent_state,
)
from adjsim.rigid.rows import read_3, write_3
from adjsim.tiles.loop_arrays import Bodies


PIECE = 32  # points at most
LOAD_SIZE, LOADS = 12, 3  # numbers of F and S; loads that are summed at the same time


class Pieces(NamedTuple):
    """The points of all bodies in pieces.

    Piece k has the rows point_ptr[k] to point_ptr[k + 1] of the nodes' arrays and belongs to
    body[k]; body b has the pieces ptr[b] - ptr[0] to ptr[b + 1] - ptr[0]. `loads`
    (n_pieces, 36) is where their loads are summed.
    """

    point_ptr: Any
    body: Any
    ptr: Any
    loads: Any


def cut_bodies(teams: list[np.ndarray], dtype: np.dtype) -> Pieces:
    """Return the pieces of the bodies of each team, given the point_ptr of its own bodies."""
    n_pieces = [np.maximum(1, -(-np.diff(team_ptr) // PIECE)) for team_ptr in teams]
    if max(int(counts.max(initial=0)) for counts in n_pieces) <= 1:
        n_pieces = [0 * counts for counts in n_pieces]
    point_ptr, body = [], []
    for team_ptr, counts in zip(teams, n_pieces, strict=True):
        which = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        point_ptr += [team_ptr[which] + PIECE * number, team_ptr[-1:]]
        body.append(which)
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(n_pieces))])
    loads = np.zeros((ptr[-1], LOADS * LOAD_SIZE), dtype)
    return Pieces(np.concatenate(point_ptr), np.concatenate(body), ptr.astype(np.int64), loads)


@device_fn
def as_bodies(bodies, pieces):
    """Return pieces as the bodies that functions of points are given."""
    return Bodies(pieces.point_ptr, bodies.arms, bodies.params)


@device_fn
def write_load(loads, k, column, load):
    """Write F and S of piece k from a column on."""
    F, S = load
    write_3(loads, k, column, F)
    for j in range(3):
        write_3(loads, k, column + 3 + 3 * j, S[j])


@device_fn
def read_load(loads, k, column):
    """Return F and S of piece k."""
    S = (
        read_3(loads, k, column + 3), read_3(loads, k, column + 6), read_3(loads, k, column + 9),
    )  # fmt: skip
    return read_3(loads, k, column), S


@device_fn
def sum_loads(b, pieces, column):
    """Return F and S of body b: the sums of those of its pieces, in their order."""
    loads, first = pieces.loads, pieces.ptr[0]
    zero = lit(0, loads[0, 0])
    none = (zero, zero, zero)
    F, S = none, (none, none, none)
    for k in range(pieces.ptr[b] - first, pieces.ptr[b + 1] - first):
        own_F, own_S = read_load(loads, k, column)
        F, S = add(F, own_F), (add(S[0], own_S[0]), add(S[1], own_S[1]), add(S[2], own_S[2]))
    return F, S


@device_fn
def load_of(b, bodies, pieces, column, ptr, slots_of, slots):
    """Return F and S of body b, from its pieces if there are any."""
    if pieces.body.size > 0:
        return sum_loads(b, pieces, column)
    return body_load(b, bodies, ptr, slots_of, slots)


@device_fn
def sum_pieces(start, stride, bodies, pieces, nodes, slots):
    """Write the loads of this thread's pieces."""
    for k in range(start, pieces.body.size, stride):
        load = body_load(k, as_bodies(bodies, pieces), nodes.ptr, nodes.slots_of, slots)
        write_load(pieces.loads, k, 0, load)


@device_fn
def step_body(b, dt, gravity, nodes, bodies, pieces, slots, before, after):
    """Advance body b, and its points unless they are in pieces; return 1 if it is not finite."""
    load = load_of(b, bodies, pieces, 0, nodes.ptr, nodes.slots_of, slots)
    bad = advance_body(b, dt, gravity, load, bodies, before.p, after.p)
    if pieces.body.size == 0:
        place_points(b, b, bodies, after)
    return bad


@device_fn
def place_pieces(start, stride, bodies, pieces, rows):
    """Write positions and velocities of the points of this thread's pieces."""
    for k in range(start, pieces.body.size, stride):
        place_points(pieces.body[k], k, as_bodies(bodies, pieces), rows)


@device_fn
def sum_tangent_pieces(start, stride, nodes, bodies, pieces, tan_arms, work):
    """Write the loads of this thread's pieces, and their tangents."""
    parts = as_bodies(bodies, pieces)
    for k in range(start, pieces.body.size, stride):
        load, tan_load = tangent_loads(k, nodes, parts, tan_arms, work)
        write_load(pieces.loads, k, 0, load)
        write_load(pieces.loads, k, LOAD_SIZE, tan_load)


@device_fn
def tangent_body(
    b, dt, tan_gravity, nodes, bodies, pieces, tan, work, before, after, tan_before, tan_after
):
    """Advance the tangent of body b, and those of its points unless they are in pieces."""
    if pieces.body.size > 0:
        loads = sum_loads(b, pieces, 0), sum_loads(b, pieces, LOAD_SIZE)
    else:
        loads = tangent_loads(b, nodes, bodies, tan.arms, work)
    tangent_state(b, dt, tan_gravity, loads, bodies, tan, before.p, tan_before.p, tan_after.p)
    if pieces.body.size == 0:
        place_tangents(b, b, bodies, tan.arms, after.p, tan_after)


@device_fn
def place_tangent_pieces(start, stride, bodies, pieces, tan_arms, p, tan_rows):
    """Write the tangents of positions and velocities of the points of this thread's pieces."""
    for k in range(start, pieces.body.size, stride):
        place_tangents(pieces.body[k], k, as_bodies(bodies, pieces), tan_arms, p, tan_rows)
