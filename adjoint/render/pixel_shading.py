"""Tangent and adjoint of `render/pixel_shading.py`: read the two files side by side."""

from typing import Any, NamedTuple

from adjoint.render.face_setup import face_shade_jvp, face_shade_vjp
from adjoint.render.normals import unit_or_zero_vjp
from adjsim.backend import device_fn
from adjsim.vec3 import add, dot, scale
from render.face_setup import PackedScene, face_shade, load3
from render.normals import unit_or_zero
from render.pixel_shading import corner_albedo, corner_rows, weighted


class ShadeParts(NamedTuple):
    """What the tiles, or on a GPU the pairs, add to the adjoints of lights and materials."""

    ambient: Any  # (n, n_objects, 3); on a GPU (n, 1, 3), of the object of the face
    diffuse: Any  # of the shape of ambient
    directions: Any  # (n, n_lights, 3)
    lights: Any  # (n, n_lights, 3)
    harmonics: Any  # (n, 9 or 0, 3)


def zero_parts(xp: Any, n: int, n_objects: int, scene: PackedScene, dtype: Any) -> ShadeParts:
    """Return n parts that are 0; xp is NumPy, or CuPy for a GPU."""
    materials, lights = (n, n_objects, 3), (n, len(scene.lights), 3)
    return ShadeParts(
        xp.zeros(materials, dtype),
        xp.zeros(materials, dtype),
        xp.zeros(lights, dtype),
        xp.zeros(lights, dtype),
        xp.zeros((n, len(scene.harmonics), 3), dtype),
    )


@device_fn
def own_parts(k, parts):
    """Part k of all."""
    return ShadeParts(
        parts.ambient[k], parts.diffuse[k], parts.directions[k], parts.lights[k], parts.harmonics[k]
    )


@device_fn
def sum_part(begin, end, part, total):
    """Add the parts begin..end-1, (m, 3) each, to the total (m, 3)."""
    for k in range(begin, end):
        for i in range(part.shape[1]):
            for c in range(3):
                total[i, c] += part[k, i, c]


@device_fn
def corner_albedo_jvp(f, scene, tan_scene):
    """Tangents of the colours of the corners of face f."""
    if scene.smooth[f]:
        return corner_rows(f, scene.faces, tan_scene.vertex_colors)
    tan_C = load3(tan_scene.face_colors, f)
    return tan_C, tan_C, tan_C


@device_fn
def pixel_color_jvp(f, w, normals, scene, tan_w, tan_normals, tan_scene):
    """Tangent of the colour of face f at a pixel."""
    corners = corner_rows(f, scene.faces, normals)
    tan_corners = corner_rows(f, scene.faces, tan_normals)
    m = weighted(w, corners)
    tan_m = add(weighted(tan_w, corners), weighted(w, tan_corners))  # (1)
    n, _ = unit_or_zero(m)
    tan_n = unit_or_zero_vjp(m, tan_m)  # (2)
    s, tan_s = face_shade_jvp(f, n, tan_n, scene, tan_scene)  # (3)
    albedo = corner_albedo(f, scene)
    C = weighted(w, albedo)
    tan_C = add(weighted(tan_w, albedo), weighted(w, corner_albedo_jvp(f, scene, tan_scene)))  # (4)
    return (  # (5)
        tan_s[0] * C[0] + s[0] * tan_C[0],
        tan_s[1] * C[1] + s[1] * tan_C[1],
        tan_s[2] * C[2] + s[2] * tan_C[2],
    )


@device_fn
def weighted_vjp(a, adj):
    """Pull adj back through sum w_k a_k to the weights."""
    return dot(a[0], adj), dot(a[1], adj), dot(a[2], adj)


@device_fn
def add_corners(slots, pair, at, w, adj):
    """Add w_k adj to three numbers for each corner k, from place `at` of a slot on."""
    for k in range(3):
        part = scale(w[k], adj)
        slots[pair, at + 3 * k] += part[0]
        slots[pair, at + 3 * k + 1] += part[1]
        slots[pair, at + 3 * k + 2] += part[2]


@device_fn
def pixel_color_vjp(f, w, normals, scene, adj_rgb, adj_scene, row, slots, pair):
    """Pull back through `pixel_color`: adj_w.

    Adds to the adjoints of lights and, in `row`, of materials in adj_scene; and in the slot of
    the pair to those of the colours of the three corners, then to those of their normals.
    """
    corners, albedo = corner_rows(f, scene.faces, normals), corner_albedo(f, scene)
    m = weighted(w, corners)  # (1) replayed
    n, _ = unit_or_zero(m)  # (2) replayed
    s = face_shade(f, n, scene)  # (3) replayed
    C = weighted(w, albedo)  # (4) replayed

    # (5) rgb = s C
    adj_s = (C[0] * adj_rgb[0], C[1] * adj_rgb[1], C[2] * adj_rgb[2])
    adj_C = (s[0] * adj_rgb[0], s[1] * adj_rgb[1], s[2] * adj_rgb[2])

    # (4) C = sum w_k C_k
    adj_w = weighted_vjp(albedo, adj_C)
    add_corners(slots, pair, 9, w, adj_C)

    # (3) s = shade(n)
    adj_n = face_shade_vjp(f, n, scene, adj_s, adj_scene, row)

    # (2) n = m/|m|
    adj_m = unit_or_zero_vjp(m, adj_n)

    # (1) m = sum w_k n_k
    add_corners(slots, pair, 18, w, adj_m)
    return add(adj_w, weighted_vjp(corners, adj_m))
