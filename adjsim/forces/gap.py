r"""Pieces of gap functions: the direction of a vector, and the velocity beside an obstacle.

    direction:          s = |d|, n = d/s; where s = 0 there is none, and n = d
    relative_velocity:  u = v - (V + Omega x d), d from the obstacle's centre

Of its `Geometry` a shape's kinds of element are made (`adjsim/forces/contact.py`), and diagnostics
read it (`adjsim/contact_margins.py`).

Adjoint: `adjoint/forces/gap.py`. Tests: `tests/forces/test_gap.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from adjsim.algebra.vec3 import axpy, cross, dot, norm, scale, sub
from adjsim.jit.backend import device_fn, lit


@device_fn
def no_kinks(x, params, series):
    """Return no margins: the shape's normal is smooth wherever it has one."""
    return ()


@dataclass(frozen=True)
class Geometry:
    """A shape's gap function with its tangent, and margins [m] of the kinks of its normal.

    `n_series` is how many numbers of pose and motion they read.
    kinks(x, params, series) -> `n_kinks` numbers that change sign at a kink, NaN where none is
    """

    name: str
    gap: Callable
    gap_jvp: Callable
    n_series: int
    kinks: Callable = no_kinks
    n_kinks: int = 0


@device_fn
def direction(d):
    """Return the unit vector along d and its length [m]."""
    s = norm(d)  # (1)
    n = scale(lit(1, s) / s, d) if s > lit(0, s) else d  # (2)
    return n, s


@device_fn
def direction_jvp(n, s, tan_d):
    """Push tan_d through `direction`, at its n and s: tan_n, tan_s."""
    tan_s = dot(n, tan_d)  # (1)
    tan_n = scale(lit(1, s) / s, axpy(-tan_s, n, tan_d))  # (2)
    return tan_n, tan_s


@device_fn
def relative_velocity(v, d, V, Omega):
    """Return the velocity [m/s] of a node relative to the obstacle's matter beside it."""
    return sub(sub(v, V), cross(Omega, d))  # (1)


@device_fn
def relative_velocity_jvp(d, Omega, tan_v, tan_d, tan_V, tan_Omega):
    """Push tangents through `relative_velocity`."""
    return sub(sub(sub(tan_v, tan_V), cross(tan_Omega, d)), cross(Omega, tan_d))  # (1)
