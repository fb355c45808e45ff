r"""The pose of a body by its frame points, and a force and a torque as forces on them.

The points are the centre c and the levers l_i = c + e_i, where e_i are the body's axes in the
world, of length 1 m. With E = [e_1, e_2, e_3] a point with the arm a is at

    p = c + E a,   p' = c' + E' a,   omega = 1/2 sum e_i x e_i'

A force f at p with a torque T is the forces on the points

    g_i = a_i f + 1/2 T x e_i  on the levers,   g_0 = f - sum g_i  on the centre

which are f in sum and have the moment (E a) x f + T about c: sum e_i x (T x e_i) = 2 T. Both maps
are transposes of each other, so what f and T do to p' and omega is what g does to the points.

Adjoint: `adjoint/rigid/frames.py`. Tests: `tests/rigid/test_frames.py`. Source: ours.
"""

from adjsim.algebra.mat3 import matvec_add
from adjsim.algebra.vec3 import add, axpy, cross, scale, sub
from adjsim.jit.backend import device_fn, lit


@device_fn
def axes_of(x):
    """Return the vectors from the centre to the levers, as columns."""
    return (sub(x[1], x[0]), sub(x[2], x[0]), sub(x[3], x[0]))


@device_fn
def motion(x, v, a):
    """Return p, p', omega and E of a body, and E', from its frame points."""
    E, D = axes_of(x), axes_of(v)  # (1)
    p, p_rate = matvec_add(E, a, x[0]), matvec_add(D, a, v[0])  # (2)
    omega = scale(lit(0.5, a[0]), spins(E, D))  # (3)
    return p, p_rate, omega, E, D


@device_fn
def spins(A, B):
    """Return the sum of cross products of the columns of two matrices."""
    return add(cross(A[0], B[0]), add(cross(A[1], B[1]), cross(A[2], B[2])))


@device_fn
def motion_jvp(x, v, a, tan_x, tan_v, tan_a):
    """Push tangents through `motion`."""
    E, D = axes_of(x), axes_of(v)  # (1)
    tan_E, tan_D = axes_of(tan_x), axes_of(tan_v)
    tan_p = matvec_add(E, tan_a, matvec_add(tan_E, a, tan_x[0]))  # (2)
    tan_p_rate = matvec_add(D, tan_a, matvec_add(tan_D, a, tan_v[0]))
    tan_omega = scale(lit(0.5, a[0]), add(spins(tan_E, D), spins(E, tan_D)))  # (3)
    return tan_p, tan_p_rate, tan_omega, tan_E, tan_D


@device_fn
def spread(E, a, f, T):
    """Return the forces on centre and levers of a force f at p and a torque T."""
    half = scale(lit(0.5, a[0]), T)
    g1 = axpy(a[0], f, cross(half, E[0]))  # (1)
    g2 = axpy(a[1], f, cross(half, E[1]))  # (2)
    g3 = axpy(a[2], f, cross(half, E[2]))  # (3)
    return (sub(f, add(g1, add(g2, g3))), g1, g2, g3)  # (4)


@device_fn
def spread_jvp(E, a, f, T, tan_E, tan_a, tan_f, tan_T):
    """Push tangents through `spread`."""
    half, tan_half = scale(lit(0.5, a[0]), T), scale(lit(0.5, a[0]), tan_T)
    tan_g1 = lever_jvp(E[0], a[0], f, half, (tan_E[0], tan_a[0], tan_f, tan_half))  # (1)
    tan_g2 = lever_jvp(E[1], a[1], f, half, (tan_E[1], tan_a[1], tan_f, tan_half))  # (2)
    tan_g3 = lever_jvp(E[2], a[2], f, half, (tan_E[2], tan_a[2], tan_f, tan_half))  # (3)
    return (sub(tan_f, add(tan_g1, add(tan_g2, tan_g3))), tan_g1, tan_g2, tan_g3)  # (4)


@device_fn
def lever_jvp(e, a, f, half, tan):
    """Push tangents of e, a, f and T/2 to the force on a lever."""
    turned = add(cross(tan[3], e), cross(half, tan[0]))
    return axpy(tan[1], f, axpy(a, tan[2], turned))
