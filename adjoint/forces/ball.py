r"""Adjoint of `adjsim/forces/ball.py`, which has the tangent: read them side by side."""

from collections.abc import Callable

from adjoint.forces.contact_law import contact_law_vjp, make_zeros
from adjoint.forces.element import TwinKind
from adjoint.rigid.frames import axes_vjp, outer_add
from adjsim.algebra.mat3 import matvec, t_matvec
from adjsim.algebra.vec3 import add, dot, scale
from adjsim.forces.ball import point_that_touches
from adjsim.forces.contact_law import N_LAW, RADIUS, contact_law
from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.element_kind import ElementKind


def ball_twin(kind: ElementKind, gap: Callable, gap_vjp: Callable) -> TwinKind:
    """Return the twin of the `ball_kind` of a shape, from its gap function and the adjoint."""
    no_params, no_series = make_zeros(kind.n_params), make_zeros(kind.n_series)

    @device_fn
    def ball_vjp(x, v, consts, params, series, adj_g):
        """Pull adj_g back through `ball_force`."""
        n, c, u_c = gap(x[0], v[0], params, series)  # (1) replayed
        zero = lit(0, c)
        none = (zero, zero, zero)
        if c <= zero:
            rows = (none, none, none, none)
            return rows, rows, no_params(zero), no_series(zero)
        r, law = params[RADIUS], params[0:N_LAW]
        y, u, m, E, D = point_that_touches(x, v, n, r, u_c)  # (2) to (5) replayed
        f = contact_law(n, c, u, law)  # (6) replayed

        # (7) (1 - y_1 - y_2 - y_3) f on the centre, y_i f on the levers
        center, levers = lit(1, c) - (y[0] + y[1] + y[2]), (adj_g[1], adj_g[2], adj_g[3])
        adj_f = add(scale(center, adj_g[0]), matvec(levers, y))
        of_center, by_lever = dot(f, adj_g[0]), t_matvec(levers, f)
        adj_y = (by_lever[0] - of_center, by_lever[1] - of_center, by_lever[2] - of_center)

        # (6) f = law(n, c, u)
        adj_n, adj_c, adj_u, adj_law = contact_law_vjp(n, c, u, law, adj_f)

        # (5) u = u_c + E' y
        adj_D = (scale(y[0], adj_u), scale(y[1], adj_u), scale(y[2], adj_u))
        adj_y = add(adj_y, t_matvec(D, adj_u))

        # (4) y = -r m
        adj_m = scale(-r, adj_y)
        adj_r = -dot(m, adj_y)

        # (3) m = E^T n
        adj_n = add(adj_n, matvec(E, adj_m))
        adj_E = outer_add(n, adj_m, (none, none, none))

        # (1) n, c, u_c of the centre
        adj_x, adj_v, adj_shape, adj_series = gap_vjp(
            x[0], v[0], params, series, adj_n, adj_c, adj_u
        )

        # (2) e_i = l_i - c, e_i' = l_i' - c'
        return (
            axes_vjp(adj_x, adj_E),
            axes_vjp(adj_v, adj_D),
            (*adj_law, adj_shape[0] + adj_r, *adj_shape[1:]),  # the radius is the first
            adj_series,
        )

    return TwinKind(kind, ball_vjp)
