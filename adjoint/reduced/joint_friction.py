r"""Adjoint of `adjsim/reduced/joint_friction.py`: read the two files side by side.

ds/dw = eps^2 / (w^2 + eps^2)^(3/2),   ds/deps = -w eps / (w^2 + eps^2)^(3/2)
"""

import math

from adjsim.jit.backend import device_fn


@device_fn
def smooth_sign_vjp(w, width, adj_s):
    """Pull adj_s back through `smooth_sign`: adj_w, adj_width."""
    root = math.sqrt(w * w + width * width)
    slope = width * adj_s / (root * root * root)
    return slope * width, -slope * w
