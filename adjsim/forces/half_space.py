r"""Contact of nodes with the half-space {p : n.p >= h}, with cone friction.

    c = max(0, h + r - n.x),  u_n = n.u,  u_t = u - u_n n
    p = k_e c + k_d max(0, -u_n)  where c > 0, else 0
    f = p n - min(mu p, k_f |u_t|) u_t/|u_t|

Kinks: the force jumps by k_d |u_n| at touch (c = 0 counts as apart), the slope jumps at
u_n = 0 (slope 0 taken) and between stick and slip (k_f |u_t| = mu p counts as stick).
In stick the friction is -k_f u_t: nothing is divided by |u_t|. Where both mu p and k_f |u_t|
are 0 there is no friction to stick by, and its derivative with respect to every argument is
0: neither mu nor k_f acts alone. Whether a node touches, approaches or sticks is frozen in
the derivatives.

Adjoint: `adjoint/forces/half_space.py`. Tests: `tests/forces/test_half_space.py`.
Source: gradSim (ICLR 2021) app. A.1 and C.2.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.backend import device_fn
from adjsim.element import ElementKind, Force, Parameter, broadcast
from adjsim.vec3 import axpy, dot, norm, scale


@device_fn
def half_space_force(x, v, consts, params, series):
    """Return the contact force [N] on one node."""
    n = params[0:3]
    height, radius, k_e, k_d, k_f, mu = params[3:9]
    zero = height - height
    c = height + radius - dot(n, x[0])  # (1) penetration [m]
    if c <= zero:
        return ((zero, zero, zero),)
    u = v[0]
    u_n = dot(n, u)  # (2)
    u_t = axpy(-u_n, n, u)  # (3)
    p = k_e * c + k_d * max(zero, -u_n)  # (4) pressure force [N]
    s = norm(u_t)  # (5) slip speed [m/s]
    cone = mu * p  # (6) largest friction [N]
    q = zero
    if k_f * s > cone:  # (7) friction per slip speed [N s/m]: slip
        q = cone / s
    elif cone > zero:  # (7) stick
        q = k_f
    return (axpy(-q, u_t, scale(p, n)),)  # (8)


HALF_SPACE = ElementKind("half_space", half_space_force, 1, 0, 9, 0, uses_velocity=True)


@dataclass(frozen=True, eq=False)
class HalfSpaceContact(Force):
    """Penalty contact of nodes with a plane, and everything behind it.

    Parameters
    ----------
    normal : array
        Any vector m != 0, (3,); n = m/|m| points out of the obstacle [-].
    height : float
        h in n.p >= h [m].
    stiffness, damping, friction_stiffness : float or array
        k_e [N/m], k_d [N s/m] and k_f [N s/m], () or (n_contacts,), not negative.
    friction : float or array
        Coefficient mu, () or (n_contacts,), not negative [-]. It is the cone, k_f the slope
        up to it: a positive mu needs a positive k_f.
    radius : float or array
        Radius of the nodes, () or (n_contacts,), not negative [m].
    contact_nodes : array, optional
        The nodes that may touch, (n_contacts,) integer. None: every node of the model.
    """

    normal: Any = (0.0, 1.0, 0.0)
    height: Any = 0.0
    stiffness: Any = 1e4
    damping: Any = 0.0
    friction_stiffness: Any = 0.0
    friction: Any = 0.0
    radius: Any = 0.0
    contact_nodes: Any = None

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("normal", "n", "-", "(3,)"),
        Parameter("height", "h", "m", "()"),
        Parameter("radius", "r", "m", "() or (n_contacts,)"),
        Parameter("stiffness", "k_e", "N/m", "() or (n_contacts,)", positive=True),
        Parameter("damping", "k_d", "N s/m", "() or (n_contacts,)", positive=True),
        Parameter("friction_stiffness", "k_f", "N s/m", "() or (n_contacts,)", positive=True),
        Parameter("friction", "μ", "-", "() or (n_contacts,)", positive=True),
    )

    def __post_init__(self) -> None:
        normal = checks.array("normal", self.normal, (3,))
        if not np.linalg.norm(normal) > 0.0:
            raise ValueError("`normal` must not be zero: it gives the plane's direction.")
        checks.freeze(self, "normal", normal)
        checks.freeze(self, "height", checks.array("height", self.height, ()))
        for name in ("stiffness", "damping", "friction_stiffness", "friction", "radius"):
            value = checks.array(name, getattr(self, name))
            checks.freeze(self, name, checks.non_negative(name, value))
        if np.any(self.friction > 0.0) and not np.any(self.friction_stiffness > 0.0):
            raise ValueError(
                f"`friction_stiffness` must be positive where there is friction, got 0 with "
                f"friction = {np.max(self.friction):g}: nothing would hold the nodes. Give it a "
                "value, or set `friction` to 0."
            )
        if self.contact_nodes is not None:
            nodes = checks.integers("contact_nodes", self.contact_nodes, ("n_contacts",))
            found, counts = np.unique(nodes, return_counts=True)
            if (counts > 1).any():
                node, times = found[np.argmax(counts)], counts.max()
                raise ValueError(
                    f"`contact_nodes` must name each node once, got node {node} {times} times: "
                    "it would be pushed as often."
                )
            checks.freeze(self, "contact_nodes", nodes)

    @property
    def kind(self) -> ElementKind:
        """Contact of one node."""
        return HALF_SPACE

    @property
    def nodes(self) -> np.ndarray:
        """The nodes that may touch, (n_contacts, 1)."""
        return np.asarray(self.contact_nodes)[:, None]

    def bind(self, n_nodes: int, name: str) -> "HalfSpaceContact":
        """Return the contact with its nodes filled in and its arrays checked against them."""
        chosen = np.arange(n_nodes) if self.contact_nodes is None else self.contact_nodes
        nodes = checks.indices(f"{name}.contact_nodes", chosen, ("n_contacts",), n_nodes)
        for key in ("stiffness", "damping", "friction_stiffness", "friction", "radius"):
            checks.scalar_or_array(f"{name}.{key}", getattr(self, key), len(nodes), "n_contacts")
        return dataclasses.replace(self, contact_nodes=nodes)

    def pack_consts(self) -> np.ndarray:
        """Nothing: (n_contacts, 0)."""
        return np.zeros((len(self.nodes), 0))

    def pack_params(self) -> np.ndarray:
        """N (3), h, r, k_e, k_d, k_f, mu: (n_contacts, 9)."""
        n = len(self.nodes)
        unit = self.normal / np.linalg.norm(self.normal)
        scalars = (
            self.height,
            self.radius,
            self.stiffness,
            self.damping,
            self.friction_stiffness,
            self.friction,
        )
        return np.stack(
            [broadcast(value, n) for value in (*unit, *scalars)],
            axis=-1,
        )

    def pack_series(self) -> np.ndarray:
        """Nothing: (1, n_contacts, 0)."""
        return np.zeros((1, len(self.nodes), 0))

    def stiffness_bound(self) -> np.ndarray:
        """k_e of each contact."""
        return np.array(broadcast(self.stiffness, len(self.nodes)))
