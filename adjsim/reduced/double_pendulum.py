r"""A double pendulum: two point masses on rods, whose mass matrix depends on the angles.

    M(q) q'' = tau(q, q') + T - b * q',   q = (theta_1, theta_2),   D = theta_1 - theta_2

    M   = [ (m1 + m2) l1^2      m2 l1 l2 cos D ]
          [ m2 l1 l2 cos D      m2 l2^2        ]
    tau = [ -m2 l1 l2 sin D theta_2'^2 - (m1 + m2) g l1 sin theta_1 ]
          [  m2 l1 l2 sin D theta_1'^2 -  m2       g l2 sin theta_2 ]

Both angles are taken from the vertical down. The damping b is in N m s. The determinant
m2 (l1 l2)^2 (m1 + m2 sin^2 D) is written as such: nothing cancels, and it is never zero.

Adjoint: `adjoint/reduced/double_pendulum.py`. Tests: `tests/reduced/test_double_pendulum.py`.
Source: gradSim (ICLR 2021), its double pendulum; Goldstein, Classical Mechanics, sec. 1.6.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from adjsim.engine.jit.backend import device_fn
from adjsim.reduced.pendulum import Pendulum
from adjsim.reduced.pendulum_loop import PendulumKind
from adjsim.values import Parameter


@device_fn
def mass_matrix(q, params):
    """Return sin D, cos D, p = m2 l1 l2, M = (M11, M22, M12) and det M."""
    l1, l2, m1, m2 = params[0:4]
    s, c = math.sin(q[0] - q[1]), math.cos(q[0] - q[1])  # (1)
    p = m2 * l1 * l2  # (2)
    M = ((m1 + m2) * l1 * l1, m2 * l2 * l2, p * c)  # (3)
    det = p * l1 * l2 * (m1 + m2 * s * s)
    return s, c, p, M, det


@device_fn
def solve(M, det, r):
    """Return a with M a = r; M = (M11, M22, M12)."""
    return ((M[1] * r[0] - M[2] * r[1]) / det, (M[0] * r[1] - M[2] * r[0]) / det)


@device_fn
def double_pendulum_acceleration(q, u, params, torque):
    """Return both angular accelerations [rad/s2]; params are (l1, l2, m1, m2, b1, b2, g)."""
    l1, l2, m1, m2, b1, b2, g = params
    s, _, p, M, det = mass_matrix(q, params)
    w1, w2 = (m1 + m2) * g * l1, m2 * g * l2  # (4) weights times arms [N m]
    h = p * s  # (5)
    r1 = torque[0] - b1 * u[0] - h * u[1] * u[1] - w1 * math.sin(q[0])  # (6)
    r2 = torque[1] - b2 * u[1] + h * u[0] * u[0] - w2 * math.sin(q[1])  # (7)
    return solve(M, det, (r1, r2))  # (8)


DOUBLE_PENDULUM = PendulumKind("double_pendulum", double_pendulum_acceleration, 2, 7)


@dataclass(frozen=True, eq=False)
class DoublePendulum(Pendulum):
    """Two point masses on massless rods, the second hanging from the first.

    Parameters
    ----------
    length : array
        Lengths l of the rods, (2,) [m], positive.
    mass : array
        Masses m of the bobs, (2,) [kg], positive.
    damping : array
        Damping b of each angle, (2,) [N m s], not negative.
    gravity : float
        Acceleration g, () [m/s2], downwards.
    torque : array or Signal
        Generalised torques T on the two angles [N m]: (2,), or (n_steps, 2) with row k acting
        in step k, or a `Signal` of control points.

    Raises
    ------
    ValueError
        If a value has the wrong shape, is not finite, or is out of its range.
    """

    length: Any
    mass: Any = (1.0, 1.0)
    damping: Any = (0.0, 0.0)
    gravity: Any = 9.8
    torque: Any = (0.0, 0.0)

    KIND: ClassVar[PendulumKind] = DOUBLE_PENDULUM
    SHAPE: ClassVar[tuple[int, ...]] = (2,)
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("length", "l", "m", "(2,)", positive=True),
        Parameter("mass", "m", "kg", "(2,)", positive=True),
        Parameter("damping", "b", "N m s", "(2,)", positive=True),
        Parameter("gravity", "g", "m/s2", "()"),
        Parameter("torque", "T", "N m", "(2,) or (n_steps, 2)"),
    )
