r"""The soft rasterizer on a GPU: one thread per vertex, face, pair of a bin and a face, and pixel.

    vertices -> faces -> pairs (bin, face) -> fragments -> lists of the pixels -> pixels

`cuda_bins.py` finds the fragments and lists them. Here the pixels are blended: first with the
colours of the fragments, then, layer by layer, with what else these show. All images of a call are
drawn at once, or in groups where there are many; each group is copied to the host once. The CPU
runs the same bodies.

Adjoint: `adjoint/render/raster/cuda_raster.py`. Tests: `tests/cuda`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjsim.jit.backend import device_fn
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import on_device, to_host
from adjsim.jit.devices import Device, array_module, module_of
from render.blending import background_at, blend_body
from render.raster.cuda_bins import (
    BIN,
    PIXELS,
    Batch,
    FoundFragments,
    Group,
    faces_of,
    find_fragments,
    gather_group,
    image_groups,
    locate,
    place_in_bin,
    share,
    unpack_settings,
)
from render.raster.fragments import Fragments
from render.raster.layers import NORMALS, Layers, flat_normal_body, layer_body
from render.raster.packing import Job


class DrawnGroup(NamedTuple):
    """A group of images that is drawn, and, where they are in one batch, its fragments."""

    group: Group
    of_batch: FoundFragments | None


@device_fn
def flat_normal_thread(k, args):
    """Write the unit normal of face k of all images."""
    faces, x, flat = args
    n, f = k // faces.shape[0], k % faces.shape[0]
    flat_normal_body(f, faces, x[n], flat[n])


@device_fn
def layer_thread(k, args):
    """Write what the fragments of pair k show in a layer."""
    kind, scene, pixels, faces, flat, pairs, fragments, rgb = args
    n, _, _ = locate(pairs.bin[k], pixels)
    image_faces = faces_of(n, faces)
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        layer_body(q, kind[0], scene, image_faces, flat[n], fragments, rgb)


@device_fn
def pixel_place(m, bins, pixels):
    """Image, row and column of pixel m of a batch; it may lie beyond the image."""
    (n, i, j), (row, column) = locate(bins.number[m // PIXELS], pixels), place_in_bin(m)
    return n, i * BIN + row, j * BIN + column


@device_fn
def behind_at(n, i, j, behind):
    """What lies behind the pixel in row i and column j of image n."""
    return background_at(i, j, behind[min(n, behind.shape[0] - 1)])


@device_fn
def pixel_thread(m, args):
    """Blend the list of pixel m of a batch."""
    bins, pixels, behind, numbers, flags, fragments, image = args
    n, i, j = pixel_place(m, bins, pixels)
    if i < image.shape[1] and j < image.shape[2]:
        begin, end = fragments.start[m], fragments.start[m + 1]
        settings = unpack_settings(numbers[n], flags)
        rgba = blend_body(begin, end, fragments, settings, behind_at(n, i, j, behind))
        image[n, i, j, 0], image[n, i, j, 1], image[n, i, j, 2], image[n, i, j, 3] = rgba


def blend_on_gpu(
    group: Group, of_batch: FoundFragments, fragments: Fragments, behind: Any, image: Any
) -> None:
    """Blend the lists of the pixels of a batch into images (n_images, height, width, 4)."""
    shared, numbers = group.shared, group.images.numbers
    args = (of_batch.bins, shared.pixels, behind, numbers, shared.flags, fragments, image)
    launch(pixel_thread, PIXELS * of_batch.bins.number.shape[0], args)


def normals_on_gpu(layers: Layers, group: Group) -> Any:
    """Return the unit normals of all faces, (n_images, n_faces, 3); none if no layer shows them."""
    xp, faces, x = array_module(Device.CUDA), group.shared.scene.faces, group.images.x
    n_faces = faces.shape[0] if NORMALS in layers.kinds else 0
    flat = on_device(xp.empty((x.shape[0], n_faces, 3), x.dtype))
    launch(flat_normal_thread, x.shape[0] * n_faces, (faces, x, flat))
    return flat


def show_on_gpu(i: int, group: Group, batch: FoundFragments, flat: Any) -> Fragments:
    """Return the fragments of a batch as they show layer i."""
    shared, fragments = group.shared, batch.fragments
    empty = array_module(Device.CUDA).empty(fragments.rgb.shape, fragments.rgb.dtype)
    args = (shared.kinds[i], shared.scene, shared.pixels, group.faces, flat)
    layered = fragments._replace(rgb=on_device(empty))
    launch(layer_thread, batch.pairs.face.shape[0], (*args, batch.pairs, fragments, layered.rgb))
    return layered


def draw_batch(job: Job, group: Group, batch: Batch, flat: Any, images: tuple) -> FoundFragments:
    """Draw the layers of the bins of a batch, each into its images."""
    of_batch, behind = find_fragments(job.x.dtype, group, batch), group.images.behind
    blend_on_gpu(group, of_batch, of_batch.fragments, behind[0], images[0])
    for i in range(1, len(images)):
        blend_on_gpu(group, of_batch, show_on_gpu(i, group, of_batch, flat), behind[i], images[i])
    return of_batch


def draw_group(job: Job, layers: Layers, group: Group) -> tuple[Any, DrawnGroup]:
    """Draw the layers of a group of images, (n_layers, n_images, height, width, 4), there."""
    xp, n_layers = array_module(Device.CUDA), len(layers.kinds)
    shape = (len(group.numbers), len(job.grid.pixel_y), len(job.grid.pixel_x), 4)
    images, of_batch = xp.empty((n_layers, *shape), job.x.dtype), None
    places, flat = (
        on_device(tuple(images[i] for i in range(n_layers))),
        normals_on_gpu(layers, group),
    )
    for batch in group.batches:
        of_batch = None  # so that its memory is there for the next
        of_batch = draw_batch(job, group, batch, flat, places)
    return images, DrawnGroup(group, of_batch if len(group.batches) == 1 else None)


def draw_on_gpu(jobs: Sequence[Job], layers: Sequence[Layers]) -> tuple[Any, DrawnGroup | None]:
    """Draw the layers of all frames of all views, (n_views, n_frames, n_layers, height, width, 4).

    They stay on the device if the vertices came from there. Where all images are in one group, it
    is returned for the reverse.
    """
    job, n_layers, shared = jobs[0], len(layers[0].kinds), share(jobs, layers)
    shape = (len(job.grid.pixel_y), len(job.grid.pixel_x), 4)
    xp = module_of(job.x)
    images = xp.empty((len(jobs) * len(job.x), n_layers, *shape), job.x.dtype)
    groups, kept = image_groups(jobs), None
    for numbers in groups:
        drawn, kept = draw_group(job, layers[0], gather_group(jobs, layers, shared, numbers))
        drawn = to_host(drawn) if xp is np else drawn
        images[numbers.start : numbers.stop] = drawn.swapaxes(0, 1)
        kept = kept if len(groups) == 1 else None
    return images.reshape(len(jobs), len(job.x), n_layers, *shape), kept
