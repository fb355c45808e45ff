"""Adjoints of `adjsim/algebra/mat3.py`, where more than a product rule is needed."""

from adjsim.algebra.mat3 import cofactor_jvp
from adjsim.jit.backend import device_fn


@device_fn
def cofactor_vjp(A, adj_C):
    """Pull adj_C back through C = cof A, whose derivative is symmetric."""
    return cofactor_jvp(A, adj_C)
