r"""Adjoint of `adjsim/forces/contact_law.py`, which has the tangent: read them side by side.

Whether a node touches, approaches or sticks is frozen: the branches repeat the forward's
conditions. The jump of the damping force at touch has no derivative; slope 0 is taken at
u_n = 0 and at d u_n = 1, and k_f |u_t| = mu p counts as stick, whose derivative is -k_f (u_t)'.
Where both are 0, the derivative with respect to every argument of the friction is 0.
"""

from collections.abc import Callable
from functools import cache

from adjsim.algebra.vec3 import axpy, dot, norm, scale
from adjsim.forces.contact_law import N_LAW, cubic_parts
from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.element_kind import ElementKind


@device_fn
def contact_law_vjp(n, c, u, law, adj_f):
    """Pull adj_f back through `contact_law`: adj_n, adj_c, adj_u, and those of the scalars."""
    k_e, k_d, d, k, gamma, k_f, mu = law
    zero = lit(0, c)
    u_n = dot(n, u)  # (1) replayed
    u_t = axpy(-u_n, n, u)  # (2) replayed
    g = max(zero, lit(1, c) - d * u_n)  # (3) replayed
    q_1, w = cubic_parts(c, u_n, gamma)  # (4) replayed
    h = c * c * (lit(1, c) - w)  # (4) replayed
    approach = max(zero, -u_n)
    p = k_e * c * g + k_d * approach + k * c * h  # (5) replayed
    s = norm(u_t)  # (6) replayed
    cone = mu * p  # (7) replayed
    slips = k_f * s > cone
    sticks = not slips and cone > zero
    q = zero
    if sticks or slips:
        q = k_f if sticks else cone / s  # (8) replayed

    # (9) f = p n - q u_t
    adj_p = dot(n, adj_f)
    adj_n = scale(p, adj_f)
    adj_q = -dot(u_t, adj_f)
    adj_u_t = scale(-q, adj_f)

    # (8) q = k_f in stick, cone / s in slip; (6) s = |u_t|, needed in slip only
    adj_k_f, adj_cone = zero, zero
    if sticks:
        adj_k_f = adj_q
    elif slips:
        adj_cone = adj_q / s
        adj_s = -q / s * adj_q
        adj_u_t = axpy(adj_s / s, u_t, adj_u_t)

    # (7) cone = mu p
    adj_mu = p * adj_cone
    adj_p += mu * adj_cone

    # (5) p = k_e c g + k_d max(0, -u_n) + k c h
    adj_k_e = c * g * adj_p
    adj_c = k_e * g * adj_p + k * h * adj_p
    adj_k = c * h * adj_p
    adj_h = k * c * adj_p
    adj_g = k_e * c * adj_p
    adj_k_d = approach * adj_p
    adj_u_n = -k_d * adj_p if u_n < zero else zero

    # (4) h = a (1 - w), w = b/sqrt(a^2 + b^2), a = c^2, b = gamma u_n
    adj_c += (lit(1, c) - w * w * w) * lit(2, c) * c * adj_h
    adj_b = -q_1 * q_1 * q_1 * adj_h
    adj_gamma = u_n * adj_b
    adj_u_n += gamma * adj_b

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
    return adj_n, adj_c, adj_u, (adj_k_e, adj_k_d, adj_d, adj_k, adj_gamma, adj_k_f, adj_mu)


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
