r"""Shading with smooth normals, per pixel: normals and colours of the corners, interpolated.

    n = sum w_k n_k, normalised,   C = sum w_k C_k,   colour = shade(n) C

with the weights w_k of `render/barycentrics.py` and the shade of `render/face_setup.py`:
ambient and Lambert, or spherical harmonics.

Adjoint: `adjoint/render/pixel_shading.py`. Tests: `tests/render/test_pixel_shading.py`.
Source: Phong, Illumination for Computer Generated Pictures, CACM 18 (1975): the normals.
"""

from adjsim.backend import device_fn
from adjsim.vec3 import axpy, scale
from render.face_setup import face_shade, load3
from render.normals import unit_or_zero


@device_fn
def corner_rows(f, faces, array):
    """Rows of an array of vertices at the corners of face f."""
    return load3(array, faces[f, 0]), load3(array, faces[f, 1]), load3(array, faces[f, 2])


@device_fn
def corner_albedo(f, scene):
    """Colours C of the corners of face f, before any light."""
    if scene.smooth[f]:
        return corner_rows(f, scene.faces, scene.vertex_colors)
    C = load3(scene.face_colors, f)
    return C, C, C


@device_fn
def weighted(w, a):
    """Sum of w_k a_k over three corners."""
    return axpy(w[0], a[0], axpy(w[1], a[1], scale(w[2], a[2])))


@device_fn
def pixel_color(f, w, normals, scene):
    """Colour of face f where its corners have the weights w; normals (n_vertices, 3)."""
    m = weighted(w, corner_rows(f, scene.faces, normals))  # (1)
    n, _ = unit_or_zero(m)  # (2)
    s = face_shade(f, n, scene)  # (3)
    C = weighted(w, corner_albedo(f, scene))  # (4)
    return (s[0] * C[0], s[1] * C[1], s[2] * C[2])  # (5)
