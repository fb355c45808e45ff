r"""Tangents of images on a GPU: the half of the twin of `render/raster/cuda_raster.py` to push.

    vertices, scene, view -> faces -> fragments -> pixels

All images of a group are pushed at once. The half that pulls back is `cuda_raster.py`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentTangents, blend_jvp_body
from adjoint.render.faces.face_setup import FaceTangents, shade_jvp_body, vertex_jvp_body
from adjoint.render.paths import EPSILON, FAR, GAMMA, NEAR, SIGMA
from adjoint.render.raster.fragments import pair_jvp_body
from adjoint.render.raster.layers import behind_jvp, flat_normal_jvp_body, layer_jvp_body
from adjoint.render.shaders.normals import normal_jvp_body
from adjsim.jit.backend import device_fn, lit
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import on_device, to_host
from adjsim.jit.devices import Device, array_module
from render.faces.face_setup import PackedScene, corner_body
from render.projection import PERSPECTIVE, towards_body, unpack_view
from render.raster.cuda_bins import (
    PIXELS,
    FoundFragments,
    Group,
    faces_of,
    find_fragments,
    gather_group,
    image_groups,
    locate,
    share,
    unpack_settings,
)
from render.raster.cuda_raster import (
    DrawnGroup,
    behind_at,
    normals_on_gpu,
    pixel_place,
    show_on_gpu,
)
from render.raster.layers import Layers
from render.raster.packing import Job


class ImageTangents(NamedTuple):
    """Tangents of what each image of a group has for itself, on the device."""

    x: Any  # (n_images, n_vertices, 3)
    view: Any  # (n_images, 18)
    numbers: Any  # (n_images, 6)
    behind: tuple[Any, ...]  # of each layer, (1 or n_images, 1 or height, 1 or width, 3)


class GroupTangents(NamedTuple):
    """Tangents of a group of images, and of what is pushed through it, on the device."""

    scene: PackedScene
    images: ImageTangents
    faces: FaceTangents  # each array with an axis of images before
    flat: Any  # (n_images, n_faces or 0, 3)


@device_fn
def tangents_of(n, tangents):
    """Tangents of the faces of image n."""
    return FaceTangents(
        tangents.screen[n], tangents.corners[n], tangents.shaded[n], tangents.normals[n],
        tangents.towards[n],
    )  # fmt: skip


@device_fn
def vertex_jvp_thread(k, args):
    """Tangent of the projection of vertex k of all images."""
    view, tan_view, x, tan_x, tan_screen, tan_towards = args
    n, i = k // x.shape[1], k % x.shape[1]
    eye, frame = unpack_view(view[n])
    tan_eye, tan_frame = unpack_view(tan_view[n])
    vertex_jvp_body(i, x[n], tan_x[n], eye, tan_eye, frame, tan_frame, tan_screen[n])
    if tan_towards.shape[1] > 0:
        towards_body(i, tan_x[n], tan_eye, tan_frame[2], view[n, PERSPECTIVE], tan_towards[n])


@device_fn
def normal_jvp_thread(k, args):
    """Tangent of the normal of vertex k of all images."""
    x, tan_x, faces, corners, tan_normals = args
    n, i = k // x.shape[1], k % x.shape[1]
    normal_jvp_body(i, x[n], tan_x[n], faces, corners, tan_normals[n])


@device_fn
def face_jvp_thread(k, args):
    """Tangents of the corners and the colours of face k of all images."""
    scene, tan_scene, x, tan_x, box, tangents = args
    n, f = k // box.shape[1], k % box.shape[1]
    image_tangents = tangents_of(n, tangents)
    if box[n, f, 0] < box[n, f, 1]:
        corner_body(f, scene, image_tangents.screen, lit(0.0, x[0, 0, 0]), image_tangents.corners)
        shade_jvp_body(f, scene, tan_scene, x[n], tan_x[n], image_tangents)


@device_fn
def pair_jvp_thread(k, args):
    """Tangents of the fragments of pair k of a batch."""
    scenes, pixels, numbers, faces, pairs, fragments, tan_faces, tangents = args
    n, _, _ = locate(pairs.bin[k], pixels)
    sigmas, tan = (numbers[0][n, SIGMA], numbers[1][n, SIGMA]), tangents_of(n, tan_faces)
    pair_jvp_body(
        k, pairs.face[k], scenes[0], scenes[1], faces_of(n, faces), tan, sigmas, fragments, tangents
    )


@device_fn
def pixel_jvp_thread(m, args):
    """Tangent of pixel m of a batch."""
    bins, pixels, (behind, tan_behind), numbers, flags, fragments, tangents, tan_image = args
    n, i, j = pixel_place(m, bins, pixels)
    if i < tan_image.shape[1] and j < tan_image.shape[2]:
        begin, end = fragments.start[m], fragments.start[m + 1]
        settings, tan_own = unpack_settings(numbers[0][n], flags), numbers[1][n]
        tan_settings = (tan_own[GAMMA], tan_own[EPSILON], tan_own[NEAR], tan_own[FAR])
        tan = blend_jvp_body(
            begin, end, fragments, tangents, settings, tan_settings,
            behind_at(n, i, j, behind), behind_at(n, i, j, tan_behind),
        )  # fmt: skip
        for c in range(4):
            tan_image[n, i, j, c] = tan[c]


@device_fn
def flat_normal_jvp_thread(k, args):
    """Tangent of the unit normal of face k of all images."""
    faces, x, tan_x, tan_flat = args
    n, f = k // faces.shape[0], k % faces.shape[0]
    flat_normal_jvp_body(f, faces, x[n], tan_x[n], tan_flat[n])


@device_fn
def layer_jvp_thread(k, args):
    """Tangents of what the fragments of pair k show in a layer."""
    kind, scene, pixels, (faces, tan_faces), tan_flat, pairs, fragments, tangents, tan_rgb = args
    n, _, _ = locate(pairs.bin[k], pixels)
    both = faces_of(n, faces), tangents_of(n, tan_faces)
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        layer_jvp_body(q, kind[0], scene, both, tan_flat[n], fragments, tangents, tan_rgb)


def jvp_on_gpu(
    jobs: Sequence[Job],
    layers: Sequence[Layers],
    kept: DrawnGroup | None,
    tangents: Sequence[paths.Packed],
) -> np.ndarray:
    """Tangents of the layers, (n_views, n_frames, n_layers, height, width, 4); some per view."""
    job, n_layers = jobs[0], len(layers[0].kinds)
    shape = (len(job.grid.pixel_y), len(job.grid.pixel_x), 4)
    tan_images = np.empty((len(jobs) * len(job.x), n_layers, *shape), job.x.dtype)
    shared = kept.group.shared if kept else share(jobs, layers)
    scene = tangents[0].scene
    tan_scene = on_device(scene._replace(background=scene.background[:0]))
    for numbers in image_groups(jobs):
        drawn = kept or DrawnGroup(gather_group(jobs, layers, shared, numbers), None)
        image_tangents = on_device(own_tangents(job, layers, tangents, numbers))
        pushed = push_group(job, layers[0], drawn, image_tangents, tan_scene)
        tan_images[numbers.start : numbers.stop] = np.moveaxis(pushed, 0, 1)
        del drawn  # so that its memory is there for the next
    return tan_images.reshape(len(jobs), len(job.x), n_layers, *shape)


def own_tangents(
    job: Job, layers: Sequence[Layers], tangents: Sequence[paths.Packed], numbers: range
) -> ImageTangents:
    """Return the tangents of what each of some images has for itself, on the host."""
    views, frames = np.divmod(numbers, len(job.x))
    pairs = zip(layers, tangents, strict=True)
    behind = np.stack([behind_jvp(of_view, tan) for of_view, tan in pairs], axis=1)[:, views]
    return ImageTangents(
        tangents[0].x[frames],
        np.stack([tan.view for tan in tangents])[views],
        np.stack([tan.numbers for tan in tangents])[views],
        (tangents[0].scene.background[None], *behind[1:]),
    )


def push_faces(job: Job, group: Group, tan: ImageTangents, tan_scene: PackedScene) -> FaceTangents:
    """Tangents of the faces of a group of images."""
    xp, shared, (x, view, _, _) = array_module(Device.CUDA), group.shared, group.images
    scene, faces, dtype = shared.scene, group.faces, job.x.dtype
    n, n_vertices, n_faces = x.shape[0], x.shape[1], len(job.scene.faces)
    pushed = on_device(
        FaceTangents(
            xp.empty((n, n_vertices, 3), dtype),
            xp.empty((n, n_faces, 10), dtype),
            xp.zeros((n, n_faces, 9), dtype),
            xp.empty(faces.normals.shape, dtype),
            xp.empty(faces.towards.shape, dtype),
        )
    )
    args = (view, tan.view, x, tan.x, pushed.screen, pushed.towards)
    launch(vertex_jvp_thread, n * n_vertices, args)
    args = (x, tan.x, scene.faces, shared.corners, pushed.normals)
    launch(normal_jvp_thread, n * faces.normals.shape[1], args)
    launch(face_jvp_thread, n * n_faces, (scene, tan_scene, x, tan.x, faces.box, pushed))
    return pushed


def push_group(
    job: Job, layers: Layers, drawn: DrawnGroup, tan: ImageTangents, tan_scene: PackedScene
) -> np.ndarray:
    """Tangents of the layers of a group of images, (n_layers, n_images, height, width, 4)."""
    xp, group, n_layers = array_module(Device.CUDA), drawn.group, len(layers.kinds)
    shape = (len(group.numbers), len(job.grid.pixel_y), len(job.grid.pixel_x), 4)
    tan_images = xp.empty((n_layers, *shape), job.x.dtype)
    places = on_device(tuple(tan_images[i] for i in range(n_layers)))
    flat, (x, _, _, _) = normals_on_gpu(layers, group), group.images
    tan_flat = on_device(xp.empty(flat.shape, job.x.dtype))
    args = (group.shared.scene.faces, x, tan.x, tan_flat)
    launch(flat_normal_jvp_thread, flat.shape[0] * flat.shape[1], args)
    tangents = GroupTangents(tan_scene, tan, push_faces(job, group, tan, tan_scene), tan_flat)
    for batch in group.batches:
        of_batch = drawn.of_batch or find_fragments(job.x.dtype, group, batch)
        push_batch(group, of_batch, flat, tangents, places)
        del of_batch  # so that its memory is there for the next
    return to_host(tan_images)


def push_batch(
    group: Group, batch: FoundFragments, flat: Any, tan: GroupTangents, tan_images: tuple
) -> None:
    """Tangents of the layers of the bins of a batch, each into its images."""
    xp, shared, (_, pairs, fragments) = array_module(Device.CUDA), group.shared, batch
    n, n_pairs, dtype = fragments.y.shape[0], pairs.face.shape[0], fragments.y.dtype
    arrays = FragmentTangents(xp.empty(n, dtype), xp.empty(n, dtype), xp.empty((n, 3), dtype))
    pushed, scenes = on_device(arrays), (shared.scene, tan.scene)
    numbers = (group.images.numbers, tan.images.numbers)
    args = (scenes, shared.pixels, numbers, group.faces, pairs, fragments, tan.faces, pushed)
    launch(pair_jvp_thread, n_pairs, args)
    blend_jvp_on_gpu(0, group, batch, fragments, (tan, pushed), tan_images[0])
    faces = (group.faces, tan.faces)
    for i in range(1, len(tan_images)):
        layer_fragments = show_on_gpu(i, group, batch, flat)
        layered = pushed._replace(rgb=on_device(xp.empty((n, 3), dtype)))
        args = (shared.kinds[i], shared.scene, shared.pixels, faces, tan.flat, pairs)
        launch(layer_jvp_thread, n_pairs, (*args, layer_fragments, pushed, layered.rgb))
        blend_jvp_on_gpu(i, group, batch, layer_fragments, (tan, layered), tan_images[i])


def blend_jvp_on_gpu(
    i: int, group: Group, of_batch: FoundFragments, fragments: Any, tangents: tuple, tan_image: Any
) -> None:
    """Tangents of layer i of the pixels of a batch; of a group, and of its fragments."""
    (tan, pushed), shared = tangents, group.shared
    numbers, behind = (group.images.numbers, tan.images.numbers), group.images.behind[i]
    args = (of_batch.bins, shared.pixels, (behind, tan.images.behind[i]), numbers, shared.flags)
    n_pixels = PIXELS * of_batch.bins.number.shape[0]
    launch(pixel_jvp_thread, n_pixels, (*args, fragments, pushed, tan_image))
