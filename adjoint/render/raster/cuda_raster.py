r"""Adjoint of `render/raster/cuda_raster.py`: read the two files side by side.

The launches of the forward are undone last first:

    pixels -> fragments -> slots of the pairs -> faces -> vertices, scene, view

The fragments hear of every layer before their faces are undone, once.
What many threads share (material, lights, view, background, sigma, gamma, epsilon) has a
part per thread; parts are summed in an order that their number alone decides. The tangents
are in `cuda_tangents.py`.
"""

from typing import Any, NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentAdjoints, blend_vjp_body
from adjoint.render.raster.cuda_sums import sum_faces, sum_runs, sum_texels
from adjoint.render.raster.face_setup import (
    PIXEL_SLOT,
    SLOT,
    face_normal_vjp,
    face_vjp_body,
    is_used,
    normal_slots_body,
    towards_vjp_body,
    vertex_vjp_body,
)
from adjoint.render.raster.fragments import pair_vjp_body, pixels_vjp_body
from adjoint.render.raster.layers import add_layer_body, normals_vjp_body
from adjoint.render.raster.supersampling import repeat_vjp
from adjoint.render.shaders.normals import points_vjp_body, sum_vjp_body
from adjoint.render.shaders.pixel_shading import ShadeParts, own_parts, sum_parts, zero_parts
from adjoint.render.textures import TexelRecords, add_uv, empty_records
from adjsim.engine.algebra.vec3 import add
from adjsim.engine.jit.backend import (
    Device,
    array_module,
    device_fn,
    launch,
    lit,
    on_device,
    to_host,
)
from render.blending import background_at
from render.projection import VIEW_SIZE, unpack_view
from render.raster.cuda_raster import (
    FrameOnGpu,
    Shared,
    gather_frame,
    normals_on_gpu,
    share,
    show_on_gpu,
    unpack_settings,
)
from render.raster.face_setup import load3
from render.raster.fragments import Fragments
from render.raster.layers import DEPTH, Layers
from render.raster.packing import Job


class FaceParts(NamedTuple):
    """What each face adds to the adjoint of the scene."""

    face_colors: Any  # (n_faces, 3)
    shades: ShadeParts  # (n_faces, ...), of its object


@device_fn
def pixel_vjp_thread(k, args):
    """Undo pixel k; its parts belong to gamma, epsilon, near, far and background."""
    background, pixel_x, numbers, flags, fragments, adj, parts = args
    begin, end = fragments.start[k], fragments.start[k + 1]
    adj_rgba = (adj.rgba[k, 0], adj.rgba[k, 1], adj.rgba[k, 2], adj.rgba[k, 3])
    settings = unpack_settings(numbers, flags)
    width = pixel_x.shape[0]
    behind = background_at(k // width, k % width, background)
    adj_bg, adj_settings = blend_vjp_body(begin, end, fragments, settings, behind, adj_rgba, adj)
    parts[k, 0], parts[k, 1], parts[k, 2], parts[k, 3] = adj_settings
    parts[k, 4], parts[k, 5], parts[k, 6] = adj_bg


@device_fn
def pair_vjp_thread(k, args):
    """Undo the fragments of pair k; its part belongs to sigma."""
    shared, faces, pair_face, fragments, adj, slots, sigmas, parts, records = args
    scene, numbers, flags = shared
    f, settings = pair_face[k], unpack_settings(numbers, flags)
    sigmas[k, 0] = pair_vjp_body(k, f, scene, faces, settings, fragments, adj, k, slots)
    if scene.by_pixel[f]:
        own = own_parts(k, parts)
        pixels_vjp_body(k, f, scene, faces, fragments, adj, k, slots, own, 0, records, 0)


@device_fn
def face_vjp_thread(f, args):
    """Sum the slots of the pairs of face f and undo its setup."""
    scene, x, box, pair_start, pair_slots, pair_parts, adj_faces, parts, slots = args
    if box[f, 0] < box[f, 1]:
        for c in range(PIXEL_SLOT if scene.by_pixel[f] else SLOT):
            total = lit(0.0, adj_faces[f, c])
            for k in range(pair_start[f], pair_start[f + 1]):
                total += pair_slots[k, c]
            adj_faces[f, c] = total
        own = own_parts(f, parts.shades)
        face_vjp_body(f, scene, x, adj_faces, parts.face_colors, own, 0, slots)
        if scene.by_pixel[f]:
            sum_parts(pair_start[f], pair_start[f + 1], pair_parts, own)


@device_fn
def normal_vjp_thread(i, args):
    """Sum the slots of the normal of vertex i and undo its length."""
    x, scene, box, corners, adj_faces, adj_normals = args
    normal_slots_body(i, scene.rounded, box, corners, adj_faces, adj_normals)
    sum_vjp_body(i, x, scene.faces, corners, adj_normals)


@device_fn
def points_vjp_thread(i, args):
    """Add what comes through normals to the adjoint of vertex i."""
    x, faces, corners, adj_normals, adj_x = args
    points_vjp_body(i, x, faces, corners, adj_normals, adj_x)


@device_fn
def vertex_vjp_thread(i, args):
    """Sum the slots at vertex i and undo its projection; its parts belong to the view."""
    (view, x, scene, box, corners, slots, adj_faces), adj_x, adj_colors, parts = args
    if is_used(i, box, corners):
        eye, frame = unpack_view(view)
        vertex_vjp_body(i, x, eye, frame, box, corners, slots, adj_x, adj_colors, parts[i])
        if adj_faces.shape[1] > SLOT:
            towards_vjp_body(i, scene.by_pixel, view, box, corners, adj_faces, adj_x, parts[i])


@device_fn
def add_layer_thread(q, args):
    """Add the adjoints of logit and depth of fragment q from one layer."""
    kind, fragments, adj_layer, adj = args
    add_layer_body(q, kind[0], fragments, adj_layer, adj)


@device_fn
def normals_vjp_thread(k, args):
    """Undo the normals that the fragments of pair k show."""
    scene, faces, pair_face, fragments, adj_layer, slots, normal_slots = args
    normals_vjp_body(k, pair_face[k], scene, faces, fragments, adj_layer, k, slots, normal_slots)


@device_fn
def flat_normal_vjp_thread(f, args):
    """Sum the slots of the one normal of face f, and add its adjoint to those of the corners."""
    scene, x, box, pair_start, normal_slots, slots = args
    if box[f, 0] < box[f, 1] and not scene.rounded[f]:
        zero = lit(0.0, x[0, 0])
        adj_n = (zero, zero, zero)
        for k in range(pair_start[f], pair_start[f + 1]):
            adj_n = add(adj_n, load3(normal_slots, k))
        adj = face_normal_vjp(f, scene.faces, x, adj_n)
        for a in range(3):
            for c in range(3):
                slots[f, a, 3 + c] += adj[a][c]


class JobOnGpu(NamedTuple):
    """A job with what its frames share on the device."""

    xp: Any
    job: Job
    shared: Shared


def vjp_on_gpu(job: Job, layers: Layers, adj_images: np.ndarray) -> list[paths.Packed]:
    """Pull the adjoints of the layers (n_frames, n_layers, height, width, 4) back by frames."""
    gpu = JobOnGpu(array_module(Device.CUDA), job, share(job))
    return [
        draw_frame_vjp_on_gpu(gpu, frame, layers, adj_images[frame]) for frame in range(len(job.x))
    ]


def draw_frame_vjp_on_gpu(
    gpu: JobOnGpu, frame: int, layers: Layers, adj_images: np.ndarray
) -> paths.Packed:
    """Adjoints of all that the layers of one frame depend on."""
    xp, job, shared = gpu
    scene, x = shared.scene, on_device(job.x[frame])
    ready = gather_frame(xp, job, shared, x)
    fragments, n_pairs = ready.fragments, ready.pairs.face.shape[0]
    flat = normals_on_gpu(xp, layers, scene.faces, x)
    adj, of_pixels = undo_pixels(gpu, fragments, scene.background, adj_images[0])
    adj_layer = adj
    for i in range(1, len(layers.kinds)):
        kind, behind, layered = show_on_gpu(i, layers, shared, ready.faces, flat, fragments)
        adj_layer, others = undo_pixels(gpu, layered, behind, adj_images[i])
        launch(add_layer_thread, fragments.y.shape[0], (kind, fragments, adj_layer, adj))
        of_pixels[:, :4] += others[:, :4]  # of gamma, epsilon, near and far
        if layers.kinds[i] == DEPTH:
            of_pixels[:, 3] += others[:, 4]  # behind depth lies far
    of_pairs = undo_pairs(gpu, ready, adj)
    n_normals = n_pairs if flat.shape[0] else 0  # the last layer shows normals
    slots, normal_slots = on_device((of_pairs.slots, xp.empty((n_normals, 3), job.x.dtype)))
    args = (scene, ready.faces, ready.pairs.face, fragments, adj_layer, slots, normal_slots)
    launch(normals_vjp_thread, n_normals, args)
    of_faces = undo_faces(gpu, ready, x, of_pairs)
    args = (scene, x, ready.faces.box, ready.pairs.start, normal_slots, on_device(of_faces[1]))
    launch(flat_normal_vjp_thread, flat.shape[0], args)
    return undo_scene(gpu, ready, x, of_pixels, of_pairs, of_faces)


class PairParts(NamedTuple):
    """What each pair adds to the adjoints of its face, of the scene and of sigma."""

    slots: Any  # (n_pairs, 18 or 36)
    shades: ShadeParts
    records: TexelRecords
    sigmas: Any  # (n_pairs, 1)


def undo_pixels(
    gpu: JobOnGpu, fragments: Fragments, behind: Any, adj_image: np.ndarray
) -> tuple[FragmentAdjoints, Any]:
    """From pixels to fragments, and to parts of gamma to far and background (n_pixels, 7)."""
    xp, job, shared = gpu
    dtype, n, adj_pixels = job.x.dtype, fragments.y.shape[0], adj_image.reshape(-1, 4)
    y, z, w, T = (xp.empty(n, dtype) for _ in range(4))
    adj = on_device(FragmentAdjoints(y, z, w, T, adj_pixels))
    parts = xp.empty((len(adj_pixels), 7), dtype)
    args = (behind, shared.pixels.pixel_x, shared.numbers, shared.flags, fragments, adj)
    launch(pixel_vjp_thread, len(adj_pixels), (*args, on_device(parts)))
    return adj, parts


def undo_pairs(gpu: JobOnGpu, ready: FrameOnGpu, adj: FragmentAdjoints) -> PairParts:
    """From fragments to what the pairs add."""
    xp, job, shared = gpu
    dtype, n, n_pairs = job.x.dtype, ready.fragments.y.shape[0], ready.pairs.face.shape[0]
    by_pixel = ready.faces.towards.shape[0] > 0
    shades = zero_parts(xp, n_pairs if by_pixel else 1, 1, job.scene, dtype)
    slots = xp.empty((n_pairs, PIXEL_SLOT if by_pixel else SLOT), dtype)
    sigmas = xp.empty((n_pairs, 1), dtype)
    records = empty_records(xp, n if len(job.scene.texels) else 0, dtype)
    records.at[:] = -1
    of_pairs = (shared.scene, shared.numbers, shared.flags)
    faces, pairs = ready.faces, ready.pairs.face
    parts = on_device((slots, sigmas, shades, records))
    launch(pair_vjp_thread, n_pairs, (of_pairs, faces, pairs, ready.fragments, adj, *parts))
    return PairParts(slots, shades, records, sigmas)


def undo_scene(
    gpu: JobOnGpu,
    ready: FrameOnGpu,
    x: Any,
    of_pixels: Any,
    of_pairs: PairParts,
    of_faces: tuple[FaceParts, Any, Any],
) -> paths.Packed:
    """From the parts of pixels, pairs and faces to all that a frame depends on."""
    xp, job, _ = gpu
    parts, slots, adj_faces = of_faces
    adj_x, adj_colors, adj_view = undo_vertices(gpu, ready, x, (slots, adj_faces))
    objects = [int(f) for f in job.face_offsets]
    shades, every = parts.shades, [0, len(job.scene.faces)]
    of_materials = ("ambient", "diffuse", "specular", "shininess")
    of_lights = ("directions", "lights", "harmonics")
    sums = {name: sum_faces(xp, getattr(shades, name), objects) for name in of_materials}
    for name in of_lights:
        sums[name] = sum_faces(xp, getattr(shades, name), every).reshape(-1, 3)
    numbers, background = sum_pixels(gpu, of_pixels, of_pairs.sigmas)
    scene = job.scene._replace(
        face_colors=to_host(parts.face_colors),
        vertex_colors=adj_colors,
        texels=sum_texels(xp, of_pairs.records, len(job.scene.texels)),
        uv=np.zeros_like(job.scene.uv),
        background=background,
        **sums,
    )
    if len(scene.uv):
        add_uv(job.scene.uv_faces, to_host(ready.faces.box), to_host(adj_faces), scene.uv)
    return paths.Packed(adj_x, scene, adj_view, numbers)


def sum_pixels(gpu: JobOnGpu, parts: Any, sigmas: Any) -> tuple[np.ndarray, np.ndarray]:
    """Adjoints of numbers (6,) and of the background, from the parts of pixels and pairs."""
    xp, job, _ = gpu
    sums, adj_numbers = to_host(sum_runs(xp, parts, [0, len(parts)])[0]), np.zeros(6, job.x.dtype)
    adj_numbers[0] = to_host(sum_runs(xp, sigmas, [0, len(sigmas)])[0])[0]
    adj_numbers[1:3], adj_numbers[4:] = sums[:2], sums[2:4]
    adj_background = sums[4:].reshape(1, 1, 3)
    if len(job.background_shape) == 3:
        samples = to_host(parts)[:, 4:].reshape(job.scene.background.shape)
        adj_background = repeat_vjp(samples, job.samples)
    return adj_numbers, adj_background


def undo_faces(
    gpu: JobOnGpu, ready: FrameOnGpu, x: Any, pairs: PairParts
) -> tuple[FaceParts, Any, Any]:
    """From slots and parts of pairs to the parts of faces, slots of corners, sums of faces."""
    xp, job, shared = gpu
    dtype, n_faces = job.x.dtype, len(job.scene.faces)
    shades = zero_parts(xp, n_faces, 1, job.scene, dtype)
    parts = FaceParts(xp.zeros((n_faces, 3), dtype), shades)
    slots, adj_faces = (
        xp.empty((n_faces, 3, 9), dtype),
        xp.empty((n_faces, pairs.slots.shape[1]), dtype),
    )
    views = on_device((*pairs[:2], adj_faces, parts, slots))
    args = (shared.scene, x, ready.faces.box, ready.pairs.start, *views)
    launch(face_vjp_thread, n_faces, args)
    return parts, slots, adj_faces


def undo_vertices(
    gpu: JobOnGpu, ready: FrameOnGpu, x: Any, sums: tuple[Any, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """From slots of corners, sums of faces to vertices (n_vertices, 3), their colours, the view."""
    xp, job, shared = gpu
    corners, (slots, adj_faces) = shared.corners, on_device(sums)
    dtype, n = job.x.dtype, job.x.shape[1]
    adj_x, adj_colors = xp.zeros((n, 3), dtype), xp.zeros((n, 3), dtype)
    parts = xp.zeros((n, VIEW_SIZE), dtype)
    views, box = on_device((adj_x, adj_colors, parts)), ready.faces.box
    given = (shared.view, x, shared.scene, box, corners, slots, adj_faces)
    launch(vertex_vjp_thread, n, (given, *views))
    n_normals, faces = ready.faces.normals.shape[0], shared.scene.faces
    adj_normals = on_device(xp.empty((n_normals, 3), dtype))
    args = (x, shared.scene, box, corners, adj_faces, adj_normals)
    launch(normal_vjp_thread, n_normals, args)
    launch(points_vjp_thread, n_normals, (x, faces, corners, adj_normals, views[0]))
    return to_host(adj_x), to_host(adj_colors), to_host(sum_runs(xp, parts, [0, n])[0])
