r"""A double pendulum: two links, whose mass matrix depends on the angles.

    M(q) q'' = tau(q, q') + T - b * q',   q = (theta_1, theta_2),   D = theta_1 - theta_2

Link k has the mass m_k, its centre of mass at the distance c_k from its own joint, and the moment
of inertia I_k about it; J_k = I_k + m_k c_k^2. With d_k along the links, the velocities of these
centres and the Lagrangian are

    v_1 = c1 d_1',   v_2 = l1 d_1' + c2 d_2',   d_1' . d_2' = theta_1' theta_2' cos D
    L = sum of (m_k v_k^2 + I_k theta_k'^2) / 2
        + (m1 c1 + m2 l1) g cos theta_1 + m2 c2 g cos theta_2

From d/dt dL/dq' - dL/dq = torques follows, with p = m2 l1 c2,

    M   = [ J1 + m2 l1^2   p cos D ]     t1 = f1 s(theta_1')
          [ p cos D        J2      ]     t2 = f2 s(theta_2' - theta_1')
    tau = [ -p sin D theta_2'^2 - (m1 c1 + m2 l1) g sin theta_1 - t1 + t2 ]
          [  p sin D theta_1'^2 - m2 c2 g sin theta_2           - t2      ]

Point masses at the ends have c = l and I = 0. Both angles are taken from the vertical down. The
damping b acts on each angle, in N m s, as published. The dry friction f of a joint, in N m, acts
between the links that it joins: s is the smooth sign of `adjsim/reduced/joint_friction.py`. The
length l2 acts through c2 alone. The determinant J1 J2 + m2 l1^2 (I2 + m2 c2^2 sin^2 D) is written
as such: nothing cancels, and it is never zero.

Adjoint: `adjoint/reduced/double_pendulum.py`. Tests: `tests/reduced/test_double_pendulum.py`.
Source: gradSim (ICLR 2021), its double pendulum; Goldstein, Classical Mechanics, sec. 1.4, 1.6.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from adjsim.jit.backend import device_fn
from adjsim.reduced.joint_friction import smooth_sign
from adjsim.reduced.pendulum import WIDTH, Pendulum
from adjsim.reduced.pendulum_loop import PendulumKind
from adjsim.values import Parameter


LINKS, WITH_MOMENTS, JOINTS = slice(0, 6), slice(0, 8), slice(8, 14)  # of the parameters


@device_fn
def mass_matrix(q, params):
    """Return sin D, cos D, p = m2 l1 c2, M = (M11, M22, M12) and det M."""
    l1, _, m1, m2, c1, c2, I1, I2 = params[WITH_MOMENTS]
    s, cos = math.sin(q[0] - q[1]), math.cos(q[0] - q[1])  # (1)
    p = m2 * l1 * c2  # (2)
    J1, J2 = I1 + m1 * c1 * c1, I2 + m2 * c2 * c2  # (3)
    carried = m2 * l1 * l1
    M = (J1 + carried, J2, p * cos)  # (4)
    det = J1 * J2 + carried * (I2 + m2 * c2 * c2 * s * s)
    return s, cos, p, M, det


@device_fn
def solve(M, det, r):
    """Return a with M a = r; M = (M11, M22, M12)."""
    return ((M[1] * r[0] - M[2] * r[1]) / det, (M[0] * r[1] - M[2] * r[0]) / det)


@device_fn
def double_pendulum_acceleration(q, u, params, torque):
    """Return both angular accelerations [rad/s2].

    params are (l1, l2, m1, m2, c1, c2, I1, I2, b1, b2, f1, f2, eps, g).
    """
    l1, _, m1, m2, c1, c2 = params[LINKS]
    b1, b2, f1, f2, eps, g = params[JOINTS]
    s, _, p, M, det = mass_matrix(q, params)
    w1, w2 = (m1 * c1 + m2 * l1) * g, m2 * c2 * g  # (5) weights times arms [N m]
    h = p * s  # (6)
    dry1, dry2 = f1 * smooth_sign(u[0], eps), f2 * smooth_sign(u[1] - u[0], eps)  # (7)
    r1 = torque[0] - b1 * u[0] - dry1 + dry2 - h * u[1] * u[1] - w1 * math.sin(q[0])  # (8)
    r2 = torque[1] - b2 * u[1] - dry2 + h * u[0] * u[0] - w2 * math.sin(q[1])  # (9)
    return solve(M, det, (r1, r2))  # (10)


DOUBLE_PENDULUM = PendulumKind("double_pendulum", double_pendulum_acceleration, 2, 14)


@dataclass(frozen=True, eq=False)
class DoublePendulum(Pendulum):
    """Two links, the second hanging from the first; by default point masses on massless rods.

    Parameters
    ----------
    length : array
        Lengths l of the links, (2,) [m], positive.
    mass : array
        Masses m of the links, (2,) [kg], positive.
    damping : array
        Damping b of each angle, (2,) [N m s], not negative.
    gravity : float
        Acceleration g, () [m/s2], downwards.
    torque : array or Signal
        Generalised torques T on the two angles [N m]: (2,), or (n_steps, 2) with row k acting
        in step k, or a `Signal` of control points.
    center_of_mass : array, optional
        Distances c of the centres of mass from the links' own joints, (2,) [m], positive. None:
        the lengths. They are parameters where they are given.
    inertia : array
        Moments of inertia I about the centres of mass, (2,) [kg m2], not negative.
    friction : array
        Dry friction f of the pivot and of the joint between the links, (2,) [N m], not negative.
    friction_width : float
        Rate eps below which dry friction is viscous, () [rad/s], positive.

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
    center_of_mass: Any = None
    inertia: Any = (0.0, 0.0)
    friction: Any = (0.0, 0.0)
    friction_width: Any = WIDTH

    KIND: ClassVar[PendulumKind] = DOUBLE_PENDULUM
    SHAPE: ClassVar[tuple[int, ...]] = (2,)
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("length", "l", "m", "(2,)", positive=True),
        Parameter("mass", "m", "kg", "(2,)", positive=True),
        Parameter("damping", "b", "N m s", "(2,)", positive=True),
        Parameter("gravity", "g", "m/s2", "()"),
        Parameter("torque", "T", "N m", "(2,) or (n_steps, 2)"),
        Parameter("center_of_mass", "c", "m", "(2,)", positive=True),
        Parameter("inertia", "I", "kg m2", "(2,)", positive=True),
        Parameter("friction", "f", "N m", "(2,)", positive=True),
        Parameter("friction_width", "ε", "rad/s", "()", positive=True),
    )
