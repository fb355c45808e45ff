"""What the manual's page on depth, normals and masks says of sums, jumps and faces in one plane."""

import numpy as np
import pytest

from adjoint.render.outputs import record_outputs
from render.blending import DIBR, Hard, Over, Softmax
from render.outputs import rasterize_outputs
from render.scene import Material, Mesh, Scene
from tests.render.scenes import camera, soft


VIEW = camera(eye=(0, 0, 5.0), target=(0, 0, 0), up=(0, 1, 0), fov_y=20.0, near=1.0, far=10.0)
HALF = np.array([[-0.2, -9.0, 0], [9.0, -9.0, 0], [-0.2, 9.0, 0]])  # of the one pixel
UP = np.array([0, 0, 1.0])
TILTED = HALF + 0.2 * HALF[:, :1] * UP  # by z = x/5, through the origin
PAIR = Scene({"level": Mesh([(0, 1, 2)]), "tilted": Mesh([(0, 1, 2)])})
NORMALS = np.array([[0.0, 0.0, 1.0], np.array([-0.2, 0.0, 1.0]) / np.sqrt(1.04)])


def look(blend, lift):
    vertices = {"level": HALF + lift * UP, "tilted": TILTED}
    raster = soft(sigma=0.5, gamma=0.1, epsilon=0.5, blend=blend)
    seen = rasterize_outputs(PAIR, VIEW, raster, vertices, (1, 1))
    return {name: value[0, 0] for name, value in seen.items()}


def coverages():
    """D of the two faces, each drawn alone."""
    return [look(Over(), lift)["mask"][first] for first, lift in ((0, 1e-3), (1, -1e-3))]


def weights(blend, lift):
    """w of the two faces and of the background, by the equations of the page."""
    D, z = np.array(coverages()), np.array([5.0 - lift, 5.0])
    if isinstance(blend, Over):
        first, second = np.argsort(z)
        w = D.copy()
        w[second] *= 1.0 - D[first]
        return w, 1.0 - w.sum()
    if isinstance(blend, Softmax):
        e = np.append(D * np.exp((10.0 - z) / 9.0 / 0.1), np.exp(0.5 / 0.1))
        return e[:2] / e.sum(), e[2] / e.sum()
    return (z == z.min()).astype(float), 0.0


@pytest.mark.parametrize("blend", [Over(), Softmax(), DIBR(), Hard()])
@pytest.mark.parametrize("lift", [-0.01, 0.01])
def test_every_output_is_the_sum_that_the_page_gives(blend, lift):
    seen, (w, w_bg) = look(blend, lift), weights(blend, lift)
    z = np.array([5.0 - lift, 5.0])
    # A lift of 0.01 m changes the coverage, which is that of 0.001 m, by a part in 500.
    np.testing.assert_allclose(seen["mask"], w, rtol=0, atol=2e-3)
    w, w_bg = seen["mask"], 1.0 - seen["mask"].sum()
    np.testing.assert_allclose(seen["depth"], w @ z + w_bg * 10.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen["normals"], w @ NORMALS, rtol=0, atol=1e-12)


def test_where_two_faces_trade_places_normals_and_masks_jump_and_depth_does_not():
    ahead, behind = look(Over(), 1e-9), look(Over(), -1e-9)
    jump = np.prod(coverages())
    assert jump > 0.2
    np.testing.assert_allclose(ahead["depth"], behind["depth"], rtol=0, atol=1e-7)
    by = ahead["normals"] - behind["normals"]
    np.testing.assert_allclose(by, jump * (NORMALS[0] - NORMALS[1]), rtol=0, atol=1e-3)
    by = ahead["mask"] - behind["mask"]
    np.testing.assert_allclose(by, jump * np.array([1.0, -1.0]), rtol=0, atol=1e-3)


@pytest.mark.parametrize("blend", [Over(), DIBR(), Hard()])
def test_masks_of_one_object_do_not_jump_and_those_of_nearest_faces_have_no_slope(blend):
    scene = Scene({"both": Mesh([(0, 1, 2), (3, 4, 5)])})
    seen = []
    for lift in (-1e-9, 1e-9):
        vertices = {"both": np.concatenate([HALF + lift * UP, TILTED])}
        record = record_outputs(
            scene, VIEW, soft(sigma=0.5, blend=blend), vertices, (1, 1), ["mask"]
        )
        seen.append(record.images["mask"])
        slope = record.vjp({"mask": np.ones((1, 1, 1))})["both.vertices"]
        assert np.any(slope) == isinstance(blend, Over)
    np.testing.assert_allclose(*seen, rtol=0, atol=1e-7)


SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])


def stuck(blend, gap, dtype):
    """Part of the wall's colour in the middle of a sticker this far in front of it."""
    unshaded = Material(1.0, 0.0)
    scene = Scene(
        {
            "wall": Mesh([(0, 1, 2), (0, 2, 3)], [(1, 0, 0)] * 2, material=unshaded),
            "sticker": Mesh([(0, 1, 3), (1, 2, 3)], [(0, 0, 1)] * 2, material=unshaded),
        }
    )
    view = camera(eye=(1.5, 1.0, 3.0), target=(0, 0, 0), up=(0, 1, 0), near=1.0, far=10.0)
    x = {"wall": SQUARE, "sticker": SQUARE * [0.7, 0.6, 1.0] + [0.0, 0.0, gap]}
    raster = soft(sigma=1e-6, gamma=1e-4, blend=blend)
    vertices = {name: value.astype(dtype) for name, value in x.items()}
    rgba = rasterize_outputs(scene, view, raster, vertices, (64, 64), ["rgba"])["rgba"]
    return rgba[24:40, 24:40, 0]


@pytest.mark.parametrize(("dtype", "gap"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@pytest.mark.parametrize("blend", [Over(), DIBR(), Hard(), Softmax()])
def test_of_faces_in_one_plane_the_first_is_seen_but_float32_speckles(blend, dtype, gap):
    together, apart = (stuck(blend, lift, dtype) for lift in (0.0, 4.0 * gap))
    if isinstance(blend, Softmax):
        assert np.median(abs(together - 0.5)) < 1e-3
        return
    if dtype is np.float64:
        assert together.min() > 0.5
    else:
        assert 0.1 < (together > 0.5).mean() < 0.9
    assert apart.max() < 0.5
