r"""More than colours from one look at a scene: depth, normals, and which object is seen.

Each output blends another attribute of the same fragments with the same weights as RGB, over
its own value behind everything. With the weight w_j of fragment j and w_bg of the background,

    Over         w_j = T_j D_j,  w_bg = T_end
    Softmax      w_j and w_bg of the softmax
    DIBR, Hard   w = 1 for the nearest face that covers the pixel, or for the background

    rgba     sum w_j C_j + w_bg C_bg, and alpha as the blend says
    depth    sum w_j z_j + w_bg far                       z_j along the view [m]
    normals  sum w_j n_j                                  of the world, not flipped to the eye
    mask     of object o: sum of w_j over its faces

n_j is the unit normal of a face, or the interpolated and normalised one where an object has
`smooth_normals`; their sum is not normalised again, so it fades towards edges. The masks of all
objects sum to 1 - w_bg, which is alpha in Over and Hard. In DIBR they are hard, like RGB.
Supersampling takes the mean of each. All of it is differentiated, kinks and jumps as RGB.

Adjoint: `adjoint/render/outputs.py`. Tests: `tests/render/test_outputs.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from adjsim.backend import cpu_kernel, device_fn, lit
from render.barycentrics import fragment_place
from render.camera import AnyCamera
from render.face_setup import face_normal, load3, load_corners
from render.fragments import gather_tile
from render.normals import unit_or_zero
from render.packing import Job, check_cameras, pack
from render.pixel_shading import corner_rows, weighted
from render.scene import Scene
from render.soft_raster import (
    Pool,
    SoftRasterizer,
    check_rasterizer,
    draw_samples,
    empty_fragments,
    for_each_frame,
    only_asked,
    setup_frame,
    tile_body,
)


class Output(StrEnum):
    """What a pixel can say about the scene."""

    RGBA = "rgba"
    DEPTH = "depth"
    NORMALS = "normals"
    MASK = "mask"


COLOR, DEPTH, NORMALS, MASK = 0, 1, 2, 3  # what a layer shows; MASK + m: objects 3 m to 3 m + 2


class Layers(NamedTuple):
    """What is drawn, three numbers at a time: colours first, normals last."""

    kinds: np.ndarray  # (n_layers,) int64
    behind: np.ndarray  # (n_layers, 1, 1, 3) what lies behind everything; colours have their own


@device_fn
def fragment_normal(q, f, scene, faces, flat, fragments):
    """Unit normal of fragment q of face f."""
    if not scene.rounded[f]:
        return load3(flat, f)  # (1)
    a0, a1, a2, z = load_corners(f, faces.corners)
    _, w = fragment_place((fragments.p_x[q], fragments.p_y[q]), a0, a1, a2, z)  # (2)
    n, _ = unit_or_zero(weighted(w, corner_rows(f, scene.faces, faces.normals)))  # (3)
    return n


@device_fn
def layer_value(q, kind, scene, faces, flat, fragments):
    """Three numbers that fragment q shows in a layer that is not of colours."""
    f, z = fragments.face[q], fragments.z[q]
    zero, one = lit(0.0, z), lit(1.0, z)
    if kind == DEPTH:
        return z, zero, zero
    if kind == NORMALS:
        return fragment_normal(q, f, scene, faces, flat, fragments)
    o = scene.owner[f] - 3 * (kind - MASK)
    return one if o == 0 else zero, one if o == 1 else zero, one if o == 2 else zero


@device_fn
def layer_body(n, kind, scene, faces, flat, fragments, layered):
    """Have the first n fragments show a layer in place of their colours."""
    for q in range(n):
        value = layer_value(q, kind, scene, faces, flat, fragments)
        layered.rgb[q, 0], layered.rgb[q, 1], layered.rgb[q, 2] = value


def _draw_layers(first, last, scene, settings, frame, scratch, layers, flat, images):
    """Draw all layers of the tiles first..last-1 of a frame."""
    faces, tiles, grid = frame
    fragments, layered = scratch
    for tile in range(first, last):
        gather_tile(tile, grid, scene, faces, tiles, settings, fragments)
        n = fragments.pair[tiles.start[tile + 1] - tiles.start[tile]]
        tile_body(tile, grid, settings, scene.background, fragments, images[0])
        for i in range(1, layers.kinds.shape[0]):
            layer_body(n, layers.kinds[i], scene, faces, flat, fragments, layered)
            tile_body(tile, grid, settings, layers.behind[i], layered, images[i])


def _flat_normals(faces, x, flat):
    """Write the unit normals of all faces."""
    for f in range(flat.shape[0]):
        flat[f, 0], flat[f, 1], flat[f, 2] = face_normal(f, faces, x)


draw_layers = cpu_kernel(_draw_layers)
flat_normals = cpu_kernel(_flat_normals)


def layers_of(job: Job, outputs: Iterable[Output]) -> Layers:
    """Return the layers that hold these outputs."""
    n_objects = len(job.scene.ambient)
    kinds = [COLOR]
    kinds += [DEPTH] if Output.DEPTH in outputs else []
    kinds += range(MASK, MASK + -(-n_objects // 3)) if Output.MASK in outputs else []
    kinds += [NORMALS] if Output.NORMALS in outputs else []
    behind = np.zeros((len(kinds), 1, 1, 3), job.x.dtype)
    behind[1:, 0, 0, 0] = [job.settings.far if kind == DEPTH else 0.0 for kind in kinds[1:]]
    return Layers(np.array(kinds, np.int64), behind)


def frame_normals(job: Job, frame: int, layers: Layers) -> np.ndarray:
    """Return the unit normals of all faces, (n_faces, 3), or none if no layer shows them."""
    n_faces = len(job.scene.faces) if NORMALS in layers.kinds else 0
    flat = np.empty((n_faces, 3), job.x.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):  # of faces without area: not drawn
        flat_normals(job.scene.faces, job.x[frame], flat)
    return flat


def draw_frame_layers(job: Job, frame: int, layers: Layers, images: np.ndarray, pool: Pool) -> None:
    """Draw the layers of one frame, (n_layers, height, width, 4)."""
    ready, flat = setup_frame(job, frame), frame_normals(job, frame, layers)
    n_tiles = len(ready.tiles.capacity)

    def draw(runs: Iterable[tuple[int, int]]) -> None:
        fragments = empty_fragments(ready, 0, n_tiles)
        scratch = (fragments, fragments._replace(rgb=np.empty_like(fragments.rgb)))
        for first, last in runs:
            draw_layers(
                first, last, job.scene, job.settings, tuple(ready), scratch, layers, flat, images
            )

    pool.over_tiles(n_tiles, draw)


def empty_layers(jobs: Sequence[Job], layers: Layers) -> np.ndarray:
    """Return room for the layers, (n_views, n_frames, n_layers, height, width, 4)."""
    x, k, grid = jobs[0].x, jobs[0].samples, jobs[0].grid
    height, width = len(grid.pixel_y) // k, len(grid.pixel_x) // k
    return np.empty((len(jobs), len(x), len(layers.kinds), height, width, 4), x.dtype)


def draw_outputs(jobs: Sequence[Job], layers: Sequence[Layers], threads: int | None) -> np.ndarray:
    """Draw the layers of every frame of every view; each view has its own."""
    images = empty_layers(jobs, layers[0])

    def draw(view: int, frame: int, pool: Pool) -> None:
        job = jobs[view]
        draw_samples(
            job,
            images[view, frame],
            lambda room: draw_frame_layers(job, frame, layers[view], room, pool),
        )

    for_each_frame(jobs, threads, draw)
    return images


def channels(kinds: np.ndarray, output: Output, n_objects: int) -> list[tuple[int, int]]:
    """Return the layer and the channel of every number of an output."""
    at = {int(kind): layer for layer, kind in enumerate(kinds)}
    if output is Output.RGBA:
        return [(0, c) for c in range(4)]
    if output is Output.DEPTH:
        return [(at[DEPTH], 0)]
    if output is Output.NORMALS:
        return [(at[NORMALS], c) for c in range(3)]
    return [(at[MASK + o // 3], o % 3) for o in range(n_objects)]


def split(images: np.ndarray, job: Job, outputs: Iterable[Output], many: bool) -> dict:
    """Return the outputs by name from all layers of all views and frames."""
    kinds, n_objects = layers_of(job, outputs).kinds, len(job.scene.ambient)
    out = {}
    for output in outputs:
        layer, channel = np.array(channels(kinds, output, n_objects), int).reshape(-1, 2).T
        whole = np.ascontiguousarray(np.moveaxis(images[:, :, layer, :, :, channel], 0, -1))
        whole = whole[..., 0] if output is Output.DEPTH else whole
        out[output.value] = only_asked(whole, many, job.batched)
    return out


def check_outputs(outputs: Any) -> tuple[Output, ...]:
    """Return the outputs without repetition; raise if one is unknown or there are none."""
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    for name in names:
        if name not in set(Output):
            raise ValueError(f"`outputs` must be among {', '.join(Output)}, got {name!r}.")
    if not names:
        raise ValueError(f"`outputs` must name at least one of {', '.join(Output)}, got none.")
    return tuple(dict.fromkeys(Output(name) for name in names))


def pack_outputs(
    scene: Scene,
    cameras: Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    outputs: tuple[Output, ...],
) -> list[Job]:
    """Pack the arguments of `rasterize_outputs`, a job for each camera."""
    check_rasterizer(rasterizer)
    jobs = pack(scene, cameras, rasterizer, vertices, size)
    if Output.DEPTH not in outputs:
        return jobs
    return [job._replace(settings=job.settings._replace(is_deep=True)) for job in jobs]


def rasterize_outputs(
    scene: Scene,
    camera: AnyCamera | Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    outputs: Iterable[Output | str] = tuple(Output),
    *,
    threads: int | None = None,
) -> dict[str, np.ndarray]:
    """Draw like `rasterize`, on the CPU, and return more than colours.

    Parameters
    ----------
    scene, camera, rasterizer, vertices, size, threads
        As `render.soft_raster.rasterize` takes them.
    outputs : iterable of Output or str
        Which of "rgba" [-], "depth" [m], "normals" [-] and "mask" [-]; by default all.

    Returns
    -------
    dict of str to numpy.ndarray
        "rgba" as `rasterize` returns it, (height, width, 4), "depth" (height, width),
        "normals" (height, width, 3), "mask" (height, width, n_objects) in the order of the
        scene; each after (n_frames,) and (n_cameras,) as in `rasterize`.

    Raises
    ------
    ValueError
        As `rasterize`, or if an output is unknown.

    Notes
    -----
    Equations: `render.outputs`. Adjoint: `adjoint.render.outputs.record_outputs`.
    """
    wanted = check_outputs(outputs)
    cameras, many = check_cameras(scene, camera)
    jobs = pack_outputs(scene, cameras, rasterizer, vertices, size, wanted)
    images = draw_outputs(jobs, [layers_of(job, wanted) for job in jobs], threads)
    return split(images, jobs[0], wanted, many)
