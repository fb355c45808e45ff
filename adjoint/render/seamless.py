r"""Tangent and adjoint of `render/seamless.py`: read the two files side by side.

As in `coverage.py` the nearest soft point q = sum w_k a_k has weights that may be held (envelope
theorem); where nothing softens they are 0.

Frozen: which edges are seams, which corners are soft, and which edges count at p.
"""

from adjsim.jit.backend import device_fn, lit
from render.faces.face_setup import load_corners
from render.seamless import nearest_soft, seamless_logit, within_face


@device_fn
def seamless_logit_jvp(p, f, faces, tan_corners, sigma, tan_sigma):
    """Tangent of the logit of the seamless coverage of p by face f."""
    a0, a1, a2, _ = load_corners(f, faces.corners)
    tan_a0, tan_a1, tan_a2, _ = tan_corners
    within = within_face(p, a0, a1, a2)
    _, o, w = nearest_soft(p, f, within, faces)  # (1) w held
    tan_q_x = w[0] * tan_a0[0] + w[1] * tan_a1[0] + w[2] * tan_a2[0]
    tan_q_y = w[0] * tan_a0[1] + w[1] * tan_a1[1] + w[2] * tan_a2[1]
    tan_m = lit(-2.0, o[0]) * (o[0] * tan_q_x + o[1] * tan_q_y)
    tan_m = tan_m if within else -tan_m  # (3)
    return (tan_m - seamless_logit(p, f, faces, sigma) * tan_sigma) / sigma  # (2)


@device_fn
def seamless_logit_vjp(p, f, faces, sigma, y, adj_y):
    """Pull adj_y back through `seamless_logit`: adj_a0, adj_a1, adj_a2, adj_sigma."""
    a0, a1, a2, _ = load_corners(f, faces.corners)
    within = within_face(p, a0, a1, a2)
    _, o, w = nearest_soft(p, f, within, faces)  # (1) replayed

    # (3) -y outside,  (2) y = m/sigma
    adj_m = adj_y * (lit(1.0, sigma) / sigma)
    adj_sigma = -y * adj_m
    adj_m = adj_m if within else -adj_m

    # (1) m = o.o,  o = p - sum w_k a_k,  w held
    adj_q = (lit(-2.0, adj_m) * o[0] * adj_m, lit(-2.0, adj_m) * o[1] * adj_m)
    return (
        (w[0] * adj_q[0], w[0] * adj_q[1]),
        (w[1] * adj_q[0], w[1] * adj_q[1]),
        (w[2] * adj_q[0], w[2] * adj_q[1]),
        adj_sigma,
    )
