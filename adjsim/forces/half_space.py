r"""Contact of nodes with the half-space {p : n.p >= h}, with cone friction.

    c = h + r - n.x,   u = v       where c > 0 the node is c deep

The force is that of `adjsim/forces/contact_law.py`, whose kinks are its kinks.

Adjoint: `adjoint/forces/half_space.py`. Tests: `tests/forces/test_half_space.py`.
Source: gradSim (ICLR 2021) app. A.1 and C.2.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.backend import device_fn
from adjsim.element import ElementKind, Parameter
from adjsim.forces.contact import CONTACT_PARAMETERS, Contact
from adjsim.forces.contact_law import RADIUS, make_contact_force
from adjsim.vec3 import dot


@device_fn
def half_space_gap(x, v, params, series):
    """Return the normal [-], the penetration [m] and the velocity [m/s] of one node."""
    n, height = params[5:8], params[8]
    c = height + params[RADIUS] - dot(n, x)  # (1)
    return n, c, v


HALF_SPACE = ElementKind(
    "half_space", make_contact_force(half_space_gap), 1, 0, 9, 0, uses_velocity=True
)


@dataclass(frozen=True, eq=False)
class HalfSpaceContact(Contact):
    """Penalty contact of nodes with a plane, and everything behind it.

    Parameters
    ----------
    normal : array
        Any vector m != 0, (3,); n = m/|m| points out of the obstacle [-].
    height : float
        h in n.p >= h [m].
    stiffness, damping, friction_stiffness, friction, radius, contact_nodes
        As in `Contact`, by keyword.
    """

    normal: Any = (0.0, 1.0, 0.0)
    height: Any = 0.0

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("normal", "n", "-", "(3,)"),
        Parameter("height", "h", "m", "()"),
        *CONTACT_PARAMETERS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        normal = checks.array("normal", self.normal, (3,))
        if not np.linalg.norm(normal) > 0.0:
            raise ValueError("`normal` must not be zero: it gives the plane's direction.")
        checks.freeze(self, "normal", normal)
        checks.freeze(self, "height", checks.array("height", self.height, ()))

    @property
    def kind(self) -> ElementKind:
        """Contact of one node."""
        return HALF_SPACE

    def shape_rows(self) -> tuple[Any, ...]:
        """N (3) and h."""
        return (*(self.normal / np.linalg.norm(self.normal)), self.height)
