r"""Hinges: bending between two triangles that share an edge, with damping and actuation.

Triangles (x3, x4, x1) and (x4, x3, x2) share the edge e = x4 - x3, l = |e|:

    n1 = (x1-x3) x (x1-x4),  n2 = (x2-x4) x (x2-x3)
    phi = atan2((n1 x n2).e/l, n1.n2),  c0 = |e|^2/(|n1| + |n2|) at rest
    U = 2 k_b c0 (1 - cos psi),  psi = (phi - phi0)/2 + a
    f_i = -[k_b c0 sin psi + k_d c0 dphi/dt] dphi/dx_i

phi is 0 when flat and positive where the sheet is convex on the side that n1 and n2 point to.
`a` is the actuation, in radians of half-angle: rest is at phi = phi0 - 2 a.

With a = x1 - x3 and b = x2 - x3: n1 = e x a, n2 = b x e. With h = n/|n|^2, and t1 = a.e/|e|^2 the
place along e of the foot of x1, the gradient of phi (Bridson) is

    dphi/dx1 = -l h1,  dphi/dx2 = -l h2,  dphi/dx4 = l (t1 h1 + t2 h2)

and dphi/dx3 minus the sum of these, so its rate is

    dphi/dt = -l (h1.(va - t1 ve) + h2.(vb - t2 ve))

No angle is ever computed. n1 x n2 = -det(e, a, b) e = -(n1.b) e, so R cos phi = C = n1.n2 and
R sin phi = S = -l (n1.b), R = sqrt(C^2 + S^2). The half-angle is in [-pi/2, pi/2], hence

    cos(phi/2) = sqrt((R + C)/(2R)) >= 0,  |sin(phi/2)| = sqrt((R - C)/(2R)),  sign of S

of which the one that adds R and |C| is computed like this, and the other as |S|/sqrt(2R (R + |C|)):
nothing cancels or is divided by what may vanish, flat and folded alike. With beta = phi0/2 - a,

    sin psi = sin(phi/2) cos beta - cos(phi/2) sin beta

Rows: parameters k_b c0 [N m] and k_d c0 [N m s]; series cos beta and sin beta. Kinks: phi jumps
from pi to -pi (no unwrapping), and so does the force unless psi = 0 or pi there. A triangle without
area has no normal: a rollout that gets there leaves the finite numbers.

The kind is relative with its nodes in the order x3, x4, x1, x2: an element sees e, a, b and returns
the forces on x4, x1, x2.

The half-angle needs no tangent of its own: with the gradient of phi at hand,

    tan_phi = -l (h1.(tan_a - t1 tan_e) + h2.(tan_b - t2 tan_e)),  tan_(sin psi) = cos psi tan_phi/2

which is `angle_rate` of the tangents, smooth from -pi to pi.

Adjoint: `adjoint/forces/hinges.py`. Tests: `tests/forces/test_hinges.py`.
Source: gradSim (ICLR 2021) app. A.1; Bridson, Marino & Fedkiw, Simulation of Clothing with Folds
and Wrinkles, SCA 2003, sec. 4, for the gradient of phi. Ours: the energy, of which f is minus the
gradient.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.algebra.vec3 import add, axpy, cross, dot, scale
from adjsim.forces.rest_shaped import RestShapedForce
from adjsim.jit.backend import device_fn, lit
from adjsim.meshes.triangle_mesh import collapsed_triangle, have_no_area
from adjsim.series import freeze_series, series_rows, series_rows_jvp
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, broadcast


K_B, K_D = range(2)  # of a row's parameters
COS, SIN = range(2)  # of beta: of its series
CORNERS = ([2, 3, 0], [3, 2, 1])  # of the two triangles, (x3, x4, x1) and (x4, x3, x2)


@device_fn
def hinge_shape(x):
    """Return l [m], t1, t2 [-], n1, n2 [m2] and h1, h2 [1/m2] of the edges x = e, a, b."""
    e, a, b = x[0], x[1], x[2]
    E = dot(e, e)
    l = math.sqrt(E)  # (1)
    inv_E = lit(1, E) / E
    t1 = inv_E * dot(a, e)  # (2)
    t2 = inv_E * dot(b, e)  # (2)
    n1 = cross(e, a)  # (3)
    n2 = cross(b, e)  # (3)
    h1 = scale(lit(1, E) / dot(n1, n1), n1)  # (4)
    h2 = scale(lit(1, E) / dot(n2, n2), n2)  # (4)
    return l, t1, t2, n1, n2, h1, h2


@device_fn
def hinge_shape_jvp(x, shape, tan_x):
    """Push tangents through `hinge_shape`: tangents of l, t1, t2, h1, h2."""
    e, a, b = x[0], x[1], x[2]
    l, t1, t2, n1, n2, h1, h2 = shape
    tan_e, tan_a, tan_b = tan_x[0], tan_x[1], tan_x[2]
    inv_l = lit(1, l) / l
    inv_E = inv_l * inv_l
    tan_l = inv_l * dot(e, tan_e)  # (1)
    tan_E = lit(2, l) * l * tan_l
    tan_t1 = inv_E * (dot(tan_a, e) + dot(a, tan_e) - t1 * tan_E)  # (2)
    tan_t2 = inv_E * (dot(tan_b, e) + dot(b, tan_e) - t2 * tan_E)  # (2)
    tan_n1 = add(cross(tan_e, a), cross(e, tan_a))  # (3)
    tan_n2 = add(cross(tan_b, e), cross(b, tan_e))  # (3)
    tan_h1 = unit_over_norm_jvp(n1, h1, tan_n1)  # (4)
    tan_h2 = unit_over_norm_jvp(n2, h2, tan_n2)  # (4)
    return tan_l, tan_t1, tan_t2, tan_h1, tan_h2


@device_fn
def sin_psi_jvp(x, shape, series, tan_x, tan_series):
    """Return sin psi and its tangent."""
    l, t1, t2, n1, n2, h1, h2 = shape
    sin_half, cos_half = half_angle(x[2], l, n1, n2)
    sin_psi = sin_half * series[COS] - cos_half * series[SIN]  # (5)
    cos_psi = cos_half * series[COS] + sin_half * series[SIN]
    tan_phi = angle_rate(tan_x, l, t1, t2, h1, h2)
    tan_beta_part = sin_half * tan_series[COS] - cos_half * tan_series[SIN]
    return sin_psi, lit(0.5, l) * cos_psi * tan_phi + tan_beta_part


@device_fn
def half_angle(b, l, n1, n2):
    """Return sin(phi/2) and cos(phi/2) >= 0, for phi from -pi to pi."""
    C = dot(n1, n2)  # R cos phi
    S = -l * dot(n1, b)  # R sin phi
    R = math.sqrt(C * C + S * S)
    sum_ = R + abs(C)
    r = lit(1, R) / math.sqrt(lit(2, R) * R * sum_)
    large, small = r * sum_, r * abs(S)
    zero = lit(0, C)
    is_open = zero <= C
    cos_half = large if is_open else small
    sin_half = small if is_open else large
    return math.copysign(sin_half, S), cos_half


@device_fn
def angle_rate(v, l, t1, t2, h1, h2):
    """Return dphi/dt [1/s] of the rates v of the edges."""
    u1 = axpy(-t1, v[0], v[1])  # (6)
    u2 = axpy(-t2, v[0], v[2])  # (6)
    return -l * (dot(h1, u1) + dot(h2, u2))  # (7)


@device_fn
def angle_rate_jvp(v, shape, tan_v, tan_shape):
    """Return dphi/dt and its tangent."""
    l, t1, t2, _, _, h1, h2 = shape
    tan_l, tan_t1, tan_t2, tan_h1, tan_h2 = tan_shape
    u1 = axpy(-t1, v[0], v[1])  # (6)
    u2 = axpy(-t2, v[0], v[2])  # (6)
    tan_u1 = axpy(-t1, tan_v[0], axpy(-tan_t1, v[0], tan_v[1]))
    tan_u2 = axpy(-t2, tan_v[0], axpy(-tan_t2, v[0], tan_v[2]))
    z = dot(h1, u1) + dot(h2, u2)
    tan_z = dot(tan_h1, u1) + dot(h1, tan_u1) + dot(tan_h2, u2) + dot(h2, tan_u2)
    return -l * z, -(tan_l * z + l * tan_z)  # (7)


@device_fn
def moment_forces(moment, l, t1, t2, h1, h2):
    """Return the forces -moment dphi/dx [N] on x4, x1, x2."""
    q = moment * l  # (9)
    f1 = scale(q, h1)  # (10)
    f2 = scale(q, h2)  # (10)
    return scale(lit(-1, t1), axpy(t1, f1, scale(t2, f2))), f1, f2  # (11)


@device_fn
def moment_forces_jvp(moment, shape, tan_moment, tan_shape):
    """Push tangents through `moment_forces`."""
    l, t1, t2, _, _, h1, h2 = shape
    tan_l, tan_t1, tan_t2, tan_h1, tan_h2 = tan_shape
    q = moment * l  # (9)
    tan_q = tan_moment * l + moment * tan_l
    f1 = scale(q, h1)  # (10)
    f2 = scale(q, h2)  # (10)
    tan_f1 = axpy(tan_q, h1, scale(q, tan_h1))
    tan_f2 = axpy(tan_q, h2, scale(q, tan_h2))
    tan_1 = axpy(tan_t1, f1, scale(t1, tan_f1))
    tan_2 = axpy(tan_t2, f2, scale(t2, tan_f2))
    return scale(lit(-1, l), add(tan_1, tan_2)), tan_f1, tan_f2  # (11)


@device_fn
def hinge_energy(x, consts, params, series):
    """Return the elastic energy U [J] of one hinge."""
    l, _, _, n1, n2, _, _ = hinge_shape(x)
    sin_half, cos_half = half_angle(x[2], l, n1, n2)
    cos_psi = cos_half * series[COS] + sin_half * series[SIN]
    return lit(2, l) * params[K_B] * (lit(1, l) - cos_psi)


@device_fn
def unit_over_norm_jvp(n, h, tan_n):
    """Push a tangent through h = n/|n|^2."""
    inv_N = lit(1, n[0]) / dot(n, n)
    return scale(inv_N, axpy(lit(-2, inv_N) * dot(n, tan_n), h, tan_n))


def hinge_kind(*, damped: bool) -> ElementKind:
    """Return the kind of hinges with or without damping."""

    @device_fn
    def hinge_force(x, v, consts, params, series):
        """Return the forces [N] on x4, x1, x2 of edges x and rates v; elastic: `v` is ()."""
        l, t1, t2, n1, n2, h1, h2 = hinge_shape(x)
        sin_half, cos_half = half_angle(x[2], l, n1, n2)
        sin_psi = sin_half * series[COS] - cos_half * series[SIN]  # (5)
        moment = params[K_B] * sin_psi  # (8)
        if damped:
            moment += params[K_D] * angle_rate(v, l, t1, t2, h1, h2)
        return moment_forces(moment, l, t1, t2, h1, h2)

    @device_fn
    def hinge_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
        """Push tangents through `hinge_force`."""
        shape = hinge_shape(x)
        tan_shape = hinge_shape_jvp(x, shape, tan_x)
        sin_psi, tan_sin_psi = sin_psi_jvp(x, shape, series, tan_x, tan_series)
        moment = params[K_B] * sin_psi  # (8)
        tan_moment = tan_params[K_B] * sin_psi + params[K_B] * tan_sin_psi
        if damped:
            rate, tan_rate = angle_rate_jvp(v, shape, tan_v, tan_shape)
            moment += params[K_D] * rate
            tan_moment += tan_params[K_D] * rate + params[K_D] * tan_rate
        return moment_forces_jvp(moment, shape, tan_moment, tan_shape)

    name, n_params = ("damped_hinge", 2) if damped else ("hinge", 1)
    return ElementKind(
        name, hinge_force, 4, 0, n_params, 2, uses_velocity=damped, relative=True, jvp=hinge_jvp
    )


ELASTIC, DAMPED = hinge_kind(damped=False), hinge_kind(damped=True)


@dataclass(frozen=True, eq=False)
class Hinges(RestShapedForce):
    """Hinges along edges that two triangles share.

    `adjsim.meshes.hinges.mesh_hinges` finds them in a triangle mesh.

    Parameters
    ----------
    hinges : array
        Nodes x1, x2, x3, x4 of each hinge, (n_hinges, 4) integer: x3 and x4 are on the shared
        edge of the triangles (x3, x4, x1) and (x4, x3, x2).
    rest_positions : array
        Rest positions of all nodes, (n_nodes, 3) [m]: they give c0.
    stiffness : float or array
        k_b >= 0, () or (n_hinges,) [N m].
    damping : float or array, optional
        k_d >= 0, () or (n_hinges,) [N m s]. None: none, and no parameter of that name (saves
        reading velocities).
    rest_angle : float or array, optional
        phi0, () or (n_hinges,) [rad]. None: the angles in `rest_positions`; from then on it is a
        parameter of its own.
    actuation : float, array, Signal or Policy
        a [rad] of half-angle, () or (n_hinges,); (n_steps, n_hinges) with row k acting in step k;
        or a `Signal` over control points, a `Policy` over time.

    Raises
    ------
    ValueError
        If an array has the wrong shape or sign, a hinge names a node twice, or one of its
        triangles has no area at rest.
    """

    hinges: Any
    rest_positions: Any
    stiffness: Any
    damping: Any = None
    rest_angle: Any = None
    actuation: Any = 0.0

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("rest_positions", "X", "m", "(n_nodes, 3)"),
        Parameter("stiffness", "k_b", "N m", "() or (n_hinges,)", positive=True),
        Parameter("damping", "k_d", "N m s", "() or (n_hinges,)", positive=True),
        Parameter("rest_angle", "φ₀", "rad", "() or (n_hinges,)"),
        Parameter("actuation", "a", "rad", "(), (n_hinges,) or (n_steps, n_hinges)"),
    )

    def __post_init__(self) -> None:
        rest = checks.array("rest_positions", self.rest_positions, ("n_nodes", 3))
        hinges = checks.indices("hinges", self.hinges, ("n_hinges", 4), len(rest))
        check_hinges(rest, hinges)
        checks.freeze(self, "hinges", hinges)
        checks.freeze(self, "rest_positions", rest)
        n_hinges = len(hinges)
        for name in ("stiffness", "damping"):
            if not self.is_left_out(name):
                value = checks.scalar_or_array(name, getattr(self, name), n_hinges, "n_hinges")
                checks.freeze(self, name, checks.non_negative(name, value))
        angle = dihedral_angle(rest, hinges) if self.rest_angle is None else self.rest_angle
        angle = checks.scalar_or_array("rest_angle", angle, n_hinges, "n_hinges")
        checks.freeze(self, "rest_angle", angle)
        freeze_series(self, "actuation", ((), (n_hinges,)))

    @property
    def kind(self) -> ElementKind:
        """Elastic, or damped where a damping was given."""
        return ELASTIC if self.damping is None else DAMPED

    @property
    def nodes(self) -> np.ndarray:
        """Nodes of each hinge, those of the edge first: x3, x4, x1, x2, (n_hinges, 4)."""
        return self.hinges[:, [2, 3, 0, 1]]

    def collapsed(self, x: np.ndarray, name: str) -> str | None:
        """Name the first of the hinges' triangles that has no area."""
        why = (collapsed_triangle(name, x, self.hinges[:, corners]) for corners in CORNERS)
        return next(filter(None, why), None)

    def pack_params(self) -> np.ndarray:
        """k_b c0, and k_d c0 where there is damping."""
        c0 = rest_shape(self.rest_positions, self.hinges)
        rows = [self.stiffness * c0]
        if self.damping is not None:
            rows.append(self.damping * c0)
        return np.stack(rows, axis=-1)

    def pack_series(self, n_steps: int) -> np.ndarray:
        """Cos beta and sin beta, beta = phi0/2 - a, (1 or n_steps, n_hinges, 2)."""
        actuation = series_rows(self.actuation, (len(self.hinges),), n_steps)
        beta = 0.5 * self.rest_angle - actuation
        return np.stack([np.cos(beta), np.sin(beta)], axis=-1)

    def stiffness_bound(self) -> np.ndarray:
        """k_b c0/2 |dphi/dx|^2: the one eigenvalue of a hinge at rest that is not 0."""
        return 0.5 * self.stiffness * self._squared_gradient()

    def damping_bound(self) -> np.ndarray:
        """k_d c0 |dphi/dx|^2."""
        damping = 0.0 if self.damping is None else self.damping
        return damping * self._squared_gradient()

    def _squared_gradient(self) -> np.ndarray:
        """Return c0 |dphi/dx|^2 at rest, (n_hinges,) [1/m2]."""
        e, a, b = edges(self.rest_positions, self.hinges)
        E = np.square(e).sum(axis=1)
        g1, g2 = (
            n * np.sqrt(E / np.square(n).sum(axis=1) ** 2)[:, None]
            for n in (np.cross(a, e), np.cross(e, b))
        )
        t1, t2 = ((arm * e).sum(axis=1, keepdims=True) / E[:, None] for arm in (a, b))
        g4 = -(t1 * g1 + t2 * g2)
        g3 = -(g1 + g2 + g4)
        squares = sum(np.square(g).sum(axis=1) for g in (g1, g2, g3, g4))
        return rest_shape(self.rest_positions, self.hinges) * squares

    def pack_jvp(
        self, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of stiffness, damping, rest angle and actuation to rows."""
        c0 = rest_shape(self.rest_positions, self.hinges)
        names = ("stiffness",) if self.damping is None else ("stiffness", "damping")
        rows = [tangents.get(name, np.zeros(())) * c0 for name in names]
        tan_angle = broadcast(tangents.get("rest_angle", np.zeros(())), len(c0))
        tan_a = series_rows_jvp(self.actuation, (len(c0),), tangents.get("actuation"), n_steps)
        tan_beta = 0.5 * tan_angle - tan_a
        beta = 0.5 * self.rest_angle - series_rows(self.actuation, (len(c0),), n_steps)
        tan_rows = [-np.sin(beta) * tan_beta, np.cos(beta) * tan_beta]
        return np.stack(rows, axis=-1), np.stack(tan_rows, axis=-1)

    def rest_jvp(self, tan_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push a tangent of the rest positions to k_b c0 and k_d c0."""
        tan_c0 = rest_shape_jvp(self.rest_positions, self.hinges, tan_rest)
        rows = [self.stiffness * tan_c0]
        if self.damping is not None:
            rows.append(self.damping * tan_c0)
        return np.zeros((len(tan_c0), 0)), np.stack(rows, axis=-1)


def edges(positions: np.ndarray, hinges: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return e = x4 - x3, a = x1 - x3 and b = x2 - x3 of each hinge, (n_hinges, 3) [m]."""
    x1, x2, x3, x4 = (positions[hinges[:, k]] for k in range(4))
    return x4 - x3, x1 - x3, x2 - x3


def rest_shape(rest_positions: np.ndarray, hinges: np.ndarray) -> np.ndarray:
    """Return c0 = |e|^2/(|n1| + |n2|), (n_hinges,) [-]."""
    e, a, b = edges(rest_positions, hinges)
    n1, n2 = np.cross(e, a), np.cross(b, e)
    return np.square(e).sum(axis=1) / (np.linalg.norm(n1, axis=1) + np.linalg.norm(n2, axis=1))


def rest_shape_jvp(
    rest_positions: np.ndarray, hinges: np.ndarray, tan_rest: np.ndarray
) -> np.ndarray:
    """Push a tangent of the rest positions through c0 = |e|^2/(|n1| + |n2|)."""
    e, a, b = edges(rest_positions, hinges)
    tan_e, tan_a, tan_b = edges(tan_rest, hinges)
    n1, n2 = np.cross(e, a), np.cross(b, e)  # (1)
    tan_n1 = np.cross(tan_e, a) + np.cross(e, tan_a)
    tan_n2 = np.cross(tan_b, e) + np.cross(b, tan_e)
    N1, N2 = (np.linalg.norm(n, axis=1) for n in (n1, n2))  # (2)
    tan_N = (n1 * tan_n1).sum(axis=1) / N1 + (n2 * tan_n2).sum(axis=1) / N2
    c0 = np.square(e).sum(axis=1) / (N1 + N2)  # (3)
    return (2.0 * (e * tan_e).sum(axis=1) - c0 * tan_N) / (N1 + N2)


def dihedral_angle(positions: np.ndarray, hinges: np.ndarray) -> np.ndarray:
    """Return phi in (-pi, pi] of each hinge, (n_hinges,) [rad]: 0 when flat."""
    e, a, b = edges(positions, hinges)
    n1, n2 = np.cross(e, a), np.cross(b, e)
    S = -np.linalg.norm(e, axis=1) * (n1 * b).sum(axis=1) + 0.0  # no -0, whose angle is -pi
    return np.arctan2(S, (n1 * n2).sum(axis=1))


def check_hinges(rest_positions: np.ndarray, hinges: np.ndarray) -> None:
    """Name the first hinge with a node twice, or with a triangle that has no area."""
    ordered = np.sort(hinges, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        row = int(np.argmax(twice))
        raise ValueError(
            f"`hinges` must have four different nodes, got {hinges[row].tolist()} at row {row}: "
            "its two triangles are one."
        )
    for corners in CORNERS:
        flat = have_no_area(rest_positions, hinges[:, corners])
        if flat.any():
            row = int(np.argmax(flat))
            raise ValueError(
                f"`hinges` must lie between triangles with an area at rest, but the triangle "
                f"{hinges[row, corners].tolist()} at row {row} has none. Remove or move it."
            )
