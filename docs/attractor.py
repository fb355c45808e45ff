"""Nodes are pulled to a point by f = -k r/(r.r + s^2)^(3/2), r = x - place (Plummer, 1911)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjsim.algebra.vec3 import axpy, dot, neg, scale, sub
from adjsim.forces.element import Force
from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter


@device_fn
def attractor_force(x, v, consts, params, series):
    """Return the force [N] on one node."""
    k, place, s = params[0], params[1:4], params[4]
    r = sub(x[0], place)  # (1)
    u = dot(r, r) + s * s  # (2)
    w = k / (u * math.sqrt(u))  # (3)
    return (scale(-w, r),)  # (4)


@device_fn
def attractor_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `attractor_force`."""
    k, place, s = params[0], params[1:4], params[4]
    tan_k, tan_place, tan_s = tan_params[0], tan_params[1:4], tan_params[4]
    r = sub(x[0], place)  # (1)
    tan_r = sub(tan_x[0], tan_place)
    u = dot(r, r) + s * s  # (2)
    tan_u = lit(2, u) * (dot(r, tan_r) + s * tan_s)
    w = k / (u * math.sqrt(u))  # (3)
    tan_w = tan_k / (u * math.sqrt(u)) - lit(1.5, u) * w / u * tan_u
    return (axpy(-tan_w, r, scale(-w, tan_r)),)  # (4)


@device_fn
def attractor_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `attractor_force`."""
    k, place, s = params[0], params[1:4], params[4]
    r = sub(x[0], place)  # (1) replayed
    u = dot(r, r) + s * s  # (2) replayed
    w = k / (u * math.sqrt(u))  # (3) replayed

    # (4) f = -w r
    adj_w = -dot(r, adj_f[0])
    adj_r = scale(-w, adj_f[0])

    # (3) w = k u^(-3/2)
    adj_k = adj_w / (u * math.sqrt(u))
    adj_u = lit(-1.5, u) * w / u * adj_w

    # (2) u = r.r + s^2
    adj_r = axpy(lit(2, u) * adj_u, r, adj_r)
    adj_s = lit(2, u) * s * adj_u

    # (1) r = x - place
    return (adj_r,), (), (adj_k, *neg(adj_r), adj_s), ()


# One node, no rows of a rest shape, 5 numbers in `params`, none in `series`.
ATTRACTOR = ElementKind(
    "attractor", attractor_force, 1, 0, 5, 0, uses_velocity=False, jvp=attractor_jvp
)


@dataclass(frozen=True, eq=False)
class Attractor(Force):
    """Pulls nodes, by default all, to a place."""

    strength: Any
    place: Any
    softening: Any
    attracted: Any = None
    acts_on: Any = "nodes"

    PARAMETERS = (
        Parameter("strength", "k", "N m2", "() or (n_nodes,)", positive=True),
        Parameter("place", "p", "m", "(3,) or (n_nodes, 3)"),
        Parameter("softening", "s", "m", "() or (n_nodes,)", positive=True),
    )
    PACKED: ClassVar = {"strength": (), "place": (3,), "softening": ()}
    KIND = ATTRACTOR
    ELEMENTS = "attracted"

    def stiffness_bound(self):
        """Return k/s^3 of each node, which the stable time step is made of [N/m]."""
        return np.broadcast_to(self.strength / self.softening**3, len(self.nodes))


register(Attractor, ForceTwin(TwinKind(ATTRACTOR, attractor_vjp)))
