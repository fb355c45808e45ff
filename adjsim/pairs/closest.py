r"""The closest points of two features: a vertex and a face, an edge or a vertex; two edges.

A pair has four nodes. Its vectors are relative to the first: y_k = x_k - x_0, k = 1, 2, 3.

    vertex and feature    x_0 the vertex, x_1.. the corners of the feature
    edge and edge         x_0, x_1 the ends of one, x_2, x_3 those of the other

Where the closest points p and q lie in their features, their distance vector is linear in two
numbers a_1 and a_2:

    r = p - q = sum w_k y_k,   w = o + a_1 e_1 + a_2 e_2        o, e_1, e_2 made of 0, 1 and -1
    b = sum o_k y_k,   d_i = sum e_ik y_k,   r = b + a_1 d_1 + a_2 d_2,   d_i . r = 0

e_i is 0 where there is nothing to choose: at a corner, or along an edge. Which part of a face or an
edge is the closest is frozen in the derivatives. w_k is also how much of a force on p acts on node
k; node 0 gets the rest, so that all sum to zero.

Adjoint: `adjoint/pairs/closest.py`. Tests: `tests/pairs/test_closest.py`.
Source: Ericson, Real-Time Collision Detection, 2005, sec. 5.1, for the regions of a triangle.
"""

from typing import Any, NamedTuple

from adjsim.algebra.vec3 import axpy, dot, scale, sub
from adjsim.jit.backend import device_fn, lit


VERTEX, EDGE, FACE, EDGES = range(4)  # what a pair is: of a vertex with one of these, or two edges


class Closest(NamedTuple):
    """The closest points of a pair: r, d_1, d_2, a_1, a_2, the weights w, and e_1, e_2."""

    r: Any
    d_1: Any
    d_2: Any
    a_1: Any
    a_2: Any
    weights: Any
    e_1: Any
    e_2: Any


@device_fn
def combine(weights, y):
    """Return the sum of w_k y_k."""
    return axpy(weights[0], y[0], axpy(weights[1], y[1], scale(weights[2], y[2])))


@device_fn
def region(code, y):
    """Return o, e_1 and e_2 of a pair: the part of its features where the closest points lie."""
    unity = lit(1, y[0][0])
    zero = lit(0, unity)
    none = (zero, zero, zero)
    if code == lit(EDGES, unity):
        return (zero, -unity, zero), (unity, zero, zero), (zero, unity, -unity)
    if code == lit(VERTEX, unity):
        return (-unity, zero, zero), none, none
    a, b = y[0], y[1]
    ab = sub(b, a)
    if code == lit(EDGE, unity):
        t = -dot(ab, a)
        if t <= zero:
            return (-unity, zero, zero), none, none
        if t >= dot(ab, ab):
            return (zero, -unity, zero), none, none
        return (-unity, zero, zero), (unity, -unity, zero), none
    return face_region(a, b, y[2])


@device_fn
def face_region(a, b, c):
    """Return o, e_1 and e_2 of the part of a triangle that is the closest to the origin."""
    unity = lit(1, a[0])
    zero = lit(0, unity)
    none, to_a, to_b = (zero, zero, zero), (-unity, zero, zero), (zero, -unity, zero)
    ab, ac = sub(b, a), sub(c, a)
    ab_a, ac_a = -dot(ab, a), -dot(ac, a)
    if ab_a <= zero and ac_a <= zero:
        return to_a, none, none
    ab_b, ac_b = -dot(ab, b), -dot(ac, b)
    if ab_b >= zero and ac_b <= ab_b:
        return to_b, none, none
    ab_c, ac_c = -dot(ab, c), -dot(ac, c)
    if ac_c >= zero and ab_c <= ac_c:
        return (zero, zero, -unity), none, none
    return face_or_edge((ab_a, ac_a), (ab_b, ac_b), (ab_c, ac_c))


@device_fn
def face_or_edge(at_a, at_b, at_c):
    """Return the part of a triangle where no corner is the closest."""
    (ab_a, ac_a), (ab_b, ac_b), (ab_c, ac_c) = at_a, at_b, at_c
    unity = lit(1, ab_a)
    zero = lit(0, unity)
    none, to_a, to_b = (zero, zero, zero), (-unity, zero, zero), (zero, -unity, zero)
    if ab_a * ac_b - ab_b * ac_a <= zero and ab_a >= zero and ab_b <= zero:
        return to_a, (unity, -unity, zero), none
    if ab_c * ac_a - ab_a * ac_c <= zero and ac_a >= zero and ac_c <= zero:
        return to_a, (unity, zero, -unity), none
    if ab_b * ac_c - ab_c * ac_b <= zero and ac_b >= ab_b and ab_c >= ac_c:
        return to_b, (zero, unity, -unity), none
    return to_a, (unity, -unity, zero), (unity, zero, -unity)


@device_fn
def solve_gram(d_1, d_2, g_1, g_2):
    """Return the solution of the equations of d_1 and d_2: (d_i . d_j) a = g."""
    zero = lit(0, g_1)
    A, B, C = dot(d_1, d_1), dot(d_1, d_2), dot(d_2, d_2)
    line = zero >= C  # where there is no d_2
    det = A if line else A * C - B * B
    if det <= zero:
        return zero, zero
    inv_det = lit(1, A) / det
    a_1, a_2 = g_1 if line else C * g_1 - B * g_2, zero if line else A * g_2 - B * g_1
    return a_1 * inv_det, a_2 * inv_det


@device_fn
def closest(code, y):
    """Return the `Closest` points of a pair."""
    o, e_1, e_2 = region(code, y)
    b, d_1, d_2 = combine(o, y), combine(e_1, y), combine(e_2, y)  # (1)
    a_1, a_2 = solve_gram(d_1, d_2, -dot(d_1, b), -dot(d_2, b))  # (2)
    r = axpy(a_2, d_2, axpy(a_1, d_1, b))  # (3)
    weights = axpy(a_2, e_2, axpy(a_1, e_1, o))  # (4)
    return Closest(r, d_1, d_2, a_1, a_2, weights, e_1, e_2)


@device_fn
def closest_jvp(at, tan_y):
    """Push tangents through `closest`: of r, d_1, d_2, a_1, a_2 and the weights."""
    tan_d_1, tan_d_2 = combine(at.e_1, tan_y), combine(at.e_2, tan_y)  # (1)
    moved = combine(at.weights, tan_y)  # b' + a_1 d_1' + a_2 d_2'
    g_1 = -dot(tan_d_1, at.r) - dot(at.d_1, moved)  # (2), from d_i . r = 0
    g_2 = -dot(tan_d_2, at.r) - dot(at.d_2, moved)
    tan_a_1, tan_a_2 = solve_gram(at.d_1, at.d_2, g_1, g_2)
    tan_r = axpy(tan_a_2, at.d_2, axpy(tan_a_1, at.d_1, moved))  # (3)
    tan_weights = axpy(tan_a_2, at.e_2, scale(tan_a_1, at.e_1))  # (4)
    return tan_r, tan_d_1, tan_d_2, tan_a_1, tan_a_2, tan_weights
