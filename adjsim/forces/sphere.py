r"""Contact of nodes with a sphere, at rest or moving.

    d = x - center,   n = d/|d|,   c = R + r - |d|,   u = v - (V + Omega x d)

`adjsim/forces/contact_law.py` turns c and u into a force and says where it has kinks. At the very
centre there is no direction to push in, and no force.

Adjoint: `adjoint/forces/sphere.py`. Tests: `tests/forces/test_sphere.py`.
Source: the law as for the half-space; the distance is exact.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim.algebra.vec3 import sub
from adjsim.forces.contact import CONTACT_PARAMETERS, MOTION_PARAMETERS, Contact
from adjsim.forces.contact_law import RADIUS, SIZE
from adjsim.forces.gap import (
    Geometry,
    direction,
    direction_jvp,
    relative_velocity,
    relative_velocity_jvp,
)
from adjsim.forces.tracks import ANGULAR_VELOCITY, CENTER, VELOCITY, Track
from adjsim.jit.backend import device_fn, lit
from adjsim.values import Parameter


X_C, V_C, OMEGA = slice(0, 3), slice(3, 6), slice(6, 9)  # of a row's series


@device_fn
def sphere_gap(x, v, params, series):
    """Return the normal [-], the penetration [m] and the relative velocity [m/s] of one node."""
    sphere_radius = params[SIZE]
    center, V, Omega = series[X_C], series[V_C], series[OMEGA]
    d = sub(x, center)  # (1)
    n, s = direction(d)  # (2)
    c = sphere_radius + params[RADIUS] - s  # (3)
    if s <= lit(0, s):
        c = lit(0, s)  # no direction: counts as apart
    u = relative_velocity(v, d, V, Omega)  # (4)
    return n, c, u


@device_fn
def sphere_gap_jvp(x, v, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `sphere_gap`, where it touches."""
    center, Omega = series[X_C], series[OMEGA]
    tan_center, tan_V, tan_Omega = tan_series[X_C], tan_series[V_C], tan_series[OMEGA]
    d, tan_d = sub(x, center), sub(tan_x, tan_center)  # (1)
    n, s = direction(d)  # (2)
    tan_n, tan_s = direction_jvp(n, s, tan_d)
    tan_c = tan_params[SIZE] + tan_params[RADIUS] - tan_s  # (3)
    tan_u = relative_velocity_jvp(d, Omega, tan_v, tan_d, tan_V, tan_Omega)  # (4)
    return tan_n, tan_c, tan_u


@dataclass(frozen=True, eq=False)
class SphereContact(Contact):
    """Penalty contact of nodes with a solid sphere.

    A node at the very centre feels nothing: there is no direction to push it in.
    Pose and velocities are constant, a series with one row per step, or a `Signal`.

    Parameters
    ----------
    center : array or Signal
        (3,) or (n_steps, 3) [m].
    sphere_radius : float
        R, positive [m]. `radius` belongs to the nodes.
    velocity : array or Signal
        V of the centre, (3,) or (n_steps, 3) [m/s].
    angular_velocity : array or Signal
        Omega in world axes, (3,) or (n_steps, 3) [rad/s]; it acts through friction.
    stiffness, dissipation, friction, radius, contact_nodes and others
        As in `Contact`, by keyword.
    """

    center: Any = (0.0, 0.0, 0.0)
    sphere_radius: Any = 1.0
    velocity: Any = (0.0, 0.0, 0.0)
    angular_velocity: Any = (0.0, 0.0, 0.0)

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("center", "x_c", "m", "(3,) or (n_steps, 3)"),
        Parameter("sphere_radius", "R", "m", "()", positive=True),
        *MOTION_PARAMETERS,
        *CONTACT_PARAMETERS,
    )
    SIZES: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = (("sphere_radius", ()),)
    TRACKS: ClassVar[tuple[Track, ...]] = (CENTER, VELOCITY, ANGULAR_VELOCITY)
    GEOMETRY: ClassVar[Geometry] = Geometry("sphere", sphere_gap, sphere_gap_jvp, 9)

    def extremes(self, pose: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the centre and the radius of the sphere."""
        return pose[:, None, 0:3], float(self.sphere_radius)
