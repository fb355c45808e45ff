"""Faces in the colours of their gradients."""

import numpy as np
import pytest

from adjoint.render.gradient_pictures import (
    SCALE,
    face_gradients,
    gradient_colors,
    gradient_picture,
)
from render.camera import Camera


# Two triangles that share an edge, side by side.
FACES = np.array([[0, 1, 2], [1, 3, 2]])
X = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
CAMERA = Camera((0.0, 0.0, 4.0), (0.0, 0.0, 0.0), fov_y=45.0)


def test_a_face_feels_the_root_mean_square_of_its_corners():
    adj = np.zeros((4, 3))
    adj[0] = 3.0, 4.0, 0.0
    adj[1] = 0.0, 0.0, 1.0
    expected = [np.sqrt((25.0 + 1.0) / 3.0), np.sqrt(1.0 / 3.0)]
    np.testing.assert_allclose(face_gradients(FACES, adj), expected, rtol=1e-15)


def test_the_gradients_of_frames_add_up(rng):
    adj = rng.normal(size=(3, 4, 3))
    together = face_gradients(FACES, adj.sum(axis=0))
    np.testing.assert_allclose(face_gradients(FACES, adj), together, rtol=1e-14)


def test_the_scale_goes_by_the_root_of_the_gradient():
    colors = gradient_colors([0.0, 0.25, 1.0, 9.0], largest=1.0)
    np.testing.assert_allclose(colors[[0, 2, 3]], SCALE[[0, -1, -1]], atol=1e-15)
    np.testing.assert_allclose(colors[1], SCALE[2], atol=1e-15)  # half-way
    assert np.array_equal(gradient_colors(np.zeros(2)), SCALE[[0, 0]])


def test_the_picture_shows_each_face_in_its_colour():
    adj = np.zeros((4, 3))
    adj[0, 0] = 1.0  # of the lower left face alone
    image = gradient_picture({"a": FACES}, CAMERA, {"a": X}, {"a": adj}, (41, 41))
    np.testing.assert_allclose(image[25, 15, :3], SCALE[-1], atol=1e-6)
    np.testing.assert_allclose(image[15, 25, :3], SCALE[0], atol=1e-6)
    np.testing.assert_allclose(image[0, 0], (1.0, 1.0, 1.0, 0.0), atol=1e-6)
    nothing = gradient_picture({"a": FACES}, CAMERA, {"a": X}, {"a": 0.0 * adj}, (41, 41))
    np.testing.assert_allclose(nothing[25, 15, :3], SCALE[0], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: face_gradients([[0, 1, 4]], np.zeros((4, 3))), "`faces`"),
        (lambda: face_gradients(FACES, np.zeros((4, 2))), r"`adj_vertices` must have shape"),
        (lambda: gradient_colors([-1.0]), "`gradients` must not be negative"),
        (lambda: gradient_colors([1.0], 0.0), "`largest` must be positive"),
        (
            lambda: gradient_picture({"a": FACES}, CAMERA, {"a": X}, {"b": X}, (4, 4)),
            "object without gradient in `adj_vertices` `a`",
        ),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
