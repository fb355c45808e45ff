"""3 x 3 matrices as tuples of three columns: `A[j][i]` is the entry in row i, column j."""

from adjsim.algebra.vec3 import add, axpy, cross, dot, scale
from adjsim.jit.backend import device_fn


@device_fn
def madd(A, B):
    return (add(A[0], B[0]), add(A[1], B[1]), add(A[2], B[2]))


@device_fn
def mscale(s, A):
    return (scale(s, A[0]), scale(s, A[1]), scale(s, A[2]))


@device_fn
def maxpy(s, A, B):
    """Return s A + B."""
    return (axpy(s, A[0], B[0]), axpy(s, A[1], B[1]), axpy(s, A[2], B[2]))


@device_fn
def symmetric(a):
    """Return the symmetric matrix of its upper triangle, row by row."""
    return ((a[0], a[1], a[2]), (a[1], a[3], a[4]), (a[2], a[4], a[5]))


@device_fn
def add_diagonal(s, A):
    """Return s I + A."""
    return (
        (A[0][0] + s, A[0][1], A[0][2]),
        (A[1][0], A[1][1] + s, A[1][2]),
        (A[2][0], A[2][1], A[2][2] + s),
    )


@device_fn
def frobenius(A, B):
    """Return tr(A^T B), the sum of products of entries."""
    return dot(A[0], B[0]) + dot(A[1], B[1]) + dot(A[2], B[2])


@device_fn
def matvec(A, b):
    return axpy(b[2], A[2], axpy(b[1], A[1], scale(b[0], A[0])))


@device_fn
def t_matvec(A, b):
    """Return A^T b."""
    return (dot(A[0], b), dot(A[1], b), dot(A[2], b))


@device_fn
def matmul(A, B):
    return (matvec(A, B[0]), matvec(A, B[1]), matvec(A, B[2]))


@device_fn
def matvec_add(A, b, c):
    """Return A b + c."""
    return axpy(b[2], A[2], axpy(b[1], A[1], axpy(b[0], A[0], c)))


@device_fn
def matmul_add(A, B, C):
    """Return A B + C."""
    return (matvec_add(A, B[0], C[0]), matvec_add(A, B[1], C[1]), matvec_add(A, B[2], C[2]))


@device_fn
def symmetric_t_matmul(A, B):
    """Return A^T B + B^T A."""
    d0, d1, d2 = dot(A[0], B[0]), dot(A[1], B[1]), dot(A[2], B[2])
    s01 = dot(A[0], B[1]) + dot(B[0], A[1])
    s02 = dot(A[0], B[2]) + dot(B[0], A[2])
    s12 = dot(A[1], B[2]) + dot(B[1], A[2])
    return ((d0 + d0, s01, s02), (s01, d1 + d1, s12), (s02, s12, d2 + d2))


@device_fn
def matmul_t(A, B):
    """Return A B^T."""
    return (
        matvec(A, (B[0][0], B[1][0], B[2][0])),
        matvec(A, (B[0][1], B[1][1], B[2][1])),
        matvec(A, (B[0][2], B[1][2], B[2][2])),
    )


@device_fn
def t_matmul(A, B):
    """Return A^T B."""
    return (t_matvec(A, B[0]), t_matvec(A, B[1]), t_matvec(A, B[2]))


@device_fn
def transpose(A):
    return ((A[0][0], A[1][0], A[2][0]), (A[0][1], A[1][1], A[2][1]), (A[0][2], A[1][2], A[2][2]))


@device_fn
def trace(A):
    return A[0][0] + A[1][1] + A[2][2]


@device_fn
def cofactor(A):
    """Return cof A = det(A) A^-T; also for singular A."""
    return (cross(A[1], A[2]), cross(A[2], A[0]), cross(A[0], A[1]))


@device_fn
def cofactor_jvp(A, tan_A):
    """Push a tangent through C = cof A.

    C0 = A1 x A2, C1 = A2 x A0, C2 = A0 x A1. The map A -> cof A has a symmetric derivative, so this
    is its adjoint too: for c = a x b, adj_a = b x adj_c and adj_b = adj_c x a.
    """
    return (
        add(cross(tan_A[1], A[2]), cross(A[1], tan_A[2])),
        add(cross(tan_A[2], A[0]), cross(A[2], tan_A[0])),
        add(cross(tan_A[0], A[1]), cross(A[0], tan_A[1])),
    )
