"""Every mode on scenes that break renderers: values against the slow reference, and gradients.

Tolerances as in `test_against_reference.py` and `test_soft_raster.py`.
"""

import numpy as np
import pytest

from adjoint.render.soft_raster import rasterize_jvp, record_images
from render.blending import DIBR, Hard, Over, Softmax
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import rasterize
from tests.render.scenes import camera, moved, reference, soft, two_tetrahedra


MODES = {
    "over": {"blend": Over()},
    "softmax": {"blend": Softmax(), "gamma": 0.3, "epsilon": 0.9},
    "dibr": {"blend": DIBR(2e-3)},
    "hard": {"blend": Hard()},
    "seamless": {"seamless": True},
    "samples": {"supersample": 2},
}
SIZES = {"wide": (1, 300), "high": (300, 1), "one": (1, 1)}


def soup(rng, corners, light=(0.2, 0.5, 1.0)):
    """Faces of their own corners (n, 3, 3), with vertex colours."""
    n = len(corners)
    mesh = Mesh(np.arange(3 * n).reshape(n, 3), vertex_colors=rng.random((3 * n, 3)))
    scene = Scene({"soup": mesh}, {"sun": DirectionalLight(light)})
    return scene, {"soup": corners.reshape(-1, 3)}


def scene_of(name, rng):
    """A scene by its name, its vertices, and the size of its image."""
    if name in SIZES:
        return *two_tetrahedra(rng), SIZES[name]
    n = {"intersecting": 6, "slivers": 12, "crowd": 300}.get(name, 8)
    corners = rng.normal(scale=0.6, size=(n, 3, 3))
    if name == "intersecting":  # all through the middle
        corners -= corners.mean(axis=1, keepdims=True)
    elif name == "edge on":  # the first to rounding, the second nearly
        eye = np.array([0.3, 0.4, 3.5])
        corners[0, 2] = eye + 0.7 * (corners[0, 0] - eye)
        corners[1, 2] = eye + 0.7 * (corners[1, 0] - eye) + 1e-14
    elif name == "behind":  # one behind the eye, one around it, one across near
        corners[0, :, 2] += 6.0
        corners[1] = [(0.3, 0.4, 4.0), (1.0, -1.0, 3.0), (-1.0, -1.0, 3.0)]
        corners[2, 0] = [0.3, 0.4, 3.45]
    elif name == "slivers":
        corners[:, 2] = corners[:, :2].mean(axis=1) + rng.normal(scale=1e-4, size=(n, 3))
    return *soup(rng, corners), (3, 4) if name == "crowd" else (14, 17)


THIN = ("edge on", "slivers")  # barycentrics are lost to rounding, in the reference too
SCENES = ("intersecting", "edge on", "behind", "slivers", "crowd", *SIZES)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SCENES)
def test_values_are_those_of_the_reference_and_twins_transposes(rng, name, mode):
    scene, vertices, size = scene_of(name, rng)
    args = (scene, camera(), soft(**MODES[mode]), vertices)
    record = record_images(*args, size)
    if name not in THIN:
        expected = reference(*args, size)
        np.testing.assert_allclose(record.images, expected, rtol=0, atol=1e-12)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)
    tangents = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
    _, pushed = rasterize_jvp(*args, size, tangents)
    pulled = sum(np.sum(gradient[path] * tangents[path]) for path in gradient)
    scale = sum(np.linalg.norm(gradient[p]) * np.linalg.norm(tangents[p]) for p in gradient)
    assert np.isfinite(pushed).all()
    assert abs(np.sum(pushed * adj) - pulled) <= 1e-12 * scale


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [name for name in SCENES if name not in THIN])
def test_the_adjoint_of_the_vertices_is_the_derivative(rng, name, mode):
    scene, vertices, size = scene_of(name, rng)
    args = (scene, camera(), soft(**MODES[mode]), vertices)
    record = record_images(*args, size)
    adj = rng.normal(size=record.images.shape)
    wrt = [f"{name}.vertices" for name in scene.objects]
    gradient, checked = record.vjp(adj, wrt), 0
    for _ in range(40):
        tangent = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
        scale = sum(np.linalg.norm(gradient[p]) * np.linalg.norm(tangent[p]) for p in gradient)

        def loss(step, tangent=tangent):
            return float(np.sum(adj * rasterize(*moved(args, tangent, step), size)))

        slopes = [(loss(h) - loss(-h)) / (2 * h) for h in (2e-6, 4e-6, 8e-6)]
        fine, coarse = ((4 * slopes[k] - slopes[k + 1]) / 3 for k in range(2))
        # Where the two disagree, a jump or a kink is nearby; 1e-9 is their rounding.
        if abs(fine - coarse) <= 5e-8 * scale + 1e-9:
            checked += 1
            pulled = sum(np.sum(gradient[p] * tangent[p]) for p in gradient)
            assert abs(fine - pulled) <= 1e-7 * scale + 1e-8
        if checked == 2:
            return
    pytest.fail("no two directions without a jump or a kink nearby")
