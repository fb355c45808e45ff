import numpy as np
import pytest

from adjsim.meshes.shapes import SHAPES, shape


def winding_numbers(mesh, points):
    """How often the surface surrounds each point: the sum of solid angles over 4 pi.

    Van Oosterom & Strackee, IEEE Trans. Biomed. Eng. 30(2), 1983.
    """
    a = mesh.points[mesh.faces] - points[:, None, None]
    length = np.linalg.norm(a, axis=3)
    dots = [
        np.einsum("qfk,qfk->qf", a[:, :, i], a[:, :, j]) * length[:, :, k]
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1))
    ]
    angle = 2.0 * np.arctan2(np.linalg.det(a), length.prod(axis=2) + sum(dots))
    return angle.sum(axis=1) / (4.0 * np.pi)


def test_there_are_fourteen():
    assert len(SHAPES) == 14


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_closed_and_sound_with_at_most_250_points(name):
    mesh = shape(name)
    mesh.require_closed()
    mesh.require_sound()
    assert len(mesh.points) <= 250
    holes = {"torus": 1, "gear": 1}.get(name, 0)
    assert len(mesh.points) - len(mesh.edges) + len(mesh.faces) == 2 - 2 * holes
    # No point belongs to two fans of triangles: each has as many triangles as neighbours.
    assert (np.bincount(mesh.faces.ravel()) == np.bincount(mesh.edges.ravel())).all()


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_does_not_cut_itself(name, rng):
    mesh = shape(name)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    points = low + (high - low) * rng.uniform(-0.05, 1.05, (2000, 3))
    number = winding_numbers(mesh, points)
    # Whole numbers up to a few eps for each of at most 480 triangles.
    assert np.abs(number - number.round()).max() < 1e-12
    assert set(number.round()) == {0.0, 1.0}
    inside = number.round().mean()
    # Monte Carlo: three standard deviations.
    box = np.prod(1.1 * (high - low))
    assert mesh.volume == pytest.approx(inside * box, abs=3 * box * (inside / 2000) ** 0.5)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_centred_and_as_large_as_asked(name):
    mesh = shape(name, 0.3)
    assert np.abs(mesh.centroid).max() < 1e-15
    assert np.linalg.norm(mesh.points, axis=1).max() == pytest.approx(0.3, rel=1e-15)


def test_some_shapes_are_convex_and_some_are_not():
    def is_convex(mesh):
        x = mesh.points[mesh.faces]
        normal = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
        height = np.einsum("fk,pk->fp", normal, mesh.points)
        return (height <= np.einsum("fk,fk->f", normal, x[:, 0])[:, None] + 1e-12).all()

    convex = {name for name in SHAPES if is_convex(shape(name))}
    assert convex == {"cube", "sphere", "cylinder", "cone", "capsule"}


def test_the_cube_is_the_one_with_eight_points():
    mesh = shape("cube")
    assert (len(mesh.points), len(mesh.faces)) == (8, 12)
    assert np.abs(mesh.points) == pytest.approx(np.full((8, 3), 3**-0.5))


def test_an_unknown_shape_lists_those_there_are():
    with pytest.raises(ValueError, match=r"shape `cub`. Did you mean `cube`\? Known: cube, sphere"):
        shape("cub")


def test_a_radius_is_positive():
    with pytest.raises(ValueError, match="`radius` must be positive, got -1"):
        shape("cube", -1.0)
