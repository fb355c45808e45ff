r"""One frame: its faces set up and sorted into tiles, and its tiles drawn.

    vertices -> screen -> faces ready to be drawn -> fragments of a tile -> pixels

Colours are drawn first, then what else was asked for of the same fragments (`layers.py`).

Memory beside the images: some 200 bytes for each face and 150 for each pair of a face and a
tile that it reaches; and for each thread 90 bytes (drawing) or 120 (pulling back) for each
pixel in the boxes of the faces of one tile, the fullest. Tiles are cut smaller until that is
at most `LARGEST_TILE` pixels, or until a tile is one pixel; so it does not grow with the image.
A thread keeps the last for the frames that follow, if it is not large.

Adjoint: `adjoint/render/raster/frames.py`. Tests: `tests/render/test_soft_raster.py`.
"""

from typing import Any, NamedTuple

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, shared_fn
from adjsim.jit.tile_queue import take_turn
from render.blending import background_at, blend_body
from render.faces.face_setup import Faces, setup_faces
from render.faces.fragment_lists import BINS, count_tiles, fill_tiles, order_faces
from render.raster.fragments import TileGrid, Tiles, tile_area
from render.raster.layers import Layers, layer_body, of_frame, room_to_show, with_colors
from render.raster.light_reach import find_reach
from render.raster.packing import Job
from render.raster.thread_pool import Pool
from render.raster.tile_calls import GATHER, call_gather, gather_table
from render.raster.tile_scratch import empty_fragments, own_room, tile_size
from render.seamless import find_soft


LARGEST_TILE = 1 << 20  # fragments; if a tile may hold more, tiles are smaller


class Frame(NamedTuple):
    """One frame, ready for its tiles to be drawn."""

    faces: Faces
    tiles: Tiles
    grid: TileGrid
    calls: Any  # table of the function that finds the fragments of a tile


def empty_faces(job: Job) -> Faces:
    """Return room for the faces of a frame."""
    x = job.x[0]
    n_faces, dtype = len(job.scene.faces), x.dtype
    by_pixel = job.scene.by_pixel.any()
    return Faces(
        np.empty((len(x), 3), dtype),
        np.empty((n_faces, 10), dtype),
        np.empty((n_faces, 9), dtype),
        np.empty((n_faces, 4), np.int64),
        np.empty((len(x) if job.scene.rounded.any() else 0, 3), dtype),
        np.empty((len(job.edges.number), 12), np.int64),
        np.empty((len(x) if by_pixel else 0, 3), dtype),
        np.empty((n_faces if by_pixel else 0, 2), np.bool_),
    )


def setup_frame(job: Job, frame: int) -> Frame:
    """Project a frame, set up its faces and sort them into tiles."""
    x, faces = job.x[frame], empty_faces(job)
    height, width = len(job.grid.pixel_y), len(job.grid.pixel_x)
    with np.errstate(divide="ignore", invalid="ignore"):  # at depth 0: faces not drawn
        setup_faces(job.view, job.scene, x, job.settings, (height, width), job.corners, faces)
        if len(faces.towards):
            find_reach(job.scene, faces)
        if len(faces.soft):
            find_soft(
                job.scene.faces, job.edges, job.corners, faces.corners, job.settings, faces.soft
            )
    shift = job.grid.shift
    while True:
        n_down, n_across = (-(-n >> shift) for n in (height, width))
        start, capacity = (np.empty(n_down * n_across + n, np.int64) for n in (1, 0))
        count_tiles(faces.box, shift, n_across, start, capacity)
        if shift == 0 or capacity.max() <= LARGEST_TILE:
            break
        shift -= 1
    tiles = Tiles(start, np.empty(start[-1], np.int64), capacity)
    fill_tiles(faces.box, shift, n_across, near_to_far(faces), start.copy(), tiles.faces)
    grid = job.grid._replace(shift=shift)
    return Frame(faces, tiles, grid, gather_table(job, faces, tiles, grid))


def near_to_far(faces: Faces) -> np.ndarray:
    """Return the faces that are drawn, int64, roughly from near to far."""
    n_faces = len(faces.box)
    order = np.empty(n_faces, np.int64)
    bins = np.empty(min(2 * n_faces, BINS) + 1, np.int64)
    return order[: order_faces(faces.corners, faces.box, bins, order)]


def draw_frame(job: Job, frame: int, layers: Layers, images: np.ndarray, pool: Pool) -> None:
    """Draw the layers of one frame, (n_layers, height, width, 4)."""
    ready, shown = setup_frame(job, frame), of_frame(job, frame, layers)
    size = tile_size(ready.tiles, ready.grid)

    def draw(turn: np.ndarray) -> None:
        room = own_room(empty_fragments, size), room_to_show(layers, size)
        draw_tiles(turn, job.scene, job.settings, tuple(ready), room, shown, images)

    pool.over_tiles(draw)


@device_fn
def blend_tile(tile, grid, settings, background, fragments, image):
    """Blend the lists of the pixels of a tile; in an empty one all see what lies behind."""
    top, bottom, left, right = tile_area(tile, grid)
    is_empty = fragments.start[(bottom - top) << grid.shift] == 0
    for i in range(top, bottom if is_empty else top):
        for j in range(left, right):
            r, g, b = background_at(i, j, background)
            image[i, j, 0], image[i, j, 1], image[i, j, 2], image[i, j, 3] = r, g, b, 0.0
    for i in range(top, top if is_empty else bottom):
        for j in range(left, right):
            k = ((i - top) << grid.shift) + j - left
            begin, end = fragments.start[k], fragments.start[k + 1]
            behind = background_at(i, j, background)
            rgba = blend_body(begin, end, fragments, settings, behind)
            image[i, j, 0], image[i, j, 1], image[i, j, 2], image[i, j, 3] = rgba


def _draw_tile(tile, scene, settings, frame, room, layers, images):
    """Draw the layers of one tile: `room` is for its fragments and for what they show."""
    (faces, tiles, grid, calls), (fragments, rgb) = frame, room
    call_gather(calls, GATHER, (tile, grid, scene, faces, tiles, settings, fragments))
    n = fragments.pair[tiles.start[tile + 1] - tiles.start[tile]]
    blend_tile(tile, grid, settings, scene.background, fragments, images[0])
    layered = with_colors(fragments, rgb)
    for i in range(1, layers.kinds.shape[0]):
        for q in range(n):
            layer_body(q, layers.kinds[i], scene, faces, layers.flat, fragments, rgb)
        blend_tile(tile, grid, settings, layers.behind[i], layered, images[i])


draw_tile = shared_fn(_draw_tile)  # one copy: equal bits wherever it is called


def _draw_tiles(turn, scene, settings, frame, room, layers, images):
    """Draw the tiles of a frame whose turn it is."""
    tiles, tile = frame[1], take_turn(turn)
    while tile < tiles.capacity.shape[0]:
        draw_tile(tile, scene, settings, frame, room, layers, images)
        tile = take_turn(turn)


draw_tiles = cpu_kernel(_draw_tiles)
