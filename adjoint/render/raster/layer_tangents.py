r"""Tangents of outputs: the half of the twin of `render/raster/layers.py` that pushes.

    tangents of the fragments of a tile -> of what they show in a layer -> of its pixels

The half that pulls back is `layers.py`; both are tested in `tests/render/test_outputs.py`.
"""

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentTangents
from adjoint.render.raster.barycentrics import place_jvp
from adjoint.render.raster.face_setup import face_normal_jvp
from adjoint.render.raster.tile_tangents import (
    empty_tangents,
    setup_frame_jvp,
    tile_jvp_body,
    tile_tangents_body,
)
from adjoint.render.shaders.normals import unit_mean_vjp
from adjsim.engine.algebra.vec3 import add
from adjsim.engine.jit.backend import cpu_kernel, device_fn, lit
from render.raster.barycentrics import fragment_place
from render.raster.face_setup import load3, load_corners
from render.raster.fragments import Fragments
from render.raster.frames import setup_frame
from render.raster.layers import DEPTH, NORMALS, Layers, frame_normals, layer_body
from render.raster.packing import Job
from render.raster.thread_pool import Pool
from render.raster.tile_calls import GATHER, call_gather
from render.raster.tile_queue import take_turn
from render.raster.tile_scratch import TileSize, own_room, tile_size
from render.shaders.pixel_shading import corner_rows, weighted


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
def layer_jvp_body(q, kind, scene, frame_faces, tan_flat, fragments, tangents, tan_layered):
    """Tangents of what fragment q shows in a layer."""
    faces, tan_faces = frame_faces
    zero = lit(0.0, fragments.z[q])
    tan = (zero, zero, zero)
    if kind == DEPTH:
        tan = (tangents.z[q], zero, zero)
    elif kind == NORMALS:
        f = fragments.face[q]
        tan = fragment_normal_jvp(q, f, scene, faces, tan_faces, tan_flat, fragments)
    tan_layered.rgb[q, 0], tan_layered.rgb[q, 1], tan_layered.rgb[q, 2] = tan


def _draw_layers_jvp(
    turn, scenes, settings, tan_numbers, frame, tan_faces, scratch, kinds, behind, flats,
    tan_images,
):  # fmt: skip
    """Tangents of all layers of the tiles of a frame whose turn it is."""
    faces, tiles, grid, calls = frame
    fragments, layered, tangents, tan_layered = scratch
    scene, tan_scene = scenes
    flat, tan_flat = flats
    tile = take_turn(turn)
    while tile < tiles.capacity.shape[0]:
        call_gather(calls, GATHER, (tile, grid, scene, faces, tiles, settings, fragments))
        n = fragments.pair[tiles.start[tile + 1] - tiles.start[tile]]
        tile_tangents_body(
            tile, scene, tan_scene, settings, tan_numbers, faces, tan_faces, tiles,
            fragments, tangents,
        )  # fmt: skip
        tile_jvp_body(
            tile, scene.background, tan_scene.background, settings, tan_numbers, grid,
            fragments, tangents, tan_images[0],
        )  # fmt: skip
        for i in range(1, behind[0].shape[0]):
            kind = kinds[i]
            for q in range(n):
                layer_body(q, kind, scene, faces, flat, fragments, layered)
                layer_jvp_body(
                    q, kind, scene, (faces, tan_faces), tan_flat, fragments, tangents, tan_layered
                )
            tile_jvp_body(
                tile, behind[0][i], behind[1][i], settings, tan_numbers, grid,
                layered, tan_layered, tan_images[i],
            )  # fmt: skip
        tile = take_turn(turn)


@device_fn
def flat_normal_jvp_body(f, faces, x, tan_x, tan_flat):
    """Write the tangent of the unit normal of face f."""
    _, tan_n = face_normal_jvp(f, faces, x, tan_x)
    tan_flat[f, 0], tan_flat[f, 1], tan_flat[f, 2] = tan_n


def _flat_normals_jvp(faces, x, tan_x, tan_flat):
    """Tangents of the unit normals of all faces."""
    for f in range(tan_flat.shape[0]):
        flat_normal_jvp_body(f, faces, x, tan_x, tan_flat)


draw_layers_jvp = cpu_kernel(_draw_layers_jvp)
flat_normals_jvp = cpu_kernel(_flat_normals_jvp)


def behind_jvp(layers: Layers, tangents: paths.Packed) -> np.ndarray:
    """Return the tangents of what lies behind each layer: behind depth that is far."""
    tan = np.zeros_like(layers.behind)
    tan[layers.kinds == DEPTH, 0, 0, 0] = tangents.numbers[5]
    return tan


def empty_layered_tangents(
    size: TileSize,
) -> tuple[Fragments, Fragments, FragmentTangents, FragmentTangents]:
    """Return room for the fragments of a tile, as they are and in a layer, and their tangents."""
    fragments, tangents = empty_tangents(size)
    rgb, tan_rgb = (np.empty_like(fragments.rgb) for _ in range(2))
    return fragments, fragments._replace(rgb=rgb), tangents, tangents._replace(rgb=tan_rgb)


def draw_frame_layers_jvp(
    job: Job,
    frame: int,
    layers: Layers,
    tangents: paths.Packed,
    tan_images: np.ndarray,
    pool: Pool,
) -> None:
    """Tangents of the layers of one frame, (n_layers, height, width, 4)."""
    ready, flat = setup_frame(job, frame), frame_normals(job, frame, layers)
    tan_faces, tan_flat = setup_frame_jvp(job, frame, ready, tangents), np.empty_like(flat)
    with np.errstate(divide="ignore", invalid="ignore"):  # of faces without area: not drawn
        flat_normals_jvp(job.scene.faces, job.x[frame], tangents.x[frame], tan_flat)
    size = tile_size(ready.tiles, ready.grid)

    def draw(turn: np.ndarray) -> None:
        draw_layers_jvp(
            turn, (job.scene, tangents.scene), job.settings, tangents.numbers,
            tuple(ready), tan_faces, own_room(empty_layered_tangents, size), layers.kinds,
            (layers.behind, behind_jvp(layers, tangents)), (flat, tan_flat), tan_images,
        )  # fmt: skip

    pool.over_tiles(draw)
