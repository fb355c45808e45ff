r"""Tangent and adjoint of `render/raster/cuda_layers.py`: read the two files side by side.

The fragments hear of every layer before their faces are undone, once:

    pixels of each layer -> fragments -> slots of the pairs, and normals -> faces -> the rest
"""

import numpy as np

from adjoint.render import paths
from adjoint.render.raster.cuda_raster import (
    JobOnGpu,
    undo_faces,
    undo_pairs,
    undo_pixels,
    undo_scene,
)
from adjoint.render.raster.cuda_tangents import blend_jvp_on_gpu, push_frame
from adjoint.render.raster.face_setup import face_normal_vjp
from adjoint.render.raster.layer_tangents import behind_jvp, flat_normal_jvp_body, layer_jvp_body
from adjoint.render.raster.layers import add_layer_body, normals_vjp_body
from adjsim.engine.algebra.vec3 import add
from adjsim.engine.jit.backend import Device, array_module, device_fn, launch, lit, on_device
from render.raster.cuda_layers import empty_layered, normals_on_gpu, show_on_gpu
from render.raster.cuda_raster import gather_frame, share
from render.raster.face_setup import load3
from render.raster.layers import DEPTH, Layers
from render.raster.packing import Job


@device_fn
def flat_normal_jvp_thread(f, args):
    """Tangent of the unit normal of face f."""
    faces, x, tan_x, tan_flat = args
    flat_normal_jvp_body(f, faces, x, tan_x, tan_flat)


@device_fn
def layer_jvp_thread(q, args):
    """Tangent of what fragment q shows in a layer."""
    kind, scene, faces, tan_flat, fragments, tangents, tan_layered = args
    layer_jvp_body(q, kind[0], scene, faces, tan_flat, fragments, tangents, tan_layered)


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


def layers_jvp_on_gpu(job: Job, layers: Layers, tangents: paths.Packed) -> np.ndarray:
    """Tangents of the layers of the frames of a job, (n_frames, n_layers, height, width, 4)."""
    gpu = JobOnGpu(array_module(Device.CUDA), job, share(job))
    tan_shared = on_device((tangents.view, tangents.numbers, tangents.scene))
    shape = (len(layers.kinds), len(job.grid.pixel_y), len(job.grid.pixel_x), 4)
    tan_images = np.empty((len(job.x), *shape), job.x.dtype)
    for frame in range(len(job.x)):
        tan = (*tan_shared, on_device(tangents.x[frame]))
        own = (layers, behind_jvp(layers, tangents))
        draw_frame_layers_jvp_on_gpu(gpu, frame, own, tan, tan_images[frame])
    return tan_images


def draw_frame_layers_jvp_on_gpu(
    gpu: JobOnGpu, frame: int, own: tuple[Layers, np.ndarray], tan: tuple, tan_images: np.ndarray
) -> None:
    """Tangents of the layers of one frame, (n_layers, height, width, 4).

    `own` are the layers and the tangents of what lies behind them.
    """
    (layers, tan_behind), (xp, job, shared) = own, gpu
    _, tan_numbers, tan_scene, tan_x = tan
    scene, shape, x = shared.scene, tan_images.shape[1:], on_device(job.x[frame])
    ready = gather_frame(xp, job, shared, x)
    pushed = push_frame(gpu, ready, x, tan)
    fragments = (ready.fragments, pushed.fragments)
    behind = (scene.background, tan_scene.background)
    tan_images[0] = blend_jvp_on_gpu(gpu, fragments, behind, tan_numbers, shape)
    flat = normals_on_gpu(xp, layers, scene.faces, x)
    tan_flat = on_device(xp.empty(flat.shape, job.x.dtype))
    launch(flat_normal_jvp_thread, flat.shape[0], (scene.faces, x, tan_x, tan_flat))
    layered = empty_layered(xp, ready.fragments)
    tan_layered = pushed.fragments._replace(rgb=on_device(xp.empty(layered.rgb.shape, job.x.dtype)))
    for i in range(1, len(layers.kinds)):
        kind, value = show_on_gpu(i, layers, shared, ready.faces, flat, (ready.fragments, layered))
        of_faces = (scene, (ready.faces, pushed.faces), tan_flat)
        args = (kind, *of_faces, *fragments, tan_layered)
        launch(layer_jvp_thread, layered.y.shape[0], args)
        shown = (layered, tan_layered)
        tan_value = on_device(tan_behind[i])
        tan_images[i] = blend_jvp_on_gpu(gpu, shown, (value, tan_value), tan_numbers, shape)


def layers_vjp_on_gpu(job: Job, layers: Layers, adj_images: np.ndarray) -> list[paths.Packed]:
    """Pull the adjoints of the layers (n_frames, n_layers, height, width, 4) back by frames."""
    gpu = JobOnGpu(array_module(Device.CUDA), job, share(job))
    return [
        draw_frame_layers_vjp_on_gpu(gpu, frame, layers, adj_images[frame])
        for frame in range(len(job.x))
    ]


def draw_frame_layers_vjp_on_gpu(
    gpu: JobOnGpu, frame: int, layers: Layers, adj_images: np.ndarray
) -> paths.Packed:
    """Adjoints of all that the layers of one frame depend on."""
    xp, job, shared = gpu
    scene, x = shared.scene, on_device(job.x[frame])
    ready = gather_frame(xp, job, shared, x)
    fragments, n_pairs = ready.fragments, ready.pairs.face.shape[0]
    flat = normals_on_gpu(xp, layers, scene.faces, x)
    layered = empty_layered(xp, fragments)
    adj, of_pixels = undo_pixels(gpu, fragments, scene.background, adj_images[0])
    adj_layer = adj
    for i in range(1, len(layers.kinds)):
        kind, behind = show_on_gpu(i, layers, shared, ready.faces, flat, (fragments, layered))
        adj_layer, others = undo_pixels(gpu, layered, behind, adj_images[i])
        launch(add_layer_thread, fragments.y.shape[0], (kind, fragments, adj_layer, adj))
        of_pixels[:, :4] += others[:, :4]  # of gamma, epsilon, near and far
        if layers.kinds[i] == DEPTH:
            of_pixels[:, 3] += others[:, 4]  # behind depth lies far
    of_pairs = undo_pairs(gpu, ready, adj)
    n_normals = n_pairs if flat.shape[0] else 0  # the last layer is that of normals
    slots, normal_slots = on_device((of_pairs.slots, xp.empty((n_normals, 3), job.x.dtype)))
    args = (scene, ready.faces, ready.pairs.face, fragments, adj_layer, slots, normal_slots)
    launch(normals_vjp_thread, n_normals, args)
    of_faces = undo_faces(gpu, ready, x, of_pairs)
    args = (scene, x, ready.faces.box, ready.pairs.start, normal_slots, on_device(of_faces[1]))
    launch(flat_normal_vjp_thread, flat.shape[0], args)
    return undo_scene(gpu, ready, x, of_pixels, of_pairs, of_faces)
