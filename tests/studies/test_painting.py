"""Bodies painted in one colour, shaded, or with a texture of the same mean colour."""

import numpy as np
import pytest

from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from render.orbit_camera import OrbitCamera
from render.scene import DirectionalLight, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies import config
from studies.painting import TEXELS, Kind, longitude_latitude, painted, tiled


COLOR = np.array([0.6, 0.4, 0.3])


def drawn(kind, light, rng):
    settings = config.builtin("appearance")
    mesh = shape("sphere")
    scene = Scene({"body": painted(kind, mesh, settings, rng)}, {"sun": DirectionalLight(light)})
    camera = OrbitCamera(4.0, 20.0, 0.0)
    return rasterize(scene, camera, SoftRasterizer(1e-3), {"body": mesh.points}, (24, 24))


def test_one_colour_does_not_know_the_light(rng):
    image = drawn(Kind.COLOR, (0.0, 1.0, 0.0), rng)
    assert np.array_equal(image, drawn(Kind.COLOR, (1.0, 0.0, 0.3), rng))
    middle = image[12, 12]
    # over black, and no more covered than alpha says
    np.testing.assert_allclose(middle[:3], middle[3] * COLOR, rtol=1e-12)


@pytest.mark.parametrize("kind", [Kind.SHADING, Kind.TEXTURE])
def test_shade_and_texture_depend_on_the_light(kind):
    above, beside = (
        drawn(kind, light, np.random.default_rng(3)) for light in ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    )
    assert np.abs(above - beside)[..., :3].max() > 0.1
    np.testing.assert_array_equal(above[..., 3], beside[..., 3])


def test_the_mean_of_a_texture_is_the_colour(rng):
    texels = tiled(COLOR, {"tiles": [3, 5], "contrast": 0.6}, rng).texels
    assert texels.shape == (3 * TEXELS, 5 * TEXELS, 3)
    np.testing.assert_allclose(texels.mean(axis=(0, 1)), COLOR, rtol=1e-13)
    tile = texels[:TEXELS, :TEXELS]
    assert np.array_equal(tile, np.broadcast_to(tile[0, 0], tile.shape))
    assert np.unique(texels[..., 0]).size == 15
    # a draw is off by 0.6 at most, and so is the mean of all
    assert np.abs(texels / COLOR - 1.0).max() <= 2.0 * 0.6


def test_the_same_seed_draws_the_same_texture():
    table = {"tiles": [3, 5], "contrast": 0.6}
    one, again = (tiled(COLOR, table, np.random.default_rng(2)).texels for _ in range(2))
    assert np.array_equal(one, again)


def test_longitude_and_latitude_are_those_of_a_globe():
    points = np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, -1.0, -1.0]])
    uv, rows = longitude_latitude(TriangleMesh(points, np.array([[0, 1, 2], [1, 3, 2]])))
    np.testing.assert_allclose(uv[rows[0]], [[0.0, 0.5], [0.25, 0.5], [0.125, 1.0]], atol=1e-15)
    # behind, at half a turn; the pole takes the mean of the longitudes of its face
    np.testing.assert_allclose(uv[rows[1]], [[0.25, 0.5], [0.5, 0.25], [0.375, 1.0]], atol=1e-15)


@pytest.mark.parametrize("name", ["sphere", "capsule", "torus", "banana"])
def test_no_face_of_a_round_body_spans_the_texture_backwards(name):
    mesh = shape(name)
    uv, rows = longitude_latitude(mesh)
    assert rows.shape == mesh.faces.shape
    assert np.ptp(uv[rows][..., 0], axis=1).max() <= 0.5 + 1e-12
    assert uv[:, 1].min() >= 0.0
    assert uv[:, 1].max() <= 1.0


def test_the_centre_itself_has_a_place_too():
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    mesh = TriangleMesh(points, np.array([[0, 1, 2]]))
    uv, _ = longitude_latitude(mesh)
    assert np.isfinite(uv).all()
