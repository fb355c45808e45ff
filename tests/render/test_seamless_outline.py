"""Seamless coverage of points that lie on an outline, or as far from two of its edges."""

import numpy as np
import pytest

from render.blending import DIBR, Hard, Over, Softmax
from render.camera import Camera
from render.lenses import Orthographic
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


SQUARE = np.array([(-0.5, -0.5), (0.0, -0.5), (0.0, 0.0), (-0.5, 0.0)])
HALVES = [(0, 1, 2), (0, 2, 3)]
# An L whose concave corner, 4, lies at the origin.
L_SHAPE = np.array(
    [(-0.8, -0.8), (0, -0.8), (0.8, -0.8), (-0.8, 0), (0, 0), (0.8, 0), (-0.8, 0.8), (0, 0.8)]
)
L_FACES = [(0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4), (3, 4, 7), (3, 7, 6)]
ANGLES = [0.0, *np.random.default_rng(5).uniform(0.0, 2.0 * np.pi, 30)]


def alpha(points, faces, n, sigma, angle=0.0, **how):
    """Alpha of a flat sheet, n x n pixels of 2 / n, sheet and camera turned by the same angle."""
    c, s = np.cos(angle), np.sin(angle)
    x = np.array([(c * px - s * py, s * px + c * py, 0.0) for px, py in points])
    lens = Orthographic(2.0)
    camera = Camera((0.0, 0.0, 4.0), (0.0, 0.0, 0.0), up=(-s, c, 0.0), lens=lens)
    rasterizer = SoftRasterizer(sigma, seamless=True, **how)
    return rasterize(Scene({"sheet": Mesh(faces)}), camera, rasterizer, {"sheet": x}, (n, n))[
        ..., 3
    ]


@pytest.mark.parametrize(
    ("blend", "expected"), [(Over(), 0.5), (Softmax(), 0.5), (DIBR(0.01), 1.0), (Hard(), 1.0)]
)
@pytest.mark.parametrize("signs", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_the_outline_has_no_hole(blend, expected, signs):
    image = alpha(SQUARE * signs, HALVES, 17, 0.01, blend=blend)
    rows, columns = np.arange(17), np.arange(17)
    along_y = rows[9:12] if signs[1] > 0 else rows[5:8]  # beside the origin, within the edge
    along_x = columns[5:8] if signs[0] > 0 else columns[9:12]
    np.testing.assert_allclose(image[along_y, 8], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(image[8, along_x], expected, rtol=0, atol=1e-12)
    assert image[8, 8] == pytest.approx(expected, abs=1e-12)  # a corner


@pytest.mark.parametrize("angle", ANGLES)
def test_the_outline_has_no_hole_however_it_is_turned(angle):
    image = alpha(SQUARE, HALVES, 17, 0.01, angle)
    # m^2 / sigma is rounding; a point of two faces that are softened by it has one of them.
    np.testing.assert_allclose(image[9:12, 8], 0.5, rtol=0, atol=1e-9)
    np.testing.assert_allclose(image[8, 5:8], 0.5, rtol=0, atol=1e-9)


@pytest.mark.parametrize("angle", ANGLES)
def test_beside_a_concave_corner_one_of_two_equally_near_edges_counts(angle):
    image, sigma = alpha(L_SHAPE, L_FACES, 16, 0.02, angle), 0.02
    for k in range(1, 5):  # centres of pixels on the bisector
        m = (2 * k - 1) / 16
        expected = 1.0 / (1.0 + np.exp(m * m / sigma))
        assert image[8 - k, 7 + k] == pytest.approx(expected, abs=1e-9)
