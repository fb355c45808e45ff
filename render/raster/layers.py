r"""What fragments show beside their colours, three numbers at a time: a layer.

A layer blends another attribute of the same fragments with the same weights as the colours,
over its own value behind everything. Which outputs are made of which layers, and what is
blended, is in `outputs.py`.

Adjoint: `adjoint/render/raster/layers.py`. Tests: `tests/render/raster/test_layers.py`.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, lit
from render.faces.face_setup import face_normal, load3, load_corners
from render.raster.barycentrics import fragment_place
from render.raster.fragments import Fragments
from render.raster.packing import Job
from render.raster.pixel_shading import corner_rows, weighted
from render.raster.tile_rows import LANES
from render.raster.tile_scratch import TileSize, own_room
from render.shaders.normals import unit_mean


class Output(StrEnum):
    """What a pixel can say about the scene: the keys of what `rasterize_outputs` returns.

    Each is a sum over faces with the weights that colours have. An empty pixel, which shows no
    face, has the value behind everything; on a soft edge the two are mixed. Axes of several
    cameras and of frames come before those below.

    Attributes
    ----------
    RGBA : "rgba"
        Colour, and alpha, (height, width, 4) [-]. Empty: the background, and alpha 0.
    DEPTH : "depth"
        Depth of the faces along the view, not their distance from the eye, (height, width) [m].
        Empty: `far` of the camera.
    NORMALS : "normals"
        Unit normals of the faces in the axes of the world, not turned towards the eye,
        (height, width, 3) [-]. Empty: 0.
    MASK : "mask"
        How much of a pixel each object has, 0 to 1, in the order of the scene's objects,
        (height, width, n_objects) [-]. Empty: 0.
    """

    RGBA = "rgba"
    DEPTH = "depth"
    NORMALS = "normals"
    MASK = "mask"


COLOR, DEPTH, NORMALS, MASK = 0, 1, 2, 3  # what a layer shows; MASK + m: objects 3 m to 3 m + 2


class Layers(NamedTuple):
    """What is drawn, three numbers at a time: colours first, normals last."""

    kinds: np.ndarray  # (n_layers,) int64
    behind: np.ndarray  # (n_layers, 1, 1, 3) what lies behind everything; colours have their own
    flat: np.ndarray  # (n_faces, 3) unit normals of the faces of a frame, or (0, 3)


@device_fn
def fragment_normal(q, f, scene, faces, flat, fragments):
    """Unit normal of fragment q of face f."""
    if not scene.rounded[f]:
        return load3(flat, f)  # (1)
    a0, a1, a2, z = load_corners(f, faces.corners)
    _, w = fragment_place((fragments.p_x[q], fragments.p_y[q]), a0, a1, a2, z)  # (2)
    n, _ = unit_mean(weighted(w, corner_rows(f, scene.faces, faces.normals)))  # (3)
    return n


@device_fn
def layer_value(q, kind, scene, faces, flat, fragments):
    """Three numbers that fragment q shows in a layer that is not of colours."""
    f, z = fragments.face[q], fragments.z[q]
    zero, unity = lit(0.0, z), lit(1.0, z)
    if kind == DEPTH:
        return z, zero, zero
    if kind == NORMALS:
        return fragment_normal(q, f, scene, faces, flat, fragments)
    o = scene.owner[f] - 3 * (kind - MASK)
    return unity if o == 0 else zero, unity if o == 1 else zero, unity if o == 2 else zero


@device_fn
def layer_body(q, kind, scene, faces, flat, fragments, rgb):
    """Write what fragment q shows in a layer where its colours are looked for."""
    rgb[q, 0], rgb[q, 1], rgb[q, 2] = layer_value(q, kind, scene, faces, flat, fragments)


@device_fn
def with_colors(fragments, rgb):
    """The fragments with other colours."""
    return Fragments(
        fragments.pixel, fragments.face, fragments.p_x, fragments.p_y, fragments.y, fragments.D,
        fragments.rest, fragments.z, fragments.u, rgb, fragments.order, fragments.spare,
        fragments.start, fragments.pair, fragments.logits, fragments.box_x, fragments.box_y,
        fragments.shade,
    )  # fmt: skip


@device_fn
def flat_normal_body(f, faces, x, flat):
    """Write the unit normal of face f."""
    flat[f, 0], flat[f, 1], flat[f, 2] = face_normal(f, faces, x)


def _flat_normals(faces, x, flat):
    """Write the unit normals of all faces."""
    for f in range(flat.shape[0]):
        flat_normal_body(f, faces, x, flat)


flat_normals = cpu_kernel(_flat_normals)


def layers_of(job: Job, outputs: Iterable[Output] = ()) -> Layers:
    """Return the layers that hold these outputs; colours are always there."""
    n_objects = len(job.scene.ambient)
    kinds = [COLOR]
    kinds += [DEPTH] if Output.DEPTH in outputs else []
    kinds += range(MASK, MASK + -(-n_objects // 3)) if Output.MASK in outputs else []
    kinds += [NORMALS] if Output.NORMALS in outputs else []
    behind = np.zeros((len(kinds), 1, 1, 3), job.x.dtype)
    behind[1:, 0, 0, 0] = [job.settings.far if kind == DEPTH else 0.0 for kind in kinds[1:]]
    return Layers(np.array(kinds, np.int64), behind, np.empty((0, 3), job.x.dtype))


def of_frame(job: Job, frame: int, layers: Layers) -> Layers:
    """Return the layers with the unit normals of the faces of a frame, if one shows them."""
    if layers.kinds[-1] != NORMALS:
        return layers
    flat = np.empty((len(job.scene.faces), 3), job.x.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):  # of faces without area: not drawn
        flat_normals(job.scene.faces, job.x[frame], flat)
    return layers._replace(flat=flat)


def empty_colors(size: TileSize) -> np.ndarray:
    """Return room for what the fragments of a tile show in a layer."""
    return np.empty((size.fragments + LANES, 3), size.dtype)


def room_to_show(layers: Layers, size: TileSize) -> np.ndarray:
    """Return room for what the fragments of a tile show beside their colours."""
    return own_room(empty_colors, size) if len(layers.kinds) > 1 else layers.flat[:0]
