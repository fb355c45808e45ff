"""Tangent and adjoint of one drawing held against each other."""

import numpy as np

from adjoint.render.soft_raster import rasterize_jvp, record_images


def check_transposes(rng, args, sizes=None):
    """Dot test of all parameters at once, and equal bits on 1 and 2 threads; the gradient.

    `sizes` of tangents by path are 1 where not given.
    """
    record = record_images(*args, threads=1)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)
    tangents = {
        path: rng.normal(size=value.shape) * (sizes or {}).get(path, 1.0)
        for path, value in gradient.items()
    }
    images, pushed = rasterize_jvp(*args, tangents)
    np.testing.assert_array_equal(images, record.images)
    pulled = sum(np.sum(gradient[path] * tangents[path]) for path in gradient)
    assert np.abs(pushed).max() > 0.0
    assert abs(pulled) > 0.0
    scale = np.linalg.norm(pushed) * np.linalg.norm(adj)
    assert abs(np.sum(pushed * adj) - pulled) <= 1e-12 * scale
    two = record_images(*args, threads=2)
    np.testing.assert_array_equal(two.images, record.images)
    for path, value in two.vjp(adj).items():
        np.testing.assert_array_equal(value, gradient[path])
    return gradient
