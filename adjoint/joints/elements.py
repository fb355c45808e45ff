r"""Adjoint of `adjsim/joints/elements.py`, which has the tangent: read them side by side."""

from collections.abc import Callable
from functools import cache

from adjoint.forces.element import TwinKind
from adjoint.rigid.frames import motion_vjp, spread_vjp
from adjsim.algebra.mat3 import madd
from adjsim.algebra.vec3 import add, cross, neg, sub
from adjsim.jit.backend import device_fn, lit
from adjsim.joints.elements import ANCHOR_A, ANCHOR_B, LAW, between_of, still
from adjsim.joints.laws import R
from adjsim.rigid.frames import motion
from adjsim.tiles.element_kind import ElementKind


@device_fn
def between_vjp(A, r, adj_between):
    """Pull cotangents back through `between_of`: motions of A and of B, without E'."""
    adj_r, adj_u, adj_omega, adj_E_a, adj_E_b = adj_between
    # (3) omega = omega_B - omega_A
    adj_omega_a = neg(adj_omega)
    # (2) u = p_B' - p_A' - omega_A x r
    adj_omega_a = sub(adj_omega_a, cross(r, adj_u))
    adj_r = sub(adj_r, cross(adj_u, A[2]))
    # (1) r = p_B - p_A
    return (neg(adj_r), neg(adj_u), adj_omega_a, adj_E_a), (adj_r, adj_u, adj_omega, adj_E_b)


@cache
def pair_twin(kind: ElementKind, law: Callable, law_vjp: Callable) -> TwinKind:
    """Return the twin of a `pair_kind`, from its law and the adjoint of it."""

    @device_fn
    def pair_vjp(x, v, consts, params, series, adj_g):
        """Pull adj_g back through `pair_force`."""
        a, b, joint = params[ANCHOR_A], params[ANCHOR_B], params[LAW]
        A, B = motion(x[0:4], v[0:4], a), motion(x[4:8], v[4:8], b)  # (1) replayed
        between = between_of(A, B)  # (2) replayed
        r = between[R]
        f, T = law(between, joint, series)  # (3) replayed
        T_a = add(T, cross(r, f))  # (4) replayed

        # (5) g_A = spread(f, T_A), g_B = spread(-f, -T)
        adj_E_a, adj_a, adj_f, adj_T_a = spread_vjp(A[3], a, f, T_a, adj_g[0:4])
        adj_E_b, adj_b, minus_f, minus_T = spread_vjp(B[3], b, neg(f), neg(T), adj_g[4:8])

        # (4) T_A = T + r x f
        adj_T = sub(adj_T_a, minus_T)
        adj_f = add(sub(adj_f, minus_f), cross(adj_T_a, r))
        adj_r = cross(f, adj_T_a)

        # (3) f, T = law(between)
        adj_between, adj_joint, adj_series = law_vjp(between, joint, series, adj_f, adj_T)
        by_law_r, adj_u, adj_omega, by_law_a, by_law_b = adj_between
        adj_between = (
            add(by_law_r, adj_r), adj_u, adj_omega, madd(by_law_a, adj_E_a),
            madd(by_law_b, adj_E_b),
        )  # fmt: skip

        # (2) between of A and B
        adj_A, adj_B = between_vjp(A, r, adj_between)

        # (1) motions of A and B
        adj_x_a, adj_v_a, more_a = motion_vjp(A[3], A[4], a, adj_A)
        adj_x_b, adj_v_b, more_b = motion_vjp(B[3], B[4], b, adj_B)
        adj_params = (*add(adj_a, more_a), *add(adj_b, more_b), *adj_joint)
        return (*adj_x_a, *adj_x_b), (*adj_v_a, *adj_v_b), adj_params, adj_series

    return TwinKind(kind, pair_vjp)


@cache
def world_twin(kind: ElementKind, law: Callable, law_vjp: Callable) -> TwinKind:
    """Return the twin of a `world_kind`, from its law and the adjoint of it."""

    @device_fn
    def world_vjp(x, v, consts, params, series, adj_g):
        """Pull adj_g back through `world_force`."""
        a, b, joint = params[ANCHOR_A], params[ANCHOR_B], params[LAW]
        A, B = still(a, lit(1, a[0])), motion(x, v, b)  # (1) replayed
        between = between_of(A, B)  # (2) replayed
        f, T = law(between, joint, series)

        # (3) g = spread(-f, -T)
        adj_E, adj_b, minus_f, minus_T = spread_vjp(B[3], b, neg(f), neg(T), adj_g)

        # (2) f, T = law(between)
        adj_between, adj_joint, adj_series = law_vjp(
            between, joint, series, neg(minus_f), neg(minus_T)
        )
        adj_r, adj_u, adj_omega, _, adj_E_b = adj_between  # r = p_B - a, u = p_B'

        # (1) the world stands still, the motion of B
        adj_B = adj_r, adj_u, adj_omega, madd(adj_E_b, adj_E)
        adj_x, adj_v, more_b = motion_vjp(B[3], B[4], b, adj_B)
        return adj_x, adj_v, (*neg(adj_r), *add(adj_b, more_b), *adj_joint), adj_series

    return TwinKind(kind, world_vjp)
