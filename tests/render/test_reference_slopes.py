"""Adjoints of pictures and outputs are the derivatives of the slow reference, to 1e-10.

All inputs move at once: vertices, colours, texels, materials, lights, camera, rasterizer. See
`slopes.py` for steps and errors; `test_hard_scenes.py` does the same where pictures are difficult.
"""

import numpy as np
import pytest

from adjoint.render.outputs import record_outputs
from render.blending import Softmax
from render.lenses import Orthographic
from render.scene import Scene, SphericalHarmonics
from tests.reference.outputs import reference_outputs
from tests.reference.soft_raster import reference_image
from tests.render.scenes import (
    BLENDS,
    camera,
    glossy,
    layered_problem,
    plain,
    rounded,
    soft,
    textured,
    two_tetrahedra,
)
from tests.render.slopes import felt, image_slope_errors, slope_errors


SIZE = (5, 6)
PLANES = {"near": 0.5, "far": 9.0}
VIEWS = {"wide": camera(**PLANES), "flat": camera(fov_y=None, lens=Orthographic(2.4), **PLANES)}


def as_it_is(scene):
    return scene


def in_sky(scene):
    """In spherical harmonics, the right object with smooth normals."""
    sky = SphericalHarmonics(np.random.default_rng(5).uniform(-0.3, 0.5, (9, 3)))
    objects = {"left": scene.objects["left"], "right": rounded(scene).objects["right"]}
    return Scene(objects, {"sky": sky})


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("look", [as_it_is, rounded, glossy, textured, in_sky])
def test_the_adjoint_of_every_look_is_the_derivative_of_the_reference(rng, blend, look):
    scene, vertices = two_tetrahedra(rng)
    gamma, epsilon = (0.3, 0.9) if isinstance(blend, Softmax) else (1e-4, 1e-3)
    raster = soft(blend=blend, gamma=gamma, epsilon=epsilon, sigma=0.02)
    problem = (look(scene), camera(), raster, vertices)
    assert image_slope_errors(rng, problem, SIZE, 4).max() <= 1e-10


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize(("view", "seamless"), [("wide", False), ("wide", True), ("flat", True)])
def test_the_adjoint_of_outputs_is_the_derivative_of_the_reference(rng, blend, view, seamless):
    scene, _, raster, vertices = layered_problem(rng, blend, sigma=0.02, seamless=seamless)
    problem = (scene, VIEWS[view], raster, vertices)
    record = record_outputs(*problem, SIZE)
    assert record.images["rgba"][..., 3].mean() > 0.2
    adj = {name: rng.normal(size=value.shape) for name, value in record.images.items()}
    gradient = felt(record.vjp(adj), scene, raster)
    assert {"camera.target", "camera.up", "left.vertices", "right.texels"} <= set(gradient)
    assert ("camera.fov_y" if view == "wide" else "camera.height") in gradient

    def loss(objects, lights, lens, settings):
        images = reference_outputs(objects, lens, settings, SIZE, np.longdouble)
        images["rgba"] = reference_image(objects, lights, lens, settings, SIZE, np.longdouble)
        return sum(np.sum(adj[name] * images[name]) for name in adj)

    assert slope_errors(rng, gradient, plain(*problem), loss, 2).max() <= 1e-10
