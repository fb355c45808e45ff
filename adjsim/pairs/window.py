r"""How much two edges count: in full in the middle, nothing at the ends or where they are parallel.

    omega = W(s) W(t) m(g),   W(s) = S(min(s, 1 - s)/0.1),   m = S(g/0.15)
    S(x) = 10 x^3 - 15 x^4 + 6 x^5 for 0 <= x <= 1,   0 before and 1 after
    g = |d_1 x d_2|^2 / (|d_1|^2 |d_2|^2) = 1 - B^2/(A C),   A, B, C = d_1.d_1, d_1.d_2, d_2.d_2

s = a_1 and t = a_2 say where the closest points of the two lines lie, 0 and 1 at the ends of the
edges. S is twice differentiable, and so are W and m: S' = 30 x^2 (1 - x)^2 and S'' = 60 x (1 - x)
(1 - 2 x) are 0 at both ends. omega is 1 where 0.1 <= s, t <= 0.9 and the angle is above asin
sqrt(0.15) = 22.8 degrees, and 0.925 at 20 degrees: there the stiffness is that of the contact.

The pair's energy has omega as a factor, and its force the gradient of omega. With a =
(s, t), D = (d_1, d_2) and G = D^T D, from D^T r = 0:

    G l = (omega_s, omega_t),   q = l_1 d_1 + l_2 d_2
    of b: -q,   of d_1: -l_1 r - s q + omega_g k_1,   of d_2: -l_2 r - t q + omega_g k_2
    k_1 = dg/dd_1 = kappa (B/A d_1 - d_2),   k_2 = kappa (B/C d_2 - d_1),   kappa = 2 B/(A C)

A Hessian is symmetric: the tangent of the gradient is its own adjoint.

Where edges become parallel, det G = A C g goes to 0 and the closest points run along them: l grows
as 1/g and its derivatives as 1/g^2. m ~ g^3 makes up for both, so forces and stiffness go to 0
there. In a flank, 0 < s < 0.1, the stiffness has a part W'' c^2/2 over the squared length of the
edge, |W''| <= 577. A pair whose depth is 1 % of the edges has between -1.3 and 1.7 times the
stiffness of the contact, of any angle and place, one whose depth is 2 % between -5 and 4 times
(radii of 5 %; 1 along the normal in the middle).

Adjoint: `adjoint/pairs/window.py`. Tests: `tests/pairs/test_window.py`. Window and mollifier are
ours; what a mollifier is for: Li et al., Incremental Potential Contact, SIGGRAPH 2020, section 5.
"""

from adjsim.algebra.vec3 import add, axpy, dot, neg, scale, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.pairs.closest import solve_gram


FLANK = 0.1  # of an edge, at each end: W is 1 between
CROSSING = 0.15  # g, from which on m is 1


@device_fn
def smooth_step(x):
    """Return S, S' and S'' at x."""
    unity = lit(1, x)
    x = min(max(x, lit(0, x)), unity)
    left = unity - x
    value = x * x * x * (lit(10, x) + x * (lit(6, x) * x - lit(15, x)))
    return value, lit(30, x) * x * x * left * left, lit(60, x) * x * left * (left - x)


@device_fn
def bump(s):
    """Return W, W' and W'' at s; 0 outside of (0, 1)."""
    left, by = lit(1, s) - s, lit(1.0 / FLANK, s)
    value, slope, curvature = smooth_step(by * min(s, left))
    return value, by * (slope if s < left else -slope), by * by * curvature


@device_fn
def mollifier(g):
    """Return m, m' and m'' at g."""
    by = lit(1.0 / CROSSING, g)
    value, slope, curvature = smooth_step(by * g)
    return value, by * slope, by * by * curvature


@device_fn
def window(at):
    """Return omega, and its derivatives along s, t and g."""
    (W, W_1, _), (V, V_1, _) = bump(at.a_1), bump(at.a_2)
    A, B, C = dot(at.d_1, at.d_1), dot(at.d_1, at.d_2), dot(at.d_2, at.d_2)
    zero = lit(0, A)
    if zero >= W * V:
        return zero, zero, zero, zero
    m, m_1, _ = mollifier(lit(1, A) - B * B * (lit(1, A) / (A * C)))
    return W * V * m, W_1 * V * m, W * V_1 * m, W * V * m_1


@device_fn
def to_nodes(adj_b, adj_d_1, adj_d_2):
    """Return what b = -y_2, d_1 = y_1 and d_2 = y_2 - y_3 give to y_1, y_2 and y_3."""
    return adj_d_1, sub(adj_d_2, adj_b), neg(adj_d_2)


@device_fn
def window_gradient(at):
    """Return omega and its gradient along y_1, y_2 and y_3."""
    omega, along_s, along_t, along_g = window(at)
    r, d_1, d_2 = at.r, at.d_1, at.d_2
    A, B, C = dot(d_1, d_1), dot(d_1, d_2), dot(d_2, d_2)
    zero = lit(0, A)
    if omega <= zero:
        none = (zero, zero, zero)
        return zero, (none, none, none)
    l_1, l_2 = solve_gram(d_1, d_2, along_s, along_t)  # (1)
    q = axpy(l_2, d_2, scale(l_1, d_1))  # (2)
    inv_AC = lit(1, A) / (A * C)  # one division for all
    kappa = along_g * lit(2, A) * B * inv_AC  # (3)
    k_1 = scale(kappa, axpy(B * C * inv_AC, d_1, neg(d_2)))  # (4)
    k_2 = scale(kappa, axpy(B * A * inv_AC, d_2, neg(d_1)))
    of_d_1 = axpy(-l_1, r, axpy(-at.a_1, q, k_1))  # (5)
    of_d_2 = axpy(-l_2, r, axpy(-at.a_2, q, k_2))
    return omega, to_nodes(neg(q), of_d_1, of_d_2)


@device_fn
def window_gradient_jvp(at, tan_r, tan_d_1, tan_d_2, tan_s, tan_t):
    """Push tangents through `window_gradient`, of omega and of its gradient, where omega > 0."""
    r, d_1, d_2 = at.r, at.d_1, at.d_2
    A, B, C = dot(d_1, d_1), dot(d_1, d_2), dot(d_2, d_2)
    two, unity = lit(2, A), lit(1, A)
    tan_A, tan_C = two * dot(d_1, tan_d_1), two * dot(d_2, tan_d_2)
    tan_B = dot(tan_d_1, d_2) + dot(d_1, tan_d_2)
    inv_AC = unity / (A * C)  # one division for all
    by_A, by_C, growth = C * inv_AC, A * inv_AC, inv_AC * (C * tan_A + A * tan_C)
    g, base = unity - B * B * inv_AC, two * B * inv_AC
    tan_base = two * tan_B * inv_AC - base * growth
    tan_g = -(base * tan_B) + B * B * inv_AC * growth

    (W, W_1, W_2), (V, V_1, V_2), (m, m_1, m_2) = bump(at.a_1), bump(at.a_2), mollifier(g)
    along_s, along_t, along_g = W_1 * V * m, W * V_1 * m, W * V * m_1
    tan_omega = along_s * tan_s + along_t * tan_t + along_g * tan_g
    mixed = W_1 * V_1 * m
    tan_along_s = W_2 * V * m * tan_s + mixed * tan_t + W_1 * V * m_1 * tan_g
    tan_along_t = mixed * tan_s + W * V_2 * m * tan_t + W * V_1 * m_1 * tan_g
    tan_along_g = W_1 * V * m_1 * tan_s + W * V_1 * m_1 * tan_t + W * V * m_2 * tan_g

    l_1, l_2 = solve_gram(d_1, d_2, along_s, along_t)  # (1)
    tan_l_1, tan_l_2 = solve_gram(
        d_1, d_2, tan_along_s - tan_A * l_1 - tan_B * l_2, tan_along_t - tan_B * l_1 - tan_C * l_2
    )
    q = axpy(l_2, d_2, scale(l_1, d_1))  # (2)
    tan_q = axpy(l_2, tan_d_2, axpy(tan_l_2, d_2, axpy(l_1, tan_d_1, scale(tan_l_1, d_1))))
    kappa, tan_kappa = along_g * base, tan_along_g * base + along_g * tan_base  # (3)
    a, c = B * by_A, B * by_C
    v_1, v_2 = axpy(a, d_1, neg(d_2)), axpy(c, d_2, neg(d_1))  # (4)
    tan_v_1 = axpy((tan_B - a * tan_A) * by_A, d_1, axpy(a, tan_d_1, neg(tan_d_2)))
    tan_v_2 = axpy((tan_B - c * tan_C) * by_C, d_2, axpy(c, tan_d_2, neg(tan_d_1)))
    tan_k_1 = axpy(tan_kappa, v_1, scale(kappa, tan_v_1))
    tan_k_2 = axpy(tan_kappa, v_2, scale(kappa, tan_v_2))
    of_d_1 = add(axpy(tan_l_1, r, scale(l_1, tan_r)), axpy(tan_s, q, scale(at.a_1, tan_q)))  # (5)
    of_d_2 = add(axpy(tan_l_2, r, scale(l_2, tan_r)), axpy(tan_t, q, scale(at.a_2, tan_q)))
    return tan_omega, to_nodes(neg(tan_q), sub(tan_k_1, of_d_1), sub(tan_k_2, of_d_2))
