"""What a record keeps of the fragments of a frame, so that nothing need find them again.

Of each fragment the pixel, its place in the list of that pixel, and the logit are kept: 16
bytes in float64; in Softmax and in DIBR its depth besides, and its colour where any face has
more than one. Where a pixel is on the screen, the coverage, and the colour of a face that has
one are cheaper to write again than to keep, and come out equal to the bit. `tile_room` has a
tile drawn straight into where it is kept.

A record keeps at most KEPT_BYTES, the same part of it for each frame. A frame that needs more
keeps nothing: then the reverse, and each tangent, finds its fragments again, with the same
result to the bit.

Tests: `tests/render/raster/test_fragment_cache.py`.
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, shared_fn
from adjsim.jit.tile_queue import take_turn
from render.blending import OVER
from render.raster.fragments import Fragments, cover_fragments, fill_colors, tile_area
from render.raster.frames import Frame, draw_tile, setup_frame
from render.raster.layers import Layers, of_frame, room_to_show
from render.raster.packing import Job
from render.raster.thread_pool import Pool, for_each_frame
from render.raster.tile_rows import LANES
from render.raster.tile_scratch import empty_fragments, own_room, tile_size
from render.soft_raster import draw_samples, empty_images


KEPT_BYTES = 1 << 28
LINE = 64  # bytes of a line of the cache


class Kept(NamedTuple):
    """The fragments of a frame, tile after tile; all is empty if nothing is kept."""

    place: np.ndarray  # (n_tiles + 1,) int64, where the fragments of a tile begin
    pixel: np.ndarray  # (n,) int32, as in `Fragments`
    order: np.ndarray  # (n,) int32
    y: np.ndarray  # (n,)
    z: np.ndarray  # (n,), or (0,) in Over
    rgb: np.ndarray  # (n, 3), or (0, 3) where every face has one colour
    start: np.ndarray  # (n_tiles, pixels of a tile + 2) int32
    pair: np.ndarray  # (n_pairs + n_tiles,) int64


class KeptFrame(NamedTuple):
    """A frame that is set up, and its fragments."""

    ready: Frame
    kept: Kept


def in_one_block(*wanted: tuple[tuple[int, ...], Any]) -> list[np.ndarray]:
    """Return empty arrays of these shapes and types, one after the other in one block of memory.

    Several large blocks that are given back together go back to the system, which hands them
    out again page by page: a third of the time of a small image. One is there for the next record.
    """
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in wanted]
    steps = (-(-size // LINE) * LINE for size in sizes)
    block = np.empty(sum(sizes) + LINE * (len(sizes) + 1), np.uint8)
    start = -block.__array_interface__["data"][0] % LINE  # so that each begins a line
    return [
        block[first : first + size].view(dtype).reshape(shape)
        for first, size, (shape, dtype) in zip(
            accumulate(steps, initial=start), sizes, wanted, strict=False
        )
    ]


def empty_kept(ready: Frame, n: int, n_deep: int, n_colors: int) -> Kept:
    """Return room for n fragments of a frame, of which so many have depths and colours."""
    dtype, side = ready.grid.pixel_x.dtype, 1 << ready.grid.shift
    n_tiles, n_pairs = len(ready.tiles.capacity), len(ready.tiles.faces)
    place = np.zeros(n_tiles + 1 if n else 0, np.int64)
    place[1:] = np.cumsum(ready.tiles.capacity + LANES) if n else 0
    return Kept(
        place,
        *in_one_block(
            ((n,), np.int32),
            ((n,), np.int32),
            ((n,), dtype),
            ((n_deep,), dtype),
            ((n_colors, 3), dtype),
            ((n_tiles if n else 0, side * side + 2), np.int32),
            ((n_pairs + n_tiles if n else 0,), np.int64),
        ),
    )


def room_to_keep(job: Job, ready: Frame, n_frames: int) -> Kept:
    """Return room for all that the fragments of a frame need, or none if that is too much."""
    n_tiles, n_pairs = len(ready.tiles.capacity), len(ready.tiles.faces)
    n = int(ready.tiles.capacity.sum()) + LANES * n_tiles
    is_deep = job.settings.blend != OVER or job.settings.is_deep
    is_colored = bool(job.scene.smooth.any() or job.scene.by_pixel.any())
    size = job.x.dtype.itemsize
    per_fragment = 8 + size * (1 + is_deep + 3 * is_colored)
    n_bytes = n * per_fragment + n_tiles * 4 * ((1 << 2 * ready.grid.shift) + 2) + 8 * n_pairs
    n_bytes += sum(array.nbytes for array in (*ready.faces, *ready.tiles))
    if n_bytes > KEPT_BYTES // n_frames:  # before there is any room: a scene may need far more
        return empty_kept(ready, 0, 0, 0)
    return empty_kept(ready, n, n * is_deep, n * is_colored)


@device_fn
def tile_room(tile, tiles, kept, fragments):
    """Where the fragments of a tile are kept, and, for what is not, the scratch of all tiles."""
    if kept.place.shape[0] == 0:
        return fragments
    a, b = kept.place[tile], kept.place[tile + 1]
    return Fragments(
        kept.pixel[a:b], fragments.face, fragments.p_x, fragments.p_y, kept.y[a:b],
        fragments.D, fragments.rest, kept.z[a:b] if kept.z.shape[0] > 0 else fragments.z,
        fragments.u, kept.rgb[a:b] if kept.rgb.shape[0] > 0 else fragments.rgb,
        kept.order[a:b], fragments.spare, kept.start[tile], kept.pair[tiles.start[tile] + tile :],
        fragments.logits, fragments.box_x, fragments.box_y, fragments.shade,
    )  # fmt: skip


@device_fn
def recall_places(tile, n, grid, fragments):
    """Where the first n fragments of a tile are on the screen."""
    area, shift = tile_area(tile, grid), np.uint64(grid.shift)
    top, left, columns = np.uint64(area[0]), np.uint64(area[2]), np.uint64((1 << grid.shift) - 1)
    for q in range(np.uint64(n)):
        pixel = np.uint64(fragments.pixel[q])
        fragments.p_x[q] = grid.pixel_x[left + (pixel & columns)]
        fragments.p_y[q] = grid.pixel_y[top + (pixel >> shift)]


def _recall_tile(tile, grid, scene, faces, tiles, settings, kept, fragments):
    """Write again what is not kept of the fragments of a tile, in the room of that tile."""
    n = 0
    for pair in range(tiles.start[tile], tiles.start[tile + 1]):
        f, first = tiles.faces[pair], n
        n = fragments.pair[pair - tiles.start[tile] + 1]
        for q in range(np.uint64(first), np.uint64(n)):
            fragments.face[q] = f
        if kept.rgb.shape[0] == 0:
            fill_colors(first, n, f, faces.shaded, fragments)
    recall_places(tile, n, grid, fragments)
    cover_fragments(n, settings.blend, fragments)


def _draw_tiles_kept(turn, scene, settings, frame, room, kept, layers, images):
    """Draw the tiles of a frame whose turn it is, and keep their fragments."""
    tiles = frame[1]
    tile = take_turn(turn)
    while tile < tiles.capacity.shape[0]:
        rooms = tile_room(tile, tiles, kept, room[0]), room[1]
        draw_tile(tile, scene, settings, frame, rooms, layers, images)
        tile = take_turn(turn)


recall_tile = shared_fn(_recall_tile)
draw_tiles_kept = cpu_kernel(_draw_tiles_kept)


def draw_frame_kept(
    job: Job, frame: int, n_frames: int, layers: Layers, images: np.ndarray, pool: Pool
) -> KeptFrame | None:
    """Draw the layers of one of n_frames frames; return what is kept of it, if anything is."""
    ready, shown = setup_frame(job, frame), of_frame(job, frame, layers)
    kept, size = room_to_keep(job, ready, n_frames), tile_size(ready.tiles, ready.grid)

    def draw(turn: np.ndarray) -> None:
        room = own_room(empty_fragments, size), room_to_show(layers, size)
        draw_tiles_kept(turn, job.scene, job.settings, tuple(ready), room, kept, shown, images)

    pool.over_tiles(draw)
    return KeptFrame(ready, kept) if len(kept.place) else None


def draw_kept(
    jobs: Sequence[Job], layers: Sequence[Layers], threads: int | None
) -> tuple[np.ndarray, list[KeptFrame | None]]:
    """Draw like `draw_frames` on the CPU, and return what is kept of each frame too."""
    images = empty_images(jobs, layers)
    n_frames = len(jobs) * len(jobs[0].x)

    def draw(view: int, frame: int, pool: Pool) -> KeptFrame | None:
        frames: list[KeptFrame | None] = []
        job = jobs[view]
        draw_samples(
            job,
            images[view, frame],
            lambda room: frames.append(
                draw_frame_kept(job, frame, n_frames, layers[view], room, pool)
            ),
        )
        return frames[0]

    return images, for_each_frame(jobs, threads, draw)


def recall_frame(job: Job, frame: int, kept_frame: KeptFrame | None) -> KeptFrame:
    """Return what was kept of a frame, or the frame set up again, with nothing kept."""
    if kept_frame is not None:
        return kept_frame
    ready = setup_frame(job, frame)
    return KeptFrame(ready, empty_kept(ready, 0, 0, 0))
