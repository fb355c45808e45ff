import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from adjsim.meshes.sheets import sheet


@pytest.mark.parametrize("tets_per_cell", [5, 6])
@pytest.mark.parametrize("cells", [(1, 1, 1), (2, 3, 4), (5, 1, 2)])
def test_the_volumes_add_up_to_that_of_the_box(cells, tets_per_cell):
    size = (2.0, 0.3, 0.7)
    mesh = box_tets(cells, size, (0.1, -3.0, 2.0), tets_per_cell=tets_per_cell)
    assert mesh.n_tets == tets_per_cell * np.prod(cells)
    assert mesh.n_points == np.prod(np.add(cells, 1))
    # Each volume is off by a few eps times coordinate^3 <= 3^3, and so is the sum.
    assert mesh.volumes.sum() == pytest.approx(np.prod(size), rel=27 * 100 * 2.3e-16)


@pytest.mark.parametrize("tets_per_cell", [5, 6])
def test_every_face_is_shared_or_lies_on_the_box(tets_per_cell):
    cells = (3, 2, 4)
    mesh = box_tets(cells, (3.0, 2.0, 4.0), tets_per_cell=tets_per_cell)
    faces = mesh.surface().faces
    n_x, n_y, n_z = cells
    # Two triangles to each outer square: were any two neighbours cut along different
    # diagonals, their four triangles would count as boundary too.
    assert len(faces) == 4 * (n_x * n_y + n_y * n_z + n_z * n_x)
    corners = mesh.points[faces]
    on_a_side = np.zeros(len(faces), bool)
    for d in range(3):
        for value in (0.0, float(cells[d])):
            on_a_side |= (corners[:, :, d] == value).all(axis=1)
    assert on_a_side.all()


def test_points_are_numbered_with_z_fastest():
    mesh = box_tets((2, 3, 4), (2.0, 3.0, 4.0))
    i, j, k = 1, 2, 3
    assert mesh.points[(i * 4 + j) * 5 + k].tolist() == [1.0, 2.0, 3.0]


def test_the_ends_of_the_box_are_hit_exactly():
    mesh = box_tets((7, 3, 3), (0.7, 0.1, 0.3), (0.2, 0.0, -0.1))
    assert mesh.points.max(axis=0).tolist() == [0.2 + 0.7, 0.1, -0.1 + 0.3]
    assert mesh.points.min(axis=0).tolist() == [0.2, 0.0, -0.1]


@pytest.mark.parametrize("cells", [(0, 1, 1), (1, 2), (1.5, 1, 1), (1, 1, -2)])
def test_a_count_that_is_not_whole_and_positive_is_refused(cells):
    with pytest.raises(ValueError, match="`cells` must be three whole numbers"):
        box_tets(cells)


def test_a_size_of_zero_is_refused():
    with pytest.raises(ValueError, match="`size` must be positive, got 0"):
        box_tets((1, 1, 1), (1.0, 0.0, 1.0))


def test_seven_tetrahedra_to_a_cell_are_refused():
    with pytest.raises(ValueError, match="`tets_per_cell` must be 5 or 6, got 7"):
        box_tets((1, 1, 1), tets_per_cell=7)


def test_more_cells_than_there_is_memory_for_are_refused_before_any_is_cut():
    with pytest.raises(MemoryError, match=r"`cells` must .* 1,000,000,000,000,000,000 cells, \[10"):
        box_tets((10**6, 10**6, 10**6))
    with pytest.raises(MemoryError, match=r"`cells` must leave the mesh room .* Take fewer"):
        sheet((10**9, 10**8))
