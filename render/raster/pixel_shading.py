r"""Shading pixel by pixel: of faces with smooth normals, a highlight or a texture.

    n = sum w_k n_k, normalised, or the normal of the face
    e = sum w_k v_k, normalised,  v_k = eye - x_k
    C = sum w_k C_k, or the texel at sum w_k uv_k,   colour = shade(n) C + highlight(n, e)

with the weights w_k of `render/raster/barycentrics.py`, the shade of `render/faces/face_setup.py`
(ambient and Lambert, or spherical harmonics) and the highlight of `render/shaders/shading.py`. The
w_k sum to 1: sum w_k v_k is the vector from the interpolated position to the eye. Where a face has
one normal, its shade is found once.

Adjoint: `adjoint/render/raster/pixel_shading.py`. Tests:
`tests/render/raster/test_pixel_shading.py`. Source: Phong, Illumination for Computer Generated
Pictures, CACM 18 (1975).
"""

from adjsim.algebra.vec3 import add, axpy, scale
from adjsim.jit.backend import device_fn, lit
from render.faces.face_setup import face_shade, load3
from render.shaders.normals import unit_mean, unit_or_zero
from render.shaders.shading import highlight
from render.textures import is_textured, texture_color


@device_fn
def corner_rows(f, faces, array):
    """Rows of an array at the corners of face f."""
    return load3(array, faces[f, 0]), load3(array, faces[f, 1]), load3(array, faces[f, 2])


@device_fn
def corner_normals(f, shaded):
    """Normals of the corners of face f; of a face with one normal that is the first."""
    return (
        (shaded[f, 0], shaded[f, 1], shaded[f, 2]),
        (shaded[f, 3], shaded[f, 4], shaded[f, 5]),
        (shaded[f, 6], shaded[f, 7], shaded[f, 8]),
    )


@device_fn
def corner_albedo(f, scene):
    """Colours C of the corners of face f, before any light."""
    if scene.smooth[f]:
        return corner_rows(f, scene.color_faces, scene.vertex_colors)
    C = load3(scene.face_colors, f)
    return C, C, C


@device_fn
def weighted(w, a):
    """Sum of w_k a_k over three corners."""
    return axpy(w[0], a[0], axpy(w[1], a[1], scale(w[2], a[2])))


@device_fn
def pixel_albedo(f, w, scene):
    """Colour C of face f where its corners have the weights w, before any light."""
    if is_textured(f, scene):
        return texture_color(f, w, scene)
    return weighted(w, corner_albedo(f, scene))


@device_fn
def is_glossy(f, scene):
    """Whether face f has a highlight."""
    shininess = scene.shininess[scene.owner[f], 0]
    return shininess > lit(0.0, shininess)


@device_fn
def face_highlight(f, n, e, scene):
    """Highlights [-] of all lights on face f with normal n, seen from e, per channel."""
    o = scene.owner[f]
    total = (lit(0.0, n[0]), lit(0.0, n[0]), lit(0.0, n[0]))
    for k in range(scene.directions.shape[0]):
        directions, lights = load3(scene.directions, k), load3(scene.lights, k)
        specular = load3(scene.specular, o)
        total = add(total, highlight(n, e, directions, lights, specular, scene.shininess[o, 0]))
    return total


@device_fn
def face_light(f, faces, scene):
    """Normal and shade of a face with one normal; of a rounded face nothing."""
    n = load3(faces.shaded, f)
    if scene.rounded[f]:
        return n, n
    return n, face_shade(f, n, scene)


@device_fn
def pixel_light(f, w, light, faces, scene):
    """Normal and shade of face f where its corners have the weights w."""
    if not scene.rounded[f]:
        return light
    n, _ = unit_mean(weighted(w, corner_normals(f, faces.shaded)))  # (1)
    return n, face_shade(f, n, scene)  # (2)


@device_fn
def pixel_color(f, w, light, faces, scene):
    """Colour of face f where its corners have the weights w; `light` is its `face_light`."""
    n, s = pixel_light(f, w, light, faces, scene)  # (1)
    C = pixel_albedo(f, w, scene)  # (2)
    rgb = (s[0] * C[0], s[1] * C[1], s[2] * C[2])  # (3)
    if is_glossy(f, scene):
        e, _ = unit_or_zero(weighted(w, corner_rows(f, scene.faces, faces.towards)))  # (4)
        rgb = add(rgb, face_highlight(f, n, e, scene))  # (5)
    return rgb
