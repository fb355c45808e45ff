import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
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
    i, j = sorted(surface.faces[0, :2].tolist())
    n = len(surface.points)
    points = np.vstack([surface.points, [[9.0, 9.0, 9.0], [9.0, 9.0, 8.0]]])
    fin = [[i, j, n], [j, i, n + 1], [i, n, n + 1], [j, n + 1, n]]
    with pytest.raises(ValueError, match=rf"must be manifold, but 1 of its .* {i} and {j}"):
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


def test_a_triangle_that_is_there_twice_is_named_with_its_double():
    surface = box()
    again = surface.faces[5, [1, 0, 2]]
    mesh = TriangleMesh(surface.points, np.vstack([surface.faces, [again]]))
    n = len(surface.faces)
    for check in (mesh.require_closed, mesh.require_sound):
        with pytest.raises(ValueError, match=f"triangle {n} has the corners of triangle 5"):
            check()


def test_a_triangle_without_area_is_named():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 0, 0], [1, 1, 0]])
    mesh = TriangleMesh(points, [[0, 1, 2], [1, 4, 2], [0, 1, 3]])
    with pytest.raises(ValueError, match=r"1 of 3 have none: .* triangle 2, points \[0, 1, 3\]"):
        mesh.require_sound()
    # The tolerance is relative: a small triangle is not a flat one.
    TriangleMesh(1e-9 * points[:3], [[0, 1, 2]]).require_sound()


def test_a_point_that_no_triangle_uses_is_named():
    mesh = TriangleMesh(np.vstack([np.eye(3), [[4.0, 4.0, 4.0]]]), [[0, 1, 2]])
    with pytest.raises(ValueError, match=r"`cloth` must use all its points, but 1 of 4 .* point 3"):
        mesh.require_sound("cloth")


def test_the_centroid_is_that_of_the_solid_not_of_the_points():
    # The box of six by its volume, whatever points lie on it: 5 + 1, 1/2, 3/2.
    assert box().centroid == pytest.approx([6.0, 0.5, 1.5], rel=1e-14)
    tip = np.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]])
    cone = TriangleMesh(tip, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    assert cone.centroid == pytest.approx([1.0, 1.0, 1.0], rel=1e-14)


def test_each_edge_is_listed_once():
    assert TriangleMesh(np.eye(4, 3), [[0, 1, 2], [2, 1, 3]]).edges.tolist() == [
        [0, 1], [0, 2], [1, 2], [1, 3], [2, 3],
    ]  # fmt: skip


def test_a_closed_mesh_far_away_keeps_its_volume():
    cube = shape("cube")
    far = TriangleMesh(cube.points + 1e6, cube.faces)
    far.require_closed()
    # Points lose eps 1e6 = 2e-10 each, on a cube about 1 m wide.
    assert far.volume == pytest.approx(cube.volume, rel=1e-8)
