r"""Adjoint of `adjsim/forces/half_space.py`: read the two files side by side.

Whether a node touches, approaches or sticks is frozen: the branches repeat the forward's
conditions. The jump of the damping force at touch has no derivative; slope 0 is taken at
u_n = 0, and k_f |u_t| = mu p counts as stick, whose derivative is -k_f (u_t)'. Where both
are 0, the derivative with respect to every argument of the friction is 0.
"""

import numpy as np

from adjoint.element import ForceTwin, TwinKind, unbroadcast
from adjsim.backend import device_fn
from adjsim.element import broadcast
from adjsim.forces.half_space import HALF_SPACE, HalfSpaceContact
from adjsim.vec3 import axpy, dot, norm, scale, sub


SCALARS = ("height", "radius", "stiffness", "damping", "friction_stiffness", "friction")


@device_fn
def half_space_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `half_space_force`."""
    n, tan_n = params[0:3], tan_params[0:3]
    height, radius, k_e, k_d, k_f, mu = params[3:9]
    tan_height, tan_radius, tan_k_e, tan_k_d, tan_k_f, tan_mu = tan_params[3:9]
    zero = height - height
    c = height + radius - dot(n, x[0])  # (1)
    if c <= zero:
        return ((zero, zero, zero),)
    tan_c = tan_height + tan_radius - dot(tan_n, x[0]) - dot(n, tan_x[0])
    u, tan_u = v[0], tan_v[0]
    u_n = dot(n, u)  # (2)
    tan_u_n = dot(tan_n, u) + dot(n, tan_u)
    u_t = axpy(-u_n, n, u)  # (3)
    tan_u_t = axpy(-tan_u_n, n, axpy(-u_n, tan_n, tan_u))
    approach = max(zero, -u_n)
    p = k_e * c + k_d * approach  # (4)
    tan_p = tan_k_e * c + k_e * tan_c + tan_k_d * approach
    if u_n < zero:
        tan_p -= k_d * tan_u_n
    s = norm(u_t)  # (5)
    cone = mu * p  # (6)
    tan_cone = tan_mu * p + mu * tan_p
    q, tan_q = zero, zero
    if k_f * s > cone:  # (7) slip
        q = cone / s
        tan_s = dot(u_t, tan_u_t) / s
        tan_q = (tan_cone - q * tan_s) / s
    elif cone > zero:  # (7) stick
        q, tan_q = k_f, tan_k_f
    tan_pressure = axpy(tan_p, n, scale(p, tan_n))
    return (sub(tan_pressure, axpy(tan_q, u_t, scale(q, tan_u_t))),)  # (8)


@device_fn
def half_space_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `half_space_force`."""
    n = params[0:3]
    height, radius, k_e, k_d, k_f, mu = params[3:9]
    zero = height - height
    none = (zero, zero, zero)
    c = height + radius - dot(n, x[0])  # (1) replayed
    if c <= zero:
        return (none,), (none,), (zero, zero, zero, zero, zero, zero, zero, zero, zero), ()
    u_n = dot(n, v[0])  # (2) replayed
    u_t = axpy(-u_n, n, v[0])  # (3) replayed
    approach = max(zero, -u_n)
    p = k_e * c + k_d * approach  # (4) replayed
    s = norm(u_t)  # (5) replayed
    cone = mu * p  # (6) replayed
    slips = k_f * s > cone
    sticks = not slips and cone > zero
    q = zero
    if sticks or slips:
        q = k_f if sticks else cone / s  # (7) replayed

    # (8) f = p n - q u_t
    adj_p = dot(n, adj_f[0])
    adj_n = scale(p, adj_f[0])
    adj_q = -dot(u_t, adj_f[0])
    adj_u_t = scale(-q, adj_f[0])

    # (7) q = k_f in stick, cone / s in slip; (5) s = |u_t|, needed in slip only
    adj_k_f, adj_cone = zero, zero
    if sticks:
        adj_k_f = adj_q
    elif slips:
        adj_cone = adj_q / s
        adj_s = -q / s * adj_q
        adj_u_t = axpy(adj_s / s, u_t, adj_u_t)

    # (6) cone = mu p
    adj_mu = p * adj_cone
    adj_p += mu * adj_cone

    # (4) p = k_e c + k_d max(0, -u_n)
    adj_k_e = c * adj_p
    adj_c = k_e * adj_p
    adj_k_d = approach * adj_p
    adj_u_n = -k_d * adj_p if u_n < zero else zero

    # (3) u_t = u - u_n n
    adj_u = adj_u_t
    adj_u_n -= dot(n, adj_u_t)
    adj_n = axpy(-u_n, adj_u_t, adj_n)

    # (2) u_n = n.u
    adj_n = axpy(adj_u_n, v[0], adj_n)
    adj_u = axpy(adj_u_n, n, adj_u)

    # (1) c = h + r - n.x
    adj_n = axpy(-adj_c, x[0], adj_n)
    adj_x = scale(-adj_c, n)
    adj_params = (*adj_n, adj_c, adj_c, adj_k_e, adj_k_d, adj_k_f, adj_mu)
    return (adj_x,), (adj_u,), adj_params, ()


HALF_SPACE_TWIN = TwinKind(HALF_SPACE, half_space_jvp, half_space_vjp)


class HalfSpaceContactTwin(ForceTwin[HalfSpaceContact]):
    """The twin of `HalfSpaceContact`. Packing: n = m/|m|; scalars are broadcast."""

    def twin_kind(self, force: HalfSpaceContact) -> TwinKind:
        """Return the one kind of contact with a half-space."""
        return HALF_SPACE_TWIN

    def pack_vjp(
        self, force: HalfSpaceContact, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back; that of the normal is tangential."""
        length = np.linalg.norm(force.normal)
        n = force.normal / length
        adj_n = adj_params[:, :3].sum(axis=0)
        adj = {"normal": (adj_n - np.dot(n, adj_n) * n) / length}
        for k, name in enumerate(SCALARS):
            adj[name] = unbroadcast(adj_params[:, 3 + k], getattr(force, name).shape)
        return adj

    def pack_jvp(
        self, force: HalfSpaceContact, tangents: dict[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of the parameters to rows."""
        count = len(force.nodes)
        length = np.linalg.norm(force.normal)
        n = force.normal / length
        tan_m = tangents.get("normal", np.zeros(3))
        tan_n = (tan_m - np.dot(n, tan_m) * n) / length
        scalars = [tangents.get(name, np.zeros(())) for name in SCALARS]
        rows = [broadcast(value, count) for value in (*tan_n, *scalars)]
        return np.stack(rows, axis=-1), np.zeros((1, count, 0))
