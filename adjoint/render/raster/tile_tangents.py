r"""Tangents of a frame, tile by tile: the half of the twin of `render/raster/frames.py` to push.

    faces -> their tangents -> tangents of the fragments of a tile -> those of its pixels

The half that pulls back is `frames.py`; both are tested in `tests/render/test_soft_raster.py`.
"""

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentTangents, blend_jvp_body
from adjoint.render.faces.face_setup import FaceTangents, setup_faces_jvp
from adjoint.render.paths import EPSILON, FAR, GAMMA, NEAR, SIGMA
from adjoint.render.raster.fragment_cache import KeptFrame, recall_tile, tile_room
from adjoint.render.raster.fragments import pair_jvp_body
from adjoint.render.raster.layers import layer_jvp_body, room_to_push, tangents_of_frame
from adjsim.jit.backend import cpu_kernel, device_fn, shared_fn
from adjsim.jit.tile_queue import take_turn
from render.blending import background_at
from render.raster.fragments import Fragments, tile_area
from render.raster.frames import Frame
from render.raster.layers import Layers, layer_body, of_frame, with_colors
from render.raster.packing import Job
from render.raster.thread_pool import Pool
from render.raster.tile_calls import GATHER, call_gather
from render.raster.tile_scratch import TileSize, empty_fragments, own_room, tile_size


@device_fn
def tile_tangents_body(
    tile, scene, tan_scene, settings, tan_numbers, faces, tan_faces, tiles, fragments, tangents
):
    """Tangents of the fragments of a tile."""
    for pair in range(tiles.start[tile], tiles.start[tile + 1]):
        pair_jvp_body(
            pair - tiles.start[tile], tiles.faces[pair], scene, tan_scene,
            faces, tan_faces, (settings.sigma, tan_numbers[SIGMA]), fragments, tangents,
        )  # fmt: skip


def _push_tile(
    tile, background, tan_background, settings, tan_numbers, grid, fragments, tangents, tan_image
):
    """From the tangents of the fragments of a tile to those of its pixels."""
    tan_settings = (tan_numbers[GAMMA], tan_numbers[EPSILON], tan_numbers[NEAR], tan_numbers[FAR])
    top, bottom, left, right = tile_area(tile, grid)
    is_empty = fragments.start[(bottom - top) << grid.shift] == 0
    for i in range(top, bottom if is_empty else top):
        for j in range(left, right):
            r, g, b = background_at(i, j, tan_background)
            tan_image[i, j, 0], tan_image[i, j, 1], tan_image[i, j, 2] = r, g, b
            tan_image[i, j, 3] = 0.0
    for i in range(top, top if is_empty else bottom):
        for j in range(left, right):
            k = ((i - top) << grid.shift) + j - left
            begin, end = fragments.start[k], fragments.start[k + 1]
            behind = background_at(i, j, background)
            tan_behind = background_at(i, j, tan_background)
            tan = blend_jvp_body(
                begin, end, fragments, tangents, settings, tan_settings, behind, tan_behind
            )
            for c in range(4):
                tan_image[i, j, c] = tan[c]


push_tile = shared_fn(_push_tile)  # one copy: equal bits wherever it is called


def _draw_tiles_jvp(
    turn, scenes, settings, tan_numbers, frame, tan_faces, scratch, kept, layers, tan_layers,
    tan_images,
):  # fmt: skip
    """Tangents of the pixels of all layers of the tiles whose turn it is."""
    faces, tiles, grid, calls = frame
    spare, tangents, rgb, tan_rgb = scratch
    scene, tan_scene = scenes
    tan_layered = FragmentTangents(tangents.y, tangents.z, tan_rgb)
    tile = take_turn(turn)
    while tile < tiles.capacity.shape[0]:
        fragments = tile_room(tile, tiles, kept, spare)
        if kept.place.shape[0] > 0:
            recall_tile(tile, grid, scene, faces, tiles, settings, kept, fragments)
        else:
            call_gather(calls, GATHER, (tile, grid, scene, faces, tiles, settings, fragments))
        tile_tangents_body(
            tile, scene, tan_scene, settings, tan_numbers, faces, tan_faces, tiles,
            fragments, tangents,
        )  # fmt: skip
        push_tile(
            tile, scene.background, tan_scene.background, settings, tan_numbers, grid,
            fragments, tangents, tan_images[0],
        )  # fmt: skip
        n = fragments.pair[tiles.start[tile + 1] - tiles.start[tile]]
        layered = with_colors(fragments, rgb)
        for i in range(1, layers.kinds.shape[0]):
            kind = layers.kinds[i]
            for q in range(n):
                layer_body(q, kind, scene, faces, layers.flat, fragments, rgb)
                layer_jvp_body(
                    q, kind, scene, (faces, tan_faces), tan_layers.flat, fragments, tangents,
                    tan_rgb,
                )  # fmt: skip
            push_tile(
                tile, layers.behind[i], tan_layers.behind[i], settings, tan_numbers, grid,
                layered, tan_layered, tan_images[i],
            )  # fmt: skip
        tile = take_turn(turn)


draw_tiles_jvp = cpu_kernel(_draw_tiles_jvp)


def setup_frame_jvp(job: Job, frame: int, ready: Frame, tangents: paths.Packed) -> FaceTangents:
    """Tangents of the faces of a frame that is set up."""
    dtype, n_faces = job.x.dtype, len(job.scene.faces)
    tan_faces = FaceTangents(
        np.empty_like(ready.faces.screen),
        np.empty((n_faces, 10), dtype),
        np.zeros((n_faces, 9), dtype),
        np.empty_like(ready.faces.normals),
        np.empty_like(ready.faces.towards),
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # at depth 0: faces not drawn
        setup_faces_jvp(
            job.view, tangents.view, job.scene, tangents.scene, job.x[frame], tangents.x[frame],
            job.corners, ready.faces, tan_faces,
        )  # fmt: skip
    return tan_faces


def empty_tangents(size: TileSize) -> tuple[Fragments, FragmentTangents]:
    """Return room for the fragments of a tile and their tangents."""
    fragments = own_room(empty_fragments, size)
    y, z, rgb = (np.empty_like(field) for field in (fragments.y, fragments.z, fragments.rgb))
    return fragments, FragmentTangents(y, z, rgb)


def draw_frame_jvp(
    job: Job,
    frame: int,
    kept_frame: KeptFrame,
    layers: Layers,
    tangents: paths.Packed,
    tan_images: np.ndarray,
    pool: Pool,
) -> None:
    """Tangents of the layers of one frame, (n_layers, height, width, 4)."""
    (ready, kept), frame_layers = kept_frame, of_frame(job, frame, layers)
    tan_faces = setup_frame_jvp(job, frame, ready, tangents)
    tan_layers = tangents_of_frame(job, frame, frame_layers, tangents)
    size = tile_size(ready.tiles, ready.grid)

    def draw(turn: np.ndarray) -> None:
        scratch = (*own_room(empty_tangents, size), *room_to_push(layers, size))
        draw_tiles_jvp(
            turn, (job.scene, tangents.scene), job.settings, tangents.numbers, tuple(ready),
            tan_faces, scratch, kept, frame_layers, tan_layers, tan_images,
        )  # fmt: skip

    pool.over_tiles(draw)
