r"""The force of one pair of features of two surfaces that touch.

    r = p - q, u = sum w_k v_k     between the closest points (`adjsim/pairs/closest.py`)
    n = r/|r|,   c = max(0, r_A + r_B - |r|)
    e = k_e c^2/2 + k c^4/4,   U = omega e,   f_k = omega w_k F(n, c, u) - e grad_k omega

F is the law of contact with an obstacle (`adjsim/forces/contact_law.py`): without damping and
friction f = -grad U, since |r| does not change with w to first order. For a vertex and a feature
omega is a constant: 1 for a face, 1 - f for an edge of f faces, and what is left for a vertex, so
that on a flat patch everything but one term cancels. For two edges it is their `window`.

Momentum is conserved exactly: node 0 gets what is left. Angular momentum is too, but for friction,
whose moment is as large as the radii are. At |r| = 0 there is no direction, and no force.

Adjoint: `adjoint/pairs/pair_force.py`. Tests: `tests/pairs/test_pair_force.py`.
"""

from dataclasses import replace

from adjsim.algebra.vec3 import axpy, scale
from adjsim.forces.contact_law import K_E, N_LAW, K, contact_law, contact_law_jvp
from adjsim.forces.gap import direction, direction_jvp
from adjsim.jit.backend import device_fn, lit
from adjsim.pairs.closest import EDGES, closest, closest_jvp, combine
from adjsim.pairs.window import window_gradient, window_gradient_jvp
from adjsim.tiles.element_kind import ElementKind


CODE, WEIGHT = range(2)  # rows of consts; a pair of weight 0 is none
R_A, R_B, N_PARAMS = N_LAW, N_LAW + 1, N_LAW + 2  # of a pair's parameters, behind the law's


@device_fn
def pair_weight(at, consts):
    """Return omega and its gradient along y."""
    zero = lit(0, consts[CODE])
    none = (zero, zero, zero)
    if consts[CODE] == lit(EDGES, zero):
        return window_gradient(at)
    return consts[WEIGHT], (none, none, none)


@device_fn
def touch(x, consts, params):
    """Return the closest points of a pair, n, s, c, omega and its gradient; omega 0: no touch."""
    zero = lit(0, consts[CODE])
    at = closest(consts[CODE], x)  # (1)
    n, s = direction(at.r)  # (2)
    c = params[R_A] + params[R_B] - s  # (3)
    none = (zero, zero, zero)
    omega, gradient = zero, (none, none, none)
    if consts[WEIGHT] != zero and c > zero and s > zero:
        omega, gradient = pair_weight(at, consts)  # (4)
    return at, n, s, c, omega, gradient


@device_fn
def elastic_energy(c, params):
    """Return the elastic energy [J] of a depth c."""
    return (lit(0.5, c) * params[K_E] + lit(0.25, c) * params[K] * c * c) * c * c


@device_fn
def pair_force(x, v, consts, params, series):
    """Return the forces [N] on nodes 1 to 3; `x` and `v` are relative to node 0."""
    at, n, s, c, omega, gradient = touch(x, consts, params)  # (1) to (4)
    zero = lit(0, s)
    if omega == zero:
        none = (zero, zero, zero)
        return (none, none, none)
    u = combine(at.weights, v)  # (5)
    F = contact_law(n, c, u, params[0:N_LAW])  # (6)
    energy = elastic_energy(c, params)  # (7)
    w = at.weights
    return (  # (8)
        axpy(omega * w[0], F, scale(-energy, gradient[0])),
        axpy(omega * w[1], F, scale(-energy, gradient[1])),
        axpy(omega * w[2], F, scale(-energy, gradient[2])),
    )


@device_fn
def pair_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `pair_force`."""
    at, n, s, c, omega, gradient = touch(x, consts, params)  # (1) to (4)
    zero = lit(0, s)
    none = (zero, zero, zero)
    if omega == zero:
        return (none, none, none)
    tan_r, tan_d_1, tan_d_2, tan_a_1, tan_a_2, tan_w = closest_jvp(at, tan_x)  # (1)
    tan_n, tan_s = direction_jvp(n, s, tan_r)  # (2)
    tan_c = tan_params[R_A] + tan_params[R_B] - tan_s  # (3)
    tan_omega, tan_gradient = zero, (none, none, none)
    if consts[CODE] == lit(EDGES, zero):
        tan_omega, tan_gradient = window_gradient_jvp(  # (4)
            at, tan_r, tan_d_1, tan_d_2, tan_a_1, tan_a_2
        )
    w = at.weights
    u = combine(w, v)  # (5)
    tan_u = axpy(tan_w[0], v[0], axpy(tan_w[1], v[1], axpy(tan_w[2], v[2], combine(w, tan_v))))
    law, tan_law = params[0:N_LAW], tan_params[0:N_LAW]
    F = contact_law(n, c, u, law)  # (6)
    tan_F = contact_law_jvp(n, c, u, law, tan_n, tan_c, tan_u, tan_law)
    energy = elastic_energy(c, params)  # (7)
    tan_energy = elastic_energy(c, tan_params) + (params[K_E] + params[K] * c * c) * c * tan_c
    forward = scale(tan_omega, F)
    moved = axpy(omega, tan_F, forward)  # (omega F)' of a unit weight
    by_w = scale(omega, F)
    return (  # (8)
        axpy(
            w[0],
            moved,
            axpy(tan_w[0], by_w, weighted(energy, tan_energy, gradient[0], tan_gradient[0])),
        ),
        axpy(
            w[1],
            moved,
            axpy(tan_w[1], by_w, weighted(energy, tan_energy, gradient[1], tan_gradient[1])),
        ),
        axpy(
            w[2],
            moved,
            axpy(tan_w[2], by_w, weighted(energy, tan_energy, gradient[2], tan_gradient[2])),
        ),
    )


@device_fn
def weighted(energy, tan_energy, gradient, tan_gradient):
    """Return the tangent of -energy times a gradient."""
    return axpy(-tan_energy, gradient, scale(-energy, tan_gradient))


@device_fn
def pair_energy(x, consts, params, series):
    """Return the elastic energy U [J] of one pair."""
    _, _, _, c, omega, _ = touch(x, consts, params)
    return omega * elastic_energy(c, params)


PAIR = ElementKind(
    "pair", pair_force, 4, 2, N_PARAMS, 0, uses_velocity=True, relative=True, jvp=pair_jvp
)
# A row of a surface, which adds up the forces of its pairs.
SURFACE_ROW = replace(PAIR, name="surface_row", n_nodes=1, n_consts=0, relative=False, pairs=PAIR)
