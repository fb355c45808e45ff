r"""The points of bodies among the nodes: what acts on them, and where a step puts them.

Body points are rows of the nodes' arrays, after the nodes, and a force acts on such a row as
on any node; `adjsim/rigid/rows.py` says which are whose.

    F = sum f_k,  S = sum f_k c_k^T      over a body's points, in their order
    x_k = x + R c_k,  v_k = v + D c_k    at the new state

One thread sums, steps and places one body, so the bits do not depend on how many there are. On a
GPU those of many points are the work of several (`adjsim/rigid/pieces.py`).

Adjoint: `adjoint/rigid/points.py`. Tests: `tests/rigid/test_points.py`.
"""

import numpy as np

from adjsim.engine.algebra.vec3 import add, axpy
from adjsim.engine.jit.backend import device_fn, lit
from adjsim.engine.node_sum import node_sum, zero_of
from adjsim.rigid.body_step import body_frames, body_step
from adjsim.rigid.rows import place, read_3, read_body, read_params, write_body


@device_fn
def body_load(b, bodies, ptr, slots_of, slots):
    """Return F and S of body b: the sums of q and of q c^T, where q is a point's slots' sum."""
    point_ptr, arms = bodies.point_ptr, bodies.arms
    zero = zero_of(slots)
    none = (zero, zero, zero)
    F, S0, S1, S2 = none, none, none, none
    for k in range(point_ptr[b], point_ptr[b + 1]):
        q = node_sum(np.uint64(k), ptr, slots_of, slots)
        c = read_3(arms, k - point_ptr[0], 0)
        F = add(F, q)  # (1)
        S0, S1, S2 = axpy(c[0], q, S0), axpy(c[1], q, S1), axpy(c[2], q, S2)  # (2)
    return F, (S0, S1, S2)


@device_fn
def place_points(b, k, parts, rows):
    """Write positions and velocities of the points of part k of body b: all or a piece."""
    state = read_body(rows.p, b)
    R, D = body_frames(state)
    place(k, parts, state[0], R, rows.x)
    place(k, parts, state[2], D, rows.v)


@device_fn
def advance_body(b, dt, gravity, load, bodies, p, p_new):
    """Advance body b without its points under a load; return 1 if its state is not finite."""
    g = (gravity[0], gravity[1], gravity[2])
    state = body_step(read_body(p, b), load, read_params(bodies.params, b), g, dt)
    write_body(p_new, b, state)
    x, r, v, omega = state
    total = add(add(x, v), omega)
    number = total[0] + total[1] + total[2] + r[0] + r[1] + r[2] + r[3]
    return 0 if number - number == lit(0, number) else 1
