r"""Adjoint of `adjsim/pairs/pair_force.py`, which has the tangent: read them side by side."""

from adjoint.forces.contact_law import contact_law_vjp, make_zeros
from adjoint.forces.element import TwinKind
from adjoint.forces.gap import direction_vjp
from adjoint.pairs.closest import closest_vjp
from adjoint.pairs.window import window_gradient_vjp
from adjsim.algebra.vec3 import add, dot, scale
from adjsim.forces.contact_law import K_E, N_LAW, K, contact_law
from adjsim.jit.backend import device_fn, lit
from adjsim.pairs.closest import EDGES, combine
from adjsim.pairs.pair_force import CODE, N_PARAMS, PAIR, elastic_energy, touch


no_params = make_zeros(N_PARAMS)


@device_fn
def no_pair(zero):
    """Return the cotangents of a pair that does not touch."""
    none = (zero, zero, zero)
    vectors = (none, none, none)
    return vectors, vectors, no_params(zero), ()


@device_fn
def pair_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `pair_force`."""
    at, n, s, c, omega, gradient = touch(x, consts, params)  # (1) to (4) replayed
    zero = lit(0, s)
    if omega == zero:
        return no_pair(zero)
    w = at.weights
    u = combine(w, v)  # (5) replayed
    law = params[0:N_LAW]
    F = contact_law(n, c, u, law)  # (6) replayed
    energy = elastic_energy(c, params)  # (7) replayed

    # (8) f_k = omega w_k F - energy grad_k omega
    together = combine(w, adj_f)
    adj_F = scale(omega, together)
    adj_omega = dot(together, F)
    adj_w = (omega * dot(adj_f[0], F), omega * dot(adj_f[1], F), omega * dot(adj_f[2], F))
    adj_gradient = (scale(-energy, adj_f[0]), scale(-energy, adj_f[1]), scale(-energy, adj_f[2]))
    adj_energy = -(
        dot(adj_f[0], gradient[0]) + dot(adj_f[1], gradient[1]) + dot(adj_f[2], gradient[2])
    )

    # (6) F = law(n, c, u)
    adj_n, adj_c, adj_u, adj_law = contact_law_vjp(n, c, u, law, adj_F)

    # (7) energy = k_e c^2/2 + k c^4/4
    adj_k_e = adj_law[K_E] + lit(0.5, c) * c * c * adj_energy
    adj_k = adj_law[K] + lit(0.25, c) * c * c * c * c * adj_energy
    adj_c += (params[K_E] + params[K] * c * c) * c * adj_energy

    # (5) u = sum w_k v_k
    adj_v = (scale(w[0], adj_u), scale(w[1], adj_u), scale(w[2], adj_u))
    adj_w = (adj_w[0] + dot(v[0], adj_u), adj_w[1] + dot(v[1], adj_u), adj_w[2] + dot(v[2], adj_u))

    # (3) c = r_A + r_B - s,  (2) n = r/|r|, s = |r|
    adj_r = direction_vjp(n, s, adj_n, -adj_c)

    # (1) closest points
    adj_x = closest_vjp(at, adj_r, adj_w)

    # (4) omega and its gradient
    if consts[CODE] == lit(EDGES, zero):
        more = window_gradient_vjp(at, gradient, adj_omega, adj_gradient)
        adj_x = (add(adj_x[0], more[0]), add(adj_x[1], more[1]), add(adj_x[2], more[2]))
    _, k_d, d, _, gamma, k_f, mu = adj_law
    adj_params = (adj_k_e, k_d, d, adj_k, gamma, k_f, mu, adj_c, adj_c)
    return adj_x, adj_v, adj_params, ()


PAIR_TWIN = TwinKind(PAIR, pair_vjp)
