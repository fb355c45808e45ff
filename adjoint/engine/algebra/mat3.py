"""Adjoints of `adjsim/engine/algebra/mat3.py`, where more than a product rule is needed."""

from adjsim.engine.algebra.vec3 import add, cross
from adjsim.engine.jit.backend import device_fn


@device_fn
def cofactor_vjp(A, adj_C):
    """Pull adj_C back through C = cof A.

    C0 = A1 x A2, C1 = A2 x A0, C2 = A0 x A1; for c = a x b: adj_a = b x adj_c and
    adj_b = adj_c x a. The map A -> cof A has a symmetric derivative, so this is its
    tangent too.
    """
    return (
        add(cross(adj_C[1], A[2]), cross(A[1], adj_C[2])),
        add(cross(adj_C[2], A[0]), cross(A[2], adj_C[0])),
        add(cross(adj_C[0], A[1]), cross(A[0], adj_C[1])),
    )
