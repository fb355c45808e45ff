r"""Contact with a shape that a rigid body carries, from the same contact in the world.

The body's frame points say where it is: its centre of mass c and the levers l_i = c + e_i, where
e_i are its axes in the world (`adjsim/rigid/frames.py`). Pose and velocity of the shape are given
in these axes. With E = [e_1, e_2, e_3], a point at x is seen from the body at y, with the velocity
w relative to the body's matter there,

    y = E^T (x - c),   w = E^T (x' - c' - E' y)

It feels f = E F(y, w), where F is the force of the shape at rest. The body feels -f at x: on its
frame points

    y_1 + y_2 + y_3 - 1 times f on the centre,   -y_i f on the levers

These sum up to -f, and have the moment -(E y) x f = -(x - c) x f about c, since E E^T = 1. So
momentum and angular momentum are conserved. The elastic part of F is -dU/dy: of a change of the
pose, the work of f and -f is that of F by the change of y, so it is -dU by the pose too.

What touches is a node, or a ball (`adjsim/forces/ball.py`), whose four frame points are seen from
the body as a node is: their forces are that of the law at the point that touches.

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


N_FRAME = 4  # points behind those that touch: the centre and the levers


@device_fn
def frame_of(x, v):
    """Return c, c', E and E' of a body's frame points."""
    return x[0], v[0], axes_of(x), axes_of(v)  # (1)


@device_fn
def frame_jvp(tan_x, tan_v):
    """Push tangents through `frame_of`."""
    return tan_x[0], tan_v[0], axes_of(tan_x), axes_of(tan_v)  # (1)


@device_fn
def seen_from(frame, x, v):
    """Return d, s, y and w of a point.

    d = x - c is where it is from the centre, s = E w its velocity relative to the body's matter.
    """
    c, c_rate, E, D = frame
    d = sub(x, c)  # (2)
    y = t_matvec(E, d)  # (3)
    s = sub(sub(v, c_rate), matvec(D, y))  # (4)
    return d, s, y, t_matvec(E, s)  # (5)


@device_fn
def seen_jvp(frame, x, v, tan_frame, tan_x, tan_v):
    """Push tangents through `seen_from`, to y and w."""
    _, _, E, D = frame
    tan_c, tan_c_rate, tan_E, tan_D = tan_frame
    d, s, y, _ = seen_from(frame, x, v)
    tan_d = sub(tan_x, tan_c)  # (2)
    tan_y = add(t_matvec(tan_E, d), t_matvec(E, tan_d))  # (3)
    tan_moved = matvec_add(D, tan_y, matvec(tan_D, y))
    tan_s = sub(sub(tan_v, tan_c_rate), tan_moved)  # (4)
    return tan_y, add(t_matvec(tan_E, s), t_matvec(E, tan_s))  # (5)


@device_fn
def reaction(f, y):
    """Return the forces on the centre and the levers of -f at y."""
    center = y[0] + y[1] + y[2] - lit(1, y[0])
    return scale(center, f), scale(-y[0], f), scale(-y[1], f), scale(-y[2], f)


@device_fn
def reaction_jvp(f, y, tan_f, tan_y):
    """Push tangents through `reaction`."""
    center, tan_center = y[0] + y[1] + y[2] - lit(1, y[0]), tan_y[0] + tan_y[1] + tan_y[2]
    return (
        axpy(center, tan_f, scale(tan_center, f)),
        neg(axpy(y[0], tan_f, scale(tan_y[0], f))),
        neg(axpy(y[1], tan_f, scale(tan_y[1], f))),
        neg(axpy(y[2], tan_f, scale(tan_y[2], f))),
    )


@device_fn
def add_points(a, b):
    """Return the sums of forces on four points."""
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2]), add(a[3], b[3])


@cache
def make_seen(n: int) -> tuple[Callable, Callable]:
    """Return functions that see n points, and push tangents: the tuples of y and of w."""
    if n == 0:
        return none_seen, none_seen_jvp
    (head, head_jvp), k = make_seen(n - 1), n - 1

    @device_fn
    def seen(frame, x, v):
        ys, ws = head(frame, x, v)
        _, _, y, w = seen_from(frame, x[k], v[k])
        return (*ys, y), (*ws, w)

    @device_fn
    def seen_of_jvp(frame, x, v, tan_frame, tan_x, tan_v):
        tan_ys, tan_ws = head_jvp(frame, x, v, tan_frame, tan_x, tan_v)
        tan_y, tan_w = seen_jvp(frame, x[k], v[k], tan_frame, tan_x[k], tan_v[k])
        return (*tan_ys, tan_y), (*tan_ws, tan_w)

    return seen, seen_of_jvp


@device_fn
def none_seen(frame, x, v):
    """Return no points."""
    return (), ()


@device_fn
def none_seen_jvp(frame, x, v, tan_frame, tan_x, tan_v):
    """Return no tangents."""
    return (), ()


@cache
def make_shared(n: int) -> tuple[Callable, Callable]:
    """Return functions of n forces F at y, and of tangents: what touches feels, and the body."""
    if n == 0:
        return none_shared, none_shared_jvp
    (head, head_jvp), k = make_shared(n - 1), n - 1

    @device_fn
    def shared(E, F, y):
        forces, on_body = head(E, F, y)
        f = matvec(E, F[k])
        return (*forces, f), add_points(on_body, reaction(f, y[k]))

    @device_fn
    def shared_jvp(E, F, y, tan_E, tan_F, tan_y):
        tan_forces, tan_on_body = head_jvp(E, F, y, tan_E, tan_F, tan_y)
        f, tan_f = matvec(E, F[k]), matvec_add(tan_E, F[k], matvec(E, tan_F[k]))
        tan_reaction = reaction_jvp(f, y[k], tan_f, tan_y[k])
        return (*tan_forces, tan_f), add_points(tan_on_body, tan_reaction)

    return shared, shared_jvp


@device_fn
def none_shared(E, F, y):
    """Return no forces, and none on the body."""
    zero = lit(0, E[0][0])
    none = (zero, zero, zero)
    return (), (none, none, none, none)


@device_fn
def none_shared_jvp(E, F, y, tan_E, tan_F, tan_y):
    """Return no tangents."""
    return none_shared(E, F, y)


@cache
def carried_kind(kind: ElementKind) -> ElementKind:
    """Return the kind of contact with a shape of a kind that a body carries."""
    own_force, own_jvp, n = kind.force, cast(Callable, kind.jvp), kind.n_nodes
    (seen, all_seen_jvp), (shared, shared_jvp) = make_seen(n), make_shared(n)

    @device_fn
    def carried_force(x, v, consts, params, series):
        """Return the forces on what touches and on the frame points."""
        frame = frame_of(x[n:], v[n:])  # (1)
        y, w = seen(frame, x, v)  # (2) to (5)
        F = own_force(y, w, consts, params, series)  # (6)
        forces, on_body = shared(frame[2], F, y)  # (7)
        return (*forces, *on_body)

    @device_fn
    def carried_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `carried_force`."""
        frame, tan_frame = frame_of(x[n:], v[n:]), frame_jvp(tan_x[n:], tan_v[n:])  # (1)
        y, w = seen(frame, x, v)  # (2) to (5)
        tan_y, tan_w = all_seen_jvp(frame, x, v, tan_frame, tan_x, tan_v)
        F = own_force(y, w, consts, params, series)  # (6)
        tan_F = own_jvp(y, w, consts, params, series, tan_y, tan_w, tan_params, tan_series)
        tan_forces, tan_on_body = shared_jvp(frame[2], F, y, tan_frame[2], tan_F, tan_y)  # (7)
        return (*tan_forces, *tan_on_body)

    return ElementKind(
        f"{kind.name}_carried", carried_force, n + N_FRAME, 0, kind.n_params, kind.n_series,
        uses_velocity=True, jvp=carried_jvp,
    )  # fmt: skip
