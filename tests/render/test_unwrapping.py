"""Texture coordinates from six sides: where faces lie, which way up, and to what scale."""

import numpy as np
import pytest

from adjsim.meshes.shapes import shape
from render.unwrapping import COLUMNS, ROWS, box_uv


def corners(mesh, **settings):
    uv, uv_faces = box_uv(mesh.points, mesh.faces, **settings)
    return uv[uv_faces]


def normals(mesh):
    x = mesh.points[mesh.faces]
    return np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])


def areas(uv):
    """Signed areas in units of a field."""
    field = (COLUMNS, ROWS)
    a, b = (uv[:, k] * field - uv[:, 0] * field for k in (1, 2))
    return 0.5 * (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])


def test_each_face_of_a_cube_lies_on_the_field_of_its_side():
    cube = shape("cube")
    uv, normal = corners(cube), normals(cube)
    axis = np.abs(normal).argmax(axis=1)
    is_behind = normal[np.arange(len(axis)), axis] < 0
    middle = uv.mean(axis=1)
    np.testing.assert_array_equal(np.floor(COLUMNS * middle[:, 0]), axis)
    np.testing.assert_array_equal(np.floor(ROWS * middle[:, 1]), 1 - is_behind)


def test_the_margin_stays_empty_around_a_cube():
    fields = corners(shape("cube"), margin=0.1) * (COLUMNS, ROWS) % 1.0
    np.testing.assert_allclose(np.minimum(fields, 1.0 - fields), 0.1, rtol=1e-12)


@pytest.mark.parametrize("name", ["sphere", "dog", "gear"])
def test_faces_are_seen_from_outside_with_their_area_along_the_side(name):
    mesh = shape(name)
    scale = (1.0 - 2.0 * 0.03) / np.ptp(mesh.points, axis=0).max()
    # What is seen of a face along an axis is that part of half of edge x edge.
    along = 0.5 * np.abs(normals(mesh)).max(axis=1)
    np.testing.assert_allclose(areas(corners(mesh)), scale**2 * along, rtol=1e-9)


def test_up_is_up_on_the_sides():
    mesh = shape("sphere")
    uv, normal = corners(mesh), normals(mesh)
    on_side = np.abs(normal).argmax(axis=1) != 1
    height = mesh.points[mesh.faces][on_side][..., 1]
    v = uv[on_side][..., 1] * ROWS % 1.0
    slope = (0.5 - 0.03) * 2.0 / np.ptp(mesh.points, axis=0).max()
    np.testing.assert_allclose(v - 0.5, slope * height, atol=1e-12)


def test_points_of_one_side_share_their_place():
    mesh = shape("sphere")
    uv, uv_faces = box_uv(mesh.points, mesh.faces)
    assert len(mesh.points) < len(uv) < 3 * len(mesh.faces)
    assert uv_faces.shape == mesh.faces.shape
    assert (uv > 0.0).all()
    assert (uv < 1.0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"margin": 0.5}, r"`margin` must be in \[0, 0.5\), got 0.5"),
        ({"margin": -0.1}, r"`margin` must be in \[0, 0.5\), got -0.1"),
        ({"points": np.zeros((4, 2))}, r"`points` must have shape \(n_points, 3\)"),
        ({"faces": [[0, 1, 9]]}, "`faces` must"),
    ],
)
def test_bad_input_is_named(change, message):
    given = {"points": np.eye(4, 3), "faces": [[0, 1, 2]], **change}
    with pytest.raises(ValueError, match=message):
        box_uv(**given)
