r"""Adjoint of `render/raster/layers.py`: read the two files side by side.

A layer is undone like colours are: its weights get adjoints through the attribute that it
shows, and the attribute gets w times the adjoint of its pixel. The adjoints of logits and
depths of all layers add up before the faces are undone, once. Depth passes on to z and, where
nothing is seen, to far, a normal to the face or to the normals of its corners; which object a
face belongs to is fixed. The tangents are in `layer_tangents.py`.
"""

from typing import NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentAdjoints
from adjoint.render.raster.face_setup import NORMALS, add_row, face_normal_vjp
from adjoint.render.raster.fragments import place_slots_vjp
from adjoint.render.raster.frames import (
    empty_slots,
    pairs_vjp_body,
    sharing,
    tile_vjp_body,
    undo_frame,
)
from adjoint.render.raster.tile_adjoints import empty_adjoints, empty_scratch
from adjoint.render.raster.tile_calls import UNSHADE, call_unshade
from adjoint.render.shaders.normals import unit_mean_vjp
from adjoint.render.shaders.pixel_shading import add_corners, no_corners, weighted_vjp
from adjsim.engine.jit.backend import cpu_kernel, device_fn, lit
from render.raster.barycentrics import fragment_place
from render.raster.face_setup import load3, load_corners
from render.raster.fragments import Fragments
from render.raster.frames import setup_frame
from render.raster.layers import DEPTH, Layers, frame_normals, layer_body
from render.raster.packing import Job
from render.raster.thread_pool import Pool
from render.raster.tile_calls import GATHER, call_gather
from render.raster.tile_queue import take_turn
from render.raster.tile_scratch import TileSize, own_room, tile_size
from render.shaders.pixel_shading import corner_rows, weighted


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
                slots[pair, NORMALS + 3 * a + c] += sums[a][c]


def _draw_layers_vjp(
    turn, scene, settings, frame, scratch, layers, flat, adj_images, slots, normal_slots
):
    """Fill the slots of the tiles of a frame whose turn it is from all its layers."""
    faces, tiles, grid, calls = frame
    fragments, layered, adj, adj_layer = scratch
    nowhere, tile = slots.behind[:0], take_turn(turn)
    while tile < tiles.capacity.shape[0]:
        call_gather(calls, GATHER, (tile, grid, scene, faces, tiles, settings, fragments))
        begin, end = tiles.start[tile], tiles.start[tile + 1]
        sums, others, n = slots.tiles[tile], normal_slots.tiles[tile], fragments.pair[end - begin]
        sums[:] = 0
        others[:] = 0
        tile_vjp_body(
            tile, scene.background, settings, grid, fragments, adj, adj_images[0], sums,
            slots.behind,
        )  # fmt: skip
        for i in range(1, layers.kinds.shape[0]):
            for q in range(n):
                layer_body(q, layers.kinds[i], scene, faces, flat, fragments, layered)
            tile_vjp_body(
                tile, layers.behind[i], settings, grid, layered, adj_layer, adj_images[i], others,
                nowhere,
            )  # fmt: skip
            for q in range(n):
                add_layer_body(q, layers.kinds[i], fragments, adj_layer, adj)
            if layers.kinds[i] == DEPTH:  # the first of the others: far lies behind it
                sums[7] += others[3]
        sums[1] += others[1]
        sums[2] += others[2]
        sums[6] += others[6]
        sums[7] += others[7]
        pairs_vjp_body(tile, scene, settings, faces, tiles, fragments, adj, slots)
        if faces.towards.shape[0] > 0:
            call_unshade(slots.calls, UNSHADE, (tile, scene, faces, tiles, fragments, adj, slots))
        if flat.shape[0] > 0:  # the last layer is that of normals
            for pair in range(begin, end):
                normals_vjp_body(
                    pair - begin, tiles.faces[pair], scene, faces, fragments, adj_layer, pair,
                    slots.pairs, normal_slots.pairs,
                )  # fmt: skip
        tile = take_turn(turn)


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


draw_layers_vjp = cpu_kernel(_draw_layers_vjp)
flat_normals_vjp = cpu_kernel(_flat_normals_vjp)


class LayerSlots(NamedTuple):
    """What the layers of a frame pull back to beside the slots of its colours."""

    tiles: np.ndarray  # (n_tiles, 8) as of the colours, but for a background that is fixed
    pairs: np.ndarray  # (n_pairs, 3) of the normals of faces


def empty_layered_scratch(
    size: TileSize,
) -> tuple[Fragments, Fragments, FragmentAdjoints, FragmentAdjoints]:
    """Return room for the fragments of a tile, as they are and in a layer, and their adjoints."""
    fragments, adj = empty_scratch(size)
    layered = fragments._replace(rgb=np.empty_like(fragments.rgb))
    return fragments, layered, adj, empty_adjoints(size)


def draw_frame_layers_vjp(
    job: Job,
    frame: int,
    layers: Layers,
    adj_images: np.ndarray,
    pool: Pool,
) -> paths.Packed:
    """Adjoints of everything from the adjoints of the layers of one frame."""
    ready, flat = setup_frame(job, frame), frame_normals(job, frame, layers)
    pool = sharing(job, ready, pool)
    slots, dtype = empty_slots(job, ready, alone=pool.threads == 1), job.x.dtype
    size, n_pairs = tile_size(ready.tiles, ready.grid), len(ready.tiles.faces)
    own = LayerSlots(np.empty_like(slots.tiles), np.empty((n_pairs if len(flat) else 0, 3), dtype))

    def draw(turn: np.ndarray) -> None:
        draw_layers_vjp(
            turn, job.scene, job.settings, tuple(ready), own_room(empty_layered_scratch, size),
            layers, flat, adj_images, slots, own,
        )  # fmt: skip

    pool.over_tiles(draw)
    adj = undo_frame(job, frame, ready, slots)
    flat_normals_vjp(
        job.scene.faces[: len(flat)], job.scene.rounded, ready.faces.box, job.x[frame],
        ready.tiles.faces[: len(own.pairs)], own.pairs, np.empty_like(flat), adj.x,
    )  # fmt: skip
    return adj
