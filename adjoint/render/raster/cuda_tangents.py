r"""Tangents of a frame on a GPU: the half of the twin of `render/raster/cuda_raster.py` to push.

    vertices, scene, view -> faces -> fragments -> pixels

The half that pulls back is `cuda_raster.py`.
"""

from typing import Any, NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentTangents, blend_jvp_body
from adjoint.render.raster.cuda_raster import JobOnGpu
from adjoint.render.raster.face_setup import FaceTangents, shade_jvp_body, vertex_jvp_body
from adjoint.render.raster.fragments import pair_jvp_body
from adjoint.render.raster.layers import behind_jvp, flat_normal_jvp_body, layer_jvp_body
from adjoint.render.shaders.normals import normal_jvp_body
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
from render.projection import towards_body, unpack_view
from render.raster.cuda_raster import (
    FrameOnGpu,
    gather_frame,
    normals_on_gpu,
    share,
    show_on_gpu,
    unpack_settings,
)
from render.raster.face_setup import corner_body
from render.raster.layers import Layers
from render.raster.packing import Job


@device_fn
def vertex_jvp_thread(i, args):
    """Tangent of the projection of vertex i."""
    view, tan_view, x, tan_x, tan_screen, tan_towards = args
    eye, frame = unpack_view(view)
    tan_eye, tan_frame = unpack_view(tan_view)
    vertex_jvp_body(i, x, tan_x, eye, tan_eye, frame, tan_frame, tan_screen)
    if tan_towards.shape[0] > 0:
        towards_body(i, tan_x, tan_eye, tan_frame[2], view[17], tan_towards)


@device_fn
def normal_jvp_thread(i, args):
    """Tangent of the normal of vertex i."""
    x, tan_x, faces, corners, tan_normals = args
    normal_jvp_body(i, x, tan_x, faces, corners, tan_normals)


@device_fn
def face_jvp_thread(f, args):
    """Tangents of the corners and the colours of face f."""
    scene, tan_scene, x, tan_x, box, tangents = args
    if box[f, 0] < box[f, 1]:
        corner_body(f, scene, tangents.screen, lit(0.0, x[0, 0]), tangents.corners)
        shade_jvp_body(f, scene, tan_scene, x, tan_x, tangents)


@device_fn
def pair_jvp_thread(k, args):
    """Tangents of the fragments of pair k."""
    scenes, numbers, faces, pair_face, fragments, tan_faces, tangents = args
    sigmas = (numbers[0][0], numbers[1][0])
    pair_jvp_body(
        k, pair_face[k], scenes[0], scenes[1], faces, tan_faces, sigmas, fragments, tangents
    )


@device_fn
def pixel_jvp_thread(k, args):
    """Tangent of pixel k."""
    shared, tan_numbers, fragments, tangents, tan_image = args
    background, tan_background, numbers, flags = shared
    begin, end = fragments.start[k], fragments.start[k + 1]
    settings = unpack_settings(numbers, flags)
    tan_settings = (tan_numbers[1], tan_numbers[2], tan_numbers[4], tan_numbers[5])
    i, j = k // tan_image.shape[1], k % tan_image.shape[1]
    tan = blend_jvp_body(
        begin, end, fragments, tangents, settings, tan_settings,
        background_at(i, j, background), background_at(i, j, tan_background),
    )  # fmt: skip
    tan_image[i, j, 0], tan_image[i, j, 1], tan_image[i, j, 2], tan_image[i, j, 3] = tan


@device_fn
def flat_normal_jvp_thread(f, args):
    """Tangent of the unit normal of face f."""
    faces, x, tan_x, tan_flat = args
    flat_normal_jvp_body(f, faces, x, tan_x, tan_flat)


@device_fn
def layer_jvp_thread(q, args):
    """Tangent of what fragment q shows in a layer."""
    kind, scene, faces, tan_flat, fragments, tangents, tan_rgb = args
    layer_jvp_body(q, kind[0], scene, faces, tan_flat, fragments, tangents, tan_rgb)


def jvp_on_gpu(job: Job, layers: Layers, tangents: paths.Packed) -> np.ndarray:
    """Tangents of the layers of the frames of a job, (n_frames, n_layers, height, width, 4)."""
    gpu = JobOnGpu(array_module(Device.CUDA), job, share(job))
    tan_shared = on_device((tangents.view, tangents.numbers, tangents.scene))
    shape = (len(layers.kinds), len(job.grid.pixel_y), len(job.grid.pixel_x), 4)
    tan_images = np.empty((len(job.x), *shape), job.x.dtype)
    tan_behind = behind_jvp(layers, tangents)
    for frame in range(len(job.x)):
        tan = (*tan_shared, on_device(tangents.x[frame]))
        draw_frame_jvp_on_gpu(gpu, frame, (layers, tan_behind), tan, tan_images[frame])
    return tan_images


class FrameTangents(NamedTuple):
    """What is pushed from faces to fragments, on the device."""

    faces: FaceTangents
    fragments: FragmentTangents


def draw_frame_jvp_on_gpu(
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
    of_faces = (scene, (ready.faces, pushed.faces), tan_flat)
    for i in range(1, len(layers.kinds)):
        kind, value, layered = show_on_gpu(i, layers, shared, ready.faces, flat, ready.fragments)
        tan_rgb = on_device(xp.empty(layered.rgb.shape, job.x.dtype))
        args = (kind, *of_faces, *fragments, tan_rgb)
        launch(layer_jvp_thread, layered.y.shape[0], args)
        shown = (layered, pushed.fragments._replace(rgb=tan_rgb))
        behind = (value, on_device(tan_behind[i]))
        tan_images[i] = blend_jvp_on_gpu(gpu, shown, behind, tan_numbers, shape)


def push_frame(gpu: JobOnGpu, ready: FrameOnGpu, x: Any, tan: tuple) -> FrameTangents:
    """Tangents of the faces and the fragments of one frame."""
    xp, job, shared = gpu
    tan_view, tan_numbers, tan_scene, tan_x = tan
    scene, dtype, n_faces = shared.scene, job.x.dtype, len(job.scene.faces)
    n, n_vertices = ready.fragments.y.shape[0], job.x.shape[1]
    tan_faces, tan_fragments = on_device(
        FrameTangents(
            FaceTangents(
                xp.empty((n_vertices, 3), dtype),
                xp.empty((n_faces, 10), dtype),
                xp.zeros((n_faces, 9), dtype),
                xp.empty(ready.faces.normals.shape, dtype),
                xp.empty(ready.faces.towards.shape, dtype),
            ),
            FragmentTangents(xp.empty(n, dtype), xp.empty(n, dtype), xp.empty((n, 3), dtype)),
        )
    )
    view, box = shared.view, ready.faces.box
    args = (view, tan_view, x, tan_x, tan_faces.screen, tan_faces.towards)
    launch(vertex_jvp_thread, n_vertices, args)
    args = (x, tan_x, scene.faces, shared.corners, tan_faces.normals)
    launch(normal_jvp_thread, ready.faces.normals.shape[0], args)
    launch(face_jvp_thread, n_faces, (scene, tan_scene, x, tan_x, box, tan_faces))
    scenes, numbers = (scene, tan_scene), (shared.numbers, tan_numbers)
    pairs = ready.pairs.face
    args = (scenes, numbers, ready.faces, pairs, ready.fragments, tan_faces, tan_fragments)
    launch(pair_jvp_thread, pairs.shape[0], args)
    return FrameTangents(tan_faces, tan_fragments)


def blend_jvp_on_gpu(
    gpu: JobOnGpu, fragments: tuple, behind: tuple, tan_numbers: Any, shape: tuple
) -> np.ndarray:
    """Tangents of all pixels; of fragments and what is behind them, each with its tangents."""
    shared, image = gpu.shared, gpu.xp.empty(shape, gpu.job.x.dtype)
    of_pixels = (*behind, shared.numbers, shared.flags)
    launch(
        pixel_jvp_thread, shape[0] * shape[1],
        (of_pixels, tan_numbers, *fragments, on_device(image)),
    )  # fmt: skip
    return to_host(image)
