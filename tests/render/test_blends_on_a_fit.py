"""What the manual's page on blends says of them: who sees the outline, and who comes home."""

import numpy as np
import pytest
from scipy.optimize import minimize

from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjsim.meshes.shapes import shape
from render.blending import Over, Softmax
from render.camera import Camera
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize, softness


SIZE, PIXEL = (32, 48), 4 / 32  # rows and columns; metres per pixel at the star
STAR = shape("star", 0.62)
SCENE = Scene(
    {"star": Mesh(STAR.faces, face_colors=np.tile((0.9, 0.45, 0.15), (len(STAR.faces), 1)))},
    {"sun": DirectionalLight((0.4, 0.7, 1.0))},
)
CAMERA = Camera(
    eye=(0, 0, 5), target=(0, 0, 0), fov_y=2 * np.degrees(np.arctan(2 / 5)), near=1.0, far=10.0
)
WAYS = {
    "over": {"blend": Over()},
    "softmax": {"blend": Softmax(), "gamma": 1e-4},
    "seamless": {"blend": Over(), "seamless": True},
}


def rasterizer(way, **changes):
    return SoftRasterizer(softness(1.0, SIZE[0]), background=(1, 1, 1), **WAYS[way], **changes)


def outline_felt(way):
    """The largest change of colour and of alpha as the star moves by a pixel to the right."""
    rights = {"star.vertices": np.full(STAR.points.shape, PIXEL) * [1, 0, 0]}
    _, tangent = rasterize_jvp(SCENE, CAMERA, rasterizer(way), {"star": STAR.points}, SIZE, rights)
    row = np.abs(tangent[SIZE[0] // 2 - 1])
    return row[:, 2].max(), row[:, 3].max()


def left_at_the_end(way):
    """Pixels between star and target after a fit of its place to colours, from its front alone."""
    raster = rasterizer(way, cull=True)
    target = rasterize(SCENE, CAMERA, raster, {"star": STAR.points}, SIZE)

    def loss(shift):
        run = record_images(SCENE, CAMERA, raster, {"star": STAR.points + shift}, SIZE)
        left = (run.images - target) * [1, 1, 1, 0]
        gradient = run.vjp(2 * left, ["star.vertices"])["star.vertices"]
        return (left**2).sum(), gradient.sum(axis=0)

    start = PIXEL * np.array([4.0, -2.5, 3.0])
    end = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxfun": 60, "ftol": 1e-16})
    return np.linalg.norm(end.x) / PIXEL


@pytest.mark.parametrize("way", WAYS)
def test_the_outline_is_a_slope_in_alpha_and_in_colours_only_with_over(way):
    color, alpha = outline_felt(way)
    assert alpha > 0.2
    # with softmax a face that the pixel sees at all weighs e^5000 times the background
    assert color < 0.02 if way == "softmax" else color > 0.2


@pytest.mark.parametrize("way", WAYS)
def test_from_the_front_alone_a_fit_of_colours_comes_home_with_over(way):
    left = left_at_the_end(way)
    assert left > 1.0 if way == "softmax" else left < 1e-3
