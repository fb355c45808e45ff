"""Tangent and adjoint of `render/raster/pixel_shading.py`: read the two files side by side."""

from typing import Any, NamedTuple

import numpy as np

from adjoint.render.faces.face_setup import NORMALS, add_row, face_shade_jvp, face_shade_vjp
from adjoint.render.shaders.normals import unit_mean_vjp, unit_or_zero_vjp
from adjoint.render.shaders.shading import highlight_jvp, highlight_vjp
from adjoint.render.textures import texture_color_jvp, texture_color_vjp
from adjsim.algebra.vec3 import add, axpy, dot
from adjsim.jit.backend import device_fn, lit
from render.faces.face_setup import PackedScene, load3
from render.raster.pixel_shading import (
    corner_albedo,
    corner_normals,
    corner_rows,
    is_glossy,
    pixel_albedo,
    pixel_light,
    weighted,
)
from render.shaders.normals import unit_mean, unit_or_zero
from render.textures import is_textured


class ShadeParts(NamedTuple):
    """What tiles, or on a GPU pairs and faces, add to the adjoints of lights and materials."""

    ambient: Any  # (n, n_objects, 3); on a GPU (n, 1, 3), of the object of the face
    diffuse: Any  # of the shape of ambient
    specular: Any  # of the shape of ambient
    shininess: Any  # (n, n_objects or 1, 1)
    directions: Any  # (n, n_lights, 3)
    lights: Any  # (n, n_lights, 3)
    harmonics: Any  # (n, 9 or 0, 3)


def part_shapes(scene: PackedScene, n_objects: int = 1) -> list[tuple[int, int]]:
    """Return the shapes of the parts of `ShadeParts`, in their order."""
    rows = {"directions": len(scene.lights), "lights": len(scene.lights)}
    rows["harmonics"] = len(scene.harmonics)
    return [
        (rows.get(name, n_objects), 1 if name == "shininess" else 3) for name in ShadeParts._fields
    ]


def zero_parts(n: int, n_objects: int, scene: PackedScene, dtype: Any) -> ShadeParts:
    """Return n parts that are 0."""
    return ShadeParts(*(np.zeros((n, *shape), dtype) for shape in part_shapes(scene, n_objects)))


@device_fn
def own_parts(k, parts):
    """Part k of all."""
    return ShadeParts(
        parts.ambient[k],
        parts.diffuse[k],
        parts.specular[k],
        parts.shininess[k],
        parts.directions[k],
        parts.lights[k],
        parts.harmonics[k],
    )


@device_fn
def corner_albedo_jvp(f, scene, tan_scene):
    """Tangents of the colours of the corners of face f."""
    if scene.smooth[f]:
        return corner_rows(f, scene.color_faces, tan_scene.vertex_colors)
    tan_C = load3(tan_scene.face_colors, f)
    return tan_C, tan_C, tan_C


@device_fn
def pixel_albedo_jvp(f, w, tan_w, scene, tan_scene):
    """Colour C of face f at a pixel, then its tangent."""
    if is_textured(f, scene):
        return texture_color_jvp(f, w, tan_w, scene, tan_scene)
    albedo = corner_albedo(f, scene)
    tan_C = weighted_jvp(w, albedo, tan_w, corner_albedo_jvp(f, scene, tan_scene))
    return weighted(w, albedo), tan_C


@device_fn
def weighted_jvp(w, a, tan_w, tan_a):
    """Tangent of sum w_k a_k."""
    return add(weighted(tan_w, a), weighted(w, tan_a))


@device_fn
def face_highlight_jvp(f, n, e, tan_n, tan_e, scene, tan_scene):
    """Tangent of the highlights on face f."""
    o = scene.owner[f]
    tan = (lit(0.0, n[0]), lit(0.0, n[0]), lit(0.0, n[0]))
    for k in range(scene.directions.shape[0]):
        tan_k = highlight_jvp(
            n,
            e,
            load3(scene.directions, k),
            load3(scene.lights, k),
            load3(scene.specular, o),
            scene.shininess[o, 0],
            tan_n,
            tan_e,
            load3(tan_scene.directions, k),
            load3(tan_scene.lights, k),
            load3(tan_scene.specular, o),
            tan_scene.shininess[o, 0],
        )
        tan = add(tan, tan_k)
    return tan


@device_fn
def face_light_jvp(f, faces, tan_faces, scene, tan_scene):
    """Normal and shade of a face with one normal, and their tangents."""
    n, tan_n = load3(faces.shaded, f), load3(tan_faces.shaded, f)
    s, tan_s = face_shade_jvp(f, n, tan_n, scene, tan_scene)
    return n, s, tan_n, tan_s


@device_fn
def pixel_light_jvp(f, w, tan_w, faces, tan_faces, scene, tan_scene):
    """Normal and shade at a pixel, and their tangents."""
    if not scene.rounded[f]:
        return face_light_jvp(f, faces, tan_faces, scene, tan_scene)
    corners, tan_corners = corner_normals(f, faces.shaded), corner_normals(f, tan_faces.shaded)
    m = weighted(w, corners)
    n, _ = unit_mean(m)
    tan_n = unit_mean_vjp(m, weighted_jvp(w, corners, tan_w, tan_corners))  # (1)
    s, tan_s = face_shade_jvp(f, n, tan_n, scene, tan_scene)  # (2)
    return n, s, tan_n, tan_s


@device_fn
def pixel_color_jvp(f, w, tan_w, faces, tan_faces, scene, tan_scene):
    """Tangent of the colour of face f at a pixel."""
    n, s, tan_n, tan_s = pixel_light_jvp(f, w, tan_w, faces, tan_faces, scene, tan_scene)  # (1)
    C, tan_C = pixel_albedo_jvp(f, w, tan_w, scene, tan_scene)  # (2)
    tan = (  # (3)
        tan_s[0] * C[0] + s[0] * tan_C[0],
        tan_s[1] * C[1] + s[1] * tan_C[1],
        tan_s[2] * C[2] + s[2] * tan_C[2],
    )
    if is_glossy(f, scene):
        v = corner_rows(f, scene.faces, faces.towards)
        tan_v = corner_rows(f, scene.faces, tan_faces.towards)
        m = weighted(w, v)
        e, _ = unit_or_zero(m)
        tan_e = unit_or_zero_vjp(m, weighted_jvp(w, v, tan_w, tan_v))  # (4)
        tan = add(tan, face_highlight_jvp(f, n, e, tan_n, tan_e, scene, tan_scene))  # (5)
    return tan


@device_fn
def weighted_vjp(a, adj):
    """Pull adj back through sum w_k a_k to the weights."""
    return dot(a[0], adj), dot(a[1], adj), dot(a[2], adj)


@device_fn
def no_corners(zero):
    """Sums of three numbers for each of three corners, all 0."""
    return (zero, zero, zero), (zero, zero, zero), (zero, zero, zero)


@device_fn
def add_corners(sums, w, adj):
    """Sums of three corners, with w_k adj added to that of each corner k."""
    return axpy(w[0], adj, sums[0]), axpy(w[1], adj, sums[1]), axpy(w[2], adj, sums[2])


@device_fn
def write_corners(slots, pair, at, sums):
    """Write the sums of three corners from place `at` of a slot on."""
    for k in range(3):
        for c in range(3):
            slots[pair, at + 3 * k + c] = sums[k][c]


@device_fn
def pixel_albedo_vjp(f, w, scene, adj_C, records, k):
    """Pull back through `pixel_albedo`: adj_w, and for corners adj_C or (adj_u, adj_v, 0)."""
    if is_textured(f, scene):
        return texture_color_vjp(f, w, scene, adj_C, records, k)
    return weighted_vjp(corner_albedo(f, scene), adj_C), adj_C


@device_fn
def face_highlight_vjp(f, n, e, scene, adj, adj_scene, row):
    """Add to the adjoints of lights and, in this row, of materials; return adj_n and adj_e."""
    o = scene.owner[f]
    adj_n = (lit(0.0, n[0]), lit(0.0, n[0]), lit(0.0, n[0]))
    adj_e = adj_n
    for k in range(scene.directions.shape[0]):
        adj_n_k, adj_e_k, adj_l, adj_light, adj_specular, adj_p = highlight_vjp(
            n,
            e,
            load3(scene.directions, k),
            load3(scene.lights, k),
            load3(scene.specular, o),
            scene.shininess[o, 0],
            adj,
        )
        adj_n, adj_e = add(adj_n, adj_n_k), add(adj_e, adj_e_k)
        add_row(adj_scene.directions, k, adj_l)
        add_row(adj_scene.lights, k, adj_light)
        add_row(adj_scene.specular, row, adj_specular)
        adj_scene.shininess[row, 0] += adj_p
    return adj_n, adj_e


@device_fn
def pixel_light_vjp(f, w, n, faces, scene, adj_n, adj_s, adj_scene, row):
    """Pull back through `pixel_light`: adj_w, adj_m; one normal leaves adj_s, and gets adj_n."""
    if not scene.rounded[f]:
        return (lit(0.0, n[0]), lit(0.0, n[0]), lit(0.0, n[0])), adj_n
    corners = corner_normals(f, faces.shaded)

    # (2) s = shade(n)
    adj_n = add(adj_n, face_shade_vjp(f, n, scene, adj_s, adj_scene, row))

    # (1) n = sum w_k n_k, normalised
    adj_m = unit_mean_vjp(weighted(w, corners), adj_n)
    return weighted_vjp(corners, adj_m), adj_m


@device_fn
def pixel_color_vjp(f, w, light, faces, scene, adj_rgb, adj_scene, row, records, k):
    """Pull back through `pixel_color`: adj_w, adj_s for `face_light_vjp`, and `shared`.

    The w_k `shared` are what corner k gets: adjoints of its colour or its uv, of its normal and
    of its vector towards the eye. Adds to the adjoints of lights and, in `row`, of materials in
    `adj_scene`. Writes the adjoints of texels to record k.
    """
    n, s = pixel_light(f, w, light, faces, scene)  # (1) replayed
    C = pixel_albedo(f, w, scene)  # (2) replayed
    adj_n = (lit(0.0, n[0]), lit(0.0, n[0]), lit(0.0, n[0]))
    adj_w, adj_v = adj_n, adj_n
    if is_glossy(f, scene):
        v = corner_rows(f, scene.faces, faces.towards)
        m = weighted(w, v)
        e, _ = unit_or_zero(m)  # (4) replayed

        # (5) rgb = ... + highlight(n, e)
        adj_n, adj_e = face_highlight_vjp(f, n, e, scene, adj_rgb, adj_scene, row)

        # (4) e = sum w_k v_k, normalised
        adj_v = unit_or_zero_vjp(m, adj_e)
        adj_w = weighted_vjp(v, adj_v)

    # (3) rgb = s C
    adj_s = (C[0] * adj_rgb[0], C[1] * adj_rgb[1], C[2] * adj_rgb[2])
    adj_C = (s[0] * adj_rgb[0], s[1] * adj_rgb[1], s[2] * adj_rgb[2])

    # (2) C
    adj_w_C, adj_corner = pixel_albedo_vjp(f, w, scene, adj_C, records, k)
    adj_w = add(adj_w, adj_w_C)

    # (1) n and s
    adj_w_n, adj_m = pixel_light_vjp(f, w, n, faces, scene, adj_n, adj_s, adj_scene, row)
    return add(adj_w, adj_w_n), adj_s, (adj_corner, adj_m, adj_v)


@device_fn
def face_light_vjp(f, light, scene, adj_s, adj_scene, row, slots, pair):
    """Pull adj_s, summed over the pixels of a face with one normal, back to that normal."""
    if not scene.rounded[f]:
        adj_n = face_shade_vjp(f, light[0], scene, adj_s, adj_scene, row)
        for c in range(3):
            slots[pair, NORMALS + c] += adj_n[c]
