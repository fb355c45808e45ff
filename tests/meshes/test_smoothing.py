import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from adjsim.meshes.smoothing import THIN, least_heights, smoothed
from adjsim.meshes.tet_mesh import TetMesh


def test_the_least_height_of_a_corner_of_a_cube_is_that_over_its_oblique_face():
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert least_heights(corners) == pytest.approx(1.0 / np.sqrt(3.0))
    assert least_heights(2.0 * corners[[0, 2, 1, 3]]) == pytest.approx(-2.0 / np.sqrt(3.0))


@pytest.mark.parametrize("place", [(2, 2, 2), (2, 2, 4), (2, 4, 4)])
def test_thin_tetrahedra_in_a_box_get_thicker_and_it_stays_the_same_box(place):
    box = box_tets((4, 4, 4))
    node = int(np.flatnonzero((np.round(4.0 * box.points) == place).all(axis=1))[0])
    points = box.points.copy()
    points[node, 0] += 0.22  # of 0.25 to the next node, in the box, on its face or on its edge
    squeezed = TetMesh(points, box.tets)
    heights = least_heights(points[box.tets])
    assert heights.min() < 0.4 * THIN * np.median(heights)
    mended = smoothed(squeezed, 0.0)
    after = least_heights(mended.points[mended.tets])
    assert after.min() >= THIN * np.median(heights)
    assert mended.volumes.sum() == pytest.approx(1.0, abs=1e-14)
    assert (np.ptp(mended.points, axis=0) == 1.0).all()
    again = smoothed(squeezed, 0.0)
    assert np.array_equal(again.points, mended.points)


def test_a_node_of_the_surface_stays_within_its_play():
    box = box_tets((4, 4, 4))
    node = int(np.flatnonzero((np.round(4.0 * box.points) == (2, 2, 4)).all(axis=1))[0])
    points = box.points.copy()
    points[node, 2] -= 0.22  # a dent
    dented = TetMesh(points, box.tets)
    mended = smoothed(dented, 0.01)
    assert not np.array_equal(mended.points, points)
    a, b, c = np.moveaxis(points[dented.surface().faces], 1, 0)
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    moved = (mended.points - points)[dented.surface().faces]
    assert np.abs(np.einsum("fki,fi->fk", moved, normals)).max() <= 0.01 + 1e-12


def test_a_mesh_without_thin_tetrahedra_stays_as_it_is():
    box = box_tets((3, 3, 3))
    assert np.array_equal(smoothed(box, 0.1).points, box.points)
