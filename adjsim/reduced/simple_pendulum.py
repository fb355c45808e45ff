r"""A simple pendulum: a link of mass m that swings about a pivot, driven by a torque.

    J theta'' = T - m g c sin theta - b l^2 theta' - f s(theta'),   J = I + m c^2

The centre of mass is at the distance c from the pivot, I is the moment of inertia about it. From

    L = J theta'^2 / 2 + m g c cos theta,   d/dt dL/dtheta' - dL/dtheta = torques

A point mass at the end of the rod has c = l and I = 0, and without friction

    theta'' = -(g/l) sin theta - (b/m) theta' + T/(m l^2)

The angle is taken from the vertical down. The damping b is in kg/s, as published: that of a force
b l theta' at the end of the rod. The friction f of the pivot is in N m, its smooth sign s that of
`adjsim/reduced/joint_friction.py`.

Adjoint: `adjoint/reduced/simple_pendulum.py`. Tests: `tests/reduced/test_simple_pendulum.py`.
Source: gradSim (ICLR 2021), its pendulum; Goldstein, Classical Mechanics, sec. 1.4, 3.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from adjsim.jit.backend import device_fn
from adjsim.reduced.joint_friction import smooth_sign
from adjsim.reduced.pendulum import WIDTH, Pendulum
from adjsim.reduced.pendulum_loop import PendulumKind
from adjsim.values import Parameter


@device_fn
def simple_pendulum_acceleration(q, u, params, torque):
    """Return the angular acceleration [rad/s2]; params are (l, m, c, I, b, f, eps, g)."""
    l, m, c, I, b, f, eps, g = params
    s = math.sin(q[0])  # (1)
    J = I + m * c * c  # (2)
    fall = m * g * c * s  # (3)
    drag = b * l * l * u[0]  # (4)
    dry = f * smooth_sign(u[0], eps)  # (5)
    return ((torque[0] - fall - drag - dry) / J,)  # (6)


SIMPLE_PENDULUM = PendulumKind("simple_pendulum", simple_pendulum_acceleration, 1, 8)


@dataclass(frozen=True, eq=False)
class SimplePendulum(Pendulum):
    """One link that swings about a pivot; by default a point mass on a massless rod.

    Parameters
    ----------
    length : float
        Length l of the link, () [m], positive.
    mass : float
        Mass m, () [kg], positive.
    damping : float
        Damping b, () [kg/s], not negative.
    gravity : float
        Acceleration g, () [m/s2], downwards.
    torque : float, array or Signal
        Torque T about the pivot [N m]: (), or (n_steps,) with row k acting in step k, or a
        `Signal` of control points.
    center_of_mass : float, optional
        Distance c of the centre of mass from the pivot, () [m], positive. None: the length. It is
        a parameter where it is given.
    inertia : float
        Moment of inertia I about the centre of mass, () [kg m2], not negative.
    friction : float
        Dry friction f of the pivot, () [N m], not negative.
    friction_width : float
        Rate eps below which dry friction is viscous, () [rad/s], positive. A step of dt is stable
        at rest where dt f < 2 J eps.

    Raises
    ------
    ValueError
        If a value has the wrong shape, is not finite, or is out of its range.
    """

    length: Any
    mass: Any = 1.0
    damping: Any = 0.0
    gravity: Any = 9.8
    torque: Any = 0.0
    center_of_mass: Any = None
    inertia: Any = 0.0
    friction: Any = 0.0
    friction_width: Any = WIDTH

    KIND: ClassVar[PendulumKind] = SIMPLE_PENDULUM
    SHAPE: ClassVar[tuple[int, ...]] = ()
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("length", "l", "m", "()", positive=True),
        Parameter("mass", "m", "kg", "()", positive=True),
        Parameter("damping", "b", "kg/s", "()", positive=True),
        Parameter("gravity", "g", "m/s2", "()"),
        Parameter("torque", "T", "N m", "() or (n_steps,)"),
        Parameter("center_of_mass", "c", "m", "()", positive=True),
        Parameter("inertia", "I", "kg m2", "()", positive=True),
        Parameter("friction", "f", "N m", "()", positive=True),
        Parameter("friction_width", "ε", "rad/s", "()", positive=True),
    )
