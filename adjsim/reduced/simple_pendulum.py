r"""A simple pendulum: a point mass on a rod, driven by a torque.

    theta'' = -(g/l) sin theta - (b/m) theta' + T/(m l^2)

The angle is taken from the vertical down. The damping b is in kg/s, as published.

Adjoint: `adjoint/reduced/simple_pendulum.py`. Tests: `tests/reduced/test_simple_pendulum.py`.
Source: gradSim (ICLR 2021), its pendulum; Goldstein, Classical Mechanics, sec. 3.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from adjsim.engine.jit.backend import device_fn
from adjsim.reduced.pendulum import Pendulum
from adjsim.reduced.pendulum_loop import PendulumKind
from adjsim.values import Parameter


@device_fn
def simple_pendulum_acceleration(q, u, params, torque):
    """Return the angular acceleration [rad/s2] of one angle; params are (l, m, b, g)."""
    l, m, b, g = params
    s = math.sin(q[0])  # (1)
    fall = g * s / l  # (2)
    drag = b * u[0] / m  # (3)
    push = torque[0] / (m * l * l)  # (4)
    return (push - fall - drag,)  # (5)


SIMPLE_PENDULUM = PendulumKind("simple_pendulum", simple_pendulum_acceleration, 1, 4)


@dataclass(frozen=True, eq=False)
class SimplePendulum(Pendulum):
    """A point mass on a massless rod.

    Parameters
    ----------
    length : float
        Length l of the rod, () [m], positive.
    mass : float
        Mass m of the bob, () [kg], positive.
    damping : float
        Damping b, () [kg/s], not negative.
    gravity : float
        Acceleration g, () [m/s2], downwards.
    torque : float, array or Signal
        Torque T about the pivot [N m]: (), or (n_steps,) with row k acting in step k, or a
        `Signal` of control points.

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

    KIND: ClassVar[PendulumKind] = SIMPLE_PENDULUM
    SHAPE: ClassVar[tuple[int, ...]] = ()
    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("length", "l", "m", "()", positive=True),
        Parameter("mass", "m", "kg", "()", positive=True),
        Parameter("damping", "b", "kg/s", "()", positive=True),
        Parameter("gravity", "g", "m/s2", "()"),
        Parameter("torque", "T", "N m", "() or (n_steps,)"),
    )
