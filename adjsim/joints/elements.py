r"""Elements of joints: a law (`adjsim/joints/laws.py`) between two bodies, or the world and one.

An element has the centre and three levers of body A, then of B (`adjsim/rigid/frames.py`). With
r = p_B - p_A, and u = r' - omega_A x r the rate of r that A sees, a law says f and T:

    on A   f at p_B and the torque T, which is f at p_A and the torque T + r x f
    on B   -f at p_B and -T

Both forces act at one point, so momentum and angular momentum are conserved. The world has the
anchor p_A = a, the axes E_A = 1 and no motion.

Adjoint: `adjoint/joints/elements.py`. Tests: `tests/joints/test_elements.py`.
"""

from collections.abc import Callable
from functools import cache

from adjsim.algebra.vec3 import add, cross, neg, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.joints.laws import R
from adjsim.rigid.frames import motion, motion_jvp, spread, spread_jvp
from adjsim.tiles.element_kind import ElementKind


N_ANCHORS = 6  # the first parameters: both anchors; what follows is the law's


ANCHOR_A, ANCHOR_B, LAW = slice(0, 3), slice(3, 6), slice(6, None)  # of an element's parameters


@device_fn
def between_of(A, B):
    """Return (r, u, omega, E_A, E_B) of two bodies' motions."""
    r = sub(B[0], A[0])  # (1)
    u = sub(sub(B[1], A[1]), cross(A[2], r))  # (2)
    return r, u, sub(B[2], A[2]), A[3], B[3]  # (3)


@device_fn
def between_jvp(A, r, tan_A, tan_B):
    """Push tangents through `between_of`."""
    tan_r = sub(tan_B[0], tan_A[0])  # (1)
    turned = add(cross(tan_A[2], r), cross(A[2], tan_r))
    tan_u = sub(sub(tan_B[1], tan_A[1]), turned)  # (2)
    return tan_r, tan_u, sub(tan_B[2], tan_A[2]), tan_A[3], tan_B[3]  # (3)


@device_fn
def still(a, axis_length):
    """Return the motion of the world, whose axes are `axis_length` times the unit vectors."""
    zero = lit(0, a[0])
    none = (zero, zero, zero)
    E = ((axis_length, zero, zero), (zero, axis_length, zero), (zero, zero, axis_length))
    return a, none, none, E, (none, none, none)


@cache
def pair_kind(
    name: str, laws: tuple[Callable, Callable], n_columns: int, n_series: int
) -> ElementKind:
    """Return the kind of element of a law and its tangent between two bodies."""
    law, law_jvp = laws

    @device_fn
    def pair_force(x, v, consts, params, series):
        """Return the forces on the frame points of A and of B."""
        a, b, joint = params[ANCHOR_A], params[ANCHOR_B], params[LAW]
        A, B = motion(x[0:4], v[0:4], a), motion(x[4:8], v[4:8], b)  # (1)
        between = between_of(A, B)  # (2)
        f, T = law(between, joint, series)  # (3)
        T_a = add(T, cross(between[R], f))  # (4)
        return (*spread(A[3], a, f, T_a), *spread(B[3], b, neg(f), neg(T)))  # (5)

    @device_fn
    def pair_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `pair_force`."""
        a, b, joint = params[ANCHOR_A], params[ANCHOR_B], params[LAW]
        tan_a, tan_b, tan_joint = tan_params[ANCHOR_A], tan_params[ANCHOR_B], tan_params[LAW]
        A, B = motion(x[0:4], v[0:4], a), motion(x[4:8], v[4:8], b)  # (1)
        tan_A = motion_jvp(x[0:4], v[0:4], a, tan_x[0:4], tan_v[0:4], tan_a)
        tan_B = motion_jvp(x[4:8], v[4:8], b, tan_x[4:8], tan_v[4:8], tan_b)
        between = between_of(A, B)  # (2)
        tan_between = between_jvp(A, between[R], tan_A, tan_B)
        f, T = law(between, joint, series)  # (3)
        tan_f, tan_T = law_jvp(between, joint, series, tan_between, tan_joint, tan_series)
        T_a = add(T, cross(between[R], f))  # (4)
        tan_T_a = add(tan_T, add(cross(tan_between[R], f), cross(between[R], tan_f)))
        on_a = spread_jvp(A[3], a, f, T_a, tan_A[3], tan_a, tan_f, tan_T_a)  # (5)
        on_b = spread_jvp(B[3], b, neg(f), neg(T), tan_B[3], tan_b, neg(tan_f), neg(tan_T))
        return (*on_a, *on_b)

    n_params = N_ANCHORS + n_columns
    return ElementKind(name, pair_force, 8, 0, n_params, n_series, uses_velocity=True, jvp=pair_jvp)


@cache
def world_kind(
    name: str, laws: tuple[Callable, Callable], n_columns: int, n_series: int
) -> ElementKind:
    """Return the kind of element of a law and its tangent between the world and a body."""
    law, law_jvp = laws

    @device_fn
    def world_force(x, v, consts, params, series):
        """Return the forces on the frame points of B."""
        a, b, joint = params[ANCHOR_A], params[ANCHOR_B], params[LAW]
        A, B = still(a, lit(1, a[0])), motion(x, v, b)  # (1)
        f, T = law(between_of(A, B), joint, series)  # (2)
        return spread(B[3], b, neg(f), neg(T))  # (3)

    @device_fn
    def world_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `world_force`."""
        a, b, joint = params[ANCHOR_A], params[ANCHOR_B], params[LAW]
        tan_a, tan_b, tan_joint = tan_params[ANCHOR_A], tan_params[ANCHOR_B], tan_params[LAW]
        A, B = still(a, lit(1, a[0])), motion(x, v, b)  # (1)
        tan_A, tan_B = still(tan_a, lit(0, a[0])), motion_jvp(x, v, b, tan_x, tan_v, tan_b)
        between = between_of(A, B)  # (2)
        tan_between = between_jvp(A, between[R], tan_A, tan_B)
        f, T = law(between, joint, series)
        tan_f, tan_T = law_jvp(between, joint, series, tan_between, tan_joint, tan_series)
        return spread_jvp(  # (3)
            B[3], b, neg(f), neg(T), tan_B[3], tan_b, neg(tan_f), neg(tan_T)
        )

    n_params = N_ANCHORS + n_columns
    return ElementKind(
        name, world_force, 4, 0, n_params, n_series, uses_velocity=True, jvp=world_jvp
    )
