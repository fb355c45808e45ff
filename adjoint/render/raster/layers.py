r"""Adjoint of `render/raster/layers.py`: read the two files side by side.

A layer is undone like colours are: its weights get adjoints through the attribute that it
shows, and the attribute gets w times the adjoint of its pixel. The adjoints of logits and
depths of all layers add up before the faces are undone, once. Depth passes on to z and, where
nothing is seen, to far, a normal to the face or to the normals of its corners; which object a
face belongs to is fixed.

Tests: `tests/render/test_outputs.py`.
"""

from typing import NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentAdjoints
from adjoint.render.faces.face_setup import (
    NORMALS as NORMAL_PLACE,
    add_row,
    face_normal_jvp,
    face_normal_vjp,
)
from adjoint.render.raster.barycentrics import place_jvp
from adjoint.render.raster.fragments import place_slots_vjp
from adjoint.render.raster.pixel_shading import add_corners, no_corners, weighted_vjp
from adjoint.render.raster.tile_adjoints import empty_adjoints
from adjoint.render.shaders.normals import unit_mean_vjp
from adjsim.algebra.vec3 import add
from adjsim.jit.backend import cpu_kernel, device_fn, lit
from render.faces.face_setup import load3, load_corners
from render.raster.barycentrics import fragment_place
from render.raster.layers import DEPTH, NORMALS, Layers, empty_colors
from render.raster.packing import Job
from render.raster.pixel_shading import corner_rows, weighted
from render.raster.tile_scratch import TileSize, own_room


@device_fn
def add_layer_body(q, kind, fragments, adj_layer, adj):
    """Add the adjoints of logit and depth of fragment q from one layer."""
    adj.y[q] += adj_layer.y[q]
    adj.z[q] += adj_layer.z[q]
    if kind == DEPTH:
        adj.z[q] += adj_layer.w[q] * adj_layer.rgba[fragments.pixel[q], 0]


@device_fn
def normals_vjp_body(k, f, scene, faces, fragments, adj_layer, pair, slots, normal_slots):
    """Pair k of the tile, face f: undo the normals that its fragments show."""
    corners = load_corners(f, faces.corners)
    zero = lit(0.0, corners[0][0])
    sums = no_corners(zero)
    for c in range(3):
        normal_slots[pair, c] = zero
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        i, s = fragments.pixel[q], adj_layer.w[q]
        adj_n = (s * adj_layer.rgba[i, 0], s * adj_layer.rgba[i, 1], s * adj_layer.rgba[i, 2])
        if scene.rounded[f]:
            p = (fragments.p_x[q], fragments.p_y[q])
            _, w = fragment_place(p, corners[0], corners[1], corners[2], corners[3])
            n = corner_rows(f, scene.faces, faces.normals)

            # (3) n = m/|m|,  m = sum w_k n_k
            adj_m = unit_mean_vjp(weighted(w, n), adj_n)
            sums = add_corners(sums, w, adj_m)

            # (2) w at the pixel
            place_slots_vjp(p, corners, zero, weighted_vjp(n, adj_m), pair, slots)
        else:
            add_row(normal_slots, pair, adj_n)  # (1)
    if scene.rounded[f]:
        for a in range(3):
            for c in range(3):
                slots[pair, NORMAL_PLACE + 3 * a + c] += sums[a][c]


def _flat_normals_vjp(faces, rounded, box, x, pair_faces, normal_slots, adj_flat, adj_x):
    """Sum the slots of the normal of every face, and add its adjoint to the vertices."""
    adj_flat[:] = 0
    for pair in range(pair_faces.shape[0]):
        add_row(adj_flat, pair_faces[pair], load3(normal_slots, pair))
    for f in range(faces.shape[0]):
        if box[f, 0] < box[f, 1] and not rounded[f]:
            adj = face_normal_vjp(f, faces, x, load3(adj_flat, f))
            for a in range(3):
                add_row(adj_x, faces[f, a], adj[a])


@device_fn
def fragment_normal_jvp(q, f, scene, faces, tan_faces, tan_flat, fragments):
    """Tangent of the normal of fragment q of face f."""
    if not scene.rounded[f]:
        return load3(tan_flat, f)  # (1)
    corners, tan_corners = load_corners(f, faces.corners), load_corners(f, tan_faces.corners)
    p = (fragments.p_x[q], fragments.p_y[q])
    _, w = fragment_place(p, corners[0], corners[1], corners[2], corners[3])
    _, tan_w = place_jvp(p, corners, tan_corners)  # (2)
    n, tan_n = (
        corner_rows(f, scene.faces, faces.normals),
        corner_rows(f, scene.faces, tan_faces.normals),
    )
    return unit_mean_vjp(weighted(w, n), add(weighted(tan_w, n), weighted(w, tan_n)))  # (3)


@device_fn
def layer_jvp_body(q, kind, scene, frame_faces, tan_flat, fragments, tangents, tan_rgb):
    """Tangents of what fragment q shows in a layer."""
    faces, tan_faces = frame_faces
    zero = lit(0.0, fragments.z[q])
    tan = (zero, zero, zero)
    if kind == DEPTH:
        tan = (tangents.z[q], zero, zero)
    elif kind == NORMALS:
        f = fragments.face[q]
        tan = fragment_normal_jvp(q, f, scene, faces, tan_faces, tan_flat, fragments)
    tan_rgb[q, 0], tan_rgb[q, 1], tan_rgb[q, 2] = tan


@device_fn
def flat_normal_jvp_body(f, faces, x, tan_x, tan_flat):
    """Write the tangent of the unit normal of face f."""
    _, tan_n = face_normal_jvp(f, faces, x, tan_x)
    tan_flat[f, 0], tan_flat[f, 1], tan_flat[f, 2] = tan_n


def _flat_normals_jvp(faces, x, tan_x, tan_flat):
    """Tangents of the unit normals of all faces."""
    for f in range(tan_flat.shape[0]):
        flat_normal_jvp_body(f, faces, x, tan_x, tan_flat)


flat_normals_vjp = cpu_kernel(_flat_normals_vjp)
flat_normals_jvp = cpu_kernel(_flat_normals_jvp)


def behind_jvp(layers: Layers, tangents: paths.Packed) -> np.ndarray:
    """Return the tangents of what lies behind each layer: behind depth that is far."""
    tan = np.zeros_like(layers.behind)
    tan[layers.kinds == DEPTH, 0, 0, 0] = tangents.numbers[paths.FAR]
    return tan


def tangents_of_frame(job: Job, frame: int, layers: Layers, tangents: paths.Packed) -> Layers:
    """Tangents of what lies behind each layer, and of the normals of the faces of a frame."""
    flat = np.empty_like(layers.flat)
    with np.errstate(divide="ignore", invalid="ignore"):  # of faces without area: not drawn
        flat_normals_jvp(job.scene.faces, job.x[frame], tangents.x[frame], flat)
    return Layers(layers.kinds, behind_jvp(layers, tangents), flat)


class LayerScratch(NamedTuple):
    """Room for a thread to undo a layer of a tile."""

    rgb: np.ndarray  # (capacity, 3) what the fragments show
    adj: FragmentAdjoints
    sums: np.ndarray  # (8,) as of a tile in `Slots`, of all layers but colours


def empty_layer_scratch(size: TileSize) -> LayerScratch:
    """Return room to undo a layer of a tile."""
    return LayerScratch(empty_colors(size), empty_adjoints(size), np.empty(8, size.dtype))


def room_to_undo(layers: Layers, size: TileSize) -> LayerScratch:
    """Return room to undo the layers that are not of colours."""
    n = size.fragments if len(layers.kinds) > 1 else 0
    return own_room(empty_layer_scratch, size._replace(fragments=n))


def empty_layer_tangents(size: TileSize) -> tuple[np.ndarray, np.ndarray]:
    """Return room for what the fragments of a tile show in a layer, and its tangents."""
    return empty_colors(size), empty_colors(size)


def room_to_push(layers: Layers, size: TileSize) -> tuple[np.ndarray, np.ndarray]:
    """Return room to push to the layers that are not of colours."""
    n = size.fragments if len(layers.kinds) > 1 else 0
    return own_room(empty_layer_tangents, size._replace(fragments=n))
