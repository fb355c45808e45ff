r"""Tangent and adjoint of `render/camera.py`: read the two files side by side.

For a unit vector n = v/|v|:  n' = (v' - n (n.v'))/|v|, a symmetric map, so its adjoint is
itself. For c = a x b: adj_a = b x adj_c, adj_b = adj_c x a. The near and far planes only
choose faces: they have no derivative.
"""

import math

from adjsim.backend import device_fn, lit
from adjsim.vec3 import add, axpy, cross, dot, neg, norm, scale, sub
from render.camera import HALF_DEGREE, project


@device_fn
def unit_vjp(n, length, adj_n):
    """Pull adj_n back through n = v/|v|; the tangent is the same map."""
    return scale(lit(1.0, length) / length, axpy(-dot(n, adj_n), n, adj_n))


@device_fn
def camera_frame_jvp(eye, target, up, fov_y, tan_eye, tan_target, tan_up, tan_fov_y):
    """Axes and focal length of the camera, then their tangents."""
    view = sub(target, eye)
    tan_view = sub(tan_target, tan_eye)  # (1)
    forward = scale(lit(1.0, fov_y) / norm(view), view)
    tan_forward = unit_vjp(forward, norm(view), tan_view)  # (2)
    side = cross(forward, up)
    tan_side = add(cross(tan_forward, up), cross(forward, tan_up))  # (3)
    right = scale(lit(1.0, fov_y) / norm(side), side)
    tan_right = unit_vjp(right, norm(side), tan_side)  # (4)
    true_up = cross(right, forward)
    tan_true_up = add(cross(tan_right, forward), cross(right, tan_forward))  # (5)
    half = lit(HALF_DEGREE, fov_y)
    focal = lit(1.0, fov_y) / math.tan(half * fov_y)
    tan_focal = -half * (lit(1.0, focal) + focal * focal) * tan_fov_y  # (6)
    return right, true_up, forward, focal, tan_right, tan_true_up, tan_forward, tan_focal


@device_fn
def camera_frame_vjp(eye, target, up, fov_y, adj_right, adj_true_up, adj_forward, adj_focal):
    """Pull the adjoints of the axes back: adj_eye, adj_target, adj_up, adj_fov_y."""
    view = sub(target, eye)  # (1) replayed
    forward = scale(lit(1.0, fov_y) / norm(view), view)  # (2) replayed
    side = cross(forward, up)  # (3) replayed
    right = scale(lit(1.0, fov_y) / norm(side), side)  # (4) replayed
    half = lit(HALF_DEGREE, fov_y)
    focal = lit(1.0, fov_y) / math.tan(half * fov_y)  # (6) replayed

    # (6) focal = cot(h fov), cot' = -(1 + cot^2)
    adj_fov_y = -half * (lit(1.0, focal) + focal * focal) * adj_focal

    # (5) true_up = right x forward
    adj_right = add(adj_right, cross(forward, adj_true_up))
    adj_forward = add(adj_forward, cross(adj_true_up, right))

    # (4) right = side/|side|
    adj_side = unit_vjp(right, norm(side), adj_right)

    # (3) side = forward x up
    adj_forward = add(adj_forward, cross(up, adj_side))
    adj_up = cross(adj_side, forward)

    # (2) forward = view/|view|
    adj_view = unit_vjp(forward, norm(view), adj_forward)

    # (1) view = target - eye
    return neg(adj_view), adj_view, adj_up, adj_fov_y


@device_fn
def project_jvp(x, eye, frame, tan_x, tan_eye, tan_frame):
    """Screen position and depth of x, then their tangents."""
    right, true_up, forward, focal = frame
    tan_right, tan_true_up, tan_forward, tan_focal = tan_frame
    s_x, s_y, z = project(x, eye, right, true_up, forward, focal)
    d = sub(x, eye)
    tan_d = sub(tan_x, tan_eye)  # (1)
    tan_x_c = dot(tan_right, d) + dot(right, tan_d)  # (2)
    tan_y_c = dot(tan_true_up, d) + dot(true_up, tan_d)  # (3)
    tan_z = dot(tan_forward, d) + dot(forward, tan_d)  # (4)
    tan_s_x = (tan_focal * dot(right, d) + focal * tan_x_c - s_x * tan_z) / z  # (5)
    tan_s_y = (tan_focal * dot(true_up, d) + focal * tan_y_c - s_y * tan_z) / z  # (6)
    return s_x, s_y, z, tan_s_x, tan_s_y, tan_z


@device_fn
def project_vjp(x, eye, frame, adj_s_x, adj_s_y, adj_z):
    """Pull back through `project`: adj_x, then the adjoints of the four parts of the frame.

    adj_eye is -adj_x.
    """
    right, true_up, forward, focal = frame
    d = sub(x, eye)  # (1) replayed
    x_c = dot(right, d)  # (2) replayed
    y_c = dot(true_up, d)  # (3) replayed
    z = dot(forward, d)  # (4) replayed

    # (6) s_y = focal y_c/z
    adj_focal = y_c / z * adj_s_y
    adj_y_c = focal / z * adj_s_y
    adj_z = adj_z - focal * y_c / (z * z) * adj_s_y

    # (5) s_x = focal x_c/z
    adj_focal += x_c / z * adj_s_x
    adj_x_c = focal / z * adj_s_x
    adj_z = adj_z - focal * x_c / (z * z) * adj_s_x

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
    return adj_d, adj_right, adj_true_up, adj_forward, adj_focal
