import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from adjsim.meshes.triangle_mesh import TriangleMesh


def box():
    mesh = box_tets((2, 1, 1), (2.0, 1.0, 3.0), (5.0, 0.0, 0.0))
    return TriangleMesh(mesh.points, mesh.surface().faces)


def test_the_volume_of_a_box_is_that_of_a_box():
    # Coordinates up to 7: seven roundings of products up to 7 * 1 * 3.
    assert box().volume == pytest.approx(6.0, abs=100 * 21 * 2.3e-16)


def test_a_box_is_closed():
    box().require_closed()


def test_an_open_surface_is_refused_with_the_number_of_open_edges():
    surface = box()
    i, j, _ = sorted(surface.faces[-1].tolist())
    with pytest.raises(
        ValueError, match=rf"`surface` must be closed, but 3 of .* between points {i} and {j}"
    ):
        TriangleMesh(surface.points, surface.faces[:-1]).require_closed()


def test_a_fin_is_refused_as_not_manifold():
    surface = box()
    i, j, _ = surface.faces[0].tolist()
    points = np.vstack([surface.points, [[9.0, 9.0, 9.0]]])
    fin = [[i, j, len(points) - 1], [j, i, len(points) - 1]]
    with pytest.raises(ValueError, match=r"must be manifold, but 1 of its"):
        TriangleMesh(points, np.vstack([surface.faces, fin])).require_closed()


def test_a_triangle_that_is_turned_round_is_found():
    surface = box()
    faces = surface.faces.copy()
    faces[3] = faces[3, ::-1]
    with pytest.raises(ValueError, match="must agree on which side is outside, but 3 of its"):
        TriangleMesh(surface.points, faces).require_closed()


def test_a_surface_that_faces_inwards_is_refused():
    surface = box()
    with pytest.raises(ValueError, match="`surface` must face outwards, but it encloses -6"):
        TriangleMesh(surface.points, surface.faces[:, ::-1]).require_closed()


def test_a_triangle_that_names_a_corner_twice_is_refused():
    with pytest.raises(ValueError, match=r"three different corners, got \[1, 2, 1\] at row 1"):
        TriangleMesh(np.eye(3), [[0, 1, 2], [1, 2, 1]])


def test_an_index_out_of_range_is_refused():
    with pytest.raises(ValueError, match="`faces` must index the 3 points"):
        TriangleMesh(np.eye(3), [[0, 1, 3]])
