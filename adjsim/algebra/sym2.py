"""Symmetric 2 x 2 matrices as tuples (a11, a12, a22): metrics of a surface, and their like.

A cotangent of one is such a matrix too, paired by `frobenius`: <adj_A, dA>.
"""

from adjsim.algebra.vec3 import axpy, dot, scale
from adjsim.jit.backend import device_fn, lit


@device_fn
def saxpy(s, A, B):
    """Return s A + B."""
    return (s * A[0] + B[0], s * A[1] + B[1], s * A[2] + B[2])


@device_fn
def sscale(s, A):
    """Return s A."""
    return (s * A[0], s * A[1], s * A[2])


@device_fn
def frobenius(A, B):
    """Return tr(A B), the sum of products of all four entries."""
    return A[0] * B[0] + A[2] * B[2] + (A[1] * B[1] + A[1] * B[1])


@device_fn
def cofactor(A):
    """Return cof A = det(A) A^-1. It is linear, and its own adjoint."""
    return (A[2], -A[1], A[0])


@device_fn
def sandwich(M, A):
    """Return M A M. It is linear in A, and its own adjoint."""
    p, q = M[0] * A[0] + M[1] * A[1], M[0] * A[1] + M[1] * A[2]  # first row of M A
    r, s = M[1] * A[0] + M[2] * A[1], M[1] * A[1] + M[2] * A[2]  # second row
    return (p * M[0] + q * M[1], p * M[1] + q * M[2], r * M[1] + s * M[2])


@device_fn
def sandwich_twice(M, A, N):
    """Return M A N + N A M, the rate of M A M where M changes by N."""
    p, q = M[0] * A[0] + M[1] * A[1], M[0] * A[1] + M[1] * A[2]  # first row of M A
    r, s = M[1] * A[0] + M[2] * A[1], M[1] * A[1] + M[2] * A[2]  # second row
    d0, d1 = p * N[0] + q * N[1], r * N[1] + s * N[2]
    return (d0 + d0, p * N[1] + q * N[2] + r * N[0] + s * N[1], d1 + d1)


@device_fn
def gram(E):
    """Return E^T E of the 3 x 2 matrix E, given as two columns."""
    return (dot(E[0], E[0]), dot(E[0], E[1]), dot(E[1], E[1]))


@device_fn
def gram_rate(E, W):
    """Return E^T W + W^T E, the rate of E^T E where E changes by W."""
    d0, d1 = dot(E[0], W[0]), dot(E[1], W[1])
    return (d0 + d0, dot(E[0], W[1]) + dot(E[1], W[0]), d1 + d1)


@device_fn
def sym_t_matmul(E, W):
    """Return the symmetric part of E^T W."""
    d = dot(E[0], W[1]) + dot(E[1], W[0])
    return (dot(E[0], W[0]), lit(0.5, d) * d, dot(E[1], W[1]))


@device_fn
def columns_times(E, A):
    """Return E A, two columns."""
    return (axpy(A[0], E[0], scale(A[1], E[1])), axpy(A[1], E[0], scale(A[2], E[1])))


@device_fn
def columns_times_add(E, A, D):
    """Return E A + D, two columns."""
    return (axpy(A[0], E[0], axpy(A[1], E[1], D[0])), axpy(A[1], E[0], axpy(A[2], E[1], D[1])))
