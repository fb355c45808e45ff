"""Every mode on scenes that break renderers: values against the slow reference, and gradients.

Tolerances as in `test_against_reference.py` and `slopes.py`. The barycentrics of a face of height
t on the screen have the error eps/t, and so have values, and gradients relative to their size
1/t. Its differences in longdouble have eps_long/(t h) by rounding, 7e-8 for t = 4e-6, h = 4e-7,
and h^2 where its corners move by h t: that is why blocks move by shares of 1/|G|.
"""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.render.soft_raster import rasterize_jvp, record_images
from render.blending import DIBR, Hard, Over, Softmax
from render.soft_raster import rasterize
from tests.reference.soft_raster import reference_image
from tests.render.hard_scenes import SCENES, THIN, THINNESS, hard_problem, is_what_it_says
from tests.render.scenes import plain
from tests.render.slopes import STEP, image_slope_errors


EPS = np.finfo(float).eps
MODES = {
    "over": {"blend": Over()},
    "softmax": {"blend": Softmax(), "gamma": 0.3, "epsilon": 0.9},
    "dibr": {"blend": DIBR(2e-3)},
    "hard": {"blend": Hard()},
    "samples": {"supersample": 2},
    "seamless": {"seamless": True},
}
DIRECTIONS = {"over": 40, "softmax": 20, "dibr": 20, "hard": 10, "samples": 6, "seamless": 4}  # 100
SMALL = {"wide": (1, 60), "high": (5, 1), "one": (1, 1), "crowd": (2, 3)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SCENES)
def test_values_are_those_of_the_reference_and_twins_transposes(rng, name, mode):
    problem, size = hard_problem(name, rng, MODES[mode])
    assert is_what_it_says(name, problem)
    record = record_images(*problem, size)
    assert record.images[..., 3].mean() > 0.02
    is_thin = name in THIN
    expected = reference_image(*plain(*problem), size, np.longdouble if is_thin else float)
    error = 4 * EPS / THINNESS[-1] if is_thin else 1e-12
    np.testing.assert_allclose(record.images, expected.astype(float), rtol=0, atol=error)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)
    tangents = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
    _, pushed = rasterize_jvp(*problem, size, tangents)
    pulled = sum(np.sum(gradient[path] * tangents[path]) for path in gradient)
    scale = sum(np.linalg.norm(gradient[p]) * np.linalg.norm(tangents[p]) for p in gradient)
    assert np.isfinite(pushed).all()
    assert scale > 0
    assert abs(np.sum(pushed * adj) - pulled) <= 1e-12 * scale


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SCENES)
def test_the_adjoint_is_the_derivative_of_the_reference(rng, name, mode):
    problem, size = hard_problem(name, rng, MODES[mode], SMALL.get(name, (3, 5)))
    assert is_what_it_says(name, problem)
    n = 1 if (name, mode) == ("crowd", "seamless") else DIRECTIONS[mode]
    step, bound = (np.longdouble(4e-7), 1e-7) if name in THIN else (STEP, 1e-10)
    assert image_slope_errors(rng, problem, size, n, step).max() <= bound


@pytest.mark.parametrize("name", [name for name in SCENES if name != "one"])
def test_shared_edges_make_seamless_another_mode(rng, name):
    (scene, view, raster, vertices), size = hard_problem(name, rng, MODES["seamless"])
    seamless = rasterize(scene, view, raster, vertices, size)
    over = rasterize(scene, view, replace(raster, seamless=False), vertices, size)
    assert np.abs(seamless - over).max() > 0.05
