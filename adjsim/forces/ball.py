r"""Contact of a rigid ball with a shape: it touches with its surface, on the line from its centre.

The body's frame points say where it is: its centre c and the levers l_i = c + e_i, where e_i are
its axes in the world (`adjsim/rigid/frames.py`), E = [e_1, e_2, e_3]. The shape sees the centre as
a node of the ball's radius r: its gap function gives n, the penetration and the velocity of the
centre. The point that touches is at -r n from the centre, at y in the body's axes, and moves with
the body:

    y = -r E^T n,   u = u_c + E' y

The force f of the law acts there. On the frame points it is

    y_i f on the levers,   (1 - y_1 - y_2 - y_3) f on the centre

which is f in sum and has the moment (E y) x f = -r n x f about the centre, so friction spins the
ball and the pressure does not.

Adjoint: `adjoint/forces/ball.py`. Tests: `tests/forces/test_ball.py`. Source: ours.
"""

from collections.abc import Callable

from adjsim.algebra.mat3 import matvec, matvec_add, t_matvec
from adjsim.algebra.vec3 import add, axpy, scale
from adjsim.forces.contact_law import N_LAW, RADIUS, contact_law, contact_law_jvp
from adjsim.jit.backend import device_fn, lit
from adjsim.rigid.frames import axes_of
from adjsim.tiles.element_kind import ElementKind


N_FRAME = 4  # the centre and the levers


@device_fn
def point_that_touches(x, v, n, r, u_c):
    """Return y, the velocity u there, n in the body's axes, E and E'."""
    E, D = axes_of(x), axes_of(v)  # (2)
    m = t_matvec(E, n)  # (3)
    y = scale(-r, m)  # (4)
    return y, matvec_add(D, y, u_c), m, E, D  # (5)


@device_fn
def on_frame(f, y):
    """Return the forces on the centre and the levers of a force f at y."""
    center = lit(1, y[0]) - (y[0] + y[1] + y[2])
    return scale(center, f), scale(y[0], f), scale(y[1], f), scale(y[2], f)


def ball_kind(kind: ElementKind, gap: Callable, gap_jvp: Callable) -> ElementKind:
    """Return the kind of contact of balls with the shape of a kind, from its gap function."""

    @device_fn
    def ball_force(x, v, consts, params, series):
        """Return the forces on the frame points."""
        n, c, u_c = gap(x[0], v[0], params, series)  # (1)
        zero = lit(0, c)
        none = (zero, zero, zero)
        if c <= zero:
            return (none, none, none, none)
        y, u, _, _, _ = point_that_touches(x, v, n, params[RADIUS], u_c)  # (2) to (5)
        f = contact_law(n, c, u, params[0:N_LAW])  # (6)
        return on_frame(f, y)  # (7)

    @device_fn
    def ball_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `ball_force`."""
        n, c, u_c = gap(x[0], v[0], params, series)  # (1)
        zero = lit(0, c)
        none = (zero, zero, zero)
        if c <= zero:
            return (none, none, none, none)
        tan_n, tan_c, tan_u_c = gap_jvp(
            x[0], v[0], params, series, tan_x[0], tan_v[0], tan_params, tan_series
        )
        r = params[RADIUS]
        y, u, m, E, D = point_that_touches(x, v, n, r, u_c)
        tan_E, tan_D = axes_of(tan_x), axes_of(tan_v)  # (2)
        tan_m = add(t_matvec(tan_E, n), t_matvec(E, tan_n))  # (3)
        tan_y = axpy(-tan_params[RADIUS], m, scale(-r, tan_m))  # (4)
        tan_u = add(tan_u_c, add(matvec(tan_D, y), matvec(D, tan_y)))  # (5)
        law, tan_law = params[0:N_LAW], tan_params[0:N_LAW]
        f = contact_law(n, c, u, law)  # (6)
        tan_f = contact_law_jvp(n, c, u, law, tan_n, tan_c, tan_u, tan_law)
        center = lit(1, c) - (y[0] + y[1] + y[2])  # (7)
        return (
            axpy(-(tan_y[0] + tan_y[1] + tan_y[2]), f, scale(center, tan_f)),
            axpy(tan_y[0], f, scale(y[0], tan_f)),
            axpy(tan_y[1], f, scale(y[1], tan_f)),
            axpy(tan_y[2], f, scale(y[2], tan_f)),
        )

    return ElementKind(
        f"{kind.name}_ball", ball_force, N_FRAME, 0, kind.n_params, kind.n_series,
        uses_velocity=True, jvp=ball_jvp,
    )  # fmt: skip
