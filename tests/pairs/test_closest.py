"""Closest points: values by hand, another program's, derivatives in every region of a feature."""

import numpy as np
import pytest

from adjoint.pairs.closest import closest_vjp
from adjoint.verify.contract import EPS, flat, relative, vectors
from adjsim.pairs.closest import EDGE, EDGES, FACE, VERTEX, closest, closest_jvp
from tests.pairs.features import CASES, A, B, C, central, crossed, over, pair


def at(code, corners):
    return closest(float(code), vectors(relative(np.asarray(corners, float))))


@pytest.mark.parametrize(
    ("code", "corners", "r", "weights"),
    [
        (VERTEX, over(A, A), (0, 0, 0.3), (-1, 0, 0)),
        (EDGE, over((0.25, -0.4, 0), A, (1, 0, 0)), (0, -0.4, 0.3), (-0.75, -0.25, 0)),
        (EDGE, over((-0.4, 0, 0), A, (1, 0, 0)), (-0.4, 0, 0.3), (-1, 0, 0)),
        (EDGE, over((1.4, 0, 0), A, (1, 0, 0)), (0.4, 0, 0.3), (0, -1, 0)),
        (FACE, over((0.2, 0.3, 0), A, (1, 0, 0), (0, 1, 0)), (0, 0, 0.3), (-0.5, -0.2, -0.3)),
        (FACE, over((0.6, -0.4, 0), A, (1, 0, 0), (0, 1, 0)), (0, -0.4, 0.3), (-0.4, -0.6, 0)),
        (FACE, over((1, 1, 0), A, (1, 0, 0), (0, 1, 0)), (0.5, 0.5, 0.3), (0, -0.5, -0.5)),
        (FACE, over((0, 3, 0), A, (1, 0, 0), (0, 1, 0)), (0, 2, 0.3), (0, 0, -1)),
        (EDGES, crossed(0.25, 0.5, 0.5 * np.pi), (0, 0, 0.3), (0.25, -0.5, -0.5)),
    ],
)
def test_distance_vectors_and_weights_worked_by_hand(code, corners, r, weights):
    nearest = at(code, corners)
    np.testing.assert_allclose(nearest.r, r, rtol=0, atol=10 * EPS)
    np.testing.assert_allclose(nearest.weights, weights, rtol=0, atol=10 * EPS)


@pytest.mark.parametrize("name", CASES)
def test_the_distance_vector_is_the_weighted_sum_and_stands_on_the_feature(name):
    code, corners, near = pair(name)
    nearest = at(code, corners)
    y = relative(corners)
    atol = 20 * EPS / near**2  # of the equations of two directions
    np.testing.assert_allclose(np.dot(nearest.weights, y), nearest.r, rtol=0, atol=atol)
    for d in (nearest.d_1, nearest.d_2):
        assert abs(np.dot(d, nearest.r)) <= atol
    if code != EDGES:
        assert sum(nearest.weights) == pytest.approx(-1.0, abs=4 * EPS)
        assert max(nearest.weights) <= 4 * EPS


@pytest.mark.parametrize("name", CASES)
def test_derivatives_match_central_differences(name):
    code, corners, near = pair(name)
    y = relative(corners)
    nearest = at(code, corners)

    def values(moved):
        there = closest(float(code), vectors(moved))
        return flat([there.r, there.d_1, there.d_2, [there.a_1], [there.a_2], there.weights])

    J = np.array([flat(closest_jvp(nearest, vectors(u.reshape(3, 3)))) for u in np.eye(9)])
    by = [central(values, y, u.reshape(3, 3), 1e-3 * near) for u in np.eye(9)]
    np.testing.assert_allclose(J, by, rtol=0, atol=1e-9 * np.abs(J).max() / near)


@pytest.mark.parametrize("name", CASES)
def test_tangent_and_adjoint_are_transposes(rng, name):
    code, corners, _ = pair(name)
    nearest = at(code, corners)
    for _ in range(8):
        t, adj_r, adj_w = rng.standard_normal((3, 3)), *rng.standard_normal((2, 3))
        tan = closest_jvp(nearest, vectors(t))
        tan_r, tan_w = np.array(tan[0]), np.array(tan[-1])
        back = np.array(closest_vjp(nearest, tuple(adj_r), tuple(adj_w)))
        forward = adj_r @ tan_r + adj_w @ tan_w
        size = np.abs(back).max() + np.abs(tan_r).max() + np.abs(tan_w).max()
        assert abs(forward - np.vdot(back, t)) <= 1e-12 * size


def test_of_a_feature_without_extent_a_corner_is_the_closest():
    # A face that is a point or a line, an edge that is a point: finite, and at the right distance.
    for code in (EDGE, FACE):
        np.testing.assert_allclose(
            at(code, over(np.add(A, [0.3, 0, 0]), A)).r, [0.3, 0, 0.3], atol=EPS
        )
    middle = 0.5 * (A + B)
    nearest = at(FACE, over(C, A, middle, B))
    np.testing.assert_allclose(nearest.r, at(EDGE, over(C, A, B)).r, rtol=0, atol=20 * EPS)


def test_parallel_edges_have_finite_points():
    assert np.isfinite(flat(at(EDGES, crossed(0.5, 0.5, 0.0)))).all()


def random_corners(rng, near):
    corners = rng.standard_normal((4, 3))
    if near:  # a vertex over a corner or edge, edges that are almost parallel
        corners[3] = corners[2] + (corners[1] - corners[0]) + near * rng.standard_normal(3)
    return corners


@pytest.mark.parametrize("near", [0.0, 0.05])
def test_distances_points_and_derivatives_are_those_of_ipctk(rng, near):
    ipctk = pytest.importorskip("ipctk")
    for _ in range(60):
        corners = random_corners(rng, near)
        p, *triangle = corners
        for code, theirs, slope in (
            (FACE, ipctk.point_triangle_distance, ipctk.point_triangle_distance_gradient),
            (EDGE, ipctk.point_edge_distance, ipctk.point_edge_distance_gradient),
            (VERTEX, ipctk.point_point_distance, ipctk.point_point_distance_gradient),
        ):
            ends = triangle[: code + 1]
            nearest = at(code, np.array([p, *ends, *ends[-1:] * (2 - code)]))
            expected = theirs(p, *ends)  # squares
            assert np.dot(nearest.r, nearest.r) == pytest.approx(expected, rel=1e-10)
            of_corners = 2 * np.outer(nearest.weights[: code + 1], nearest.r)
            mine = np.concatenate([2 * np.array(nearest.r), of_corners.ravel()])
            np.testing.assert_allclose(
                mine, slope(p, *ends), rtol=0, atol=1e-9 * np.abs(mine).max()
            )
        nearest = at(EDGES, corners)
        s, t = ipctk.edge_edge_closest_point(*corners)
        size = 1.0 + abs(s) + abs(t)
        condition = 1.0 if not near else near**-2
        np.testing.assert_allclose(
            [nearest.a_1, nearest.a_2], [s, t], rtol=0, atol=1e-12 * size * condition
        )
        J = ipctk.edge_edge_closest_point_jacobian(*corners)
        for k, unit in enumerate(np.eye(12)):
            tan = closest_jvp(nearest, vectors(relative(unit.reshape(4, 3))))
            np.testing.assert_allclose(
                tan[3:5], J[:, k], rtol=0, atol=1e-11 * condition * np.abs(J).max()
            )
        square = ipctk.line_line_distance(*corners)
        assert np.dot(nearest.r, nearest.r) == pytest.approx(
            square, rel=1e-9 * condition, abs=1e-14
        )
