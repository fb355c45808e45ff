r"""Adjoint of `adjsim/rigid/pieces.py`: the loads of pieces, and what is put there.

sum_adjoint_pieces    what the elements wrote for the points, and the forces replayed
pull_body             a body's share of both, before a step is undone
undo_body             undo the step of a body; the cotangent of its load is left at its first
                      piece
spread_pieces         that cotangent, to the points
"""

from adjoint.rigid.points import add_point_arms, pull_loads, spread_load, undo_state
from adjsim.jit.backend import device_fn
from adjsim.rigid.pieces import LOAD_SIZE, as_bodies, load_of, read_load, write_load
from adjsim.rigid.points import body_load


OF_FORCES = 2 * LOAD_SIZE  # the column of their loads, behind those of velocities and positions


@device_fn
def sum_adjoint_pieces(start, stride, undoes, nodes, bodies, pieces, work, p, adj):
    """Write the loads of this thread's pieces, and pull the points back to their arms."""
    parts = as_bodies(bodies, pieces)
    for k in range(start, pieces.body.size, stride):
        forces = body_load(k, parts, nodes.ptr, nodes.slots_of, work.slots)
        write_load(pieces.loads, k, OF_FORCES, forces)
        if undoes:
            adj_v = body_load(
                k, parts, nodes.velocity_ptr, nodes.velocity_slots_of, work.adj_v_slots
            )
            write_load(pieces.loads, k, 0, adj_v)
            adj_x = body_load(k, parts, nodes.ptr, nodes.slots_of, work.adj_x_slots)
            write_load(pieces.loads, k, LOAD_SIZE, adj_x)
            add_point_arms(pieces.body[k], k, nodes, parts, work, p, adj)


@device_fn
def pull_body(b, nodes, bodies, pieces, work, p, adj):
    """Pull what the elements wrote for the points of body b back to its state p."""
    v_ptr, v_slots_of = nodes.velocity_ptr, nodes.velocity_slots_of
    adj_v = load_of(b, bodies, pieces, 0, v_ptr, v_slots_of, work.adj_v_slots)
    adj_x = load_of(b, bodies, pieces, LOAD_SIZE, nodes.ptr, nodes.slots_of, work.adj_x_slots)
    if pieces.body.size == 0:
        add_point_arms(b, b, nodes, bodies, work, p, adj)
    pull_loads(b, adj_x, adj_v, p, adj)


@device_fn
def undo_body(b, dt, nodes, bodies, pieces, work, p, adj):
    """Undo the step of body b, but for the points if they are in pieces."""
    load = load_of(b, bodies, pieces, OF_FORCES, nodes.ptr, nodes.slots_of, work.slots)
    adj_load = undo_state(b, dt, load, nodes, bodies, p, adj)
    if pieces.body.size == 0:
        spread_load(b, adj_load, nodes, bodies, work, adj)
    else:
        write_load(pieces.loads, pieces.ptr[b] - pieces.ptr[0], OF_FORCES, adj_load)


@device_fn
def spread_pieces(start, stride, nodes, bodies, pieces, work, adj):
    """Write adj_f of the points of this thread's pieces, and pull them back to their arms."""
    parts = as_bodies(bodies, pieces)
    for k in range(start, pieces.body.size, stride):
        first = pieces.ptr[pieces.body[k]] - pieces.ptr[0]
        spread_load(k, read_load(pieces.loads, first, OF_FORCES), nodes, parts, work, adj)
