"""Adjoints of pictures held against differences of the slow reference in extended precision.

All inputs move at once. The gradient of a sliver's corners is a million times that of a colour,
so each block moves by its own size, 1/|G|: in the sum they weigh alike, and none is hidden.

A pixel has some hundred kinks and jumps about a unit away, so that a step of h = 1e-7 of these
sizes meets one in a picture of a few pixels once in some thousand directions. The error of
central differences is h^2/sigma = 1e-12 and, by rounding, eps/h = 1e-12 in longdouble.
"""

import numpy as np
import pytest

from adjoint.render.soft_raster import record_images
from adjoint.verify.systems.pixels import INERT
from render.blending import Over, Softmax
from render.scene import SphericalHarmonics
from tests.reference.soft_raster import reference_image
from tests.render.scenes import plain


STEP = np.longdouble(1e-7)


def nudged(parts, tangents, step):
    """The mappings of `plain` in extended precision, everything moved along its tangent."""
    objects, lights, lens, raster = parts

    def along(name, values):
        paths = {key: f"{name}.{key}" for key in values}
        return {
            key: np.asarray(value, np.longdouble) + step * tangents[paths[key]]
            if paths[key] in tangents
            else value
            for key, value in values.items()
        }

    return (
        {name: along(name, values) for name, values in objects.items()},
        {name: along(name, values) for name, values in lights.items()},
        along("camera", lens),
        along("rasterizer", raster),
    )


def block_sizes(gradient, point):
    """By path how far to move each block: 1/|G|, but at most its own size.

    All of the camera moves as far as its part with the steepest slope: each moves every face.
    """
    sizes = {
        path: min(1.0 / np.linalg.norm(value), np.sqrt(np.mean(np.square(point[path]))))
        for path, value in gradient.items()
    }
    steepest = min((size for path, size in sizes.items() if path.startswith("camera.")), default=1)
    return {p: steepest if p.startswith("camera.") else size for p, size in sizes.items()}


def point_of(parts, paths):
    """The values of these paths."""
    objects, lights, lens, raster = parts
    groups = {**objects, **lights, "camera": lens, "rasterizer": raster}
    return {path: np.asarray(groups[(at := path.split("."))[0]][at[1]], float) for path in paths}


def slope_errors(rng, gradient, parts, loss, n_directions, step=STEP):
    """Relative errors (n_directions,) of a gradient; `loss` takes what `plain` returns."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("this machine has no extended precision")
    sizes = block_sizes(gradient, point_of(parts, gradient))
    scale = np.sqrt(sum((sizes[path] * np.linalg.norm(gradient[path])) ** 2 for path in gradient))
    errors = []
    for _ in range(n_directions):
        draws = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
        tangents = {path: sizes[path] * u / np.linalg.norm(u) for path, u in draws.items()}
        ahead, behind = (loss(*nudged(parts, tangents, h)) for h in (step, -step))
        pulled = sum(np.sum(gradient[path] * tangents[path]) for path in gradient)
        errors.append(abs(float((ahead - behind) / (2 * step)) - pulled) / scale)
    return np.array(errors)


def felt(gradient, scene, rasterizer):
    """The blocks of a gradient that are not zero, after the check that they should not be.

    Where the nearest face alone has a colour, some light or object may be hidden.
    """
    inert = {f"rasterizer.{key}" for key in INERT[type(rasterizer.blend)]}
    if not isinstance(rasterizer.blend, Softmax):
        inert |= {"camera.near"} & set(gradient)  # beside far, where depth is an output
    in_sky = any(isinstance(light, SphericalHarmonics) for light in scene.lights.values())
    lit = {"coefficients"} if in_sky else {"diffuse", "direction"}
    if in_sky:
        inert |= {path for path in gradient if path.endswith((".ambient", ".diffuse"))}
    zero = {path for path, value in gradient.items() if not value.any()}
    if isinstance(rasterizer.blend, Over | Softmax):
        assert zero == inert
    assert inert <= zero
    assert {"vertices", *lit} <= {path.split(".")[1] for path in gradient if path not in zero}
    return {path: value for path, value in gradient.items() if path not in zero}


def image_slope_errors(rng, problem, size, n_directions, step=STEP):
    """The errors of `slope_errors` of an image with a random cotangent."""
    record = record_images(*problem, size)
    assert record.images[..., 3].mean() > 0.02
    adj = rng.normal(size=record.images.shape)
    gradient = felt(record.vjp(adj), problem[0], problem[2])

    def loss(*parts):
        return np.sum(adj * reference_image(*parts, size, np.longdouble))

    return slope_errors(rng, gradient, plain(*problem), loss, n_directions, step)
