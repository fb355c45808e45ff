r"""Adjoint of `adjsim/forces/hinges.py`, which has the tangent: read them side by side.

Every block undoes the forward line with the same number, last line first.
Differentiated with respect to positions, velocities, k_b c0, k_d c0, cos beta and sin beta; the
packing carries these on to k_b, k_d, phi0, a and, through c0, the rest positions. The half-angle
needs no derivative of its own: the gradient of phi is at hand.
"""

import numpy as np

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjoint.series import series_rows_vjp
from adjoint.values import add_at_nodes, unbroadcast
from adjsim.algebra.vec3 import add, axpy, cross, dot, scale, sub
from adjsim.forces.hinges import (
    COS,
    DAMPED,
    ELASTIC,
    K_B,
    K_D,
    SIN,
    Hinges,
    angle_rate,
    edges,
    half_angle,
    hinge_shape,
    rest_shape,
    unit_over_norm_jvp,
)
from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.element_kind import ElementKind


@device_fn
def moment_forces_vjp(moment, shape, adj_f):
    """Pull adj_f back through `moment_forces`: adj_moment and adj of l, t1, t2, h1, h2."""
    l, t1, t2, _, _, h1, h2 = shape
    q = moment * l  # (9) replayed

    # (11) f4 = -(t1 f1 + t2 f2), with (10) f1 = q h1, f2 = q h2
    adj_t1 = -q * dot(h1, adj_f[0])
    adj_t2 = -q * dot(h2, adj_f[0])
    adj_f1 = axpy(-t1, adj_f[0], adj_f[1])
    adj_f2 = axpy(-t2, adj_f[0], adj_f[2])

    # (10) f1 = q h1, f2 = q h2
    adj_q = dot(h1, adj_f1) + dot(h2, adj_f2)
    adj_h1 = scale(q, adj_f1)
    adj_h2 = scale(q, adj_f2)

    # (9) q = moment l
    return l * adj_q, (moment * adj_q, adj_t1, adj_t2, adj_h1, adj_h2)


@device_fn
def angle_rate_vjp(v, shape, adj_rate, adj_shape):
    """Pull adj_rate back through `angle_rate`: adj_v, and adj_shape added to."""
    l, t1, t2, _, _, h1, h2 = shape
    adj_l, adj_t1, adj_t2, adj_h1, adj_h2 = adj_shape
    u1 = axpy(-t1, v[0], v[1])  # (6) replayed
    u2 = axpy(-t2, v[0], v[2])  # (6) replayed

    # (7) rate = -l (h1.u1 + h2.u2)
    adj_l -= (dot(h1, u1) + dot(h2, u2)) * adj_rate
    adj_z = -l * adj_rate
    adj_h1 = axpy(adj_z, u1, adj_h1)
    adj_h2 = axpy(adj_z, u2, adj_h2)
    adj_u1 = scale(adj_z, h1)
    adj_u2 = scale(adj_z, h2)

    # (6) u1 = va - t1 ve, u2 = vb - t2 ve
    adj_t1 -= dot(v[0], adj_u1)
    adj_t2 -= dot(v[0], adj_u2)
    adj_ve = axpy(-t1, adj_u1, scale(-t2, adj_u2))
    return (adj_ve, adj_u1, adj_u2), (adj_l, adj_t1, adj_t2, adj_h1, adj_h2)


@device_fn
def sin_psi_vjp(shape, cos_psi, adj_sin_psi):
    """Pull adj_sin_psi back to the edges: adj_phi times the gradient of phi."""
    l, t1, t2, _, _, h1, h2 = shape

    # (5) sin psi, psi = phi/2 - beta
    adj_phi = lit(0.5, l) * cos_psi * adj_sin_psi
    g1 = scale(-l * adj_phi, h1)
    g2 = scale(-l * adj_phi, h2)
    return axpy(-t1, g1, scale(-t2, g2)), g1, g2


@device_fn
def unit_over_norm_vjp(n, h, adj_h):
    """Pull adj_h back through h = n/|n|^2, whose derivative is symmetric."""
    return unit_over_norm_jvp(n, h, adj_h)


@device_fn
def hinge_shape_vjp(x, shape, adj_shape, adj_x):
    """Pull cotangents of l, t1, t2, h1, h2 back through `hinge_shape`: adj_x added to."""
    e, a, b = x[0], x[1], x[2]
    l, t1, t2, n1, n2, h1, h2 = shape
    adj_l, adj_t1, adj_t2, adj_h1, adj_h2 = adj_shape
    adj_e, adj_a, adj_b = adj_x
    inv_l = lit(1, l) / l
    inv_E = inv_l * inv_l

    # (4) h = n/|n|^2
    adj_n1 = unit_over_norm_vjp(n1, h1, adj_h1)
    adj_n2 = unit_over_norm_vjp(n2, h2, adj_h2)

    # (3) n1 = e x a, n2 = b x e
    adj_e = add(adj_e, sub(cross(a, adj_n1), cross(b, adj_n2)))
    adj_a = add(adj_a, cross(adj_n1, e))
    adj_b = add(adj_b, cross(e, adj_n2))

    # (2) t1 = a.e/E, t2 = b.e/E
    r1, r2 = inv_E * adj_t1, inv_E * adj_t2
    adj_a = axpy(r1, e, adj_a)
    adj_b = axpy(r2, e, adj_b)
    adj_e = axpy(r1, a, axpy(r2, b, adj_e))
    adj_E = -(t1 * r1 + t2 * r2)

    # (1) l = |e|, E = l^2
    adj_e = axpy(inv_l * adj_l + lit(2, l) * adj_E, e, adj_e)
    return adj_e, adj_a, adj_b


def hinge_twin(kind: ElementKind) -> TwinKind:
    """Return the twin of a `hinge_kind`."""
    damped = kind.uses_velocity

    @device_fn
    def hinge_vjp(x, v, consts, params, series, adj_f):
        """Pull adj_f back through `hinge_force`; elastic: adj_v is ()."""
        shape = hinge_shape(x)
        sin_half, cos_half = half_angle(x[2], shape[0], shape[3], shape[4])
        sin_psi = sin_half * series[COS] - cos_half * series[SIN]  # (5) replayed
        cos_psi = cos_half * series[COS] + sin_half * series[SIN]

        # (8) moment = k_b c0 sin psi + k_d c0 rate
        if damped:
            rate = angle_rate(v, shape[0], shape[1], shape[2], shape[5], shape[6])  # (7) replayed
            moment = params[K_B] * sin_psi + params[K_D] * rate  # (8) replayed
            adj_moment, adj_shape = moment_forces_vjp(moment, shape, adj_f)
            adj_v, adj_shape = angle_rate_vjp(v, shape, params[K_D] * adj_moment, adj_shape)
            adj_params = (sin_psi * adj_moment, rate * adj_moment)
        else:
            adj_moment, adj_shape = moment_forces_vjp(params[K_B] * sin_psi, shape, adj_f)
            adj_v, adj_params = (), (sin_psi * adj_moment,)
        adj_sin_psi = params[K_B] * adj_moment

        # (5) sin psi = sin(phi/2) cos beta - cos(phi/2) sin beta
        adj_series = (sin_half * adj_sin_psi, -cos_half * adj_sin_psi)
        adj_x = sin_psi_vjp(shape, cos_psi, adj_sin_psi)
        return hinge_shape_vjp(x, shape, adj_shape, adj_x), adj_v, adj_params, adj_series

    return TwinKind(kind, hinge_vjp)


ELASTIC_TWIN, DAMPED_TWIN = hinge_twin(ELASTIC), hinge_twin(DAMPED)


class HingesTwin(ForceTwin[Hinges]):
    """The twin of `Hinges`.

    Packing: k_b c0 and k_d c0; cos beta and sin beta with beta = phi0/2 - a.
    """

    def pack_vjp(
        self, force: Hinges, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to stiffness, damping, rest angle and actuation."""
        c0 = rest_shape(force.rest_positions, force.hinges)
        cos_sin = force.pack_series(len(adj_series))
        adj_cos, adj_sin = adj_series[..., COS], adj_series[..., SIN]
        adj_beta = cos_sin[..., COS] * adj_sin - cos_sin[..., SIN] * adj_cos
        adj = {
            "stiffness": unbroadcast(c0 * adj_params[:, K_B], force.stiffness.shape),
            "rest_angle": unbroadcast(0.5 * adj_beta.sum(axis=0), force.rest_angle.shape),
            "actuation": series_rows_vjp(force.actuation, (len(c0),), -adj_beta),
        }
        if force.damping is not None:
            adj["damping"] = unbroadcast(c0 * adj_params[:, K_D], force.damping.shape)
        return adj

    def rest_vjp(self, force: Hinges, adj_consts: np.ndarray, adj_params: np.ndarray) -> np.ndarray:
        """Pull cotangents of k_b c0 and k_d c0 back to the rest positions."""
        adj_c0 = force.stiffness * adj_params[:, K_B]
        if force.damping is not None:
            adj_c0 = adj_c0 + force.damping * adj_params[:, K_D]
        return rest_shape_vjp(force.rest_positions, force.hinges, adj_c0)


def rest_shape_vjp(
    rest_positions: np.ndarray, hinges: np.ndarray, adj_c0: np.ndarray
) -> np.ndarray:
    """Pull a cotangent of c0 back to the rest positions, (n_nodes, 3)."""
    e, a, b = edges(rest_positions, hinges)
    n1, n2 = np.cross(e, a), np.cross(b, e)  # (1) replayed
    N1, N2 = (np.linalg.norm(n, axis=1) for n in (n1, n2))  # (2) replayed
    c0 = np.square(e).sum(axis=1) / (N1 + N2)  # (3) replayed

    # (3) c0 = |e|^2/(N1 + N2)
    adj = adj_c0 / (N1 + N2)
    adj_e = 2.0 * adj[:, None] * e
    adj_N = -c0 * adj

    # (2) N = |n|
    adj_n1 = (adj_N / N1)[:, None] * n1
    adj_n2 = (adj_N / N2)[:, None] * n2

    # (1) n1 = e x a, n2 = b x e
    adj_e = adj_e + np.cross(a, adj_n1) + np.cross(adj_n2, b)
    adj_a = np.cross(adj_n1, e)
    adj_b = np.cross(e, adj_n2)

    # e = x4 - x3, a = x1 - x3, b = x2 - x3
    corners = np.stack([adj_a, adj_b, -(adj_e + adj_a + adj_b), adj_e], axis=1)
    return add_at_nodes(corners, hinges, len(rest_positions))


register(Hinges, HingesTwin(ELASTIC_TWIN, DAMPED_TWIN))
