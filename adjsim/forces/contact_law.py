r"""The law of every contact: a pressure by penalty, and friction in its cone.

Given the normal n out of the obstacle, the penetration c and the velocity u of the node
relative to the obstacle,

    u_n = n.u,  u_t = u - u_n n
    p = k_e c max(0, 1 - d u_n) + k_d max(0, -u_n) + k c h
    h = c^2 (1 - w/sqrt(1 + w^2)),  w = gamma u_n/c^2
    f = p n - min(mu p, k_f |u_t|) u_t/|u_t|        where c > 0, else 0

A contact has one of three laws of its pressure (`adjsim/forces/pressure_laws.py`), and the numbers
of the others are 0.

- d (Hunt and Crossley 1975): the pressure begins at 0 at touch, so nothing jumps, and the exact
  gradient of the discrete program is the slope of the loss up to O(dt).
- k and gamma (ours): smooth where c > 0, and begins as c^3 at touch; a point keeps the same part of
  its speed at every speed.
- k_d (gradSim): the force jumps by k_d |u_n| at touch. No gradient sees the jump: for whatever
  moves a touch, the exact gradient of the discrete program is not the slope of the loss.

How n, c and u follow from the node's position and velocity is the shape's business, its gap
function; `make_contact_force` joins the two.

Kinks: the force jumps by k_d |u_n| at touch (c = 0 counts as apart), and its slope by k_e. The
slope jumps too where the damping ends, at u_n = 0, where the pressure ends, at d u_n = 1 (slope
0 taken at both), and between stick and slip (k_f |u_t| = mu p counts as stick).
In stick the friction is -k_f u_t: nothing is divided by |u_t|. Where both mu p and k_f |u_t|
are 0 there is no friction to stick by, and its derivative with respect to every argument is
0: neither mu nor k_f acts alone. Whether a node touches, approaches or sticks is frozen in
the derivatives.

Adjoint: `adjoint/forces/contact_law.py`. Tests: `tests/forces/test_contact_law.py`.
Source: gradSim (ICLR 2021) app. A.1 and C.2; Hunt and Crossley, "Coefficient of restitution
interpreted as damping in vibroimpact", J. Applied Mechanics 1975.
"""

import math
from collections.abc import Callable

from adjsim.algebra.vec3 import axpy, dot, norm, scale, sub
from adjsim.jit.backend import device_fn, lit


# Rows of every contact's parameters: the law's, then r, then the shape's sizes.
LAW = (
    "stiffness", "damping", "dissipation", "cubic_stiffness", "cubic_dissipation",
    "friction_stiffness", "friction",
)  # fmt: skip
N_LAW = len(LAW)
K_E, K_D, D, K, GAMMA, K_F, MU = range(N_LAW)
RADIUS = N_LAW
SIZE = N_LAW + 1  # the first of the sizes


@device_fn
def cubic_parts(c, u_n, gamma):
    """Return 1 and w over sqrt(1 + w^2), w = gamma u_n/c^2; 1 and 0 where c^2 is 0."""
    a, b = c * c, gamma * u_n
    r = math.sqrt(a * a + b * b)
    if r > lit(0, c):
        return a / r, b / r
    return lit(1, c), lit(0, c)


@device_fn
def contact_law(n, c, u, law):
    """Return the contact force [N] on a node that is c > 0 deep; `law` are the numbers of `LAW`."""
    k_e, k_d, d, k, gamma, k_f, mu = law
    zero = lit(0, c)
    u_n = dot(n, u)  # (1)
    u_t = axpy(-u_n, n, u)  # (2)
    g = max(zero, lit(1, c) - d * u_n)  # (3) what dissipation makes of the pressure [-]
    _, w = cubic_parts(c, u_n, gamma)  # (4)
    h = c * c * (lit(1, c) - w)  # (4) of the cubic law [m^2]
    p = k_e * c * g + k_d * max(zero, -u_n) + k * c * h  # (5) pressure force [N]
    s = norm(u_t)  # (6) slip speed [m/s]
    cone = mu * p  # (7) largest friction [N]
    q = zero
    if k_f * s > cone:  # (8) friction per slip speed [N s/m]: slip
        q = cone / s
    elif cone > zero:  # (8) stick
        q = k_f
    return axpy(-q, u_t, scale(p, n))  # (9)


@device_fn
def contact_law_jvp(n, c, u, law, tan_n, tan_c, tan_u, tan_law):
    """Push tangents through `contact_law`."""
    k_e, k_d, d, k, gamma, k_f, mu = law
    tan_k_e, tan_k_d, tan_d, tan_k, tan_gamma, tan_k_f, tan_mu = tan_law
    zero = lit(0, c)
    u_n = dot(n, u)  # (1)
    tan_u_n = dot(tan_n, u) + dot(n, tan_u)
    u_t = axpy(-u_n, n, u)  # (2)
    tan_u_t = axpy(-tan_u_n, n, axpy(-u_n, tan_n, tan_u))
    g = max(zero, lit(1, c) - d * u_n)  # (3)
    tan_g = zero
    if g > zero:
        tan_g = -(tan_d * u_n + d * tan_u_n)
    q_1, w = cubic_parts(c, u_n, gamma)  # (4)
    h = c * c * (lit(1, c) - w)  # (4)
    tan_h = (lit(1, c) - w * w * w) * lit(2, c) * c * tan_c
    tan_h -= q_1 * q_1 * q_1 * (tan_gamma * u_n + gamma * tan_u_n)
    approach = max(zero, -u_n)
    p = k_e * c * g + k_d * approach + k * c * h  # (5)
    tan_p = (tan_k_e * c + k_e * tan_c) * g + k_e * c * tan_g + tan_k_d * approach
    tan_p += (tan_k * c + k * tan_c) * h + k * c * tan_h
    if u_n < zero:
        tan_p -= k_d * tan_u_n
    s = norm(u_t)  # (6)
    cone = mu * p  # (7)
    tan_cone = tan_mu * p + mu * tan_p
    q, tan_q = zero, zero
    if k_f * s > cone:  # (8) slip
        q = cone / s
        tan_s = dot(u_t, tan_u_t) / s
        tan_q = (tan_cone - q * tan_s) / s
    elif cone > zero:  # (8) stick
        q, tan_q = k_f, tan_k_f
    tan_pressure = axpy(tan_p, n, scale(p, tan_n))
    return sub(tan_pressure, axpy(tan_q, u_t, scale(q, tan_u_t)))  # (9)


def make_contact_force(gap: Callable) -> Callable:
    """Return the element function of contact with the shape of a gap function.

    gap(x, v, params, series) -> n [-], c [m], u [m/s] of one node at x with velocity v.
    """

    @device_fn
    def contact_force(x, v, consts, params, series):
        n, c, u = gap(x[0], v[0], params, series)
        zero = lit(0, c)
        if c <= zero:
            return ((zero, zero, zero),)
        return (contact_law(n, c, u, params[0:N_LAW]),)

    return contact_force


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
