r"""Adjoint of `adjsim/forces/contact_law.py`: read the two files side by side.

Whether a node touches, approaches or sticks is frozen: the branches repeat the forward's
conditions. The jump of the damping force at touch has no derivative; slope 0 is taken at
u_n = 0 and at d u_n = 1, and k_f |u_t| = mu p counts as stick, whose derivative is -k_f (u_t)'.
Where both are 0, the derivative with respect to every argument of the friction is 0.
"""

from collections.abc import Callable
from functools import cache

from adjsim.engine.algebra.vec3 import axpy, dot, norm, scale, sub
from adjsim.engine.jit.backend import device_fn, lit
from adjsim.forces.contact_law import N_LAW
from adjsim.forces.element import ElementKind


@device_fn
def contact_law_jvp(n, c, u, law, tan_n, tan_c, tan_u, tan_law):
    """Push tangents through `contact_law`."""
    k_e, k_d, d, k_f, mu = law
    tan_k_e, tan_k_d, tan_d, tan_k_f, tan_mu = tan_law
    zero = lit(0, c)
    u_n = dot(n, u)  # (1)
    tan_u_n = dot(tan_n, u) + dot(n, tan_u)
    u_t = axpy(-u_n, n, u)  # (2)
    tan_u_t = axpy(-tan_u_n, n, axpy(-u_n, tan_n, tan_u))
    g = max(zero, lit(1, c) - d * u_n)  # (3)
    tan_g = zero
    if g > zero:
        tan_g = -(tan_d * u_n + d * tan_u_n)
    approach = max(zero, -u_n)
    p = k_e * c * g + k_d * approach  # (4)
    tan_p = (tan_k_e * c + k_e * tan_c) * g + k_e * c * tan_g + tan_k_d * approach
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
    return sub(tan_pressure, axpy(tan_q, u_t, scale(q, tan_u_t)))  # (8)


@device_fn
def contact_law_vjp(n, c, u, law, adj_f):
    """Pull adj_f back through `contact_law`: adj_n, adj_c, adj_u, and those of the scalars."""
    k_e, k_d, d, k_f, mu = law
    zero = lit(0, c)
    u_n = dot(n, u)  # (1) replayed
    u_t = axpy(-u_n, n, u)  # (2) replayed
    g = max(zero, lit(1, c) - d * u_n)  # (3) replayed
    approach = max(zero, -u_n)
    p = k_e * c * g + k_d * approach  # (4) replayed
    s = norm(u_t)  # (5) replayed
    cone = mu * p  # (6) replayed
    slips = k_f * s > cone
    sticks = not slips and cone > zero
    q = zero
    if sticks or slips:
        q = k_f if sticks else cone / s  # (7) replayed

    # (8) f = p n - q u_t
    adj_p = dot(n, adj_f)
    adj_n = scale(p, adj_f)
    adj_q = -dot(u_t, adj_f)
    adj_u_t = scale(-q, adj_f)

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

    # (4) p = k_e c g + k_d max(0, -u_n)
    adj_k_e = c * g * adj_p
    adj_c = k_e * g * adj_p
    adj_g = k_e * c * adj_p
    adj_k_d = approach * adj_p
    adj_u_n = -k_d * adj_p if u_n < zero else zero

    # (3) g = max(0, 1 - d u_n)
    adj_d = zero
    if g > zero:
        adj_d = -u_n * adj_g
        adj_u_n -= d * adj_g

    # (2) u_t = u - u_n n
    adj_u = adj_u_t
    adj_u_n -= dot(n, adj_u_t)
    adj_n = axpy(-u_n, adj_u_t, adj_n)

    # (1) u_n = n.u
    adj_n = axpy(adj_u_n, u, adj_n)
    adj_u = axpy(adj_u_n, n, adj_u)
    return adj_n, adj_c, adj_u, (adj_k_e, adj_k_d, adj_d, adj_k_f, adj_mu)


def make_contact_jvp(gap: Callable, gap_jvp: Callable) -> Callable:
    """Return the tangent of `make_contact_force(gap)`.

    gap_jvp(x, v, params, series, tan_x, tan_v, tan_params, tan_series) -> tan_n, tan_c, tan_u
    """

    @device_fn
    def contact_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        n, c, u = gap(x[0], v[0], params, series)
        zero = lit(0, c)
        if c <= zero:
            return ((zero, zero, zero),)
        tan_n, tan_c, tan_u = gap_jvp(
            x[0], v[0], params, series, tan_x[0], tan_v[0], tan_params, tan_series
        )
        law, tan_law = params[0:N_LAW], tan_params[0:N_LAW]
        return (contact_law_jvp(n, c, u, law, tan_n, tan_c, tan_u, tan_law),)

    return contact_jvp


@cache
def make_zeros(n: int) -> Callable:
    """Return the function that gives n zeros in the type of its argument."""
    if n == 0:
        return no_zeros
    head = make_zeros(n - 1)

    @device_fn
    def zeros(like):
        return (*head(like), lit(0, like))

    return zeros


@device_fn
def no_zeros(like):
    """Return no zeros."""
    return ()


def make_contact_vjp(gap: Callable, gap_vjp: Callable, kind: ElementKind) -> Callable:
    """Return the adjoint of `make_contact_force(gap)`.

    gap_vjp(x, v, params, series, adj_n, adj_c, adj_u) -> adj_x, adj_v, adj_radius and those
    of the sizes, those of the series
    """
    no_params, no_series = make_zeros(kind.n_params), make_zeros(kind.n_series)

    @device_fn
    def contact_vjp(x, v, consts, params, series, adj_f):
        n, c, u = gap(x[0], v[0], params, series)
        zero = lit(0, c)
        if c <= zero:
            none = (zero, zero, zero)
            return (none,), (none,), no_params(zero), no_series(zero)
        adj_n, adj_c, adj_u, adj_law = contact_law_vjp(n, c, u, params[0:N_LAW], adj_f[0])
        adj_x, adj_v, adj_shape, adj_series = gap_vjp(
            x[0], v[0], params, series, adj_n, adj_c, adj_u
        )
        return (adj_x,), (adj_v,), (*adj_law, *adj_shape), adj_series

    return contact_vjp
