import numpy as np
import pytest

from adjoint.render.raster.supersampling import average_vjp, repeat_vjp
from adjoint.render.soft_raster import record_images
from render.blending import DIBR, Hard, Over, Softmax
from render.raster.supersampling import average, repeat
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from tests.render.scenes import camera, fitted, moved, reference, soft, two_tetrahedra
from tests.render.transposes import check_transposes


BLENDS = [Over(), Softmax(), DIBR(2e-3), Hard()]


def over_an_image(rng, size, **changes):
    """A camera and a rasterizer with a background image."""
    return fitted(size, background=rng.random((*size, 3)), **changes)


@pytest.mark.parametrize("k", [1, 3])
def test_the_adjoints_of_mean_and_repetition_are_their_transposes(rng, k):
    samples, pixels = rng.normal(size=(4 * k, 5 * k, 2)), rng.normal(size=(4, 5, 2))
    pulled = np.sum(average_vjp(pixels, k) * samples)
    assert np.sum(average(samples, k) * pixels) == pytest.approx(pulled, rel=1e-13)
    pulled = np.sum(repeat_vjp(samples, k) * pixels)
    assert np.sum(repeat(pixels, k) * samples) == pytest.approx(pulled, rel=1e-13)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("size", [(8, 10), (1, 30), (30, 1), (1, 1)])
def test_samples_over_an_image_look_as_in_the_reference(rng, blend, size):
    scene, vertices = two_tetrahedra(rng)
    view, raster = over_an_image(rng, size, blend=blend, gamma=1e-2, supersample=2)
    image = rasterize(scene, view, raster, vertices, size)
    expected = reference(scene, view, raster, vertices, size)
    assert expected[..., 3].mean() > 0.25
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


def test_a_background_image_of_one_colour_is_that_colour(rng):
    scene, vertices = two_tetrahedra(rng)
    behind = np.broadcast_to((0.1, 0.2, 0.3), (6, 9, 3))
    plain = rasterize(scene, camera(), soft(), vertices, (6, 9))
    assert 0.1 < plain[..., 3].mean() < 0.9
    image = rasterize(scene, camera(), soft(background=behind), vertices, (6, 9))
    np.testing.assert_array_equal(image, plain)


def test_a_hard_edge_between_pixels_has_the_share_of_samples_it_covers():
    # The square covers world x from -1 to 0.1 at depth 3 with a view of half width 3.
    square = np.array([[-1, -1, 0], [0.1, -1, 0], [0.1, 1, 0], [-1, 1, 0.0]])
    scene = Scene({"square": Mesh([[0, 1, 2], [0, 2, 3]])})
    view = camera(eye=(0, 0, 3.0), target=(0, 0, 0), up=(0, 1, 0), fov_y=90.0)
    raster = SoftRasterizer(blend=Hard(), supersample=4)
    image = rasterize(scene, view, raster, {"square": square}, (6, 6))
    # A pixel is one unit wide; a column of samples at 0.125 is beyond 0.1: none of column 3.
    np.testing.assert_array_equal(image[2:4, 2, 3], 1.0)
    np.testing.assert_array_equal(image[:, 3, 3], 0.0)
    square[1:3, 0] = 0.4  # two of the four columns, at 0.125 and 0.375
    image = rasterize(scene, view, raster, {"square": square}, (6, 6))
    np.testing.assert_array_equal(image[2:4, 3, 3], 0.5)


@pytest.mark.parametrize("blend", BLENDS)
def test_samples_over_an_image_have_twins_that_are_transposes(rng, blend):
    scene, vertices = two_tetrahedra(rng)
    size = (23, 31)  # 69 x 93 samples: nine tiles
    view, raster = over_an_image(rng, size, blend=blend, gamma=0.3, epsilon=0.9, supersample=3)
    args = (scene, view, raster, vertices, size)
    seen = rasterize(*args)[..., 3] > 0.01
    assert seen[:10, :10].any()
    assert seen[11:, 11:].any()
    assert check_transposes(rng, args)["rasterizer.background"].shape == (*size, 3)


def test_the_adjoint_of_a_background_image_is_its_derivative(rng):
    # Linear in the background, so differences have the error eps/h = 1e-10 alone.
    scene, vertices = two_tetrahedra(rng)
    args = (scene, *over_an_image(rng, (6, 5), supersample=2), vertices)
    record = record_images(*args, (6, 5))
    adj = rng.normal(size=record.images.shape)
    tangent = {"rasterizer.background": rng.normal(size=(6, 5, 3))}
    ends = [np.sum(adj * rasterize(*moved(args, tangent, h), (6, 5))) for h in (1e-5, -1e-5)]
    pulled = record.vjp(adj)["rasterizer.background"] * tangent["rasterizer.background"]
    assert np.sum(pulled) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-8)
