"""Hinges of triangle meshes, by hand and by counting."""

import numpy as np
import pytest

from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet


def test_two_triangles_share_one_hinge():
    np.testing.assert_array_equal(mesh_hinges([[0, 1, 2], [2, 1, 3]]), [[0, 3, 1, 2]])
    # However the corners are turned, and whichever comes first; the first gives the side.
    np.testing.assert_array_equal(mesh_hinges([[2, 1, 3], [1, 2, 0]]), [[3, 0, 2, 1]])


def test_a_triangle_that_faces_the_other_way_is_hinged_all_the_same():
    np.testing.assert_array_equal(mesh_hinges([[0, 1, 2], [1, 2, 3]]), [[0, 3, 1, 2]])


@pytest.mark.parametrize(("nx", "ny"), [(1, 1), (2, 3), (5, 4)])
def test_a_sheet_has_a_hinge_per_edge_that_is_not_on_the_boundary(nx, ny):
    triangles = sheet((nx, ny)).faces
    hinges = mesh_hinges(triangles)
    n_edges = (3 * len(triangles) + 2 * (nx + ny)) // 2
    assert len(hinges) == n_edges - 2 * (nx + ny)
    corner_sets = {frozenset(t) for t in triangles.tolist()}
    oriented = {tuple(np.roll(t, k)) for t in triangles.tolist() for k in range(3)}
    for x1, x2, x3, x4 in hinges.tolist():
        assert {frozenset((x3, x4, x1)), frozenset((x4, x3, x2))} <= corner_sets
        assert (x3, x4, x1) in oriented
        assert (x4, x3, x2) in oriented


def test_one_triangle_has_no_hinge():
    assert mesh_hinges([[0, 1, 2]]).shape == (0, 4)


@pytest.mark.parametrize(
    ("triangles", "message"),
    [
        ([[0, 1, 2], [1, 0, 3], [0, 1, 4]],
         r"`triangles` must be manifold.* 3 share the edge between nodes 0 and 1\. Remove"),
        ([[0, 1, 2], [5, 6, 6]], r"`triangles` must have three .* got \[5, 6, 6\] at row 1"),
        ([[0, 1]], r"`triangles` must have shape \(n_triangles, 3\), got \(1, 2\)"),
        ([[0.0, 1.0, 2.0]], r"`triangles` must hold integers"),
    ],
)  # fmt: skip
def test_bad_meshes_are_named(triangles, message):
    with pytest.raises(ValueError, match=message):
        mesh_hinges(triangles)
