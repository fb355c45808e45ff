r"""Tangent and adjoint of `render/faces/nearest.py`: read the two files side by side.

A covered pixel passes its adjoint to the colour of the nearest face, whole. In another

    adj_y_j = D_j T_j adj_T_{j+1} (-1),   T_j = prod of 1 - D before j

with the suffix recursion of Over for adj_T: nothing is divided by 1 - D, which is 0 on an
edge. Depth has no adjoint.

Frozen: which face is nearest, which pixels are covered, and the cut at D = 1e-10.
"""

from adjsim.jit.backend import device_fn, lit
from render.faces.nearest import nearest_cover


@device_fn
def nearest_jvp_body(first, last, fragments, tangents, tan_background):
    """Tangent of the RGBA of a pixel."""
    q = nearest_cover(first, last, fragments)
    zero = lit(0.0, tan_background[0])
    if q >= 0:
        return tangents.rgb[q, 0], tangents.rgb[q, 1], tangents.rgb[q, 2], zero  # (1)
    T, tan_T = lit(1.0, zero), zero
    for k in range(first, last):
        q = fragments.order[k]
        tan_rest = -fragments.D[q] * tangents.y[q]
        tan_T = tan_T * fragments.rest[q] + T * tan_rest  # (2)
        T = T * fragments.rest[q]
    return tan_background[0], tan_background[1], tan_background[2], -tan_T  # (3)


@device_fn
def nearest_vjp_body(first, last, fragments, adj_rgba, adj):
    """Pull adj_rgba back to the fragments of a pixel; return adj_background."""
    nearest = nearest_cover(first, last, fragments)
    zero, unity = lit(0.0, adj_rgba[3]), lit(1.0, adj_rgba[3])
    T = unity
    for k in range(first, last):
        q = fragments.order[k]
        adj.T[k] = T
        T = T * fragments.rest[q]  # (2) replayed
        adj.w[q] = unity if q == nearest else zero  # (1) rgb = rgb_q
        adj.y[q], adj.z[q] = zero, zero
    if nearest >= 0:
        return zero, zero, zero

    # (3) rgb = background,  alpha = 1 - T
    adj_T = -adj_rgba[3]
    for k in range(last - 1, first - 1, -1):
        q = fragments.order[k]

        # (2) T = T rest,  rest = 1 - exp(y)
        adj_rest = adj.T[k] * adj_T
        adj.y[q] = -fragments.D[q] * adj_rest
        adj_T = fragments.rest[q] * adj_T
    return adj_rgba[0], adj_rgba[1], adj_rgba[2]
