r"""Adjoint of `render/raster/frames.py`: an image pulled back to all that a frame depends on.

The forward's stages are undone last first, tile by tile and then for the frame:

    pixels -> fragments -> slots of (tile, face) -> faces -> vertices, scene, view

Where there are textures, one thread alone adds what each block of fragments gives its texels at
once. Several keep a record of 56 bytes (in float64) of each fragment, in the place of its tile,
and these are added up afterwards, in the same order. There is a place for each pixel in the boxes
of the faces: where these need more than a record of images may keep, one thread works alone.

Every sum has a fixed order that does not know how many threads there are: gradients are
equal to the bit on any number of them. The tangents are in `tile_tangents.py`.
"""

from typing import Any, NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import blend_vjp_body
from adjoint.render.faces.face_setup import (
    PIXEL_SLOT,
    SLOT,
    add_colors,
    setup_faces_vjp,
    undo_corners,
)
from adjoint.render.raster.fragment_cache import KEPT_BYTES, KeptFrame, recall_tile, tile_room
from adjoint.render.raster.fragments import sum_pairs, sum_pixel_pairs
from adjoint.render.raster.layers import (
    add_layer_body,
    flat_normals_vjp,
    normals_vjp_body,
    room_to_undo,
)
from adjoint.render.raster.pixel_shading import ShadeParts, zero_parts
from adjoint.render.raster.supersampling import repeat_vjp
from adjoint.render.raster.tile_adjoints import empty_scratch, pair_vjp_tile
from adjoint.render.raster.tile_calls import UNSHADE, call_unshade, unshade_table
from adjoint.render.textures import TexelRecords, add_records, add_uv, empty_records, record_bytes
from adjsim.jit.backend import cpu_kernel, device_fn, shared_fn
from adjsim.jit.calls import function_table
from adjsim.jit.tile_queue import take_turn
from render.blending import background_at
from render.raster.fragments import Tiles, tile_area
from render.raster.frames import Frame, empty_faces
from render.raster.layers import DEPTH, Layers, layer_body, of_frame, with_colors
from render.raster.packing import Job
from render.raster.thread_pool import Pool
from render.raster.tile_calls import GATHER, call_gather
from render.raster.tile_scratch import own_room, tile_size


# Columns of a tile's sums: settings, and a background of one colour.
SIGMA, GAMMA, EPSILON, BACKGROUND, NEAR, FAR, SETTINGS = 0, 1, 2, 3, 6, 7, 8


def _undo_tile(tile, background, settings, grid, fragments, adj, adj_image, sums, adj_behind):
    """From the pixels of a tile to its fragments; adds to the sums of gamma to far.

    A background image has the adjoints adj_behind of its samples; else that is empty.
    """
    top, bottom, left, right = tile_area(tile, grid)
    for i in range(top, bottom):
        for j in range(left, right):
            k = ((i - top) << grid.shift) + j - left
            begin, end = fragments.start[k], fragments.start[k + 1]
            for c in range(4):
                adj.rgba[k, c] = adj_image[i, j, c]
            adj_rgba = (adj.rgba[k, 0], adj.rgba[k, 1], adj.rgba[k, 2], adj.rgba[k, 3])
            behind = background_at(i, j, background)
            adj_bg, adj_settings = blend_vjp_body(
                begin, end, fragments, settings, behind, adj_rgba, adj
            )
            sums[GAMMA] += adj_settings[0]
            sums[EPSILON] += adj_settings[1]
            sums[NEAR] += adj_settings[2]
            sums[FAR] += adj_settings[3]
            for c in range(3):
                sums[BACKGROUND + c] += adj_bg[c]
                if adj_behind.shape[0] > 0:
                    adj_behind[i, j, c] = adj_bg[c]


undo_tile = shared_fn(_undo_tile)  # one copy: equal bits wherever it is called


@device_fn
def pairs_vjp_body(tile, scene, settings, faces, tiles, fragments, adj, slots):
    """From the fragments of a tile to the slots of its pairs."""
    for pair in range(tiles.start[tile], tiles.start[tile + 1]):
        slots.tiles[tile, SIGMA] += pair_vjp_tile(
            pair - tiles.start[tile], tiles.faces[pair], scene, faces, settings,
            fragments, adj, pair, slots.pairs,
        )  # fmt: skip


@device_fn
def layers_vjp_body(
    tile, scene, settings, frame, fragments, adj, layers, scratch, adj_images, sums
):  # fmt: skip
    """From the pixels of all layers but colours to the fragments of a tile; adds to the sums."""
    faces, tiles, grid, _ = frame
    n, others = fragments.pair[tiles.start[tile + 1] - tiles.start[tile]], scratch.sums
    layered, nowhere = with_colors(fragments, scratch.rgb), layers.behind[0, :0]
    others[:] = 0
    for i in range(1, layers.kinds.shape[0]):
        kind = layers.kinds[i]
        for q in range(n):
            layer_body(q, kind, scene, faces, layers.flat, fragments, scratch.rgb)
        undo_tile(
            tile, layers.behind[i], settings, grid, layered, scratch.adj, adj_images[i], others,
            nowhere,
        )  # fmt: skip
        for q in range(n):
            add_layer_body(q, kind, fragments, scratch.adj, adj)
        if kind == DEPTH:  # the first of the others: far lies behind it
            sums[FAR] += others[BACKGROUND]
    sums[GAMMA] += others[GAMMA]
    sums[EPSILON] += others[EPSILON]
    sums[NEAR] += others[NEAR]
    sums[FAR] += others[FAR]


def _draw_tiles_vjp(
    turn, scene, settings, frame, kept, scratch, layers, adj_images, slots, normal_slots
):
    """Fill the slots of the pairs, and the sums and parts, of each tile whose turn it is."""
    faces, tiles, grid, calls = frame
    spare, adj, of_layers = scratch
    tile = take_turn(turn)
    while tile < tiles.capacity.shape[0]:
        fragments = tile_room(tile, tiles, kept, spare)
        if kept.place.shape[0] > 0:
            recall_tile(tile, grid, scene, faces, tiles, settings, kept, fragments)
        else:
            call_gather(calls, GATHER, (tile, grid, scene, faces, tiles, settings, fragments))
        sums = slots.tiles[tile]
        sums[:] = 0
        undo_tile(
            tile, scene.background, settings, grid, fragments, adj, adj_images[0], sums,
            slots.behind,
        )  # fmt: skip
        layers_vjp_body(
            tile, scene, settings, frame, fragments, adj, layers, of_layers, adj_images, sums
        )
        pairs_vjp_body(tile, scene, settings, faces, tiles, fragments, adj, slots)
        if faces.towards.shape[0] > 0:
            call_unshade(slots.calls, UNSHADE, (tile, scene, faces, tiles, fragments, adj, slots))
        if layers.flat.shape[0] > 0:  # the last layer shows normals
            begin = tiles.start[tile]
            for pair in range(begin, tiles.start[tile + 1]):
                normals_vjp_body(
                    pair - begin, tiles.faces[pair], scene, faces, fragments, of_layers.adj, pair,
                    slots.pairs, normal_slots,
                )  # fmt: skip
        tile = take_turn(turn)


draw_tiles_vjp = cpu_kernel(_draw_tiles_vjp)


class Slots(NamedTuple):
    """What the tiles of a frame pull back to, each to its own place."""

    pairs: np.ndarray  # (n_pairs, 18 or 36) of corners and colours, and of what shades pixels
    tiles: np.ndarray  # (n_tiles, SETTINGS), in columns SIGMA to FAR
    behind: np.ndarray  # of the samples of a background image, or (0, 0, 3)
    parts: ShadeParts  # of every tile, or of none where no face is shaded pixel by pixel
    records: TexelRecords  # of all fragments, or of none where they are added at once
    place: np.ndarray  # (n_tiles + 1,) int64, where the records of a tile begin
    written: np.ndarray  # (n_tiles,) int64, how many there are of it
    calls: Any  # table of the function that undoes the shading of a tile


def empty_slots(job: Job, ready: Frame, *, alone: bool = False) -> Slots:
    """Return room for what the tiles of a frame pull back; one thread alone sums records."""
    dtype, n_texels = job.x.dtype, len(job.scene.texels)
    n_tiles, n_pairs = len(ready.tiles.capacity), len(ready.tiles.faces)
    place = np.zeros(n_tiles + 1, np.int64)
    if n_texels and not alone:
        np.cumsum(ready.tiles.capacity, out=place[1:])
    total = np.zeros((n_texels if alone else 0, 3), dtype)
    by_pixel = len(ready.faces.towards) > 0
    width = PIXEL_SLOT if by_pixel else SLOT
    is_image = len(job.background_shape) == 3
    slots = Slots(
        np.empty((n_pairs, width), dtype),
        np.empty((n_tiles, SETTINGS), dtype),
        np.empty(job.scene.background.shape if is_image else (0, 0, 3), dtype),
        zero_parts(n_tiles if by_pixel else 0, len(job.scene.ambient), job.scene, dtype),
        empty_records(np, int(place[-1]), dtype)._replace(total=total),
        place,
        np.zeros(n_tiles, np.int64),
        function_table([None]),
    )
    return slots._replace(calls=unshade_table(job, ready, slots))


def compile_shading(job: Job) -> None:
    """Compile what undoes the shading of a tile before any frame is set up: its types are known."""
    tiles = Tiles(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    empty_slots(job, Frame(empty_faces(job), tiles, job.grid, function_table([None])))


def sharing(job: Job, ready: Frame, pool: Pool) -> Pool:
    """Return the pool, or that of one thread where records of texels would need too much room."""
    n_records = int(ready.tiles.capacity.sum()) if len(job.scene.texels) else 0
    return pool if n_records * record_bytes(job.x.dtype) <= KEPT_BYTES else Pool()


def draw_frame_vjp(
    job: Job, frame: int, kept_frame: KeptFrame, layers: Layers, adj_images: np.ndarray, pool: Pool
) -> paths.Packed:
    """Adjoints of everything from the adjoints of the layers of one frame."""
    (ready, kept), frame_layers = kept_frame, of_frame(job, frame, layers)
    pool = sharing(job, ready, pool)
    slots = empty_slots(job, ready, alone=pool.threads == 1)
    size, n_pairs = tile_size(ready.tiles, ready.grid), len(ready.tiles.faces)
    normal_slots = np.empty((n_pairs if len(frame_layers.flat) else 0, 3), job.x.dtype)

    def draw(turn: np.ndarray) -> None:
        scratch = (*own_room(empty_scratch, size), room_to_undo(layers, size))
        draw_tiles_vjp(
            turn, job.scene, job.settings, tuple(ready), kept, scratch, frame_layers, adj_images,
            slots, normal_slots,
        )  # fmt: skip

    pool.over_tiles(draw)
    adj = undo_frame(job, frame, ready, slots)
    flat_normals_vjp(
        job.scene.faces[: len(frame_layers.flat)], job.scene.rounded, ready.faces.box, job.x[frame],
        ready.tiles.faces[: len(normal_slots)], normal_slots, np.empty_like(frame_layers.flat),
        adj.x,
    )  # fmt: skip
    return adj


def undo_frame(job: Job, frame: int, ready: Frame, slots: Slots) -> paths.Packed:
    """From what the tiles of a frame pulled back to all that the frame depends on."""
    adj = paths.zeros(job)
    dtype, n_faces = job.x.dtype, len(job.scene.faces)
    adj_faces = np.zeros((n_faces, slots.pairs.shape[1]), dtype)
    sum_pairs(ready.tiles.faces, slots.pairs, adj_faces)
    by_pixel = len(ready.faces.towards) > 0
    if by_pixel:
        sum_pixel_pairs(ready.tiles.faces, job.scene.by_pixel, slots.pairs, adj_faces)
    slots_of_faces = np.zeros((n_faces, 3, 9), dtype)  # 0 where a face is not drawn
    setup_faces_vjp(
        job.view, job.scene, job.x[frame], ready.faces, job.corners, adj_faces, slots_of_faces,
        adj.x, adj.scene, adj.view,
    )  # fmt: skip
    add_colors(job.scene.color_faces, slots_of_faces, adj.scene.vertex_colors)
    if by_pixel:
        undo_corners(
            job.view, job.scene, job.x[frame], ready.faces, job.corners, adj_faces,
            np.empty_like(ready.faces.normals), adj.x, adj.view,
        )  # fmt: skip
        for name, tile_adj in zip(slots.parts._fields, slots.parts, strict=True):
            getattr(adj.scene, name)[...] += tile_adj.sum(axis=0)
        adj.scene.texels[: len(slots.records.total)] = slots.records.total
        add_records(slots.records, slots.place, slots.written, adj.scene.texels)
        add_uv(job.scene.uv_faces, adj_faces, adj.scene.uv)
    sums = slots.tiles.sum(axis=0)
    adj.numbers[:BACKGROUND], adj.numbers[paths.CLIPPING] = sums[:BACKGROUND], sums[NEAR:]
    behind = sums[BACKGROUND:NEAR]
    if len(slots.behind) > 0:  # of an image
        behind = repeat_vjp(slots.behind, job.samples)
    adj.scene.background[:] = behind
    return adj
