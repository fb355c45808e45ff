r"""Adjoint of `adjsim/forces/half_space.py`: read the two files side by side."""

from adjoint.forces.contact_law import make_contact_jvp, make_contact_vjp
from adjoint.forces.element import TwinKind
from adjsim.engine.algebra.vec3 import axpy, dot, neg, scale, sub
from adjsim.engine.jit.backend import device_fn
from adjsim.forces.contact_law import RADIUS
from adjsim.forces.half_space import HALF_SPACE, half_space_gap


@device_fn
def half_space_gap_jvp(x, v, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `half_space_gap`."""
    n = series[0:3]
    tan_n, tan_height, tan_V = tan_series[0:3], tan_series[3], tan_series[4:7]
    tan_c = tan_height + tan_params[RADIUS] - dot(tan_n, x) - dot(n, tan_x)  # (1)
    tan_u = sub(tan_v, tan_V)  # (2)
    return tan_n, tan_c, tan_u


@device_fn
def half_space_gap_vjp(x, v, params, series, adj_n, adj_c, adj_u):
    """Pull cotangents back through `half_space_gap`."""
    n = series[0:3]
    # (2) u = v - V
    adj_v, adj_V = adj_u, neg(adj_u)
    # (1) c = h + r - n.x
    adj_height, adj_radius = adj_c, adj_c
    adj_x = scale(-adj_c, n)
    adj_n = axpy(-adj_c, x, adj_n)
    return adj_x, adj_v, (adj_radius,), (*adj_n, adj_height, *adj_V)


HALF_SPACE_TWIN = TwinKind(
    HALF_SPACE,
    make_contact_jvp(half_space_gap, half_space_gap_jvp),
    make_contact_vjp(half_space_gap, half_space_gap_vjp, HALF_SPACE),
)
