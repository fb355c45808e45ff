r"""Adjoint of `adjsim/pairs/closest.py`, which has the tangent: read them side by side."""

from adjsim.algebra.vec3 import add, axpy, dot, neg, scale
from adjsim.jit.backend import device_fn
from adjsim.pairs.closest import solve_gram


@device_fn
def closest_vjp(at, adj_r, adj_weights):
    """Pull cotangents of r and of the weights back to the three vectors y."""
    # (4) w = o + a_1 e_1 + a_2 e_2,  (3) r = b + a_1 d_1 + a_2 d_2
    adj_a_1 = dot(at.e_1, adj_weights) + dot(at.d_1, adj_r)
    adj_a_2 = dot(at.e_2, adj_weights) + dot(at.d_2, adj_r)
    adj_b, adj_d_1, adj_d_2 = adj_r, scale(at.a_1, adj_r), scale(at.a_2, adj_r)

    # (2) d_i . r = 0: the matrix of the d_i . d_j is symmetric
    l_1, l_2 = solve_gram(at.d_1, at.d_2, adj_a_1, adj_a_2)
    q = neg(axpy(l_2, at.d_2, scale(l_1, at.d_1)))
    adj_b = add(adj_b, q)
    adj_d_1 = axpy(-l_1, at.r, axpy(at.a_1, q, adj_d_1))
    adj_d_2 = axpy(-l_2, at.r, axpy(at.a_2, q, adj_d_2))

    # (1) b = sum o y, d_1 = sum e_1 y, d_2 = sum e_2 y, with o = w - a_1 e_1 - a_2 e_2
    along_1, along_2 = axpy(-at.a_1, adj_b, adj_d_1), axpy(-at.a_2, adj_b, adj_d_2)
    return (
        axpy(at.weights[0], adj_b, axpy(at.e_1[0], along_1, scale(at.e_2[0], along_2))),
        axpy(at.weights[1], adj_b, axpy(at.e_1[1], along_1, scale(at.e_2[1], along_2))),
        axpy(at.weights[2], adj_b, axpy(at.e_1[2], along_1, scale(at.e_2[2], along_2))),
    )
