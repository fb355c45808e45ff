r"""Adjoint of `adjsim/forces/carried.py`, which has the tangent: read them side by side."""

from functools import cache

from adjoint.forces.element import TwinKind
from adjoint.rigid.frames import axes_vjp, outer_add
from adjsim.algebra.mat3 import matvec, t_matvec
from adjsim.algebra.vec3 import add, axpy, dot, neg, scale, sub
from adjsim.forces.carried import carried_kind, seen_from
from adjsim.jit.backend import device_fn, lit


@device_fn
def seen_vjp(d, s, y, E, D, adj_y, adj_w, adj_E):
    """Pull cotangents of y, w and E back through `seen_from`: adj_x, adj_v of all points."""
    # (5) w = E^T s
    adj_s = matvec(E, adj_w)
    adj_E = outer_add(s, adj_w, adj_E)

    # (4) s = x' - c' - E' y
    adj_y = sub(adj_y, t_matvec(D, adj_s))
    minus_s = neg(adj_s)
    adj_D = (scale(y[0], minus_s), scale(y[1], minus_s), scale(y[2], minus_s))

    # (3) y = E^T d
    adj_d = matvec(E, adj_y)
    adj_E = outer_add(d, adj_y, adj_E)

    # (2) d = x - c, (1) e_i = l_i - c, e_i' = l_i' - c'
    return (adj_d, *axes_vjp(neg(adj_d), adj_E)), (adj_s, *axes_vjp(minus_s, adj_D))


@cache
def carried_twin(twin: TwinKind) -> TwinKind:
    """Return the twin of the `carried_kind` of a shape, from the twin of the shape's own kind."""
    own_force, own_vjp = twin.kind.force, twin.vjp

    @device_fn
    def carried_vjp(x, v, consts, params, series, adj_g):
        """Pull adj_g back through `carried_force`."""
        d, s, y, w, E, D = seen_from(x, v)  # (1) replayed
        (F,) = own_force((y,), (w,), consts, params, series)  # (2) replayed
        f = matvec(E, F)

        # (3) f on the node, (y_1 + y_2 + y_3 - 1) f on the centre, -y_i f on the levers
        center = y[0] + y[1] + y[2] - lit(1, y[0])
        adj_f = axpy(center, adj_g[1], adj_g[0])
        levers = (adj_g[2], adj_g[3], adj_g[4])
        adj_f = sub(adj_f, matvec(levers, y))
        of_center = dot(f, adj_g[1])
        adj_y = sub((of_center, of_center, of_center), t_matvec(levers, f))
        adj_F, adj_E = t_matvec(E, adj_f), outer(adj_f, F)

        # (2) F of y and w
        (by_y,), (adj_w,), adj_params, adj_series = own_vjp(
            (y,), (w,), consts, params, series, (adj_F,)
        )

        # (1) y, w of the points
        adj_x, adj_v = seen_vjp(d, s, y, E, D, add(adj_y, by_y), adj_w, adj_E)
        return adj_x, adj_v, adj_params, adj_series

    return TwinKind(carried_kind(twin.kind), carried_vjp)


@device_fn
def outer(b, a):
    """Return b a^T."""
    return (scale(a[0], b), scale(a[1], b), scale(a[2], b))
