"""Faces without area on the screen, but for rounding and underflow, are not drawn."""

from itertools import product

import numpy as np
import pytest

from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjsim.rotations import rotation_matrix
from render.camera import Camera
from render.lenses import Orthographic
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.soft_raster import SoftRasterizer


CORNERS = np.array(list(product((-0.5, 0.5), repeat=3)))
FACES = [
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
]  # fmt: skip
COLORS = np.linspace(0.0, 1.0, 24).reshape(8, 3)


def picture_and_gradient(R, dtype):
    """A cube seen along a face normal, cube and camera turned by R; 4 of its sides are edge-on."""
    scene = Scene({"cube": Mesh(FACES, vertex_colors=COLORS, material=Material(1.0, 0.0))})
    view = Camera(R @ [0.0, 0.0, 4.0], (0.0, 0.0, 0.0), R @ [0.0, 1.0, 0.0], lens=Orthographic(2.0))
    how, vertices = SoftRasterizer(3e-3, cull=True), {"cube": (CORNERS @ R.T).astype(dtype)}
    record = record_images(scene, view, how, vertices, (32, 32))
    return record.images, record.vjp(np.ones(record.images.shape))["cube.vertices"] @ R


@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 1e-9), (np.float32, 2e-3)])
def test_a_cube_covers_the_same_however_it_is_turned(rng, dtype, bound):
    image, gradient = picture_and_gradient(np.eye(3), np.float64)
    assert np.abs(gradient).max() > 10.0
    for _ in range(20):
        # Colours may swap where two faces of one side are equally deep but for rounding.
        turned = picture_and_gradient(rotation_matrix(rng.normal(size=3)), dtype)
        np.testing.assert_allclose(turned[0][..., 3], image[..., 3], rtol=0, atol=bound)
        assert np.abs(turned[1]).max() < 2.0 * np.abs(gradient).max()


def sliver(edge, dtype, seamless, smooth):
    """A face with one edge of this length in the middle of the screen, where floats are finest."""
    glossy = Material(0.4, 0.6, 0.5, 3.0)
    mesh = Mesh([(0, 1, 2)], vertex_colors=np.eye(3), smooth_normals=smooth, material=glossy)
    scene = Scene({"face": mesh}, {"sun": DirectionalLight((0.2, 0.1, 1.0))})
    view = Camera((0.0, 0.0, 4.0), (0.0, 0.0, 0.0), lens=Orthographic(2.0))
    x = np.array([[0.0, 0.0, 0.0], [edge, 0.0, 0.0], [0.5 * edge, 0.5, 0.0]], dtype)
    return scene, view, SoftRasterizer(1e-2, seamless=seamless), {"face": x}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seamless", [False, True])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_face_with_an_edge_that_underflows_is_not_drawn_and_any_other_is_finite(
    rng, dtype, seamless, smooth
):
    tangent = {"face.vertices": rng.normal(size=(3, 3))}
    for edge in 10.0 ** np.arange(-30, -7):
        args = sliver(edge, dtype, seamless, smooth)
        record = record_images(*args, (6, 6))
        gradient = record.vjp(np.ones((6, 6, 4)))
        _, tan_images = rasterize_jvp(*args, (6, 6), tangent)
        for value in (record.images, tan_images, *gradient.values()):
            assert np.isfinite(value).all(), edge
        # Metres are screen units here. Twice the area is half the edge; 1e-16 (1 + 0.5) is none.
        assert np.any(gradient["face.vertices"]) == (edge > 5e-16), edge
