import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from adjsim.meshes.tet_mesh import TetMesh


POINTS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_a_corner_tetrahedron_has_a_sixth_of_the_cube():
    assert TetMesh(POINTS, [[0, 1, 2, 3]]).volumes.tolist() == [1.0 / 6.0]


def test_the_surface_faces_outwards():
    mesh = box_tets((3, 2, 2), (3.0, 1.0, 2.0), (0.5, 0.0, 0.0))
    x = mesh.points[mesh.surface().faces]
    # Divergence theorem: the enclosed volume is positive only if the faces look outwards.
    volume = np.einsum("ij,ij->i", x[:, 0], np.cross(x[:, 1], x[:, 2])).sum() / 6.0
    assert volume == pytest.approx(6.0, rel=1e-13)
    middle = mesh.points.mean(axis=0)
    normals = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    assert (np.einsum("ij,ij->i", normals, x.mean(axis=1) - middle) > 0).all()


def test_the_surface_lists_the_points_on_it_and_only_these():
    mesh = box_tets((2, 2, 2))
    surface = mesh.surface()
    assert np.flatnonzero((np.abs(mesh.points - 0.5) < 0.4).all(axis=1)).tolist() == [13]
    assert np.setdiff1d(np.arange(27), surface.nodes).tolist() == [13]
    assert (surface.nodes[surface.local_faces] == surface.faces).all()


def test_the_first_inverted_tetrahedron_is_named():
    points = np.vstack([POINTS, POINTS + 5.0])
    with pytest.raises(ValueError, match=r"1 of 2 do not: tetrahedron 1, .* is inverted"):
        TetMesh(points, [[0, 1, 2, 3], [4, 6, 5, 7]])


def test_a_flat_tetrahedron_is_named():
    points = POINTS.copy()
    points[3] = (0.5, 0.5, 1e-15)
    with pytest.raises(ValueError, match=r"tetrahedron 0, nodes \[0, 1, 2, 3\], is flat"):
        TetMesh(points, [[0, 1, 2, 3]])


def test_a_point_that_belongs_to_no_tetrahedron_is_named():
    with pytest.raises(ValueError, match="1 of 5 do not, the first is point 4"):
        TetMesh(np.vstack([POINTS, [[2.0, 2.0, 2.0]]]), [[0, 1, 2, 3]])


@pytest.mark.parametrize("bad", [-1, 4])
def test_an_index_out_of_range_is_named(bad):
    with pytest.raises(ValueError, match=r"`tets` must index the 4 points, 0 to 3, got .* row 0"):
        TetMesh(POINTS, [[0, 1, 2, bad]])


def test_indices_must_be_whole():
    with pytest.raises(ValueError, match="`tets` must hold integers, got float64"):
        TetMesh(POINTS, [[0.0, 1.0, 2.0, 3.0]])


def test_a_mesh_without_tetrahedra_is_refused():
    with pytest.raises(ValueError, match="`tets` must not be empty"):
        TetMesh(POINTS, np.empty((0, 4), int))


def test_points_must_be_finite():
    points = POINTS.copy()
    points[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"`points` must be finite, got nan at index \(2, 1\)"):
        TetMesh(points, [[0, 1, 2, 3]])


def test_overlapping_tetrahedra_have_no_surface():
    points = np.vstack([POINTS, [[0.0, 0.0, 2.0]], [[0.0, 0.0, 3.0]]])
    mesh = TetMesh(points, [[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, 5]])
    with pytest.raises(ValueError, match=r"got 3 at the face \[0, 1, 2\]"):
        mesh.surface()
