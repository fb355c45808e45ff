r"""Rows of arrays that hold bodies: their states, their parameters, the points they carry.

A body's state is a row of 13 numbers: position 3, quaternion (x, y, z, w) 4, velocity 3,
angular velocity 3. `Bodies` is (point_ptr, arms, params): the points of body b are the rows
`point_ptr[b]` to `point_ptr[b + 1]` of the nodes' arrays, `arms` their constant places in the
body, (n_points, 3), `params` w, I, J = I^-1 and kappa, (n_bodies, 14).

Numbers of bodies and rows are signed here: adding 1 to an unsigned one would make a float.
"""

from adjsim.algebra.vec3 import axpy
from adjsim.jit.backend import device_fn


STATE_SIZE, V, OMEGA = 13, slice(7, 10), slice(10, 13)  # x 3, r 4, v 3, omega 3
PARAMS_SIZE = 14
W, INERTIA, INVERSE, KAPPA = 0, slice(1, 7), slice(7, 13), 13  # of parameters: w, I, J, kappa


@device_fn
def read_3(a, b, k):
    """Return three numbers of row b from column k."""
    return (a[b, k], a[b, k + 1], a[b, k + 2])


@device_fn
def write_3(a, b, k, value):
    """Write three numbers to row b from column k."""
    a[b, k], a[b, k + 1], a[b, k + 2] = value


@device_fn
def read_body(p, b):
    """Return the state (x, r, v, omega) of body b."""
    return read_3(p, b, 0), (p[b, 3], p[b, 4], p[b, 5], p[b, 6]), read_3(p, b, 7), read_3(p, b, 10)


@device_fn
def write_body(p, b, state):
    """Write the state of body b."""
    write_3(p, b, 0, state[0])
    p[b, 3], p[b, 4], p[b, 5], p[b, 6] = state[1]
    write_3(p, b, 7, state[2])
    write_3(p, b, 10, state[3])


@device_fn
def read_params(params, b):
    """Return w, I, J and kappa of body b: 14 numbers."""
    inertia = (*read_3(params, b, 1), *read_3(params, b, 4))
    inverse = (*read_3(params, b, 7), *read_3(params, b, 10))
    return (params[b, W], *inertia, *inverse, params[b, KAPPA])


@device_fn
def place(b, bodies, base, M, out):
    """Write base + M c to the row of every point of body b: the adjoint of `body_load`."""
    point_ptr, arms = bodies.point_ptr, bodies.arms
    for k in range(point_ptr[b], point_ptr[b + 1]):
        c = read_3(arms, k - point_ptr[0], 0)
        write_3(out, k, 0, axpy(c[2], M[2], axpy(c[1], M[1], axpy(c[0], M[0], base))))
