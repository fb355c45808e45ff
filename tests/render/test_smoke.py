"""Smoke as an image: by hand, and the transpose of its linear map."""

import numpy as np
import pytest

from adjoint.render.smoke import smoke_images_jvp, smoke_images_vjp
from render.smoke import smoke_images


EPS = np.finfo(np.float64).eps
COLOR, BACKGROUND = (0.9, 0.8, 0.1), (0.2, 0.3, 0.4)


def test_no_smoke_shows_the_background_and_dense_smoke_its_color():
    image = smoke_images([[0.0, 1.0], [0.5, 2.0]], COLOR, BACKGROUND)
    np.testing.assert_array_equal(image[0, 0], [*BACKGROUND, 0.0])
    np.testing.assert_allclose(image[0, 1], [*COLOR, 1.0], rtol=2 * EPS)
    np.testing.assert_allclose(image[1, 0], [0.55, 0.55, 0.25, 0.5], rtol=4 * EPS)
    assert image[1, 1, 3] == 2.0, "nothing is clamped"


def test_frames_are_drawn_one_by_one(rng):
    density = rng.random((3, 4, 5))
    images = smoke_images(density)
    assert images.shape == (3, 4, 5, 4)
    np.testing.assert_array_equal(images[1], smoke_images(density[1]))
    assert smoke_images(density.astype(np.float32)).dtype == np.float32


def test_tangent_is_the_difference_of_a_linear_map_and_the_adjoint_its_transpose(rng):
    density, tan = rng.standard_normal((2, 3, 4, 5))
    adj = rng.standard_normal((3, 4, 5, 4))
    moved = smoke_images(density + tan, COLOR, BACKGROUND)
    tan_images = smoke_images_jvp(tan, COLOR, BACKGROUND)
    still = smoke_images(density, COLOR, BACKGROUND)
    np.testing.assert_allclose(moved - still, tan_images, rtol=0, atol=10 * EPS)
    adj_density = smoke_images_vjp(adj, COLOR, BACKGROUND)
    assert adj_density.shape == density.shape
    np.testing.assert_allclose(
        np.sum(adj * tan_images), np.sum(adj_density * tan), rtol=0, atol=100 * EPS
    )


def test_what_is_no_density_is_refused():
    with pytest.raises(ValueError, match=r"`density` must have shape \(N_y, N_x\) or"):
        smoke_images(np.zeros(3))
    with pytest.raises(ValueError, match="`density` must be finite"):
        smoke_images([[0.0, np.nan]])
    with pytest.raises(ValueError, match=r"`color` must have shape \(3,\)"):
        smoke_images(np.zeros((2, 2)), color=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"`tan_density` must have shape"):
        smoke_images_jvp(np.zeros(3))
    with pytest.raises(ValueError, match="`adj_images` must have shape"):
        smoke_images_vjp(np.zeros((2, 2, 3)))
