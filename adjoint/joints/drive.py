r"""Adjoint of `adjsim/joints/drive.py`, which has the tangent: read them side by side."""

from adjoint.reduced.joint_friction import smooth_sign_vjp
from adjsim.jit.backend import device_fn
from adjsim.joints.drive import beyond, is_beyond
from adjsim.reduced.joint_friction import smooth_sign


@device_fn
def drive_vjp(q, w, params, adj_tau):
    """Pull adj_tau back through `drive`: q, w and `params`; that of the motor is adj_tau."""
    b, dry, width, k_s, rest, k_l, low, high = params
    sign = smooth_sign(w, width)  # (1) replayed
    out = beyond(q, low, high)  # (2) replayed

    # (3) tau = m - b w - T_c s - k_s (q - q_0) - k_l out
    adj_b = -w * adj_tau
    adj_dry = -sign * adj_tau
    adj_k_s = (rest - q) * adj_tau
    adj_rest = k_s * adj_tau
    adj_k_l = -out * adj_tau
    adj_out = -k_l * adj_tau

    # (2) out = max(0, q - q_max) - max(0, q_min - q)
    above, below = is_beyond(q, low, high)
    adj_high, adj_low = above * adj_out, below * adj_out
    adj_q = -k_s * adj_tau - adj_high - adj_low

    # (1) s = w / sqrt(w^2 + eps^2)
    adj_w, adj_width = smooth_sign_vjp(w, width, -dry * adj_tau)
    adj_w -= b * adj_tau
    return adj_q, adj_w, (adj_b, adj_dry, adj_width, adj_k_s, adj_rest, adj_k_l, adj_low, adj_high)
