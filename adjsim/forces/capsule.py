r"""Contact of nodes with a capsule, at rest or moving: all points near a segment.

    d = x - center,  h = a.d,  t = min(max(h, -L), L),  e = d - t a
    n = e/|e|,  c = R + r - |e|,  u = v - (V + Omega x d)

The segment has half length L and runs along the capsule's own y axis; a = R(theta) e_y is
where the rotation vector theta turns it. Along the side e is normal to the axis, at the
caps it comes from an end.

Kinks: those of `adjsim/forces/contact_law.py`, and between side and cap (|h| = L, which
counts as side) the slope of n jumps, n itself does not. On the segment there is no direction
to push in, and no force.

Adjoint: `adjoint/forces/capsule.py`. Tests: `tests/forces/test_capsule.py`.
Source: the law as for the half-space; the distance is exact.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from adjsim.backend import device_fn, lit
from adjsim.element import ElementKind, Parameter
from adjsim.forces.contact import (
    CONTACT_PARAMETERS,
    MOTION_PARAMETERS,
    POSE_PARAMETERS,
    Contact,
)
from adjsim.forces.contact_law import RADIUS, make_contact_force
from adjsim.forces.gap import Geometry, direction, relative_velocity
from adjsim.forces.tracks import ANGULAR_VELOCITY, AXIS, CENTER, VELOCITY, Track
from adjsim.vec3 import axpy, dot, sub


@device_fn
def capsule_gap(x, v, params, series):
    """Return the normal [-], the penetration [m] and the relative velocity [m/s] of one node."""
    half_length, capsule_radius = params[5], params[6]
    center, a, V, Omega = series[0:3], series[3:6], series[6:9], series[9:12]
    d = sub(x, center)  # (1)
    h = dot(a, d)  # (2) [m] along the axis
    t = min(max(h, -half_length), half_length)  # (3) of the segment's nearest point
    e = axpy(-t, a, d)  # (4)
    n, s = direction(e)  # (5)
    c = capsule_radius + params[RADIUS] - s  # (6)
    if s <= lit(0, s):
        c = lit(0, s)  # no direction: counts as apart
    u = relative_velocity(v, d, V, Omega)  # (7)
    return n, c, u


@device_fn
def capsule_kinks(x, params, series):
    """Return how far beyond either end of the side a node is [m]."""
    h = dot(series[3:6], sub(x, series[0:3]))
    return (h - params[5], h + params[5])


CAPSULE = ElementKind("capsule", make_contact_force(capsule_gap), 1, 0, 7, 12, uses_velocity=True)


@dataclass(frozen=True, eq=False)
class CapsuleContact(Contact):
    """Penalty contact of nodes with a solid capsule along its own y axis.

    A node on the very segment feels nothing: there is no direction to push it in.
    Pose and velocities are constant, a series with one row per step, or a `Signal`.

    Parameters
    ----------
    center : array or Signal
        Middle of the segment, (3,) or (n_steps, 3) [m].
    rotation : array or Signal
        Rotation vector theta, world-side, (3,) or (n_steps, 3) [rad]. The capsule's axis is
        exp([theta]x) applied to (0, 1, 0).
    half_length : float
        L, half the length of the segment, positive [m]. End to end it measures 2 (L + R).
    capsule_radius : float
        R, positive [m]. `radius` is that of the nodes.
    velocity : array or Signal
        V of the centre, (3,) or (n_steps, 3) [m/s].
    angular_velocity : array or Signal
        Omega in world axes, (3,) or (n_steps, 3) [rad/s].
    stiffness, damping, friction_stiffness, friction, radius, contact_nodes
        As in `Contact`, by keyword.
    """

    center: Any = (0.0, 0.0, 0.0)
    rotation: Any = (0.0, 0.0, 0.0)
    half_length: Any = 1.0
    capsule_radius: Any = 1.0
    velocity: Any = (0.0, 0.0, 0.0)
    angular_velocity: Any = (0.0, 0.0, 0.0)

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        *POSE_PARAMETERS,
        Parameter("half_length", "L", "m", "()", positive=True),
        Parameter("capsule_radius", "R", "m", "()", positive=True),
        *MOTION_PARAMETERS,
        *CONTACT_PARAMETERS,
    )
    SIZES: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = (
        ("half_length", ()),
        ("capsule_radius", ()),
    )
    TRACKS: ClassVar[tuple[Track, ...]] = (CENTER, AXIS, VELOCITY, ANGULAR_VELOCITY)
    GEOMETRY: ClassVar[Geometry] = Geometry(capsule_gap, capsule_kinks, 2)

    @property
    def kind(self) -> ElementKind:
        """Contact of one node."""
        return CAPSULE
