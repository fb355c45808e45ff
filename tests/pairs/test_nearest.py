"""Nearest points of surfaces: values by hand, all faces compared, ties, derivatives."""

import numpy as np
import pytest

from adjoint.verify.contract import EPS, vectors
from adjsim.meshes.ball import ball_tets
from adjsim.pairs.closest import FACE, closest
from adjsim.pairs.nearest import SurfaceSearch


CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
FACES = np.array([face for a, b, c, d in SIDES for face in ((a, b, c), (a, c, d))])


@pytest.fixture
def sphere():
    """Return vertices (162, 3) and faces (320, 3) near the unit sphere."""
    mesh = ball_tets(4)
    rows, faces = np.unique(mesh.surface().faces, return_inverse=True)
    return mesh.points[rows], faces.reshape(-1, 3)


@pytest.mark.parametrize(
    ("y", "distance", "normal"),
    [
        ((0.5, 0.4, 1.3), 0.3, (0, 0, 1)),
        ((0.5, 0.4, 0.8), -0.2, (0, 0, 1)),
        ((1.3, 0.4, 1.4), 0.5, (0.6, 0, 0.8)),
        ((-2.0, -1.0, -2.0), 3.0, (-2 / 3, -1 / 3, -2 / 3)),
        ((0.5, 0.25, 1.0), 0.0, (0, 0, 1)),
        ((1.0, 0.3, 1.0), 0.0, (np.sqrt(0.5), 0, np.sqrt(0.5))),
        ((1.0, 1.0, 1.0), 0.0, np.full(3, np.sqrt(1 / 3))),
    ],
)
def test_distances_and_normals_of_a_cube_worked_by_hand(y, distance, normal):
    near = SurfaceSearch.of(FACES, CUBE).nearest(CUBE, np.array([y]))
    np.testing.assert_allclose(near.distances, [distance], rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(near.normals[0], normal, rtol=0, atol=4 * EPS)
    p = near.weights[0] @ CUBE[FACES[near.faces[0]]]
    np.testing.assert_allclose(p + near.distances[0] * near.normals[0], y, atol=8 * EPS)


def test_the_result_is_that_of_a_comparison_with_all_faces(sphere, rng):
    rest, faces = sphere
    search = SurfaceSearch.of(faces, rest)
    x = rest * [1.0, 0.3, 2.0] + 0.05 * rng.standard_normal(rest.shape)  # far from where it began
    points = 1.5 * rng.standard_normal((60, 3))
    near = search.nearest(x, points)
    for k, y in enumerate(points):
        pairs = [closest(float(FACE), vectors(x[corners] - y)) for corners in faces]
        squares = np.array([np.dot(pair.r, pair.r) for pair in pairs])
        # both faces at an edge have the same point of it, up to rounding
        assert squares[near.faces[k]] == pytest.approx(squares.min(), rel=16 * EPS)
        assert abs(near.distances[k]) == pytest.approx(np.sqrt(squares.min()), rel=16 * EPS)


def test_signs_are_those_of_inside_and_outside(sphere, rng):
    rest, faces = sphere
    points = rng.standard_normal((200, 3))
    points *= (rng.uniform(0.0, 2.0, 200) / np.linalg.norm(points, axis=1))[:, None]
    radius = np.linalg.norm(points, axis=1)
    distances = SurfaceSearch.of(faces, rest).nearest(rest, points).distances
    inner = np.linalg.norm(rest[faces].mean(axis=1), axis=1).min()
    assert (distances[radius > 1.0] > 0.0).all()
    assert (distances[radius < inner] < 0.0).all()


def test_ties_go_to_the_face_with_the_lowest_number():
    near = SurfaceSearch.of(FACES, CUBE).nearest(CUBE, np.full((1, 3), 0.5))
    assert near.faces[0] == 0
    # the middle is as far from other sides whatever their order
    near = SurfaceSearch.of(FACES[::-1], CUBE).nearest(CUBE, np.full((1, 3), 0.5))
    assert near.faces[0] == 0


def test_an_edge_along_a_seam_has_the_normals_of_both_sides(rng):
    # every face has corners of its own, as where the texture is cut along all edges
    x, faces = CUBE[FACES].reshape(-1, 3), np.arange(FACES.size).reshape(-1, 3)
    points = rng.uniform(-0.5, 1.5, (100, 3))
    whole = SurfaceSearch.of(FACES, CUBE).nearest(CUBE, points)
    cut = SurfaceSearch.of(faces, x).nearest(x, points)
    np.testing.assert_array_equal(cut.distances, whole.distances)
    np.testing.assert_array_equal(cut.normals, whole.normals)


def test_distances_have_the_slope_of_their_normals(sphere, rng):
    rest, faces = sphere
    search, x = SurfaceSearch.of(faces, rest), 0.3 * rest
    points = 0.4 * rng.standard_normal((300, 3))
    tan_x = rng.standard_normal(x.shape)
    near = search.nearest(x, points)
    tan = -np.einsum("jk,jc,jkc->j", near.weights, near.normals, tan_x[faces[near.faces]])

    def slope(h):
        pair = [search.nearest(x + s * h * tan_x, points) for s in (1, -1)]
        same = pair[0].faces == pair[1].faces
        same &= np.equal(*((each.weights == 0.0) for each in pair)).all(axis=1)  # and feature
        return (pair[0].distances - pair[1].distances) / (2 * h), same

    h = 1e-5  # rounding is 1e-11; edges are about 0.05 long, which leaves (h/0.05)^4 = 2e-15
    (first, _), (second, same) = slope(h), slope(2 * h)
    assert same.sum() > 200
    np.testing.assert_allclose((4 * first - second)[same] / 3, tan[same], rtol=0, atol=1e-9)
    assert np.abs(tan[same]).max() > 1.0


def test_a_point_that_was_not_measured_has_no_distance():
    near = SurfaceSearch.of(FACES, CUBE).nearest(CUBE, np.array([[np.nan] * 3, [0.5, 0.5, 2.0]]))
    assert near.distances.tolist() == [0.0, 1.0]
    assert not near.weights[0].any()
