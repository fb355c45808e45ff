import numpy as np
import pytest

from adjsim.meshes.embedding import embedding
from adjsim.meshes.grid import box_tets


MESH = box_tets((3, 2, 2), (3.0, 2.0, 1.0))


def test_points_inside_and_slightly_outside_are_carried_by_an_affine_map(rng):
    points = rng.uniform(-0.05, 1.05, (200, 3)) * (3.0, 2.0, 1.0)
    S = embedding(MESH, points, max_distance=0.1)
    A, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    # Barycentric interpolation is exact for affine maps; weights are below 2 here.
    assert np.abs(S @ (MESH.points @ A.T + b) - (points @ A.T + b)).max() < 1e-13
    assert np.abs(S.sum(axis=1) - 1.0).max() < 1e-14
    assert np.diff(S.indptr).max() <= 4


def test_the_nodes_of_the_mesh_are_carried_by_themselves():
    S = embedding(MESH, MESH.points).toarray()
    assert np.abs(S - np.eye(MESH.n_points)).max() < 1e-14


def test_weights_are_not_negative_inside(rng):
    points = rng.uniform(0.0, 1.0, (200, 3)) * (3.0, 2.0, 1.0)
    # VTK takes a point for inside a tetrahedron down to weights of -1e-3.
    assert embedding(MESH, points).data.min() >= -1e-3


def test_a_single_point_is_carried():
    S = embedding(MESH, [[0.5, 0.5, 0.5]])
    assert (S @ MESH.points)[0] == pytest.approx([0.5, 0.5, 0.5], rel=1e-14)


def test_a_point_far_outside_is_named():
    with pytest.raises(ValueError, match=r"within 0\.0748 of it, but point 1 is 1 outside"):
        embedding(MESH, [[0.5, 0.5, 0.5], [4.0, 1.0, 0.5]])
