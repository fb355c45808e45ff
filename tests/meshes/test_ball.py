import numpy as np
import pytest

from adjsim.meshes.ball import ball_tets, icosahedron


def quality(mesh):
    """Mean-ratio quality of each tetrahedron: 1 if regular, 0 if flat."""
    x = mesh.points[mesh.tets]
    edges = x[:, [1, 2, 3, 2, 3, 3]] - x[:, [0, 0, 0, 1, 1, 2]]
    return 12.0 * (3.0 * mesh.volumes) ** (2.0 / 3.0) / (edges**2).sum(axis=(1, 2))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_ball_has_the_points_and_tetrahedra_that_are_announced(n):
    mesh = ball_tets(n)
    assert mesh.n_points == 1 + sum(10 * m**2 + 2 for m in range(1, n + 1))
    assert mesh.n_tets == 20 * n**3
    surface = mesh.surface()
    # The outermost shell and nothing else: all faces inside fit together.
    assert (len(surface.nodes), len(surface.faces)) == (10 * n**2 + 2, 20 * n**2)
    assert np.linalg.norm(mesh.points[surface.nodes], axis=1) == pytest.approx(1.0, rel=1e-15)


def test_the_volume_nears_that_of_the_ball_with_the_square_of_the_shells():
    volumes = np.array([ball_tets(n, 0.5).volumes.sum() for n in (2, 4, 8)])
    errors = 1.0 - volumes / (4.0 / 3.0 * np.pi * 0.5**3)
    assert errors[-1] < 0.009
    assert np.log2(errors[:-1] / errors[1:]) == pytest.approx([2.0, 2.0], abs=0.15)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 12])
def test_refinement_makes_no_tetrahedron_flat(n):
    assert quality(ball_tets(n)).min() > 0.75


def test_points_are_numbered_from_the_centre_outwards():
    mesh = ball_tets(3, 2.0, (1.0, 2.0, 3.0))
    distance = np.linalg.norm(mesh.points - (1.0, 2.0, 3.0), axis=1)
    assert distance[0] == 0.0
    assert (np.diff(distance.round(12)) >= 0.0).all()
    assert np.unique(distance.round(12)) == pytest.approx([0.0, 2 / 3, 4 / 3, 2.0])


def test_the_icosahedron_is_regular_and_faces_outwards():
    corners, faces = icosahedron()
    x = corners[faces]
    sides = np.linalg.norm(x - np.roll(x, 1, axis=1), axis=2)
    # Edge of an icosahedron in the unit sphere: 1/sin(72 deg).
    assert sides == pytest.approx(1.0 / np.sin(np.deg2rad(72.0)), rel=1e-14)
    assert (np.linalg.det(x) > 0.0).all()


@pytest.mark.parametrize("shells", [0, 1.5, -2])
def test_a_number_of_shells_is_whole_and_positive(shells):
    with pytest.raises(ValueError, match="`shells` must be a whole number of at least 1, got"):
        ball_tets(shells)


def test_a_radius_is_positive():
    with pytest.raises(ValueError, match="`radius` must be positive, got 0"):
        ball_tets(2, 0.0)
