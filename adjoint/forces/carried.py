r"""Adjoint of `adjsim/forces/carried.py`, which has the tangent: read them side by side."""

from collections.abc import Callable
from functools import cache

from adjoint.forces.element import TwinKind
from adjoint.rigid.frames import axes_vjp, outer_add
from adjsim.algebra.mat3 import matvec, t_matvec
from adjsim.algebra.vec3 import add, dot, neg, scale, sub
from adjsim.forces.carried import carried_kind, frame_of, make_seen, seen_from
from adjsim.jit.backend import device_fn, lit


@device_fn
def reaction_vjp(f, y, adj_points):
    """Pull forces on the frame points back through `reaction`: f and y."""
    center = y[0] + y[1] + y[2] - lit(1, y[0])
    levers = (adj_points[1], adj_points[2], adj_points[3])
    adj_f = sub(scale(center, adj_points[0]), matvec(levers, y))
    of_center = dot(f, adj_points[0])
    return adj_f, sub((of_center, of_center, of_center), t_matvec(levers, f))


@device_fn
def shared_vjp(E, F, y, adj_f, adj_points, adj_E):
    """Pull f = E F on a point and its reaction back: F, y and E."""
    by_reaction, adj_y = reaction_vjp(matvec(E, F), y, adj_points)
    adj_f = add(adj_f, by_reaction)
    return t_matvec(E, adj_f), adj_y, outer_add(adj_f, F, adj_E)


@device_fn
def seen_vjp(frame, x, v, adj_y, adj_w, adj_frame):
    """Pull cotangents of y and w back through `seen_from`: x, v and what adds to the frame."""
    _, _, E, D = frame
    adj_c, adj_c_rate, adj_E, adj_D = adj_frame
    d, s, y, _ = seen_from(frame, x, v)  # replayed

    # (5) w = E^T s
    adj_s = matvec(E, adj_w)
    adj_E = outer_add(s, adj_w, adj_E)

    # (4) s = x' - c' - E' y
    adj_y = sub(adj_y, t_matvec(D, adj_s))
    adj_c_rate = sub(adj_c_rate, adj_s)
    adj_D = outer_add(neg(adj_s), y, adj_D)

    # (3) y = E^T d
    adj_d = matvec(E, adj_y)
    adj_E = outer_add(d, adj_y, adj_E)

    # (2) d = x - c
    return adj_d, adj_s, (sub(adj_c, adj_d), adj_c_rate, adj_E, adj_D)


@cache
def make_shared_vjp(n: int) -> Callable:
    """Return the adjoint of `make_shared`: cotangents of F, y and E."""
    if n == 0:
        return none_shared_vjp
    head, k = make_shared_vjp(n - 1), n - 1

    @device_fn
    def all_shared_vjp(E, F, y, adj_g, adj_E):
        adj_F, adj_y, adj_E = head(E, F, y, adj_g, adj_E)
        adj_points = (adj_g[-4], adj_g[-3], adj_g[-2], adj_g[-1])
        by_F, by_y, adj_E = shared_vjp(E, F[k], y[k], adj_g[k], adj_points, adj_E)
        return (*adj_F, by_F), (*adj_y, by_y), adj_E

    return all_shared_vjp


@device_fn
def none_shared_vjp(E, F, y, adj_g, adj_E):
    """Return no cotangents, and that of E as it is."""
    return (), (), adj_E


@cache
def make_seen_vjp(n: int) -> Callable:
    """Return the adjoint of `make_seen`: cotangents of x, v and the frame."""
    if n == 0:
        return none_seen_vjp
    head, k = make_seen_vjp(n - 1), n - 1

    @device_fn
    def all_seen_vjp(frame, x, v, adj_y, adj_w, adj_frame):
        adj_x, adj_v, adj_frame = head(frame, x, v, adj_y, adj_w, adj_frame)
        by_x, by_v, adj_frame = seen_vjp(frame, x[k], v[k], adj_y[k], adj_w[k], adj_frame)
        return (*adj_x, by_x), (*adj_v, by_v), adj_frame

    return all_seen_vjp


@device_fn
def none_seen_vjp(frame, x, v, adj_y, adj_w, adj_frame):
    """Return no cotangents, and that of the frame as it is."""
    return (), (), adj_frame


@cache
def make_sums(n: int) -> Callable:
    """Return a function that adds n vectors of two tuples."""
    if n == 0:
        return no_sums
    head, k = make_sums(n - 1), n - 1

    @device_fn
    def sums(a, b):
        return (*head(a, b), add(a[k], b[k]))

    return sums


@device_fn
def no_sums(a, b):
    """Return no vectors."""
    return ()


@cache
def carried_twin(twin: TwinKind) -> TwinKind:
    """Return the twin of the `carried_kind` of a shape, from the twin of the shape's own kind."""
    own_force, own_vjp, n = twin.kind.force, twin.vjp, twin.kind.n_nodes
    (seen, _), sums = make_seen(n), make_sums(n)
    all_shared_vjp, all_seen_vjp = make_shared_vjp(n), make_seen_vjp(n)

    @device_fn
    def carried_vjp(x, v, consts, params, series, adj_g):
        """Pull adj_g back through `carried_force`."""
        frame = frame_of(x[n:], v[n:])  # (1) replayed
        y, w = seen(frame, x, v)  # (2) to (5) replayed
        F = own_force(y, w, consts, params, series)  # (6) replayed
        zero = lit(0, x[0][0])
        none = (zero, zero, zero)
        no_axes = (none, none, none)

        # (7) f = E F on what touches, (y_1 + y_2 + y_3 - 1) f on the centre, -y_i f on the levers
        adj_F, adj_y, adj_E = all_shared_vjp(frame[2], F, y, adj_g, no_axes)

        # (6) F of y and w
        by_y, adj_w, adj_params, adj_series = own_vjp(y, w, consts, params, series, adj_F)

        # (5) to (2) y, w of the points
        adj_frame = (none, none, adj_E, no_axes)
        adj_x, adj_v, adj_frame = all_seen_vjp(frame, x, v, sums(adj_y, by_y), adj_w, adj_frame)

        # (1) e_i = l_i - c, e_i' = l_i' - c'
        adj_c, adj_c_rate, adj_E, adj_D = adj_frame
        return (
            (*adj_x, *axes_vjp(adj_c, adj_E)),
            (*adj_v, *axes_vjp(adj_c_rate, adj_D)),
            adj_params,
            adj_series,
        )

    return TwinKind(carried_kind(twin.kind), carried_vjp)
