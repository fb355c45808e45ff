"""The force of a pair: by hand, from its energy, and its derivatives in every case of a feature."""

import numpy as np
import pytest

from adjoint.pairs.pair_force import pair_vjp
from adjoint.verify.contract import EPS, flat, numbers, on_nodes, relative, shaped, vectors
from adjsim.pairs.closest import EDGE, EDGES, FACE, VERTEX
from adjsim.pairs.pair_force import pair_energy, pair_force, pair_jvp
from adjsim.pairs.surface import surface_of
from tests.pairs.features import CASES, TURN, A, B, C, central, crossed, over, pair


WEIGHTS = {VERTEX: 2.0, EDGE: -1.0, FACE: 1.0, EDGES: 1.0}
ELASTIC = (50.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.35, 0.25)
STICK = (50.0, 0.0, 0.3, 0.0, 0.0, 0.4, 0.6, 0.35, 0.25)
SLIP = (50.0, 0.0, 0.3, 0.0, 0.0, 40.0, 0.3, 0.35, 0.25)
DAMPED = (50.0, 0.7, 0.0, 0.0, 0.0, 40.0, 0.3, 0.35, 0.25)
FRICTION = (23, 24)  # k_f and mu among positions, velocities and parameters
CUBIC = (0.0, 0.0, 0.0, 4e3, 0.01, 0.4, 0.6, 0.35, 0.25)
LAWS = {
    "elastic": ELASTIC, "stick": STICK, "slip": SLIP, "damped": DAMPED, "cubic": CUBIC,
}  # fmt: skip
V = np.array([(0.2, 0.1, -0.4), (-0.1, 0.3, 0.2), (0.15, -0.2, 0.1), (-0.3, 0.1, 0.3)])
every_case = pytest.mark.parametrize("name", CASES)
every_law = pytest.mark.parametrize("law", LAWS)


def element(code, corners, params, v=V):
    """What the element function gets."""
    consts = (float(code), WEIGHTS[code])
    return vectors(relative(corners)), vectors(relative(v)), consts, params, ()


def forces(code, corners, params, v=V):
    """Forces on the four nodes."""
    return on_nodes(np.array(pair_force(*element(code, corners, params, v))))


def test_a_vertex_over_a_face_is_pushed_as_worked_by_hand():
    corners = over((0.2, 0.3, 0), A, (1, 0, 0), (0, 1, 0))  # 0.3 above, 0.1 deep
    params = (50.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.15)
    expected = 5.0 * np.array([1.0, -0.5, -0.2, -0.3])
    f = forces(FACE, corners, params, np.zeros((4, 3)))
    np.testing.assert_allclose(f, np.outer(expected, [0, 0, 1]), rtol=0, atol=100 * EPS)
    assert pair_energy(*element(FACE, corners, params)[:1], (2.0, 1.0), params, ()) == (
        pytest.approx(0.25, rel=20 * EPS)
    )


def test_edges_that_cross_in_their_middle_are_pushed_as_worked_by_hand():
    corners = np.array([(-1.0, 0, 0.3), (1, 0, 0.3), (0, -1, 0), (0, 1, 0)])
    params = (50.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.15)
    f = forces(EDGES, corners, params, np.zeros((4, 3)))
    np.testing.assert_allclose(
        f, np.outer([2.5, 2.5, -2.5, -2.5], [0, 0, 1]), rtol=0, atol=100 * EPS
    )


STEEP = (1e4, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.05, 0.05)  # k_e and radii


@pytest.mark.parametrize("angle", [20.0, 30.0, 60.0, 90.0, 120.0, 160.0])
@pytest.mark.parametrize("place", [0.1, 0.25, 0.5, 0.9])
def test_edges_that_cross_are_as_stiff_as_declared(angle, place):
    for other in (0.1, 0.3, 0.9):
        corners = crossed(place, other, np.radians(angle), 0.09)
        push = forces(EDGES, corners, STEEP, np.zeros((4, 3)))[:2].sum(axis=0)
        np.testing.assert_allclose(push[:2], 0.0, atol=1e-9)
        assert 0.9 <= push[2] / (1e4 * 0.01) <= 1.0 + 1e-9


def stiffness(corners, params):
    """Return the tangent stiffness of a pair of edges, (12, 12) [N/m], of all four corners."""
    x, v, consts, params, _ = element(EDGES, corners, params, np.zeros((4, 3)))
    none = np.zeros((3, 3)), (0.0,) * len(params)
    columns = [
        pair_jvp(x, v, consts, params, (), vectors(u.reshape(3, 3)), vectors(none[0]), none[1], ())
        for u in np.eye(9)
    ]
    of_three = -np.array(columns).reshape(9, 9)
    from_all = np.kron(np.column_stack([-np.ones(3), np.eye(3)]), np.eye(3))
    return from_all.T @ of_three @ from_all


def test_edges_at_every_place_and_angle_are_little_stiffer_than_declared(rng):
    """At a depth of 1 % of an edge, and radii of 5 %; with m full above g = 0.001: 20 times."""
    n = 600
    angles = np.concatenate([10.0 ** rng.uniform(-3.0, 0.0, n), rng.uniform(0.01, np.pi / 2, n)])
    ratios = []
    for angle in angles:
        s, t = rng.uniform(0.001, 0.999, 2)
        ratios.append(np.linalg.eigvalsh(stiffness(crossed(s, t, angle, 0.09), STEEP)) / 1e4)
    assert np.min(ratios) > -2.0
    assert 1.5 < np.max(ratios) < 2.5


@pytest.mark.parametrize(
    "way",
    [
        lambda z: crossed(z, 0.4, 1.1, 0.05),  # over an end of an edge
        lambda z: crossed(0.1 + z, 0.02, 1.1, 0.05),  # over the end of a flank
        lambda z: crossed(0.05, 0.45, np.arcsin(np.sqrt(0.15)) + z, 0.05),  # where m becomes 1
        lambda z: crossed(0.05, 0.45, z, 0.05),  # through parallel
    ],
)
def test_forces_of_two_edges_are_continuous(way):
    def force(z):
        return forces(EDGES, way(z), STEEP, np.zeros((4, 3)))

    for h in (1e-4, 1e-6):
        np.testing.assert_allclose(force(h), force(-h), rtol=0, atol=1e5 * h)


def test_friction_acts_against_the_sliding_between_the_closest_points():
    corners = over((0.2, 0.3, 0), A, (1, 0, 0), (0, 1, 0))
    v = np.array([(2.0, 0, 0), (1.0, 0, 0), (1.0, 0, 0), (1.0, 0, 0)])
    stick = forces(FACE, corners, (50.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.6, 0.25, 0.15), v)
    slip = forces(FACE, corners, (50.0, 0.0, 0.0, 0.0, 0.0, 40.0, 0.6, 0.25, 0.15), v)
    np.testing.assert_allclose(stick[0], [-0.4, 0, 5.0], rtol=0, atol=100 * EPS)
    np.testing.assert_allclose(slip[0], [-3.0, 0, 5.0], rtol=0, atol=100 * EPS)


@pytest.mark.parametrize("away", ["beyond the radii", "no weight", "no distance"])
def test_nothing_acts_and_nothing_is_pulled_back(away):
    corners = over((0.2, 0.3, 0), A, (1, 0, 0), (0, 1, 0))
    x, v, (code, weight), params, series = element(FACE, corners, STICK)
    if away == "beyond the radii":
        params = (*params[:7], 0.2, 0.09)
    elif away == "no weight":
        weight = 0.0
    else:
        x = vectors(relative(corners - np.outer([1, 0, 0, 0], [0, 0, 0.3])))
    point = (x, v, (code, weight), params, series)
    ones = vectors(np.ones((3, 3)))
    assert not np.any(flat(pair_force(*point)))
    assert not np.any(flat(pair_jvp(*point, ones, ones, (1.0,) * 9, ())))
    assert not np.any(flat(pair_vjp(*point, ones)[:3]))


@every_case
def test_force_is_minus_the_gradient_of_the_energy(name):
    code, corners, near = pair(name)
    _, _, consts, _, _ = element(code, corners, ELASTIC)
    f = forces(code, corners, ELASTIC)

    def energy(z):
        return pair_energy(vectors(relative(z)), consts, ELASTIC, ())

    h = 2e-4 * near**2
    slopes = [central(energy, corners, u.reshape(4, 3), h) for u in np.eye(12)]
    assert np.abs(f).max() > 0.0
    np.testing.assert_allclose(slopes, -f.ravel(), rtol=0, atol=5e-9 / near**2 * np.abs(f).max())
    along = f / np.linalg.norm(f)
    slope = central(energy, corners, along, h)
    assert slope == pytest.approx(-np.linalg.norm(f), rel=5e-9 / near**2)


@every_law
@every_case
def test_full_jacobian_matches_central_differences(name, law):
    code, corners, near = pair(name)
    x, v, consts, params, series = element(code, corners, LAWS[law])
    primals = (x, v, params)
    base = flat(primals)

    def f(vector):
        x_e, v_e, params_e = shaped(vector, primals)
        return flat(pair_force(x_e, v_e, consts, params_e, series))

    def tangent(unit):
        return flat(pair_jvp(x, v, consts, params, series, *shaped(unit, primals), ()))

    f_0 = f(base)
    directions = [*np.eye(len(base)), np.append(f_0 / np.linalg.norm(f_0), np.zeros(18))]
    for k, d in enumerate(directions):
        if k in FRICTION and base[k] == 0.0:  # the cone's tip: no derivative by definition
            continue
        of_positions = k < 9 or k == len(base)
        h = 2e-4 * near**2 if of_positions else 1e-3 * (abs(base[k]) or 0.1)
        by = central(f, base, d, h)
        size = np.abs(by).max() + np.abs(f_0).max()
        np.testing.assert_allclose(
            tangent(d), by, rtol=0, atol=5e-9 / near**2 * size, err_msg=str(k)
        )


@every_law
@every_case
def test_tangent_and_adjoint_are_transposes(rng, name, law):
    code, corners, near = pair(name)
    point = element(code, corners, LAWS[law])
    f = np.array(pair_force(*point))
    for k in range(8):
        tan_x, tan_v, adj = rng.standard_normal((3, 3, 3))
        tan_params = rng.standard_normal(9)
        if k == 0:  # along the force
            tan_x = adj = f / np.linalg.norm(f)
        t = np.array(pair_jvp(*point, vectors(tan_x), vectors(tan_v), numbers(tan_params), ()))
        adj_x, adj_v, adj_params, _ = pair_vjp(*point, vectors(adj))
        forward = np.vdot(adj, t)
        back = np.vdot(adj_x, tan_x) + np.vdot(adj_v, tan_v) + np.dot(adj_params, tan_params)
        assert abs(forward - back) <= max(1e-12, 1e-16 / near**2) * np.linalg.norm(
            t
        ) * np.linalg.norm(adj)


@every_law
@every_case
def test_forces_sum_to_zero_and_turn_with_the_pair(name, law):
    code, corners, near = pair(name)
    params = LAWS[law]
    f = forces(code, corners, params)
    size = np.abs(f).max()
    assert np.abs(f.sum(axis=0)).max() <= 4 * EPS * size
    Q, shift, boost = TURN @ TURN, np.array([0.3, -0.5, 0.2]), np.array([1.0, -2.0, 0.5])
    turned = forces(code, corners @ Q.T + shift, params, V @ Q.T + boost)
    np.testing.assert_allclose(turned, f @ Q.T, rtol=0, atol=500 * EPS * size / near**2)


@every_case
def test_without_friction_torques_sum_to_zero(name):
    code, corners, near = pair(name)
    for params in (ELASTIC, (50.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.35, 0.25)):
        f = forces(code, corners, params)
        torque = np.cross(corners, f).sum(axis=0)
        assert np.abs(torque).max() <= 500 * EPS * np.abs(f).max() / near**2


def patch():
    """A flat patch of triangles around one vertex, turned: its points and faces."""
    angles = np.array([0.0, 1.0, 2.1, 2.9, 4.2, 5.3])
    ring = np.stack([np.cos(angles), np.sin(angles), np.zeros(6)], axis=1)
    points = np.concatenate([np.zeros((1, 3)), ring, 2.2 * ring])
    faces = []
    for i in range(6):
        j = (i + 1) % 6
        faces += [(0, 1 + i, 1 + j), (1 + i, 7 + i, 7 + j), (1 + i, 7 + j, 1 + j)]
    return points, np.array(faces)


def push_of(surface, points, vertex):
    """The force of a surface of radius 0.2 on a vertex of radius 0.1, k_e = 50."""
    params = (50.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2)
    parts = (
        (FACE, surface.faces, np.ones(len(surface.faces))),
        (EDGE, surface.edges, surface.edge_weights),
        (VERTEX, surface.vertices, surface.vertex_weights),
    )
    total = np.zeros(3)
    for code, rows, weights in parts:
        for row, weight in zip(rows, weights, strict=True):
            corners = points[[*row, *row[-1:].repeat(3 - len(row))]]
            y, zero = vectors(corners - vertex), vectors(np.zeros((3, 3)))
            total -= np.sum(pair_force(y, zero, (float(code), weight), params, ()), axis=0)
    return total


@pytest.mark.parametrize("way", [(1.0, 0.0), (0.5, 0.87), (-0.3, 1.0)])
def test_a_vertex_is_pushed_once_wherever_it_slides_on_a_flat_patch(way):
    points, faces = patch()
    surface, n = surface_of(faces), TURN @ [0, 0, 1.0]
    d = TURN @ [*way, 0.0] / np.linalg.norm(way)
    side = TURN @ [0.0, 0.0, 0.2]
    for s in np.linspace(-1.5, 1.5, 61):  # over edges, and over the vertex in the middle at 0
        f = push_of(surface, points @ TURN.T, s * d + side)
        np.testing.assert_allclose(f, 50.0 * 0.1 * n, rtol=0, atol=1e-12)


def test_the_push_is_continuous_over_an_open_boundary_and_a_corner():
    points, faces = patch()
    surface = surface_of(faces)
    for way in ([1.0, 0.0, 0.0], [0.87, 0.5, 0.0]):  # over a corner of the boundary, and a side
        d = np.array(way)
        at = np.linspace(1.7, 2.45, 151)
        f = np.array([push_of(surface, points, s * d + [0, 0, 0.2]) for s in at])
        slopes = np.diff(f, axis=0) / (at[1] - at[0])
        assert np.abs(slopes).max() < 200.0  # a jump of 0.5 N would be 100 N/m over a step
        border = 2.2
        close = [push_of(surface, points, (border + e) * d + [0, 0, 0.2]) for e in (-1e-14, 1e-14)]
        np.testing.assert_allclose(*close, rtol=0, atol=1e-12)
        assert f[0] == pytest.approx([0, 0, 5.0], abs=1e-12)


@pytest.mark.parametrize("height", [0.12, 0.2, 0.28])
def test_the_push_beside_every_border_of_a_part_is_the_same_on_both_sides(height):
    """The sum is continuous to 1e-12 where the closest part changes, on a flat patch and a bent."""
    points, faces = patch()
    bent = points.copy()
    bent[:, 2] -= 0.2 * np.abs(points[:, 0])
    surface = surface_of(faces)
    for places in (points, bent):
        for border, across in (
            (0.5 * places[1] + 0.5 * places[2], places[0] - 0.5 * places[1] - 0.5 * places[2]),
            (0.5 * places[1], places[2]),
            (places[0], places[1]),
            (places[2], places[3]),
            (0.3 * places[7] + 0.7 * places[8], places[1]),
        ):
            e = 1e-15 * across
            up = np.array([0, 0, height])
            pushes = [push_of(surface, places, border + up + k * e) for k in (-1, 1)]
            np.testing.assert_allclose(*pushes, rtol=0, atol=1e-12)


@pytest.mark.parametrize("fold", [1e-2, 1e-5, 1e-9])
def test_a_flat_fold_pushes_as_a_flat_patch_does(fold):
    """Two faces that meet at almost no angle: a vertex over their edge is pushed once."""
    points = np.array([(0, -1.0, 0), (0, 1, 0), (-1, 0, -fold), (1, 0, -fold)])
    surface = surface_of(np.array([(0, 1, 2), (1, 0, 3)]))
    for x in (-0.05, -1e-6, 0.0, 1e-6, 0.05):
        f = push_of(surface, points, np.array([x, 0.1, 0.2]))
        np.testing.assert_allclose(f, [0, 0, 5.0], rtol=0, atol=5.0 * 2 * fold + 1e-12)


def test_a_vertex_over_the_corner_of_a_closed_surface_is_pushed_once():
    points = np.array([A, B, C, (0.4, 0.3, 0.9)])
    surface = surface_of(np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]))
    above = points[3] + [0.0, 0.0, 0.2]
    f = push_of(surface, points, above)
    np.testing.assert_allclose(f, [0, 0, 5.0], rtol=0, atol=1e-12)
