r"""The soft rasterizer on a GPU: one thread per vertex, face, row of a face, and pixel.

    vertices -> faces -> logits of every box -> fragments -> lists of the pixels -> pixels

A pair is a face and one row of pixels that its box reaches. Pairs lie face by face, row by
row, and their fragments in the same order; sums of counts say where each begins, so no two
threads write to one place and every run gives the same bits. The lists of the pixels come
from a sort by pixel and place among the fragments, so they are in the order of the faces,
and no two keys are equal. The fragments of a frame are found once; layer by layer they show
something else in place of their colours, and the pixels are blended again. Frames are drawn one
after the other. The CPU runs the same bodies.

Adjoint: `adjoint/render/raster/cuda_raster.py`. Tests: `tests/cuda`.
"""

from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.jit.backend import (
    Device,
    array_module,
    device_fn,
    kept_on_device,
    launch,
    on_device,
)
from render.blending import OVER, background_at, blend_body
from render.projection import project_body, towards_body, unpack_view
from render.raster.face_setup import Faces, PackedScene, Settings, face_body, load_corners
from render.raster.fragment_lists import sort_body
from render.raster.fragments import Fragments, fragment_logit, write_fragment
from render.raster.layers import NORMALS, Layers, flat_normal_body, layer_body
from render.raster.packing import Job
from render.seamless import outline_body, seamless_logit, soft_edges_body
from render.shaders.normals import VertexCorners, normal_body


class Pixels(NamedTuple):
    """Where the pixels are on the screen."""

    pixel_x: Any  # (width,) [-]
    pixel_y: Any  # (height,) [-]


class Shared(NamedTuple):
    """What the frames of a render share, on the device."""

    view: Any  # (18,)
    scene: PackedScene
    numbers: Any  # (7,) the real numbers of Settings
    flags: Any  # (3,) int64: blend, cull, is_deep
    pixels: Pixels
    corners: VertexCorners


class Pairs(NamedTuple):
    """The pairs (face, row) of a frame."""

    start: Any  # (n_faces + 1,) int64, where the pairs of a face start
    place: Any  # (n_faces + 1,) int64, where the logits of its box start
    face: Any  # (n_pairs,) int64


class FrameOnGpu(NamedTuple):
    """One frame with its fragments, on the device; `pair` of the fragments is by `Pairs`."""

    faces: Faces
    pairs: Pairs
    fragments: Fragments


def share(job: Job) -> Shared:
    """Copy to the device what the frames share."""
    settings = job.settings
    return kept_on_device(
        Shared(
            job.view,
            job.scene,
            np.array(settings[:7], job.x.dtype),
            np.array(settings[7:], np.int64),
            Pixels(job.grid.pixel_x, job.grid.pixel_y),
            job.corners,
        )
    )


@device_fn
def unpack_settings(numbers, flags):
    """The settings of a render from their arrays."""
    return Settings(
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
        flags[0], flags[1] > 0, flags[2] > 0,
    )  # fmt: skip


@device_fn
def vertex_thread(i, args):
    """Project vertex i; write the vector towards the eye where it is needed."""
    view, x, screen, towards = args
    eye, frame = unpack_view(view)
    project_body(i, x, eye, frame, screen)
    if towards.shape[0] > 0:
        towards_body(i, x, eye, frame[2], view[17], towards)


@device_fn
def normal_thread(i, args):
    """Write the normal of vertex i."""
    x, faces, corners, normals = args
    normal_body(i, x, faces, corners, normals)


@device_fn
def face_thread(f, args):
    """Set up face f; write how many rows and how many pixels its box has."""
    (view, scene, numbers, flags, pixels, _), x, faces, rows, places = args
    shape = (pixels.pixel_y.shape[0], pixels.pixel_x.shape[0])
    drawn = face_body(f, scene, x, view[17], unpack_settings(numbers, flags), shape, faces)
    rows[f] = faces.box[f, 1] - faces.box[f, 0] if drawn else 0
    places[f] = rows[f] * (faces.box[f, 3] - faces.box[f, 2])


@device_fn
def soft_edges_thread(f, args):
    """Find the soft edges of face f."""
    numbers, flags, corners, soft, edges = args
    soft_edges_body(f, edges, corners, unpack_settings(numbers, flags), soft)


@device_fn
def outline_thread(f, args):
    """Find the soft corners of face f, and how the outline goes on from its soft edges."""
    faces, edges, vertex_corners, soft = args
    outline_body(f, faces, edges, vertex_corners, soft)


@device_fn
def pairs_thread(f, pairs):
    """Write the pairs of face f."""
    for k in range(pairs.start[f], pairs.start[f + 1]):
        pairs.face[k] = f


@device_fn
def locate(k, pairs, box):
    """Face and row of pair k, its columns from and to, and the place of its first logit."""
    f = pairs.face[k]
    row = k - pairs.start[f]
    left, right = box[f, 2], box[f, 3]
    return f, box[f, 0] + row, left, right, pairs.place[f] + row * (right - left)


@device_fn
def logits_thread(k, args):
    """Write the logits of pair k, and count those that are fragments."""
    pixels, numbers, faces, pairs, logits, counts = args
    f, i, left, right, place = locate(k, pairs, faces.box)
    a0, a1, a2, _ = load_corners(f, faces.corners)
    sigma, lowest = numbers[0], numbers[5]
    n = 0
    for j in range(left, right):
        p = (pixels.pixel_x[j], pixels.pixel_y[i])
        if faces.soft.shape[0] > 0:
            y = seamless_logit(p, f, faces, sigma)
        else:
            y = fragment_logit(p, a0, a1, a2, sigma)
        logits[place + j - left] = y
        if y >= lowest:
            n += 1
    counts[k] = n


@device_fn
def fragments_thread(k, args):
    """Write the fragments of pair k, and their keys: by pixel, then in their own order."""
    pixels, numbers, flags, scene, faces, pairs, fragments, keys = args
    f, i, left, right, place = locate(k, pairs, faces.box)
    corners = load_corners(f, faces.corners)
    n = fragments.pair[k]
    for j in range(left, right):
        y = fragments.logits[place + j - left]
        if y >= numbers[5]:
            write_fragment(n, y, f, i, j, corners, pixels, scene, faces, flags[0], fragments)
            keys[n] = (i * pixels.pixel_x.shape[0] + j) * keys.shape[0] + n
            n += 1


@device_fn
def flat_normal_thread(f, args):
    """Write the unit normal of face f."""
    faces, x, flat = args
    flat_normal_body(f, faces, x, flat)


@device_fn
def layer_thread(q, args):
    """Write what fragment q shows in a layer."""
    kind, scene, faces, flat, fragments, rgb = args
    layer_body(q, kind[0], scene, faces, flat, fragments, rgb)


@device_fn
def sort_thread(k, fragments):
    """Sort the list of pixel k by depth."""
    begin, end = fragments.start[k], fragments.start[k + 1]
    sort_body(begin, end, fragments.z, fragments.face, fragments.order, fragments.spare)


@device_fn
def pixel_thread(k, args):
    """Blend the list of pixel k."""
    background, numbers, flags, fragments, image = args
    begin, end = fragments.start[k], fragments.start[k + 1]
    settings = unpack_settings(numbers, flags)
    i, j = k // image.shape[1], k % image.shape[1]
    behind = background_at(i, j, background)
    rgba = blend_body(begin, end, fragments, settings, behind)
    image[i, j, 0], image[i, j, 1], image[i, j, 2], image[i, j, 3] = rgba


def offsets(xp: Any, counts: Any) -> Any:
    """Return where each of consecutive runs starts, and where the last ends, int64."""
    out = xp.zeros(len(counts) + 1, np.int64)
    if len(counts):
        out[1:] = xp.cumsum(counts)
    return out


def setup_faces_on_gpu(xp: Any, job: Job, shared: Shared, x: Any) -> tuple[Faces, Pairs, int]:
    """Project a frame and set up its faces: faces, pairs, and how many logits they have."""
    dtype, n_vertices, n_faces = job.x.dtype, job.x.shape[1], len(job.scene.faces)
    faces = on_device(
        Faces(
            xp.empty((n_vertices, 3), dtype),
            xp.empty((n_faces, 10), dtype),
            xp.empty((n_faces, 9), dtype),
            xp.empty((n_faces, 4), np.int64),
            xp.empty((n_vertices if job.scene.rounded.any() else 0, 3), dtype),
            xp.empty((len(job.edges.number), 12), np.int64),
            xp.empty((n_vertices if job.scene.by_pixel.any() else 0, 3), dtype),
            xp.empty((0, 2), np.bool_),
        )
    )
    rows, places = xp.empty(n_faces, np.int64), xp.empty(n_faces, np.int64)
    launch(vertex_thread, n_vertices, (shared.view, x, faces.screen, faces.towards))
    n_normals = faces.normals.shape[0]
    launch(normal_thread, n_normals, (x, shared.scene.faces, shared.corners, faces.normals))
    launch(face_thread, n_faces, (shared, x, faces, *on_device((rows, places))))
    n_soft = faces.soft.shape[0]
    of_faces = (shared.numbers, shared.flags, faces.corners, faces.soft)
    edges = kept_on_device(job.edges)
    launch(soft_edges_thread, n_soft, (*of_faces, edges))
    launch(outline_thread, n_soft, (shared.scene.faces, edges, shared.corners, faces.soft))
    start, place = offsets(xp, rows), offsets(xp, places)
    pairs = on_device(Pairs(start, place, xp.empty(int(start[-1]), np.int64)))
    launch(pairs_thread, n_faces, pairs)
    return faces, pairs, int(place[-1])


def empty_fragments_on_gpu(xp: Any, n: int, dtype: np.dtype, lists: tuple) -> Fragments:
    """Return room for n fragments; `lists` are their order, start, pair and logits."""
    order, start, pair, logits = lists
    pixel, face, spare = (xp.empty(n, np.int32) for _ in range(3))
    p_x, p_y, y, D, rest, z, u = (xp.empty(n, dtype) for _ in range(7))
    rgb, scratch = xp.empty((n, 3), dtype), (logits, logits, logits, logits)
    return on_device(
        Fragments(pixel, face, p_x, p_y, y, D, rest, z, u, rgb, order, spare, start, pair, *scratch)
    )


def gather_frame(xp: Any, job: Job, shared: Shared, x: Any) -> FrameOnGpu:
    """Find the fragments of a frame, list them by pixel and, for Over, sort by depth."""
    faces, pairs, n_logits = setup_faces_on_gpu(xp, job, shared, x)
    dtype, pixels, n_pairs = job.x.dtype, shared.pixels, pairs.face.shape[0]
    n_pixels = len(job.grid.pixel_x) * len(job.grid.pixel_y)
    logits, counts = xp.empty(n_logits, dtype), xp.empty(n_pairs, np.int64)
    launch(
        logits_thread, n_pairs,
        (pixels, shared.numbers, faces, pairs, *on_device((logits, counts))),
    )  # fmt: skip
    pair = offsets(xp, counts)
    n = int(pair[-1])
    keys, order = xp.empty(n, np.int64), xp.empty(n, np.int32)
    start = xp.zeros(n_pixels + 1, np.int32)
    fragments = empty_fragments_on_gpu(xp, n, dtype, (order, start, pair, logits))
    of_frame = (shared.scene, faces, pairs, fragments, on_device(keys))
    args = (pixels, shared.numbers, shared.flags, *of_frame)
    launch(fragments_thread, n_pairs, args)
    if n > 0:
        keys = xp.sort(keys)
        order[:] = (keys % n).astype(np.int32)
        start[:] = xp.searchsorted(keys, n * xp.arange(n_pixels + 1)).astype(np.int32)
    if job.settings.blend == OVER:
        launch(sort_thread, n_pixels, fragments)
    return FrameOnGpu(faces, pairs, fragments)


def blend_on_gpu(
    xp: Any, shared: Shared, fragments: Fragments, background: Any, shape: tuple
) -> Any:
    """Blend the lists of all pixels; return the image, (height, width, 4)."""
    image = xp.empty(shape, fragments.y.dtype)
    args = (background, shared.numbers, shared.flags, fragments, on_device(image))
    launch(pixel_thread, shape[0] * shape[1], args)
    return image


def normals_on_gpu(xp: Any, layers: Layers, faces: Any, x: Any) -> Any:
    """Return the unit normals of all faces, (n_faces, 3), or none if no layer shows them."""
    flat = on_device(xp.empty((faces.shape[0] if NORMALS in layers.kinds else 0, 3), x.dtype))
    launch(flat_normal_thread, flat.shape[0], (faces, x, flat))
    return flat


def show_on_gpu(
    i: int, layers: Layers, shared: Shared, faces: Faces, flat: Any, fragments: Fragments
) -> tuple[Any, Any, Fragments]:
    """Have all fragments show layer i; return its kind, what lies behind it, and them."""
    empty = array_module(Device.CUDA).empty(fragments.rgb.shape, fragments.rgb.dtype)
    kind, behind, rgb = on_device((layers.kinds[i : i + 1], layers.behind[i], empty))
    args = (kind, shared.scene, faces, flat, fragments, rgb)
    launch(layer_thread, fragments.y.shape[0], args)
    return kind, behind, fragments._replace(rgb=rgb)


def draw_on_gpu(job: Job, layers: Layers) -> Any:
    """Draw the layers of the frames of a job, (n_frames, n_layers, height, width, 4), there."""
    xp, shared = array_module(Device.CUDA), share(job)
    shape, n_layers = (len(job.grid.pixel_y), len(job.grid.pixel_x), 4), len(layers.kinds)
    images = xp.empty((len(job.x), n_layers, *shape), job.x.dtype)
    for frame, x in enumerate(job.x):
        place = on_device(x)
        faces, _, fragments = gather_frame(xp, job, shared, place)
        images[frame, 0] = blend_on_gpu(xp, shared, fragments, shared.scene.background, shape)
        flat = normals_on_gpu(xp, layers, shared.scene.faces, place)
        for i in range(1, n_layers):
            _, behind, layered = show_on_gpu(i, layers, shared, faces, flat, fragments)
            images[frame, i] = blend_on_gpu(xp, shared, layered, behind, shape)
    return images
