"""Tangent and adjoint of `render/projection.py`: read the two files side by side.

Whether the view is orthographic, the number p, is a choice: it has no derivative.
"""

from adjsim.algebra.vec3 import axpy, dot, scale, sub
from adjsim.jit.backend import device_fn, lit
from render.projection import project


@device_fn
def project_jvp(x, eye, frame, tan_x, tan_eye, tan_frame):
    """Screen position and depth of x, then their tangents."""
    right, true_up, forward, lens = frame
    tan_right, tan_true_up, tan_forward, tan_lens = tan_frame
    f_x, k, c_x, f_y, c_y, p = lens
    tan_f_x, tan_k, tan_c_x, tan_f_y, tan_c_y = tan_lens[0:5]
    s_x, s_y, z = project(x, eye, right, true_up, forward, lens)
    d = sub(x, eye)
    tan_d = sub(tan_x, tan_eye)  # (1)
    x_c, y_c = dot(right, d), dot(true_up, d)
    tan_x_c = dot(tan_right, d) + dot(right, tan_d)  # (2)
    tan_y_c = dot(tan_true_up, d) + dot(true_up, tan_d)  # (3)
    tan_z = dot(tan_forward, d) + dot(forward, tan_d)  # (4)
    w = p * z + (lit(1.0, p) - p)
    tan_w = p * tan_z  # (5)
    tan_top = tan_f_x * x_c + f_x * tan_x_c + tan_k * y_c + k * tan_y_c
    tan_s_x = (tan_top - (s_x - c_x) * tan_w) / w + tan_c_x  # (6)
    tan_s_y = (tan_f_y * y_c + f_y * tan_y_c - (s_y - c_y) * tan_w) / w + tan_c_y  # (7)
    return s_x, s_y, z, tan_s_x, tan_s_y, tan_z


@device_fn
def project_vjp(x, eye, frame, adj_s_x, adj_s_y, adj_z):
    """Pull back through `project`: adj_x, then the adjoints of the four parts of the frame.

    adj_eye is -adj_x.
    """
    right, true_up, forward, lens = frame
    f_x, k, _, f_y, _, p = lens
    d = sub(x, eye)  # (1) replayed
    x_c = dot(right, d)  # (2) replayed
    y_c = dot(true_up, d)  # (3) replayed
    z = dot(forward, d)  # (4) replayed
    w = p * z + (lit(1.0, p) - p)  # (5) replayed

    # (7) s_y = f_y y_c/w + c_y
    adj_f_y = y_c / w * adj_s_y
    adj_y_c = f_y / w * adj_s_y
    adj_w = -f_y * y_c / (w * w) * adj_s_y

    # (6) s_x = (f_x x_c + k y_c)/w + c_x
    adj_f_x = x_c / w * adj_s_x
    adj_k = y_c / w * adj_s_x
    adj_x_c = f_x / w * adj_s_x
    adj_y_c += k / w * adj_s_x
    adj_w -= (f_x * x_c + k * y_c) / (w * w) * adj_s_x

    # (5) w = p z + 1 - p
    adj_z = adj_z + p * adj_w

    # (4) z = forward.d
    adj_forward = scale(adj_z, d)
    adj_d = scale(adj_z, forward)

    # (3) y_c = true_up.d
    adj_true_up = scale(adj_y_c, d)
    adj_d = axpy(adj_y_c, true_up, adj_d)

    # (2) x_c = right.d
    adj_right = scale(adj_x_c, d)
    adj_d = axpy(adj_x_c, right, adj_d)

    # (1) d = x - eye
    adj_lens = (adj_f_x, adj_k, adj_s_x, adj_f_y, adj_s_y, lit(0.0, p))
    return adj_d, adj_right, adj_true_up, adj_forward, adj_lens


@device_fn
def towards_eye_vjp(p, adj_v):
    """Pull back through `towards_eye`: adj_x, adj_eye and adj_forward; it is its own tangent."""
    return scale(-p, adj_v), scale(p, adj_v), scale(p - lit(1.0, p), adj_v)
