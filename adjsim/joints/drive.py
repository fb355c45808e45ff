r"""What acts along or about the axis of a joint: motor, friction, spring, limits.

    tau = m(t) - b w - T_c s(w) - k_s (q - q_0) - k_l (max(0, q - q_max) - max(0, q_min - q))

on body B, the opposite on A. q is the angle of a hinge [rad] or the length of a slider [m], w its
rate, s the smooth sign of `adjsim/reduced/joint_friction.py`. Kinks: q at a limit, where the
derivative outside of it is 0.

Adjoint: `adjoint/joints/drive.py`. Tests: `tests/joints/test_drive.py`.
"""

from adjsim.jit.backend import device_fn, lit
from adjsim.reduced.joint_friction import smooth_sign, smooth_sign_jvp


@device_fn
def beyond(q, low, high):
    """Return by how much q is beyond a limit: positive above, negative below, 0 between."""
    zero = lit(0, q)
    return max(zero, q - high) - max(zero, low - q)


@device_fn
def is_beyond(q, low, high):
    """Return the slopes of `beyond` in its upper and in its lower limit: -1 or 0 each."""
    zero = lit(0, q)
    return lit(-1, q) if q > high else zero, lit(-1, q) if q < low else zero


@device_fn
def drive(q, w, params, motor):
    """Return tau; `params` is b, T_c, eps, k_s, q_0, k_l, q_min, q_max."""
    b, dry, width, k_s, rest, k_l, low, high = params
    sign = smooth_sign(w, width)  # (1)
    out = beyond(q, low, high)  # (2)
    return motor - b * w - dry * sign - k_s * (q - rest) - k_l * out  # (3)


@device_fn
def drive_jvp(q, w, params, motor, tan_q, tan_w, tan_params, tan_motor):
    """Push tangents through `drive`."""
    b, dry, width, k_s, rest, k_l, low, high = params
    tan_b, tan_dry, tan_width, tan_k_s, tan_rest, tan_k_l, tan_low, tan_high = tan_params
    sign = smooth_sign(w, width)  # (1)
    tan_sign = smooth_sign_jvp(w, width, tan_w, tan_width)
    out = beyond(q, low, high)  # (2)
    above, below = is_beyond(q, low, high)
    tan_out = above * (tan_high - tan_q) + below * (tan_low - tan_q)
    tan = tan_motor - tan_b * w - b * tan_w - tan_dry * sign - dry * tan_sign  # (3)
    tan -= tan_k_s * (q - rest) + k_s * (tan_q - tan_rest)
    return tan - tan_k_l * out - k_l * tan_out
