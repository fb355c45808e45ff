import numpy as np
import pytest

from adjsim.meshes.sheets import sheet, walker


def areas(mesh):
    """Area vectors of the triangles."""
    x = mesh.points[mesh.faces]
    return 0.5 * np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize("cells", [(1, 1), (2, 3), (5, 4)])
def test_the_areas_add_up_to_that_of_the_rectangle_and_face_upwards(cells, alternating):
    mesh = sheet(cells, (2.0, 0.3), (0.1, -3.0, 2.0), alternating=alternating)
    n_x, n_y = cells
    assert mesh.points.shape == ((n_x + 1) * (n_y + 1), 3)
    assert mesh.faces.shape == (2 * n_x * n_y, 3)
    assert (areas(mesh)[:, 2] > 0.0).all()
    # Coordinates up to 3.1: each area is off by a few eps times 3^2.
    assert areas(mesh).sum(axis=0) == pytest.approx([0.0, 0.0, 0.6], abs=100 * 9 * 2.3e-16)
    mesh.require_sound()


def test_every_edge_is_shared_or_lies_on_the_rim():
    mesh = sheet((3, 4))
    # Euler: V - E + F = 1; the rim has 2 (3 + 4) edges.
    assert len(mesh.points) - len(mesh.edges) + len(mesh.faces) == 1
    assert 2 * len(mesh.edges) - 3 * len(mesh.faces) == 14


def test_points_are_numbered_with_y_fastest_and_the_ends_are_hit():
    mesh = sheet((2, 3), (2.0, 3.0), (1.0, 0.0, 5.0))
    assert mesh.points[1 * 4 + 2].tolist() == [2.0, 2.0, 5.0]
    assert mesh.points[-1].tolist() == [3.0, 3.0, 5.0]


def test_diagonals_alternate_or_not():
    assert sheet((1, 2)).faces.tolist() == [[0, 3, 4], [0, 4, 1], [1, 4, 2], [4, 5, 2]]
    assert sheet((1, 2), alternating=False).faces.tolist() == [
        [0, 3, 4], [0, 4, 1], [1, 4, 5], [1, 5, 2],
    ]  # fmt: skip


def test_the_walker_has_the_size_of_the_one_in_the_paper():
    mesh = walker()
    assert (len(mesh.points), len(mesh.faces)) == (74, 104)
    assert mesh.points.min(axis=0) == pytest.approx([-1.0, 0.057, 0.0], abs=1e-15)
    assert mesh.points.max(axis=0) == pytest.approx([1.0, 1.835, 0.0], abs=5e-4)
    # One piece without holes, whose rim has 42 edges.
    assert len(mesh.points) - len(mesh.edges) + len(mesh.faces) == 1
    assert 2 * len(mesh.edges) - 3 * len(mesh.faces) == 42
    mesh.require_sound()
    # 52 square cells of 2/9.
    assert areas(mesh).sum(axis=0) == pytest.approx([0.0, 0.0, 52 * 4 / 81], rel=1e-14)


def test_the_walker_stands_on_two_feet_of_three_points_each():
    mesh = walker(1.0, (3.0, 0.0, 1.0))
    on_the_ground = mesh.points[mesh.points[:, 1] == 0.0]
    assert 18 * (on_the_ground[:, 0] - 3.0) == pytest.approx([-9, -7, -5, 5, 7, 9])
    assert (mesh.points[:, 2] == 1.0).all()


@pytest.mark.parametrize("cells", [(0, 1), (1, 2, 3), (1.5, 1)])
def test_a_count_that_is_not_whole_and_positive_is_refused(cells):
    with pytest.raises(ValueError, match="`cells` must be two whole numbers"):
        sheet(cells)


def test_a_length_of_zero_is_refused():
    with pytest.raises(ValueError, match="`size` must be positive, got 0"):
        sheet((1, 1), (1.0, 0.0))
    with pytest.raises(ValueError, match="`width` must be positive, got -1"):
        walker(-1.0)
