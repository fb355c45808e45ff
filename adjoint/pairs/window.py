r"""Adjoint of `adjsim/pairs/window.py`.

The gradient's Jacobian is the Hessian of omega, which is symmetric: the tangent along a cotangent
is what the cotangent gives.
"""

from adjsim.algebra.vec3 import axpy
from adjsim.jit.backend import device_fn
from adjsim.pairs.closest import closest_jvp
from adjsim.pairs.window import window_gradient_jvp


@device_fn
def window_gradient_vjp(at, gradient, adj_omega, adj_gradient):
    """Pull cotangents of omega and of its gradient back to y, where omega > 0."""
    tan_r, tan_d_1, tan_d_2, tan_s, tan_t, _ = closest_jvp(at, adj_gradient)
    _, pulled = window_gradient_jvp(at, tan_r, tan_d_1, tan_d_2, tan_s, tan_t)
    return (
        axpy(adj_omega, gradient[0], pulled[0]),
        axpy(adj_omega, gradient[1], pulled[1]),
        axpy(adj_omega, gradient[2], pulled[2]),
    )
