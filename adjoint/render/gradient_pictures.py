r"""Which faces feel a loss: a mesh drawn with each face in the colour of its gradient.

    g_f = root of the mean of |adj_x_k|^2 over the three corners k of face f
    colour = scale(sqrt(g_f/g)),   g the largest, or a given one

The scale goes from grey (nothing) over yellow and red to dark (the largest); by the root a
hundredth of the largest lies at a tenth of it, not at its end. Colours are shown as they are,
without light.

Tests: `tests/render/test_gradient_pictures.py`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjsim import checks
from render.blending import Hard
from render.camera import AnyCamera
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


SCALE = np.array(
    [(0.86, 0.88, 0.91), (0.99, 0.86, 0.50), (0.93, 0.47, 0.20), (0.66, 0.10, 0.16), (0.2, 0, 0.1)]
)
SAMPLES = 3  # of a pixel, in each direction


def face_gradients(faces: Any, adj_vertices: Any) -> np.ndarray:
    """Return how strongly a loss pulls at each face.

    Parameters
    ----------
    faces : array_like
        Corner vertices of each face, (n_faces, 3) integers.
    adj_vertices : array_like
        Gradient of the loss by the vertices, (n_vertices, 3), or of frames, which add up,
        (n_frames, n_vertices, 3).

    Returns
    -------
    numpy.ndarray
        g_f, (n_faces,), in the unit of the gradient.

    Raises
    ------
    ValueError
        If a shape does not fit, a number is not finite or a face misses its vertex.
    """
    names = ("n_frames", "n_vertices", 3)[-np.ndim(adj_vertices) :]
    adj = checks.array("adj_vertices", adj_vertices, names)
    adj = adj.sum(axis=0) if adj.ndim == 3 else adj
    corners = checks.indices("faces", faces, ("n_faces", 3), len(adj), some=True)
    return np.sqrt(np.square(adj[corners]).sum(axis=2).mean(axis=1))


def gradient_colors(gradients: Any, largest: float | None = None) -> np.ndarray:
    """Return the colours of gradients, (n, 3) RGB [-].

    Parameters
    ----------
    gradients : array_like
        g_f, (n,), not negative.
    largest : float, optional
        What has the last colour of the scale, as all above it have; by default the largest.
        Given, the colours of several pictures can be compared.

    Raises
    ------
    ValueError
        If a gradient is negative or not finite, or `largest` is not positive.
    """
    given = checks.non_negative("gradients", checks.array("gradients", gradients, ("n",)))
    if largest is None:
        largest = float(given.max(initial=0.0)) or 1.0  # no gradient at all: all grey
    checks.positive("largest", largest)
    place = np.sqrt(np.minimum(given / largest, 1.0)) * (len(SCALE) - 1)
    return np.stack([np.interp(place, np.arange(len(SCALE)), c) for c in SCALE.T], axis=1)


def gradient_picture(
    faces: Mapping[str, Any],
    camera: AnyCamera,
    vertices: Mapping[str, Any],
    adj_vertices: Mapping[str, Any],
    size: tuple[int, int],
    *,
    largest: float | None = None,
    background: Any = (1.0, 1.0, 1.0),
) -> np.ndarray:
    """Draw objects with each face in the colour of its gradient.

    Parameters
    ----------
    faces : mapping of str to array_like
        For each object its faces, (n_faces, 3) integers.
    camera : Camera, OrbitCamera or PosedCamera
    vertices : mapping of str to array_like
        For each object its vertices [m], (n_vertices, 3).
    adj_vertices : mapping of str to array_like
        For each object the gradient of a loss by its vertices, such as `ImageRecord.vjp`
        returns it under the path "NAME.vertices".
    size : tuple of int
        Height and width [pixels].
    largest : float, optional
        As `gradient_colors` takes it; by default the largest of all objects.
    background : array_like
        RGB, (3,) [-].

    Returns
    -------
    numpy.ndarray
        RGBA, (height, width, 4).

    Raises
    ------
    ValueError
        If an object has no gradient, or a shape does not fit.
    """
    for name in faces:
        checks.known_key("object without gradient in `adj_vertices`", name, adj_vertices)
    gradients = {name: face_gradients(faces[name], adj_vertices[name]) for name in faces}
    if largest is None:
        largest = max(float(g.max(initial=0.0)) for g in gradients.values()) or 1.0
    objects = {
        name: Mesh(faces[name], gradient_colors(g, largest), material=Material(1.0, 0.0))
        for name, g in gradients.items()
    }
    rasterizer = SoftRasterizer(background=background, blend=Hard(), supersample=SAMPLES)
    return rasterize(Scene(objects), camera, rasterizer, vertices, size)
