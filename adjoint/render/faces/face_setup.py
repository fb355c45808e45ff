r"""Tangent and adjoint of `render/faces/face_setup.py`: read the two files side by side.

A face writes the adjoints of its three corners into its own slots, on the screen, in the
world (through its normal) and in colour; each vertex, and each row of colours, then sums its
slots in the order of the faces. What many faces share (material, lights, view) is summed in one
fixed order.

Frozen: which faces are drawn, near, far, culling and the boxes of pixels. A vertex of no
drawn face has the adjoint 0, wherever it is.
"""

from typing import NamedTuple

import numpy as np

from adjoint.render.projection import project_jvp, project_vjp, towards_eye_vjp
from adjoint.render.shaders.harmonics import harmonic_shade_jvp, harmonic_shade_vjp
from adjoint.render.shaders.normals import normal_jvp_body, points_vjp_body, sum_vjp_body
from adjoint.render.shaders.shading import (
    flat_normal_jvp,
    flat_normal_vjp,
    lambert_jvp,
    lambert_vjp,
)
from adjsim.algebra.vec3 import add
from adjsim.jit.backend import cpu_kernel, device_fn, lit
from render.faces.face_setup import corner_body, face_normal, face_shade, load3
from render.projection import PERSPECTIVE, towards_body, unpack_view
from render.textures import is_textured


# Columns of the adjoints of a face: corners on the screen, their depths and colours ...
CORNERS, DEPTHS, COLORS, SLOT = 0, 6, 9, 18
NORMALS, TOWARDS, PIXEL_SLOT = 18, 27, 36  # ... and, shaded pixel by pixel, these at its corners


class FaceTangents(NamedTuple):
    """Tangents of the faces of a frame."""

    screen: np.ndarray  # (n_vertices, 3)
    corners: np.ndarray  # (n_faces, 10), 0 for p
    shaded: np.ndarray  # (n_faces, 9)
    normals: np.ndarray  # (n_vertices or 0, 3)
    towards: np.ndarray  # (n_vertices or 0, 3)


@device_fn
def add_row(array, i, value):
    """Add a vector to row i of an array."""
    array[i, 0] += value[0]
    array[i, 1] += value[1]
    array[i, 2] += value[2]


@device_fn
def face_shade_jvp(f, n, tan_n, scene, tan_scene):
    """Shade of face f, then its tangent."""
    if scene.harmonics.shape[0] > 0:
        return harmonic_shade_jvp(n, scene.harmonics, tan_n, tan_scene.harmonics)
    o = scene.owner[f]
    s, tan_s = load3(scene.ambient, o), load3(tan_scene.ambient, o)
    for k in range(scene.directions.shape[0]):
        g, tan_g = lambert_jvp(
            n,
            load3(scene.directions, k),
            load3(scene.lights, k),
            load3(scene.diffuse, o),
            tan_n,
            load3(tan_scene.directions, k),
            load3(tan_scene.lights, k),
            load3(tan_scene.diffuse, o),
        )
        s, tan_s = add(s, g), add(tan_s, tan_g)
    return s, tan_s


@device_fn
def face_shade_vjp(f, n, scene, adj_s, adj_scene, row):
    """Add to the adjoints of lights and, in this row, of materials; return adj_n."""
    if scene.harmonics.shape[0] > 0:
        return harmonic_shade_vjp(n, scene.harmonics, adj_s, adj_scene.harmonics)
    o = scene.owner[f]
    adj_n = (lit(0.0, n[0]), lit(0.0, n[0]), lit(0.0, n[0]))
    for k in range(scene.directions.shape[0]):
        adj_n_k, adj_l, adj_light, adj_diffuse = lambert_vjp(
            n, load3(scene.directions, k), load3(scene.lights, k), load3(scene.diffuse, o), adj_s
        )
        adj_n = add(adj_n, adj_n_k)
        add_row(adj_scene.directions, k, adj_l)
        add_row(adj_scene.lights, k, adj_light)
        add_row(adj_scene.diffuse, row, adj_diffuse)
    add_row(adj_scene.ambient, row, adj_s)
    return adj_n


@device_fn
def face_normal_jvp(f, faces, x, tan_x):
    """Normal of face f, then its tangent."""
    i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
    return flat_normal_jvp(
        load3(x, i), load3(x, j), load3(x, k), load3(tan_x, i), load3(tan_x, j), load3(tan_x, k)
    )


@device_fn
def normals_jvp_body(f, scene, x, tan_x, tangents):
    """Face f, shaded pixel by pixel: write the tangents of the normals of its corners."""
    if scene.rounded[f]:
        for k in range(3):
            for c in range(3):
                tangents.shaded[f, 3 * k + c] = tangents.normals[scene.faces[f, k], c]
    else:
        _, tan_n = face_normal_jvp(f, scene.faces, x, tan_x)
        tangents.shaded[f, 0], tangents.shaded[f, 1], tangents.shaded[f, 2] = tan_n


@device_fn
def shade_jvp_body(f, scene, tan_scene, x, tan_x, tangents):
    """Face f: write the tangents of its shaded colours, or of its normals."""
    if scene.by_pixel[f]:
        normals_jvp_body(f, scene, x, tan_x, tangents)
        return
    n, tan_n = face_normal_jvp(f, scene.faces, x, tan_x)
    s, tan_s = face_shade_jvp(f, n, tan_n, scene, tan_scene)
    for c in range(3):
        if scene.smooth[f]:
            for a in range(3):
                v = scene.color_faces[f, a]
                tangents.shaded[f, 3 * a + c] = (
                    tan_s[c] * scene.vertex_colors[v, c] + s[c] * tan_scene.vertex_colors[v, c]
                )
        else:
            tangents.shaded[f, c] = (
                tan_s[c] * scene.face_colors[f, c] + s[c] * tan_scene.face_colors[f, c]
            )


@device_fn
def color_vjp(f, s, scene, adj_shaded, adj_face_colors, slots):
    """Undo shaded = s C: return adj_s; the colours go to the face or to the slots."""
    adj_s = (lit(0.0, s[0]), lit(0.0, s[0]), lit(0.0, s[0]))
    if not scene.smooth[f]:
        adj = (adj_shaded[f, 9], adj_shaded[f, 10], adj_shaded[f, 11])
        C = load3(scene.face_colors, f)
        add_row(adj_face_colors, f, (s[0] * adj[0], s[1] * adj[1], s[2] * adj[2]))
        return (C[0] * adj[0], C[1] * adj[1], C[2] * adj[2])
    for a in range(3):
        at = 9 + 3 * a
        adj = (adj_shaded[f, at], adj_shaded[f, at + 1], adj_shaded[f, at + 2])
        C = load3(scene.vertex_colors, scene.color_faces[f, a])
        for c in range(3):
            slots[f, a, 6 + c] = s[c] * adj[c]
        adj_s = add(adj_s, (C[0] * adj[0], C[1] * adj[1], C[2] * adj[2]))
    return adj_s


@device_fn
def face_normal_vjp(f, faces, x, adj_n):
    """Pull the adjoint of the normal of face f back to its three corners."""
    return flat_normal_vjp(
        load3(x, faces[f, 0]), load3(x, faces[f, 1]), load3(x, faces[f, 2]), adj_n
    )


@device_fn
def place_slots(f, a, adj_faces, slots):
    """Face f: the adjoints of corner a on the screen."""
    slots[f, a, 0] = adj_faces[f, CORNERS + 2 * a]
    slots[f, a, 1] = adj_faces[f, CORNERS + 2 * a + 1]
    slots[f, a, 2] = adj_faces[f, DEPTHS + a]


@device_fn
def normal_part(f, a, adj_faces):
    """Adjoint of the normal at corner a of face f."""
    at = NORMALS + 3 * a
    return (adj_faces[f, at], adj_faces[f, at + 1], adj_faces[f, at + 2])


@device_fn
def pixel_face_vjp_body(f, scene, x, adj_faces, adj_face_colors, slots):
    """Face f, shaded pixel by pixel: what is left is its place, its one normal, its colours."""
    zero = lit(0.0, adj_faces[f, 0])
    adj_x = ((zero, zero, zero), (zero, zero, zero), (zero, zero, zero))
    if not scene.rounded[f]:
        adj_n = add(normal_part(f, 0, adj_faces), normal_part(f, 1, adj_faces))
        adj_n = add(adj_n, normal_part(f, 2, adj_faces))
        adj_x = face_normal_vjp(f, scene.faces, x, adj_n)
    for a in range(3):
        place_slots(f, a, adj_faces, slots)
        for c in range(3):
            adj_C = zero if is_textured(f, scene) else adj_faces[f, COLORS + 3 * a + c]
            slots[f, a, 3 + c] = adj_x[a][c]
            slots[f, a, 6 + c] = adj_C if scene.smooth[f] else zero
            if not scene.smooth[f]:
                adj_face_colors[f, c] += adj_C


@device_fn
def face_vjp_body(f, scene, x, adj_faces, adj_face_colors, adj_scene, row, slots):
    """Face f: write the adjoints of its corners into its slots.

    Adds to `adj_scene` the adjoints of lights and, in `row`, of materials.
    """
    if scene.by_pixel[f]:
        pixel_face_vjp_body(f, scene, x, adj_faces, adj_face_colors, slots)
        return
    n = face_normal(f, scene.faces, x)
    s = face_shade(f, n, scene)
    for a in range(3):
        for c in range(6, 9):
            slots[f, a, c] = lit(0.0, s[0])
    adj_s = color_vjp(f, s, scene, adj_faces, adj_face_colors, slots)
    adj_n = face_shade_vjp(f, n, scene, adj_s, adj_scene, row)
    adj_x = face_normal_vjp(f, scene.faces, x, adj_n)
    for a in range(3):
        place_slots(f, a, adj_faces, slots)
        for c in range(3):
            slots[f, a, 3 + c] = adj_x[a][c]


@device_fn
def slot3(f, a, at, slots):
    """Three numbers from place `at` of the slot of corner a of face f."""
    return slots[f, a, at], slots[f, a, at + 1], slots[f, a, at + 2]


@device_fn
def vertex_sums(i, box, vertex_corners, slots):
    """Place, and what comes through normals, summed over the corners at vertex i."""
    zero = lit(0.0, slots[0, 0, 0])
    place = through = (zero, zero, zero)
    for c in range(vertex_corners.start[i], vertex_corners.start[i + 1]):
        f, a = vertex_corners.corners[c] // 3, vertex_corners.corners[c] % 3
        if box[f, 0] < box[f, 1]:
            place = add(place, slot3(f, a, 0, slots))
            through = add(through, slot3(f, a, 3, slots))
    return place, through


@device_fn
def pixel_sum(i, at, chosen, box, vertex_corners, adj_faces):
    """Three numbers from at + 3 a on of corners a at vertex i, summed over chosen faces drawn."""
    zero = lit(0.0, adj_faces[0, 0])
    total = (zero, zero, zero)
    for k in range(vertex_corners.start[i], vertex_corners.start[i + 1]):
        f, a = vertex_corners.corners[k] // 3, vertex_corners.corners[k] % 3
        if chosen[f] and box[f, 0] < box[f, 1]:
            c = at + 3 * a
            total = add(total, (adj_faces[f, c], adj_faces[f, c + 1], adj_faces[f, c + 2]))
    return total


@device_fn
def normal_slots_body(i, rounded, box, vertex_corners, adj_faces, adj_normals):
    """Vertex i: write the adjoint of its normal, summed over its corners of drawn faces."""
    adj_n = pixel_sum(i, NORMALS, rounded, box, vertex_corners, adj_faces)
    adj_normals[i, 0], adj_normals[i, 1], adj_normals[i, 2] = adj_n


@device_fn
def towards_vjp_body(i, by_pixel, view, box, vertex_corners, adj_faces, adj_x, adj_view):
    """Vertex i: undo the vector towards the eye, summed over its corners of drawn faces."""
    adj_v = pixel_sum(i, TOWARDS, by_pixel, box, vertex_corners, adj_faces)
    adj_point, adj_eye, adj_forward = towards_eye_vjp(view[PERSPECTIVE], adj_v)
    add_row(adj_x, i, adj_point)
    for c in range(3):
        adj_view[c] += adj_eye[c]
        adj_view[9 + c] += adj_forward[c]


@device_fn
def is_used(i, box, vertex_corners):
    """Whether a drawn face has a corner at vertex i."""
    for c in range(vertex_corners.start[i], vertex_corners.start[i + 1]):
        f = vertex_corners.corners[c] // 3
        if box[f, 0] < box[f, 1]:
            return True
    return False


@device_fn
def vertex_jvp_body(i, x, tan_x, eye, tan_eye, frame, tan_frame, tan_screen):
    """Vertex i: write the tangents of its screen position and depth."""
    _, _, _, tan_s_x, tan_s_y, tan_z = project_jvp(
        load3(x, i), eye, frame, load3(tan_x, i), tan_eye, tan_frame
    )
    tan_screen[i, 0], tan_screen[i, 1], tan_screen[i, 2] = tan_s_x, tan_s_y, tan_z


@device_fn
def vertex_vjp_body(i, x, eye, frame, box, vertex_corners, slots, adj_x, adj_view):
    """Vertex i of a drawn face: add to adj_x and the adjoint of the view."""
    place, through = vertex_sums(i, box, vertex_corners, slots)
    adj_point, adj_right, adj_true_up, adj_forward, adj_lens = project_vjp(
        load3(x, i), eye, frame, place[0], place[1], place[2]
    )
    add_row(adj_x, i, add(adj_point, through))
    for c in range(3):
        adj_view[c] -= adj_point[c]
        adj_view[3 + c] += adj_right[c]
        adj_view[6 + c] += adj_true_up[c]
        adj_view[9 + c] += adj_forward[c]
    for c in range(6):
        adj_view[12 + c] += adj_lens[c]


def _setup_faces_jvp(view, tan_view, scene, tan_scene, x, tan_x, vertex_corners, faces, tangents):
    """Tangents of the screen, the corners and the colours of a frame that is set up."""
    eye, frame = unpack_view(view)
    tan_eye, tan_frame = unpack_view(tan_view)
    for i in range(tangents.normals.shape[0]):
        normal_jvp_body(i, x, tan_x, scene.faces, vertex_corners, tangents.normals)
    for i in range(x.shape[0]):
        vertex_jvp_body(i, x, tan_x, eye, tan_eye, frame, tan_frame, tangents.screen)
    for i in range(tangents.towards.shape[0]):
        towards_body(i, tan_x, tan_eye, tan_frame[2], view[PERSPECTIVE], tangents.towards)
    for f in range(scene.faces.shape[0]):
        if faces.box[f, 0] < faces.box[f, 1]:
            corner_body(f, scene, tangents.screen, lit(0.0, view[PERSPECTIVE]), tangents.corners)
            shade_jvp_body(f, scene, tan_scene, x, tan_x, tangents)


def _setup_faces_vjp(
    view, scene, x, faces, vertex_corners, adj_faces, slots, adj_x, adj_scene, adj_view
):
    """From adj_faces (n_faces, 18 or 36), corners then colours, to vertices, scene and view."""
    eye, frame = unpack_view(view)
    for f in range(scene.faces.shape[0]):
        if faces.box[f, 0] < faces.box[f, 1]:
            face_vjp_body(
                f, scene, x, adj_faces, adj_scene.face_colors, adj_scene, scene.owner[f], slots
            )
    for i in range(x.shape[0]):
        if is_used(i, faces.box, vertex_corners):
            vertex_vjp_body(i, x, eye, frame, faces.box, vertex_corners, slots, adj_x, adj_view)


def _undo_corners(view, scene, x, faces, vertex_corners, adj_faces, adj_normals, adj_x, adj_view):
    """From what pixels are shaded with at the corners to the vertices and the view."""
    for i in range(x.shape[0]):
        towards_vjp_body(
            i, scene.by_pixel, view, faces.box, vertex_corners, adj_faces, adj_x, adj_view
        )
    for i in range(adj_normals.shape[0]):
        normal_slots_body(i, scene.rounded, faces.box, vertex_corners, adj_faces, adj_normals)
        sum_vjp_body(i, x, scene.faces, vertex_corners, adj_normals)
    for i in range(adj_normals.shape[0]):
        points_vjp_body(i, x, scene.faces, vertex_corners, adj_normals, adj_x)


def _add_colors(color_faces, slots, adj_colors):
    """Add what the slots of faces hold to the adjoints of colours (n_colors, 3), in their order."""
    for f in range(color_faces.shape[0]):
        if color_faces[f, 0] >= 0:
            for a in range(3):
                add_row(adj_colors, color_faces[f, a], slot3(f, a, 6, slots))


add_colors = cpu_kernel(_add_colors)
undo_corners = cpu_kernel(_undo_corners)
setup_faces_jvp = cpu_kernel(_setup_faces_jvp)
setup_faces_vjp = cpu_kernel(_setup_faces_vjp)
