r"""The tile loops of the twins: the same gather, slots and node sums, read upwards.

The forward's node sum f_i = sum of slots has a read as its adjoint: every element reads
adj_f of its own nodes. The forward's gather of x has a sum as its adjoint: every element
writes adj_x slots that only it owns, and each node adds them up in the forward's order.
A packed parameter belongs to one element, so its cotangent is accumulated in place, in
arrays laid out like the parameters. Rows of the rest shape have loops of their own, run where
a derivative in the rest positions is asked for.

Forward: `adjsim/assembly.py`.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from adjoint.element import TwinKind
from adjsim.assembly import (
    TILE,
    U1,
    U3,
    U_TILE,
    block_offsets,
    layout_bindings,
    make_add_rows,
    make_write_nodes,
    tile_signature,
    write_0,
)
from adjsim.backend import cpu_kernel, device_fn, is_hashed, specialise
from adjsim.element import ElementKind


VJP_LAYOUT = "iiii" + "tn" + "aaa" + "mmm" + "aaaa" + "a"
JVP_LAYOUT = "iiii" + "tn" + "aaaaa" + "mmmm" + "aa"
REST_VJP_LAYOUT = "iiii" + "tn" + "aaa" + "mmm" + "aa"
REST_JVP_LAYOUT = "iiii" + "tn" + "aaaa" + "mm" + "aa"

# The globals in capitals that the loops read are bound by `specialise`, once per kind.
ELEMENT = GATHER_X = GATHER_V = READ_X = READ_V = READ_C = READ_P = READ_S = write_0
WRITE_F = WRITE_X = WRITE_V = ADD_P = ADD_S = ADD_C = ADD_F = write_0
N = NX = NV = NC = NP = NS = U1


def vjp_tiles(
    lo, hi, row, step, table, nodes, consts, params, series, x, v, adj_f,
    adj_x_slots, adj_v_slots, adj_params, adj_series, scratch,
):  # fmt: skip
    """Write the adj_x and adj_v slots of tiles lo to hi, add to the parameters' adjoints."""
    o_nodes, o_consts, o_params, o_series, o_slots = block_offsets(table, row, step)
    s_v = U3 * NX * U_TILE
    s_f = U3 * (NX + NV) * U_TILE
    for tile in range(lo, hi):
        t = np.uint64(tile) * U_TILE
        GATHER_X(scratch, nodes, o_nodes + t * N, np.uint64(0), x)
        GATHER_V(scratch, nodes, o_nodes + t * N, s_v, v)
        GATHER_X(scratch, nodes, o_nodes + t * N, s_f, adj_f)
        for q in range(TILE):
            u = np.uint64(q)
            adj_x, adj_v, adj_p, adj_s = ELEMENT(
                READ_X(scratch, u),
                READ_V(scratch, u + s_v),
                READ_C(consts, o_consts + t * NC + u),
                READ_P(params, o_params + t * NP + u),
                READ_S(series, o_series + t * NS + u),
                READ_X(scratch, u + s_f),
            )
            WRITE_X(adj_x_slots, o_slots + t * U3 * N + u, adj_x)
            WRITE_V(adj_v_slots, o_slots + t * U3 * N + u, adj_v)
            ADD_P(adj_params, o_params + t * NP + u, adj_p)
            ADD_S(adj_series, o_series + t * NS + u, adj_s)


def jvp_tiles(
    lo, hi, row, step, table, nodes, consts, params, series, tan_params, tan_series,
    x, v, tan_x, tan_v, tan_slots, scratch,
):  # fmt: skip
    """Write the tangents of the force slots of tiles lo to hi."""
    o_nodes, o_consts, o_params, o_series, o_slots = block_offsets(table, row, step)
    s_v = U3 * NX * U_TILE
    s_tan = U3 * (NX + NV) * U_TILE
    for tile in range(lo, hi):
        t = np.uint64(tile) * U_TILE
        GATHER_X(scratch, nodes, o_nodes + t * N, np.uint64(0), x)
        GATHER_V(scratch, nodes, o_nodes + t * N, s_v, v)
        GATHER_X(scratch, nodes, o_nodes + t * N, s_tan, tan_x)
        GATHER_V(scratch, nodes, o_nodes + t * N, s_tan + s_v, tan_v)
        for q in range(TILE):
            u = np.uint64(q)
            tan_f = ELEMENT(
                READ_X(scratch, u),
                READ_V(scratch, u + s_v),
                READ_C(consts, o_consts + t * NC + u),
                READ_P(params, o_params + t * NP + u),
                READ_S(series, o_series + t * NS + u),
                READ_X(scratch, u + s_tan),
                READ_V(scratch, u + s_tan + s_v),
                READ_P(tan_params, o_params + t * NP + u),
                READ_S(tan_series, o_series + t * NS + u),
            )
            WRITE_F(tan_slots, o_slots + t * U3 * N + u, tan_f)


def rest_vjp_tiles(
    lo, hi, row, step, table, nodes, consts, params, series, x, v, adj_f, adj_consts, scratch
):  # fmt: skip
    """Add to the adjoints of the rest shape's rows of tiles lo to hi."""
    o_nodes, o_consts, o_params, o_series, _ = block_offsets(table, row, step)
    s_v = U3 * NX * U_TILE
    s_f = U3 * (NX + NV) * U_TILE
    for tile in range(lo, hi):
        t = np.uint64(tile) * U_TILE
        GATHER_X(scratch, nodes, o_nodes + t * N, np.uint64(0), x)
        GATHER_V(scratch, nodes, o_nodes + t * N, s_v, v)
        GATHER_X(scratch, nodes, o_nodes + t * N, s_f, adj_f)
        for q in range(TILE):
            u = np.uint64(q)
            adj_c = ELEMENT(
                READ_X(scratch, u),
                READ_V(scratch, u + s_v),
                READ_C(consts, o_consts + t * NC + u),
                READ_P(params, o_params + t * NP + u),
                READ_S(series, o_series + t * NS + u),
                READ_X(scratch, u + s_f),
            )
            ADD_C(adj_consts, o_consts + t * NC + u, adj_c)


def rest_jvp_tiles(
    lo, hi, row, step, table, nodes, consts, params, series, tan_consts, x, v, tan_slots, scratch
):  # fmt: skip
    """Add to the tangents of the force slots of tiles lo to hi what the rest shape's give."""
    o_nodes, o_consts, o_params, o_series, o_slots = block_offsets(table, row, step)
    s_v = U3 * NX * U_TILE
    for tile in range(lo, hi):
        t = np.uint64(tile) * U_TILE
        GATHER_X(scratch, nodes, o_nodes + t * N, np.uint64(0), x)
        GATHER_V(scratch, nodes, o_nodes + t * N, s_v, v)
        for q in range(TILE):
            u = np.uint64(q)
            tan_f = ELEMENT(
                READ_X(scratch, u),
                READ_V(scratch, u + s_v),
                READ_C(consts, o_consts + t * NC + u),
                READ_P(params, o_params + t * NP + u),
                READ_S(series, o_series + t * NS + u),
                READ_C(tan_consts, o_consts + t * NC + u),
            )
            ADD_F(tan_slots, o_slots + t * U3 * N + u, tan_f)


@cache
def make_add_vectors(n: int) -> Callable:
    """Return the accumulator of n vectors into 3 n rows of one lane."""
    add_rows, flat = make_add_rows(3 * n), make_flat(n)

    @device_fn
    def add_vectors(a, o, vectors):
        add_rows(a, o, flat(vectors))

    return add_vectors


@cache
def make_flat(n: int) -> Callable:
    """Return the function from n vectors to 3 n numbers."""
    if n == 1:
        return flat_1
    head, last = make_flat(n - 1), n - 1

    @device_fn
    def flat(vectors):
        return (*head(vectors), *vectors[last])

    return flat


@device_fn
def flat_1(vectors):
    """Return the components of the first vector."""
    return vectors[0]


@cache
def vjp_kernel(twin: TwinKind, dtype: np.dtype) -> Callable:
    """Return the compiled `vjp_tiles` of one kind."""
    kind = twin.kind
    loop = specialise(
        vjp_tiles,
        f"vjp_tiles_{kind.name}_{dtype.name}",
        ELEMENT=twin.vjp,
        WRITE_X=make_write_nodes(kind, kind.n_vectors),
        WRITE_V=make_write_nodes(kind, kind.n_velocities),
        ADD_P=make_add_rows(kind.n_params),
        ADD_S=make_add_rows(kind.n_series),
        **layout_bindings(kind),
    )
    return cpu_kernel(loop, [tile_signature(dtype, VJP_LAYOUT)], cached=is_hashed(twin.vjp))


@cache
def jvp_kernel(twin: TwinKind, dtype: np.dtype) -> Callable:
    """Return the compiled `jvp_tiles` of one kind."""
    kind = twin.kind
    loop = specialise(
        jvp_tiles,
        f"jvp_tiles_{kind.name}_{dtype.name}",
        ELEMENT=twin.jvp,
        WRITE_F=make_write_nodes(kind, kind.n_vectors),
        **layout_bindings(kind),
    )
    return cpu_kernel(loop, [tile_signature(dtype, JVP_LAYOUT)], cached=is_hashed(twin.jvp))


@cache
def rest_vjp_kernel(kind: ElementKind, element: Callable, dtype: np.dtype) -> Callable:
    """Return the compiled `rest_vjp_tiles` of one kind and its `vjp_consts`."""
    loop = specialise(
        rest_vjp_tiles,
        f"rest_vjp_tiles_{kind.name}_{dtype.name}",
        ELEMENT=element,
        ADD_C=make_add_rows(kind.n_consts),
        **layout_bindings(kind),
    )
    return cpu_kernel(loop, [tile_signature(dtype, REST_VJP_LAYOUT)], cached=is_hashed(element))


@cache
def rest_jvp_kernel(kind: ElementKind, element: Callable, dtype: np.dtype) -> Callable:
    """Return the compiled `rest_jvp_tiles` of one kind and its `jvp_consts`."""
    loop = specialise(
        rest_jvp_tiles,
        f"rest_jvp_tiles_{kind.name}_{dtype.name}",
        ELEMENT=element,
        ADD_F=make_write_nodes(kind, kind.n_vectors, make_add_vectors),
        **layout_bindings(kind),
    )
    return cpu_kernel(loop, [tile_signature(dtype, REST_JVP_LAYOUT)], cached=is_hashed(element))
