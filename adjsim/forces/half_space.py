r"""Contact of nodes with the half-space {p : n.p >= h}, at rest or moving.

    c = h + r - n.x,   u = v - V       where c > 0 the node is c deep

V is the plane's velocity. `adjsim/forces/contact_law.py` turns c and u into a force and says where
it has kinks.

Adjoint: `adjoint/forces/half_space.py`. Tests: `tests/forces/test_half_space.py`.
Source: gradSim (ICLR 2021) app. A.1 and C.2.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim.algebra.vec3 import dot, sub
from adjsim.forces.contact import CONTACT_PARAMETERS, Contact
from adjsim.forces.contact_law import RADIUS
from adjsim.forces.gap import Geometry
from adjsim.forces.tracks import VELOCITY, Track, as_rows, unit_rows
from adjsim.jit.backend import device_fn
from adjsim.series import series_values
from adjsim.values import Parameter


NORMAL, HEIGHT, V_P = slice(0, 3), 3, slice(4, 7)  # of a row's series: n, h and V


@device_fn
def half_space_gap(x, v, params, series):
    """Return the normal [-], the penetration [m] and the relative velocity [m/s] of one node."""
    n, height, V = series[NORMAL], series[HEIGHT], series[V_P]
    c = height + params[RADIUS] - dot(n, x)  # (1)
    u = sub(v, V)  # (2)
    return n, c, u


@device_fn
def half_space_gap_jvp(x, v, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `half_space_gap`."""
    n = series[NORMAL]
    tan_n, tan_height, tan_V = tan_series[NORMAL], tan_series[HEIGHT], tan_series[V_P]
    tan_c = tan_height + tan_params[RADIUS] - dot(tan_n, x) - dot(n, tan_x)  # (1)
    tan_u = sub(tan_v, tan_V)  # (2)
    return tan_n, tan_c, tan_u


@dataclass(frozen=True, eq=False)
class HalfSpaceContact(Contact):
    """Penalty contact of nodes with a plane, and everything behind it.

    Each of its own parameters is constant, a series with one row per step, or a `Signal`.

    Parameters
    ----------
    normal : array or Signal
        Any vector m != 0, (3,) or (n_steps, 3); n = m/|m| points out of the obstacle [-].
    height : float, array or Signal
        h in n.p >= h, () or (n_steps,) [m].
    velocity : array or Signal
        V, (3,) or (n_steps, 3) [m/s].
    stiffness, dissipation, friction, radius, contact_nodes and others
        As in `Contact`, by keyword.
    """

    normal: Any = (0.0, 1.0, 0.0)
    height: Any = 0.0
    velocity: Any = (0.0, 0.0, 0.0)

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("normal", "n", "-", "(3,) or (n_steps, 3)"),
        Parameter("height", "h", "m", "() or (n_steps,)"),
        Parameter("velocity", "V", "m/s", "(3,) or (n_steps, 3)"),
        *CONTACT_PARAMETERS,
    )
    TRACKS: ClassVar[tuple[Track, ...]] = (
        Track("normal", (3,), unit_rows),
        Track("height", (), as_rows),
        VELOCITY,
    )
    GEOMETRY: ClassVar[Geometry] = Geometry("half_space", half_space_gap, half_space_gap_jvp, 7)

    def __post_init__(self) -> None:
        super().__post_init__()
        unit_rows(np.atleast_2d(series_values(self.normal)))  # none is zero
