"""The renderer draws what the slow reference draws, to rounding.

Tolerance: D has the error of y = d^2/sigma, some 1e-16/sigma times the size of the screen,
that is 1e-13 for sigma = 1e-3; with Softmax, z~/gamma adds eps z~/gamma = 2e-14 at 1e-2.
"""

import numpy as np
import pytest

from render.blending import DIBR, Hard, Over, Softmax
from render.lenses import Orthographic
from render.scene import DirectionalLight, Mesh, Scene, SphericalHarmonics
from render.soft_raster import rasterize
from tests.reference.soft_raster import reference_image
from tests.render.scenes import (
    camera,
    fitted,
    glossy,
    jumping,
    plain,
    reference,
    rounded,
    soft,
    tetrahedron,
    textured,
    two_tetrahedra,
)


BLENDS = [Over(), Softmax(), DIBR(2e-3), Hard()]


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("size", [(24, 30), (37, 20), (1, 60), (60, 1), (1, 1)])
@pytest.mark.parametrize("cull", [False, True])
def test_two_objects_look_as_in_the_reference(rng, blend, size, cull):
    scene, vertices = two_tetrahedra(rng)
    view, raster = fitted(size, blend=blend, cull=cull, gamma=1e-2)
    image = rasterize(scene, view, raster, vertices, size)
    expected = reference(scene, view, raster, vertices, size)
    assert expected[..., 3].mean() > 0.25
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("blend", BLENDS)
def test_an_orthographic_view_looks_as_in_the_reference(rng, blend):
    scene, vertices = two_tetrahedra(rng)
    view, raster = camera(fov_y=None, lens=Orthographic(2.4)), soft(blend=blend, gamma=1e-2)
    image = rasterize(scene, view, raster, vertices, (24, 30))
    assert image[..., 3].max() > 0.9
    expected = reference(scene, view, raster, vertices, (24, 30))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


def test_light_in_spherical_harmonics_looks_as_in_the_reference(rng):
    scene, vertices = two_tetrahedra(rng)
    scene = Scene(scene.objects, {"sky": SphericalHarmonics(rng.uniform(-0.3, 0.5, (9, 3)))})
    image = rasterize(scene, camera(), soft(), vertices, (24, 30))
    expected = reference(scene, camera(), soft(), vertices, (24, 30))
    assert np.ptp(expected[..., :3]) > 0.5
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("in_sky", [False, True])
def test_smooth_normals_look_as_in_the_reference(rng, blend, in_sky):
    scene, vertices = two_tetrahedra(rng)
    sky = {"sky": SphericalHarmonics(rng.uniform(-0.3, 0.5, (9, 3)))}
    scene = Scene(scene.objects, sky if in_sky else scene.lights)
    whole = rounded(scene)
    half = Scene({**scene.objects, "left": whole.objects["left"]}, scene.lights)
    raster = soft(blend=blend, gamma=1e-2)
    flat = rasterize(scene, camera(), raster, vertices, (24, 30))
    for smooth_scene in (whole, half):
        image = rasterize(smooth_scene, camera(), raster, vertices, (24, 30))
        expected = reference(smooth_scene, camera(), raster, vertices, (24, 30))
        np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)
        assert np.abs(image - flat).max() > 0.05


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("lens", [{}, {"fov_y": None, "lens": Orthographic(2.4)}])
def test_highlights_look_as_in_the_reference(rng, blend, lens):
    scene, vertices = two_tetrahedra(rng)
    raster, view = soft(blend=blend, gamma=1e-2), camera(**lens)
    image = rasterize(glossy(scene), view, raster, vertices, (24, 30))
    expected = reference(glossy(scene), view, raster, vertices, (24, 30))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)
    assert np.abs(image - rasterize(scene, view, raster, vertices, (24, 30))).max() > 0.05


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("lens", [{}, {"fov_y": None, "lens": Orthographic(2.4)}])
def test_textures_look_as_in_the_reference(rng, blend, lens):
    scene, vertices = two_tetrahedra(rng)
    raster, view = soft(blend=blend, gamma=1e-2), camera(**lens)
    image = rasterize(textured(scene), view, raster, vertices, (24, 30))
    expected = reference(textured(scene), view, raster, vertices, (24, 30))
    assert np.ptp(expected[..., :3]) > 0.5
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


def test_colours_of_corners_look_as_in_the_reference(rng):
    scene, vertices = two_tetrahedra(rng)
    for look in (jumping(scene), jumping(glossy(scene))):
        image = rasterize(look, camera(), soft(), vertices, (24, 30))
        expected = reference(look, camera(), soft(), vertices, (24, 30))
        np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("blend", BLENDS)
def test_sharp_edges_look_as_in_the_reference(rng, blend):
    scene, vertices = two_tetrahedra(rng)
    raster = soft(blend=blend, sigma=1e-5, gamma=1e-4)
    image = rasterize(scene, camera(), raster, vertices, (40, 40))
    assert 0.05 < image[..., 3].mean() < 0.95
    expected = reference(scene, camera(), raster, vertices, (40, 40))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("blend", BLENDS)
def test_faces_across_near_and_far_look_as_in_the_reference(rng, blend):
    scene, vertices = two_tetrahedra(rng)
    view = camera(near=3.1, far=3.9)
    raster = soft(blend=blend, gamma=1e-2)
    image = rasterize(scene, view, raster, vertices, (24, 24))
    expected = reference(scene, view, raster, vertices, (24, 24))
    whole = rasterize(scene, camera(), raster, vertices, (24, 24))
    assert 0 < image[..., 3].sum() < 0.9 * whole[..., 3].sum()
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("blend", BLENDS)
def test_a_hundred_faces_over_one_another_look_as_in_the_reference(rng, blend):
    n = 100
    corners = rng.normal(scale=0.7, size=(n, 3, 3)) * [1.0, 1.0, 0.5]
    faces = np.arange(3 * n).reshape(n, 3)
    scene = Scene(
        {"cloud": Mesh(faces, face_colors=rng.random((n, 3)))},
        {"sun": DirectionalLight((0.2, 0.5, 1.0))},
    )
    vertices = {"cloud": corners.reshape(-1, 3)}
    raster = soft(blend=blend, sigma=1e-2, gamma=1e-2)
    image = rasterize(scene, camera(), raster, vertices, (12, 15))
    assert image[..., 3].mean() > 0.5
    expected = reference(scene, camera(), raster, vertices, (12, 15))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


def test_ties_in_depth_go_to_the_face_named_first_as_in_the_reference(rng):
    colors = {"red": (1.0, 0.0, 0.0), "green": (0.0, 1.0, 0.0), "blue": (0.0, 0.0, 1.0)}
    vertices = {name: np.array([[-1, -1, 0], [1, -1, 0], [0, 1, 0.0]]) for name in colors}
    scene = Scene({n: Mesh([[0, 1, 2]], face_colors=[c]) for n, c in colors.items()})
    image = rasterize(scene, camera(), soft(), vertices, (16, 16))
    expected = reference(scene, camera(), soft(), vertices, (16, 16))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)
    assert image[8, 8, 0] > image[8, 8, 1] + 0.1  # red hides green, though neither is opaque

    # Around a fan, faces clipped to the corner they share tie too, to the bit.
    angle = np.linspace(0.0, 1.2, 8)
    fan = np.concatenate([[[0, 0, 0]], np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)])
    faces = [[0, k, k + 1] for k in range(1, 8)]
    scene = Scene({"fan": Mesh(faces, face_colors=rng.random((7, 3)))})
    image = rasterize(scene, camera(), soft(sigma=1e-2), {"fan": fan}, (24, 24))
    assert image[..., 3].mean() > 0.05
    expected = reference(scene, camera(), soft(sigma=1e-2), {"fan": fan}, (24, 24))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


def test_an_edge_on_face_and_a_sliver_look_as_in_the_reference(rng):
    edge_on = np.array([[0, -1, 0], [0, 1, 0], [0, 0, 1.0]])
    sliver = np.array([[-1, -1, 0], [1, 1, 0], [1e-9, 2e-9, 0.3]])
    scene = Scene(
        {"edge": Mesh([[0, 1, 2]]), "sliver": Mesh([[0, 1, 2]], vertex_colors=rng.random((3, 3)))}
    )
    view = camera(eye=(0, 0, 4), target=(0, 0, 0), up=(0, 1, 0))
    vertices = {"edge": edge_on, "sliver": sliver}
    image = rasterize(scene, view, soft(), vertices, (20, 20))
    assert np.isfinite(image).all()
    raster = soft()
    white = Scene({"sliver": scene.objects["sliver"]})
    only = {"sliver": sliver}
    assert image[..., 3].max() > 0.4
    np.testing.assert_array_equal(image, rasterize(white, view, raster, only, (20, 20)))
    expected = reference_image(*plain(white, view, raster, only), (20, 20), np.longdouble)
    np.testing.assert_allclose(image[..., 3], expected[..., 3].astype(float), rtol=0, atol=1e-12)
    # Its height on the screen is 5e-10; barycentrics have an error of eps over that.
    np.testing.assert_allclose(image, expected.astype(float), rtol=0, atol=5e-7)


def test_faces_behind_the_camera_are_not_drawn(rng):
    scene, vertices = two_tetrahedra(rng)
    vertices["right"] = tetrahedron(rng, [0.3, 0.4, 3.6])  # around the eye
    image = rasterize(scene, camera(), soft(), vertices, (20, 20))
    assert 0.1 < image[..., 3].mean() < 0.5
    expected = reference(scene, camera(), soft(), vertices, (20, 20))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)
