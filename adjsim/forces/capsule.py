r"""Contact of nodes with a capsule, at rest or moving: all points near a segment.

    d = x - center,  h = a.d,  t = min(max(h, -L), L),  e = d - t a
    n = e/|e|,  c = R + r - |e|,  u = v - (V + Omega x d)

The segment has half length L and runs along the capsule's own y axis; a = R(theta) N e_y is
where the rotation vector theta turns it from its nominal direction. Along the side e is normal
to the axis, at the caps it comes from an end.

Kinks: those of `adjsim/forces/contact_law.py`, and between side and cap (|h| = L, which
counts as side) the slope of n jumps, n itself does not. On the segment there is no direction
to push in, and no force.

Adjoint: `adjoint/forces/capsule.py`. Tests: `tests/forces/test_capsule.py`.
Source: the law as for the half-space; the distance is exact.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.algebra.vec3 import axpy, dot, sub
from adjsim.forces.contact import CONTACT_PARAMETERS, MOTION_PARAMETERS, POSE_PARAMETERS, Contact
from adjsim.forces.contact_law import RADIUS, SIZE
from adjsim.forces.gap import (
    Geometry,
    direction,
    direction_jvp,
    relative_velocity,
    relative_velocity_jvp,
)
from adjsim.forces.tracks import ANGULAR_VELOCITY, AXIS, CENTER, VELOCITY, Track
from adjsim.jit.backend import device_fn, lit
from adjsim.values import Parameter


X_C, A_C, V_C, OMEGA = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)  # of a row's series
HALF_LENGTH, CAPSULE_RADIUS = SIZE, SIZE + 1  # of its parameters


@device_fn
def capsule_gap(x, v, params, series):
    """Return the normal [-], the penetration [m] and the relative velocity [m/s] of one node."""
    half_length, capsule_radius = params[HALF_LENGTH], params[CAPSULE_RADIUS]
    center, a, V, Omega = series[X_C], series[A_C], series[V_C], series[OMEGA]
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
def capsule_gap_jvp(x, v, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `capsule_gap`, where it touches."""
    half_length, tan_half_length = params[HALF_LENGTH], tan_params[HALF_LENGTH]
    center, a, Omega = series[X_C], series[A_C], series[OMEGA]
    tan_center, tan_a = tan_series[X_C], tan_series[A_C]
    tan_V, tan_Omega = tan_series[V_C], tan_series[OMEGA]
    d, tan_d = sub(x, center), sub(tan_x, tan_center)  # (1)
    h = dot(a, d)  # (2)
    t, tan_t = h, dot(tan_a, d) + dot(a, tan_d)
    if h > half_length:  # (3)
        t, tan_t = half_length, tan_half_length
    elif h < -half_length:
        t, tan_t = -half_length, -tan_half_length
    e = axpy(-t, a, d)  # (4)
    tan_e = axpy(-tan_t, a, axpy(-t, tan_a, tan_d))
    n, s = direction(e)  # (5)
    tan_n, tan_s = direction_jvp(n, s, tan_e)
    tan_c = tan_params[CAPSULE_RADIUS] + tan_params[RADIUS] - tan_s  # (6)
    tan_u = relative_velocity_jvp(d, Omega, tan_v, tan_d, tan_V, tan_Omega)  # (7)
    return tan_n, tan_c, tan_u


@device_fn
def capsule_kinks(x, params, series):
    """Return how far beyond either end of the side a node is [m]."""
    h = dot(series[A_C], sub(x, series[X_C]))
    return (h - params[HALF_LENGTH], h + params[HALF_LENGTH])


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
        exp([theta]x) applied to its own y axis where `orientation` has it.
    half_length : float
        L, half the length of the segment, positive [m]. End to end it measures 2 (L + R).
    capsule_radius : float
        R, positive [m]. `radius` belongs to the nodes.
    velocity : array or Signal
        V of the centre, (3,) or (n_steps, 3) [m/s].
    angular_velocity : array or Signal
        Omega in world axes, (3,) or (n_steps, 3) [rad/s].
    orientation : array, optional
        Nominal quaternion (x, y, z, w), (4,), of any length but 0: where theta = 0 has the
        capsule's own axes. None: along those of the world. In a capsule that spins it is
        fixed, and theta a series or a `Signal`.
    stiffness, dissipation, friction, radius, contact_nodes and others
        As in `Contact`, by keyword.
    """

    center: Any = (0.0, 0.0, 0.0)
    rotation: Any = (0.0, 0.0, 0.0)
    half_length: Any = 1.0
    capsule_radius: Any = 1.0
    velocity: Any = (0.0, 0.0, 0.0)
    angular_velocity: Any = (0.0, 0.0, 0.0)
    orientation: Any = field(default=None, kw_only=True)  # pyright: ignore[reportIncompatibleVariableOverride]

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
    GEOMETRY: ClassVar[Geometry] = Geometry(
        "capsule", capsule_gap, capsule_gap_jvp, 12, capsule_kinks, 2
    )

    def extremes(self, pose: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the ends of the segment, and the radius."""
        half = self.half_length * pose[:, 3:6]
        center = pose[:, 0:3]
        return np.stack([center - half, center + half], axis=1), float(self.capsule_radius)

    @classmethod
    def between(
        cls, first: Any, last: Any, capsule_radius: float, **options: Any
    ) -> "CapsuleContact":
        """Return the capsule about the segment between two points.

        Parameters
        ----------
        first, last : array
            Ends of the segment, (3,) [m], not at one place. It is `orientation` that turns the
            axis from the first to the last; `rotation` is 0.
        capsule_radius : float
            R, positive [m].
        **options
            The other fields, by name.

        Raises
        ------
        ValueError
            If the ends are at one place, or a number is out of range.
        """
        a, b = (checks.array(name, at, (3,)) for name, at in (("first", first), ("last", last)))
        axis, length = b - a, float(np.linalg.norm(b - a))
        if not length > 0.0:
            raise ValueError(
                f"`first` and `last` must be two places, got {a.tolist()} for both. A capsule of "
                "no length is a `SphereContact`."
            )
        turn = Rotation.align_vectors(axis[None] / length, [[0.0, 1.0, 0.0]])[0]
        return cls(
            0.5 * (a + b), half_length=0.5 * length, capsule_radius=capsule_radius,
            orientation=turn.as_quat(), **options,
        )  # fmt: skip
