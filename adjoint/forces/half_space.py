r"""Adjoint of `adjsim/forces/half_space.py`: read the two files side by side."""

import numpy as np

from adjoint.element import TwinKind
from adjoint.forces.contact import ContactTwin
from adjoint.forces.contact_law import make_contact_jvp, make_contact_vjp
from adjsim.backend import device_fn
from adjsim.forces.contact_law import RADIUS
from adjsim.forces.half_space import HALF_SPACE, HalfSpaceContact, half_space_gap
from adjsim.vec3 import axpy, dot, scale


@device_fn
def half_space_gap_jvp(x, v, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `half_space_gap`."""
    n, tan_n, tan_height = params[5:8], tan_params[5:8], tan_params[8]
    tan_c = tan_height + tan_params[RADIUS] - dot(tan_n, x) - dot(n, tan_x)  # (1)
    return tan_n, tan_c, tan_v


@device_fn
def half_space_gap_vjp(x, v, params, series, adj_n, adj_c, adj_u):
    """Pull cotangents back through `half_space_gap`."""
    n = params[5:8]
    # (1) c = h + r - n.x
    adj_x = scale(-adj_c, n)
    adj_n = axpy(-adj_c, x, adj_n)
    return adj_x, adj_u, (adj_c, *adj_n, adj_c), ()


HALF_SPACE_TWIN = TwinKind(
    HALF_SPACE,
    make_contact_jvp(half_space_gap, half_space_gap_jvp),
    make_contact_vjp(half_space_gap, half_space_gap_vjp, HALF_SPACE.n_params, HALF_SPACE.n_series),
)


class HalfSpaceContactTwin(ContactTwin[HalfSpaceContact]):
    """The twin of `HalfSpaceContact`. Packing: n = m/|m|."""

    def __init__(self) -> None:
        super().__init__(HALF_SPACE_TWIN)

    def shape_vjp(self, force: HalfSpaceContact, adj_rows: np.ndarray) -> dict[str, np.ndarray]:
        """Pull the cotangents of n and h back; that of the normal is tangential."""
        length = np.linalg.norm(force.normal)
        n = force.normal / length
        adj_n = adj_rows[:3]
        return {"normal": (adj_n - np.dot(n, adj_n) * n) / length, "height": adj_rows[3]}

    def shape_jvp(self, force: HalfSpaceContact, tangents: dict[str, np.ndarray]) -> np.ndarray:
        """Push tangents of m and h to n and h."""
        length = np.linalg.norm(force.normal)
        n = force.normal / length
        tan_m = tangents.get("normal", np.zeros(3))
        tan_n = (tan_m - np.dot(n, tan_m) * n) / length
        return np.array([*tan_n, tangents.get("height", 0.0)])
