r"""Dry friction of a joint: a torque -f s(w) against the rate w of its angle, smooth at rest.

    s(w) = w / sqrt(w^2 + eps^2)

Faster than eps the torque is f whatever the rate. Slower it is viscous, f w / eps: a joint that
would stick creeps instead, and the torque has a slope everywhere.

Adjoint: `adjoint/reduced/joint_friction.py`. Tests: `tests/reduced/test_joint_friction.py`.
"""

import math

from adjsim.jit.backend import device_fn


@device_fn
def smooth_sign(w, width):
    """Return s(w), from -1 to 1; w and the width eps in rad/s."""
    return w / math.sqrt(w * w + width * width)


@device_fn
def smooth_sign_jvp(w, width, tan_w, tan_width):
    """Push tangents through `smooth_sign`."""
    root = math.sqrt(w * w + width * width)
    return width * (width * tan_w - w * tan_width) / (root * root * root)
