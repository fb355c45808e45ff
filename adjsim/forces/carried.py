r"""Contact with a shape that a rigid body carries, from the same contact in the world.

The body's frame points say where it is: its centre of mass c and the levers l_i = c + e_i, where
e_i are its axes in the world (`adjsim/rigid/frames.py`). Pose and velocity of the shape are given
in these axes. With E = [e_1, e_2, e_3], a node at x is seen from the body at y, with the velocity w
relative to the body's matter there,

    y = E^T (x - c),   w = E^T (x' - c' - E' y)

It feels f = E F(y, w), where F is the force of the shape at rest. The body feels -f at x: on its
frame points

    y_1 + y_2 + y_3 - 1 times f on the centre,   -y_i f on the levers

These sum up to -f, and have the moment -(E y) x f = -(x - c) x f about c, since E E^T = 1. So
momentum and angular momentum are conserved. The elastic part of F is -dU/dy: of a change of the
pose, the work of f and -f is that of F by the change of y, so it is -dU by the pose too.

Adjoint: `adjoint/forces/carried.py`. Tests: `tests/forces/test_carried.py`. Source: ours.
"""

from collections.abc import Callable
from functools import cache
from typing import cast

from adjsim.algebra.mat3 import matvec, matvec_add, t_matvec
from adjsim.algebra.vec3 import add, axpy, neg, scale, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.frames import axes_of
from adjsim.tiles.element_kind import ElementKind


N_FRAME = 4  # points behind the node: the centre and the levers


@device_fn
def seen_from(x, v):
    """Return d, s, y and w, E and E' of a node and the frame points of a body.

    d = x - c is where it is from the centre, s = E w its velocity relative to the body's matter.
    """
    E, D = axes_of(x[1:5]), axes_of(v[1:5])  # (1)
    d = sub(x[0], x[1])  # (2)
    y = t_matvec(E, d)  # (3)
    s = sub(sub(v[0], v[1]), matvec(D, y))  # (4)
    return d, s, y, t_matvec(E, s), E, D  # (5)


@device_fn
def seen_jvp(d, s, y, E, D, tan_x, tan_v):
    """Push tangents through `seen_from`: those of y, w and E."""
    tan_E, tan_D = axes_of(tan_x[1:5]), axes_of(tan_v[1:5])  # (1)
    tan_d = sub(tan_x[0], tan_x[1])  # (2)
    tan_y = add(t_matvec(tan_E, d), t_matvec(E, tan_d))  # (3)
    tan_moved = matvec_add(D, tan_y, matvec(tan_D, y))
    tan_s = sub(sub(tan_v[0], tan_v[1]), tan_moved)  # (4)
    return tan_y, add(t_matvec(tan_E, s), t_matvec(E, tan_s)), tan_E  # (5)


@device_fn
def on_both(f, y):
    """Return the forces on the node, the centre and the levers."""
    center = y[0] + y[1] + y[2] - lit(1, y[0])
    return f, scale(center, f), scale(-y[0], f), scale(-y[1], f), scale(-y[2], f)


@cache
def carried_kind(kind: ElementKind) -> ElementKind:
    """Return the kind of contact with a shape of a kind that a body carries."""
    own_force, own_jvp = kind.force, cast(Callable, kind.jvp)

    @device_fn
    def carried_force(x, v, consts, params, series):
        """Return the forces on the node and on the frame points."""
        _, _, y, w, E, _ = seen_from(x, v)  # (1)
        (F,) = own_force((y,), (w,), consts, params, series)  # (2)
        return on_both(matvec(E, F), y)  # (3)

    @device_fn
    def carried_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `carried_force`."""
        d, s, y, w, E, D = seen_from(x, v)  # (1)
        tan_y, tan_w, tan_E = seen_jvp(d, s, y, E, D, tan_x, tan_v)
        (F,) = own_force((y,), (w,), consts, params, series)  # (2)
        (tan_F,) = own_jvp(
            (y,), (w,), consts, params, series, (tan_y,), (tan_w,), tan_params, tan_series
        )
        f, tan_f = matvec(E, F), matvec_add(tan_E, F, matvec(E, tan_F))  # (3)
        center, tan_center = y[0] + y[1] + y[2] - lit(1, y[0]), tan_y[0] + tan_y[1] + tan_y[2]
        return (
            tan_f,
            axpy(center, tan_f, scale(tan_center, f)),
            neg(axpy(y[0], tan_f, scale(tan_y[0], f))),
            neg(axpy(y[1], tan_f, scale(tan_y[1], f))),
            neg(axpy(y[2], tan_f, scale(tan_y[2], f))),
        )

    return ElementKind(
        f"{kind.name}_carried", carried_force, 1 + N_FRAME, 0, kind.n_params, kind.n_series,
        uses_velocity=True, jvp=carried_jvp,
    )  # fmt: skip
