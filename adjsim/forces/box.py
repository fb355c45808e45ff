r"""Contact of nodes with a box, at rest or moving.

    d = x - center,  y = R^T d,  R = exp([theta]x) N;  c = r - s,  u = v - (V + Omega x d)
    outside:  e = y - (the box's point nearest to y),  s = |e|,  n = R e/|e|
    inside:   s = max_i (|y_i| - b_i) <= 0, that of the nearest face, n its normal

with the half extents b along the box's own axes, which N has where theta = 0: the exact signed
distance. Outside, e has
one component beside a face, two beside an edge, three beside a corner.

Kinks: those of `adjsim/forces/contact_law.py`; outside, between face and edge or edge and
corner (|y_i| = b_i, which counts as the face's side), the slope of n jumps, n itself does
not; inside, n jumps where two faces are equally near (the first axis is taken), and where
y_i = 0 between opposite faces (the positive one). On the surface counts as inside.

Adjoint: `adjoint/forces/box.py`. Tests: `tests/forces/test_box.py`.
Source: the law as for the half-space; the distance is exact.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from adjsim.algebra.mat3 import matvec
from adjsim.algebra.vec3 import add, dot, sub
from adjsim.forces.contact import CONTACT_PARAMETERS, MOTION_PARAMETERS, POSE_PARAMETERS, Contact
from adjsim.forces.contact_law import RADIUS, SIZE
from adjsim.forces.gap import (
    Geometry,
    direction,
    direction_jvp,
    relative_velocity,
    relative_velocity_jvp,
)
from adjsim.forces.tracks import ANGULAR_VELOCITY, CENTER, ROTATION, VELOCITY, Track
from adjsim.jit.backend import device_fn, lit
from adjsim.values import Parameter


NAN = float("nan")


X_C, R_1, R_2, R_3 = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)  # of a row's series
V_C, OMEGA = slice(12, 15), slice(15, 18)
HALF_EXTENTS = slice(SIZE, None)  # of its parameters


@device_fn
def excess(y, b):
    """Return by how much a coordinate [m] lies beyond -b or b; 0 between them."""
    return y - min(max(y, -b), b)


@device_fn
def excess_jvp(y, b, tan_y, tan_b):
    """Push tangents through `excess`."""
    e = excess(y, b)
    zero = lit(0, e)
    if e > zero:
        return tan_y - tan_b
    return tan_y + tan_b if e < zero else zero


@device_fn
def nearest_face(y, b):
    """Return the normal of the nearest face, in the box's axes, and the distance s <= 0 [m]."""
    zero, unity = lit(0, y[0]), lit(1, y[0])
    s0, s1, s2 = abs(y[0]) - b[0], abs(y[1]) - b[1], abs(y[2]) - b[2]
    if s0 >= s1 and s0 >= s2:
        return (unity if y[0] >= zero else -unity, zero, zero), s0
    if s1 >= s2:
        return (zero, unity if y[1] >= zero else -unity, zero), s1
    return (zero, zero, unity if y[2] >= zero else -unity), s2


@device_fn
def box_distance(y, b):
    """Return the normal, in the box's axes, and the signed distance s [m] of a point y."""
    e = (excess(y[0], b[0]), excess(y[1], b[1]), excess(y[2], b[2]))  # (1)
    n, s = direction(e)  # (2) outside
    if s <= lit(0, s):
        n, s = nearest_face(y, b)  # (2) inside
    return n, s


@device_fn
def box_distance_jvp(y, b, tan_y, tan_b):
    """Push tangents through `box_distance`: tan_n, tan_s."""
    n, s = box_distance(y, b)
    zero = lit(0, s)
    if s > zero:
        tan_e = (
            excess_jvp(y[0], b[0], tan_y[0], tan_b[0]),
            excess_jvp(y[1], b[1], tan_y[1], tan_b[1]),
            excess_jvp(y[2], b[2], tan_y[2], tan_b[2]),
        )  # (1)
        return direction_jvp(n, s, tan_e)  # (2) outside
    tan_s = dot(n, tan_y) - abs(n[0]) * tan_b[0] - abs(n[1]) * tan_b[1] - abs(n[2]) * tan_b[2]
    return (zero, zero, zero), tan_s  # (2) inside


@device_fn
def box_gap(x, v, params, series):
    """Return the normal [-], the penetration [m] and the relative velocity [m/s] of one node."""
    center, V, Omega = series[X_C], series[V_C], series[OMEGA]
    R = (series[R_1], series[R_2], series[R_3])
    d = sub(x, center)  # (3)
    y = (dot(R[0], d), dot(R[1], d), dot(R[2], d))  # (4) = R^T d
    n_box, s = box_distance(y, params[HALF_EXTENTS])  # (5)
    n = matvec(R, n_box)  # (6)
    c = params[RADIUS] - s  # (7)
    u = relative_velocity(v, d, V, Omega)  # (8)
    return n, c, u


@device_fn
def box_gap_jvp(x, v, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `box_gap`, where it touches."""
    center, Omega = series[X_C], series[OMEGA]
    R = (series[R_1], series[R_2], series[R_3])
    tan_center, tan_V, tan_Omega = tan_series[X_C], tan_series[V_C], tan_series[OMEGA]
    tan_R = (tan_series[R_1], tan_series[R_2], tan_series[R_3])
    b, tan_b = params[HALF_EXTENTS], tan_params[HALF_EXTENTS]
    d, tan_d = sub(x, center), sub(tan_x, tan_center)  # (3)
    y = (dot(R[0], d), dot(R[1], d), dot(R[2], d))  # (4)
    tan_y = (
        dot(tan_R[0], d) + dot(R[0], tan_d),
        dot(tan_R[1], d) + dot(R[1], tan_d),
        dot(tan_R[2], d) + dot(R[2], tan_d),
    )
    n_box, _ = box_distance(y, b)  # (5)
    tan_n_box, tan_s = box_distance_jvp(y, b, tan_y, tan_b)
    tan_n = add(matvec(tan_R, n_box), matvec(R, tan_n_box))  # (6)
    tan_c = tan_params[RADIUS] - tan_s  # (7)
    tan_u = relative_velocity_jvp(d, Omega, tan_v, tan_d, tan_V, tan_Omega)  # (8)
    return tan_n, tan_c, tan_u


@device_fn
def box_kinks(x, params, series):
    """Return the margins [m] between face, edge and corner, or inside between any two faces."""
    d, b = sub(x, series[X_C]), params[HALF_EXTENTS]
    y = (dot(series[R_1], d), dot(series[R_2], d), dot(series[R_3], d))
    s0, s1, s2 = abs(y[0]) - b[0], abs(y[1]) - b[1], abs(y[2]) - b[2]
    zero, none = lit(0, s0), lit(NAN, s0)
    nearest = max(s0, s1, s2)
    if nearest <= zero:
        farthest = min(s0, s1, s2)
        across = y[0] if s0 == nearest else (y[1] if s1 == nearest else y[2])
        return (nearest - (s0 + s1 + s2 - nearest - farthest), across, none)
    # |y_i| = b_i is the plane of a face: a kink only beside what another axis is beyond
    return (
        s0 if max(s1, s2) > zero else none,
        s1 if max(s0, s2) > zero else none,
        s2 if max(s0, s1) > zero else none,
    )


@dataclass(frozen=True, eq=False)
class BoxContact(Contact):
    """Penalty contact of nodes with a solid box.

    Pose and velocities are constant, a series with one row per step, or a `Signal`.

    Parameters
    ----------
    center : array or Signal
        (3,) or (n_steps, 3) [m].
    rotation : array or Signal
        Rotation vector theta, world-side, (3,) or (n_steps, 3) [rad]; exp([theta]x) turns the
        box's own axes from where `orientation` has them.
    half_extents : array
        b, half the edges along the box's axes, (3,), positive [m].
    velocity : array or Signal
        V of the centre, (3,) or (n_steps, 3) [m/s].
    angular_velocity : array or Signal
        Omega in world axes, (3,) or (n_steps, 3) [rad/s].
    orientation : array, optional
        Nominal quaternion (x, y, z, w), (4,), of any length but 0: where theta = 0 has the
        box's own axes. None: along those of the world. In a box that spins it is fixed, and
        theta a series or a `Signal`.
    stiffness, dissipation, friction, radius, contact_nodes and others
        As in `Contact`, by keyword.
    """

    center: Any = (0.0, 0.0, 0.0)
    rotation: Any = (0.0, 0.0, 0.0)
    half_extents: Any = (1.0, 1.0, 1.0)
    velocity: Any = (0.0, 0.0, 0.0)
    angular_velocity: Any = (0.0, 0.0, 0.0)
    orientation: Any = field(default=None, kw_only=True)  # pyright: ignore[reportIncompatibleVariableOverride]

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        *POSE_PARAMETERS,
        Parameter("half_extents", "b", "m", "(3,)", positive=True),
        *MOTION_PARAMETERS,
        *CONTACT_PARAMETERS,
    )
    SIZES: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = (("half_extents", (3,)),)
    TRACKS: ClassVar[tuple[Track, ...]] = (CENTER, ROTATION, VELOCITY, ANGULAR_VELOCITY)
    GEOMETRY: ClassVar[Geometry] = Geometry("box", box_gap, box_gap_jvp, 18, box_kinks, 3)

    def extremes(self, pose: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the corners."""
        corners = self.half_extents * (2.0 * np.indices((2, 2, 2)).reshape(3, 8).T - 1.0)
        return pose[:, None, 0:3] + corners @ pose[:, 3:12].reshape(-1, 3, 3), 0.0
