r"""The loops of the twins: the same gather, slots and node sums, read upwards.

The forward's node sum f_i = sum of slots has a read as its adjoint: every element reads
adj_f of its own nodes. The forward's gather of x has a sum as its adjoint: every element
writes adj_x slots that only it owns, and each node adds them up in the forward's order.
A packed parameter belongs to one element, so its cotangent is accumulated in place, in
arrays laid out like the parameters. Rows of the rest shape have loops of their own, run where
a derivative in the rest positions is asked for.

Forward: `adjsim/tiles/assembly.py`.
"""

from adjsim.tiles.assembly import FORCE_LOOP, Loop


# x, v, consts, params, series and adj_f: adj_x, adj_v, adj_params, adj_series
VJP_LOOP = Loop("vjp", reads=(*FORCE_LOOP.reads, "X"), writes=("X", "V", "+P", "+S"))
# ... and adj_f: adj_consts
REST_VJP_LOOP = Loop("vjp_consts", reads=(*FORCE_LOOP.reads, "X"), writes=("+C",))
