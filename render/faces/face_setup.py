r"""From world to screen, once per frame: projected vertices, and faces ready to be drawn.

A face is drawn if all its corners have near <= z <= far, its screen area is not 0 (up to
rounding, and to 1e-16, as where an edge is shorter than that), and, where culling is asked for,
its corners go counter-clockwise on the screen. A drawn face gets its corners on the screen with
their depths, its shaded colours, and the box of pixels that its coverage can reach.

Frozen, that is, not differentiated: which faces are drawn, and the boxes.

Adjoint: `adjoint/render/faces/face_setup.py`. Tests: `tests/render/faces/test_face_setup.py`.
"""

import math
from typing import NamedTuple

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, lit
from render.faces.coverage import cross2
from render.projection import PERSPECTIVE, project_body, towards_body, unpack_view
from render.shaders.harmonics import harmonic_shade
from render.shaders.normals import normal_body
from render.shaders.shading import flat_normal, lambert


FLAT = 8.0  # area below this many roundings counts as 0
SMALLEST = 1e-16  # area and edge [-] whose squares have inverses well within float32


class Settings(NamedTuple):
    """Numbers of a render, in the type of the vertices."""

    sigma: np.floating  # what the squared distance is divided by: kappa in DIBR
    gamma: np.floating
    epsilon: np.floating
    near: np.floating
    far: np.floating
    lowest: np.floating  # smallest logit y of a fragment that is kept
    eps: np.floating  # rounding of the type
    blend: int  # OVER, SOFTMAX or NEAREST
    cull: bool
    is_deep: bool  # whether depths have adjoints: in Softmax, and where they are an output


SIGMA, NEAR, FAR = (Settings._fields.index(name) for name in ("sigma", "near", "far"))


class PackedScene(NamedTuple):
    """A scene as arrays; objects one after the other."""

    faces: np.ndarray  # (n_faces, 3) int64
    smooth: np.ndarray  # (n_faces,) whether vertices have colours
    rounded: np.ndarray  # (n_faces,) whether vertices have normals
    by_pixel: np.ndarray  # (n_faces,) whether it is shaded pixel by pixel; all rounded ones are
    owner: np.ndarray  # (n_faces,) int64, number of the object
    face_colors: np.ndarray  # (n_faces, 3)
    vertex_colors: np.ndarray  # (n_colors, 3)
    color_faces: np.ndarray  # (n_faces, 3) int64, rows of vertex_colors, or -1 where none
    uv: np.ndarray  # (n_uv, 2)
    uv_faces: np.ndarray  # (n_faces, 3) int64, rows of uv, or -1 where there is no texture
    texels: np.ndarray  # (n_texels, 3) of all textures
    images: np.ndarray  # (n_objects, 5) int64: first texel, height, width, if clamped, first uv
    ambient: np.ndarray  # (n_objects, 3)
    diffuse: np.ndarray  # (n_objects, 3)
    specular: np.ndarray  # (n_objects, 3)
    shininess: np.ndarray  # (n_objects, 1), 0 where there is no highlight
    directions: np.ndarray  # (n_lights, 3), of unit length
    lights: np.ndarray  # (n_lights, 3) colours
    harmonics: np.ndarray  # (9, 3) coefficients, or (0, 3) where lights and materials shade
    background: np.ndarray  # (1, 1, 3), or of every sample


class Faces(NamedTuple):
    """Faces of one frame, ready to be drawn."""

    screen: np.ndarray  # (n_vertices, 3): s_x, s_y [-], z [m]
    corners: np.ndarray  # (n_faces, 10): x, y of three corners [-], their z [m], and p
    shaded: np.ndarray  # (n_faces, 9): RGB of three corners, or of the face in the first; or,
    # of a face shaded pixel by pixel, the normals of the corners, or of the face in the first
    box: np.ndarray  # (n_faces, 4) int64: rows from, to, columns from, to; empty if not drawn
    normals: np.ndarray  # (n_vertices, 3) unit normals, or (0, 3) where no face is rounded
    soft: np.ndarray  # (n_faces, 12) int64 of edges and corners, or (0, 12): `render/seamless.py`
    towards: np.ndarray  # (n_vertices, 3) [m] to the eye, or (0, 3) where no face is by_pixel
    reach: np.ndarray  # (n_faces, 2) bool of `light_reach.py`, or (0, 2) there, and on a GPU


@device_fn
def load3(array, i):
    """Row i of an array of vectors."""
    return (array[i, 0], array[i, 1], array[i, 2])


@device_fn
def face_normal(f, faces, x):
    """Unit normal of face f."""
    return flat_normal(load3(x, faces[f, 0]), load3(x, faces[f, 1]), load3(x, faces[f, 2]))


@device_fn
def face_shade(f, n, scene):
    """Shade [-] of face f with normal n, per channel: k_a + sum L k_d max(0, n.l).

    In the light of spherical harmonics it is theirs.
    """
    if scene.harmonics.shape[0] > 0:
        return harmonic_shade(n, scene.harmonics)
    o = scene.owner[f]
    s0, s1, s2 = load3(scene.ambient, o)
    for k in range(scene.directions.shape[0]):
        g0, g1, g2 = lambert(
            n, load3(scene.directions, k), load3(scene.lights, k), load3(scene.diffuse, o)
        )
        s0, s1, s2 = s0 + g0, s1 + g1, s2 + g2
    return s0, s1, s2


@device_fn
def normals_body(f, scene, x, faces):
    """Face f, shaded pixel by pixel: write the normals of its corners, or its own, once."""
    if scene.rounded[f]:
        for k in range(3):
            for c in range(3):
                faces.shaded[f, 3 * k + c] = faces.normals[scene.faces[f, k], c]
    else:
        n = face_normal(f, scene.faces, x)
        faces.shaded[f, 0], faces.shaded[f, 1], faces.shaded[f, 2] = n


@device_fn
def shade_body(f, scene, x, shaded):
    """Face f: write the shaded colours of its corners, or of itself in the first place."""
    s = face_shade(f, face_normal(f, scene.faces, x), scene)
    for c in range(3):
        if scene.smooth[f]:
            for k in range(3):
                shaded[f, 3 * k + c] = s[c] * scene.vertex_colors[scene.color_faces[f, k], c]
        else:
            shaded[f, c] = s[c] * scene.face_colors[f, c]


@device_fn
def max_abs(a):
    """The larger of the sizes of two coordinates."""
    return max(abs(a[0]), abs(a[1]))


@device_fn
def sum_abs(a):
    """The sum of the sizes of two coordinates."""
    return abs(a[0]) + abs(a[1])


@device_fn
def is_drawn(a0, a1, a2, z, settings):
    """Whether the face with screen corners a and depths z is drawn."""
    if not (min(z[0], z[1], z[2]) >= settings.near):
        return False
    if not (max(z[0], z[1], z[2]) <= settings.far):
        return False
    u = (a1[0] - a0[0], a1[1] - a0[1])
    v = (a2[0] - a0[0], a2[1] - a0[1])
    area = cross2(u, v)
    # Of the products, and of the corners, each times the edge opposite to it: an edge-on face has
    # the area of these.
    opposite = sum_abs((v[0] - u[0], v[1] - u[1]))
    off = max_abs(a0) * opposite + max_abs(a1) * sum_abs(v) + max_abs(a2) * sum_abs(u)
    products = abs(u[0] * v[1]) + abs(u[1] * v[0])
    rounding = lit(FLAT, area) * settings.eps * (products + off)
    # The area is at most that of the shortest edge times the longest, which is below this sum.
    smallest = lit(SMALLEST, area) * (lit(1.0, area) + sum_abs(u) + sum_abs(v))
    if not (abs(area) > rounding + smallest):
        return False
    return area > lit(0.0, area) or not settings.cull


@device_fn
def first_pixel(s, n):
    """Index of the first of n pixels at or after the place s [pixels]."""
    return math.ceil(min(max(s, lit(0.0, s)), type(s)(n)))


@device_fn
def corner_body(f, scene, screen, p, corners):
    """Face f: write its three corners on the screen, their depths, and p.

    p is 1 in perspective and 0 in an orthographic view.
    """
    corners[f, 9] = p
    for k in range(3):
        i = scene.faces[f, k]
        corners[f, 2 * k] = screen[i, 0]
        corners[f, 2 * k + 1] = screen[i, 1]
        corners[f, 6 + k] = screen[i, 2]


@device_fn
def load_corners(f, corners):
    """Three screen corners of face f, and its three depths followed by p."""
    return (
        (corners[f, 0], corners[f, 1]),
        (corners[f, 2], corners[f, 3]),
        (corners[f, 4], corners[f, 5]),
        (corners[f, 6], corners[f, 7], corners[f, 8], corners[f, 9]),
    )


@device_fn
def box_body(f, corners, settings, height, width, box):
    """Face f: write the box of pixels it can reach; return whether there are any."""
    a0, a1, a2, z = load_corners(f, corners)
    box[f, 0] = box[f, 1] = box[f, 2] = box[f, 3] = 0
    if not is_drawn(a0, a1, a2, z, settings):
        return False
    unity, half = lit(1.0, z[0]), lit(0.5, z[0])
    reach = math.sqrt(-settings.lowest * settings.sigma) * (unity + lit(16.0, unity) * settings.eps)
    rows = half * type(unity)(height)  # pixels per screen unit, in both directions
    middle = half * type(unity)(width) - half
    low, high = min(a0[0], a1[0], a2[0]) - reach, max(a0[0], a1[0], a2[0]) + reach
    bottom, top = min(a0[1], a1[1], a2[1]) - reach, max(a0[1], a1[1], a2[1]) + reach
    slack = lit(1e-3, unity)  # of a pixel: the distance decides, not the box
    box[f, 0] = first_pixel((unity - top) * rows - half - slack, height)
    box[f, 1] = first_pixel((unity - bottom) * rows - half + slack, height)
    box[f, 2] = first_pixel(low * rows + middle - slack, width)
    box[f, 3] = first_pixel(high * rows + middle + slack, width)
    return box[f, 0] < box[f, 1] and box[f, 2] < box[f, 3]


@device_fn
def face_body(f, scene, x, p, settings, shape, faces):
    """Face f: write its corners and its box and, if it is drawn, what shades it; return whether."""
    corner_body(f, scene, faces.screen, p, faces.corners)
    if box_body(f, faces.corners, settings, shape[0], shape[1], faces.box):
        if scene.by_pixel[f]:
            normals_body(f, scene, x, faces)
        else:
            shade_body(f, scene, x, faces.shaded)
        return True
    faces.box[f, 1] = faces.box[f, 0]
    return False


def _setup_faces(view, scene, x, settings, shape, corners, faces):
    """Project the vertices of one frame and set up its faces."""
    eye, frame = unpack_view(view)
    for i in range(faces.normals.shape[0]):
        normal_body(i, x, scene.faces, corners, faces.normals)
    for i in range(x.shape[0]):
        project_body(i, x, eye, frame, faces.screen)
    for i in range(faces.towards.shape[0]):
        towards_body(i, x, eye, frame[2], view[PERSPECTIVE], faces.towards)
    for f in range(scene.faces.shape[0]):
        face_body(f, scene, x, view[PERSPECTIVE], settings, shape, faces)


setup_faces = cpu_kernel(_setup_faces)
