import numpy as np
import pytest

from adjoint.render.shaders.normals import (
    area_normal_jvp,
    area_normal_vjp,
    normal_jvp_body,
    points_vjp_body,
    sum_vjp_body,
    unit_mean_vjp,
    unit_or_zero_vjp,
    unit_sum_vjp,
)
from adjsim.meshes.ball import icosahedron
from render.shaders.normals import (
    area_normal,
    normal_body,
    unit_mean,
    unit_or_zero,
    unit_sum,
    vertex_corners,
)
from tests.render.elements import check_element, check_twins


POINTS, FACES = icosahedron()
FACES = np.asarray(FACES, np.int64)
CORNERS = vertex_corners(FACES, len(POINTS))


def normals(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        normal_body(i, x, FACES, CORNERS, out)
    return out


def test_every_corner_is_found_at_its_vertex_in_the_order_of_the_faces():
    start, corners = vertex_corners(np.array([[0, 2, 3], [3, 2, 4]]), 6)
    at = [list(corners[start[i] : start[i + 1]]) for i in range(6)]
    assert at == [[0], [], [1, 4], [2, 3], [5], []]


def test_the_normals_of_a_ball_point_outwards():
    expected = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
    np.testing.assert_allclose(normals(POINTS), expected, rtol=0, atol=1e-15)


def test_a_larger_face_weighs_more():
    x = np.array([[0, 0, 0], [2.0, 0, 0], [0, 2.0, 0], [0, 0, 1.0], [-1.0, 0, 0]])
    faces = np.array([[0, 1, 2], [0, 3, 4]])  # normals 4 z and -1 y
    corners = vertex_corners(faces, len(x))
    out = np.empty_like(x)
    normal_body(0, x, faces, corners, out)
    np.testing.assert_allclose(out[0], np.array([0, -1, 4]) / np.sqrt(17), rtol=1e-15)


def test_a_vertex_of_no_face_has_no_normal_and_no_slope():
    x = np.zeros((1, 3))
    out = np.ones((1, 3))
    normal_body(0, x, np.empty((0, 3), np.int64), vertex_corners(np.empty((0, 3), int), 1), out)
    np.testing.assert_array_equal(out, 0.0)
    assert unit_or_zero_vjp((0.0, 0.0, 0.0), (1.0, 2.0, 3.0)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sum_of_normals_that_is_rounding_is_no_normal_and_has_no_slope(rng, dtype):
    for _ in range(20):
        x = rng.normal(size=(7, 3)).astype(dtype)
        front = np.array([[0, 1 + i, 1 + (i + 1) % 6] for i in range(6)])
        back = np.array(
            [
                np.roll(face, k)
                for face, k in zip(front[:, ::-1], rng.integers(3, size=6), strict=True)
            ]
        )
        faces = rng.permutation(np.concatenate([front, back]))  # a sheet with two sides
        corners = vertex_corners(faces, len(x))
        out, pulled, pushed = np.ones_like(x), np.ones_like(x), np.ones_like(x)
        for i in range(len(x)):
            normal_body(i, x, faces, corners, out)
            sum_vjp_body(i, x, faces, corners, pulled)
            normal_jvp_body(i, x, np.ones_like(x), faces, corners, pushed)
        for zero in (out, pulled, pushed):
            np.testing.assert_array_equal(zero, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [3e-9, 1.0, 7e5])
def test_a_sum_counts_from_sixteen_roundings_of_its_size_on(dtype, size):
    zero, unit, size, eps = dtype(0), dtype(1), dtype(size), np.finfo(dtype).eps
    adj = (unit, unit, unit)
    large, small = ((dtype(k) * eps * size, zero, zero) for k in (16, 2))
    assert unit_sum(large, size)[0] == pytest.approx((1, 0, 0), rel=float(eps))
    assert unit_sum(small, size) == ((0, 0, 0), 0)
    assert unit_sum_vjp(large, size, adj)[1] > 0
    assert unit_sum_vjp(small, size, adj) == (0, 0, 0)
    if size == unit:
        assert unit_mean(large)[0] == (1, 0, 0)
        assert unit_mean(small) == ((0, 0, 0), 0)
        assert unit_mean_vjp(small, adj) == (0, 0, 0)


def test_the_twins_of_a_unit_vector_are_its_derivatives(rng):
    check_element(
        rng,
        lambda m: unit_or_zero(m)[0],
        lambda a, t: unit_or_zero_vjp(a[0], t[0]),
        lambda a, c: unit_or_zero_vjp(a[0], c),
        ((0.3, -0.8, 0.4),),
    )


def test_the_twins_of_the_normal_of_a_face_are_its_derivatives(rng):
    corners = ((0.1, 0.2, 0.3), (1.0, 0.1, -0.2), (0.2, 0.9, 0.4))
    check_twins(rng, area_normal, area_normal_jvp, area_normal_vjp, corners)


def test_the_twins_of_the_normals_of_a_mesh_are_their_derivatives(rng):
    x = POINTS + 0.1 * rng.normal(size=POINTS.shape)
    tan_x, adj = rng.normal(size=(2, *x.shape))
    pushed = np.empty_like(x)
    for i in range(len(x)):
        normal_jvp_body(i, x, tan_x, FACES, CORNERS, pushed)
    h = 1e-5
    slopes = [
        (normals(x + k * h * tan_x) - normals(x - k * h * tan_x)) / (2 * k * h) for k in (1, 2)
    ]
    np.testing.assert_allclose(pushed, (4 * slopes[0] - slopes[1]) / 3, rtol=0, atol=1e-9)
    adj_sums, adj_x = adj.copy(), np.zeros_like(x)
    for i in range(len(x)):
        sum_vjp_body(i, x, FACES, CORNERS, adj_sums)
    for i in range(len(x)):
        points_vjp_body(i, x, FACES, CORNERS, adj_sums, adj_x)
    assert np.sum(pushed * adj) == pytest.approx(np.sum(adj_x * tan_x), rel=1e-12)
