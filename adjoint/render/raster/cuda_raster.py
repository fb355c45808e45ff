r"""Adjoint of `render/raster/cuda_raster.py` and `cuda_bins.py`: read them side by side.

The launches of the forward are undone last first, for all images of a group at once:

    pixels -> fragments -> slots of the pairs -> faces -> vertices, scene, view

The fragments of a group that is one batch are kept from the forward; those of others are found
again, batch by batch. They hear of every layer before their pairs are undone, once. The slots of
the pairs of a face lie side by side, whatever the batches are.
What many threads share (material, lights, view, background, sigma, gamma, epsilon) has a
part per thread; parts are summed in an order that their number alone decides. All that a group
gives is copied to the host at once. The tangents are in `cuda_tangents.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.blending import FragmentAdjoints, blend_vjp_body
from adjoint.render.faces.face_setup import (
    PIXEL_SLOT,
    SLOT,
    add_colors,
    face_normal_vjp,
    face_vjp_body,
    is_used,
    normal_slots_body,
    towards_vjp_body,
    vertex_vjp_body,
)
from adjoint.render.raster.cuda_sums import Table, add_texel_records, plan_sums, sum_tables
from adjoint.render.raster.fragments import pair_vjp_body, pixels_vjp_body
from adjoint.render.raster.layers import add_layer_body, normals_vjp_body
from adjoint.render.raster.pixel_shading import ShadeParts, own_parts, part_shapes
from adjoint.render.raster.supersampling import average_vjp, repeat_vjp
from adjoint.render.shaders.normals import points_vjp_body, sum_vjp_body
from adjoint.render.textures import add_uv, empty_records
from adjsim.algebra.vec3 import add
from adjsim.jit.backend import device_fn, lit
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import on_device, to_host
from adjsim.jit.devices import Device, array_module, module_of
from render.faces.face_setup import load3
from render.projection import VIEW_SIZE, unpack_view
from render.raster.cuda_bins import (
    PIXELS,
    FoundFragments,
    Group,
    bin_box,
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
from render.raster.layers import COLOR, DEPTH, NORMALS, Layers
from render.raster.packing import Job


CORNER_SLOTS = 27  # numbers of a face: nine at each corner
OF_PIXELS = [paths.GAMMA, paths.EPSILON, paths.NEAR, paths.FAR]
BEHIND, PIXEL_PARTS = 4, 7  # where these end, and what lies behind them
OF_MATERIALS = ("ambient", "diffuse", "specular", "shininess")


class PairParts(NamedTuple):
    """What the pairs of a group add, face by face."""

    slots: Any  # (n_pairs, 18 or 36)
    normals: Any  # (n_pairs or 0, 3) of the one normal of a face, where a layer shows normals
    table: Any  # (n_pairs, n) of sigma and, where pixels are shaded, of `shades`
    shades: ShadeParts  # (n_pairs, ...), views of the table


class FaceParts(NamedTuple):
    """What the faces of all images add."""

    sums: Any  # (n_images, n_faces, 18 or 36) of the slots of their pairs
    slots: Any  # (n_images, n_faces, 3, 9) of their corners
    colors: Any  # (n_images, n_faces, 3)
    table: Any  # (n_images n_faces, n) of sigma and `shades`
    shades: ShadeParts  # (n_images n_faces, ...), of its object, views of the table


class VertexParts(NamedTuple):
    """What the vertices of all images add."""

    x: Any  # (n_images, n_vertices, 3)
    view: Any  # (n_images, n_vertices, 18)


@device_fn
def pixel_vjp_thread(m, args):
    """Undo pixel m of a batch; its parts belong to gamma, epsilon, near, far and background."""
    kind, bins, pixels, behind, (numbers, flags), fragments, adj, parts = args
    n, i, j = pixel_place(m, bins, pixels)
    width = pixels.pixel_x.shape[0]
    if i < pixels.pixel_y.shape[0] and j < width:
        k = i * width + j
        begin, end = fragments.start[m], fragments.start[m + 1]
        adj_rgba = (adj.rgba[n, k, 0], adj.rgba[n, k, 1], adj.rgba[n, k, 2], adj.rgba[n, k, 3])
        settings, bg = unpack_settings(numbers[n], flags), behind_at(n, i, j, behind)
        adj_bg, adj_settings = blend_vjp_body(begin, end, fragments, settings, bg, adj_rgba, adj)
        if kind[0] == COLOR:
            for c in range(4):
                parts[n, k, c] = lit(0.0, settings.gamma)
            parts[n, k, 4], parts[n, k, 5], parts[n, k, 6] = adj_bg
        elif kind[0] == DEPTH:
            parts[n, k, 3] += adj_bg[0]  # behind depth lies far
        for c in range(4):
            parts[n, k, c] += adj_settings[c]


@device_fn
def own_adjoints(n, adj):
    """The adjoints of fragments, with those of the pixels of image n."""
    return FragmentAdjoints(adj.y, adj.z, adj.w, adj.T, adj.rgba[n])


@device_fn
def slot_of(k, n, i, j, faces, pairs, place):
    """Where a pair has its slot: side by side with those of its face f in image n."""
    f = pairs.face[k]
    top, _, left, right = bin_box(f, faces.box[n])
    return place[n * faces.box.shape[1] + f] + (i - top) * (right - left) + j - left


@device_fn
def pair_vjp_thread(k, args):
    """Undo the fragments of pair k of a batch; its part belongs to sigma."""
    (scene, pixels, numbers, flags), faces, place, pairs, fragments, adj, parts, records = args
    n, i, j = locate(pairs.bin[k], pixels)
    f, image_faces, settings = pairs.face[k], faces_of(n, faces), unpack_settings(numbers[n], flags)
    slot, own_adj = slot_of(k, n, i, j, faces, pairs, place), own_adjoints(n, adj)
    parts.table[slot, 0] = pair_vjp_body(
        k, f, scene, image_faces, settings, fragments, own_adj, slot, parts.slots
    )
    if scene.by_pixel[f]:
        shades = own_parts(slot, parts.shades)
        pixels_vjp_body(
            k, f, scene, image_faces, fragments, own_adj, slot, parts.slots, shades, 0, records, 0
        )


@device_fn
def add_layer_thread(k, args):
    """Add the adjoints of logit and depth of the fragments of pair k from one layer."""
    kind, pixels, pairs, fragments, adj_layer, adj = args
    n, _, _ = locate(pairs.bin[k], pixels)
    image_adj = own_adjoints(n, adj_layer)
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        add_layer_body(q, kind[0], fragments, image_adj, adj)


@device_fn
def normals_vjp_thread(k, args):
    """Undo the normals that the fragments of pair k show."""
    scene, pixels, faces, place, pairs, fragments, adj_layer, parts = args
    n, i, j = locate(pairs.bin[k], pixels)
    image_adj, slot = own_adjoints(n, adj_layer), slot_of(k, n, i, j, faces, pairs, place)
    normals_vjp_body(
        k, pairs.face[k], scene, faces_of(n, faces), fragments, image_adj, slot, parts.slots,
        parts.normals,
    )  # fmt: skip


@device_fn
def column_sum(begin, end, c, table):
    """Sum of column c of the rows begin..end-1, first to last."""
    total = lit(0.0, table[0, c])
    for k in range(begin, end):
        total += table[k, c]
    return total


@device_fn
def face_vjp_thread(k, args):
    """Sum the slots of the pairs of face k of all images and undo its setup."""
    scene, x, box, place, of_pairs, parts = args
    n, f = k // box.shape[1], k % box.shape[1]
    begin, end = place[k], place[k + 1]
    zero = lit(0.0, x[0, 0, 0])
    for c in range(parts.sums.shape[2]):
        parts.sums[n, f, c] = zero
    if begin < end:
        by_pixel = scene.by_pixel[f]
        for c in range(PIXEL_SLOT if by_pixel else SLOT):
            parts.sums[n, f, c] = column_sum(begin, end, c, of_pairs.slots)
        shades = own_parts(k, parts.shades)
        face_vjp_body(f, scene, x[n], parts.sums[n], parts.colors[n], shades, 0, parts.slots[n])
        for c in range(of_pairs.table.shape[1] if by_pixel else 1):
            parts.table[k, c] += column_sum(begin, end, c, of_pairs.table)


@device_fn
def flat_normal_vjp_thread(k, args):
    """Sum the slots of the one normal of face k of all images; its corners get its adjoint."""
    scene, x, place, normals, slots = args
    n, f = k // slots.shape[1], k % slots.shape[1]
    if place[k] < place[k + 1] and not scene.rounded[f]:
        zero = lit(0.0, x[0, 0, 0])
        adj_n = (zero, zero, zero)
        for slot in range(place[k], place[k + 1]):
            adj_n = add(adj_n, load3(normals, slot))
        adj = face_normal_vjp(f, scene.faces, x[n], adj_n)
        for a in range(3):
            for c in range(3):
                slots[n, f, a, 3 + c] += adj[a][c]


@device_fn
def normal_vjp_thread(k, args):
    """Sum the slots of the normal of vertex k of all images and undo its length."""
    x, scene, box, corners, sums, adj_normals = args
    n, i = k // x.shape[1], k % x.shape[1]
    normal_slots_body(i, scene.rounded, box[n], corners, sums[n], adj_normals[n])
    sum_vjp_body(i, x[n], scene.faces, corners, adj_normals[n])


@device_fn
def points_vjp_thread(k, args):
    """Add what comes through normals to the adjoint of vertex k of all images."""
    x, faces, corners, adj_normals, adj_x = args
    n, i = k // x.shape[1], k % x.shape[1]
    points_vjp_body(i, x[n], faces, corners, adj_normals[n], adj_x[n])


@device_fn
def vertex_vjp_thread(k, args):
    """Sum the slots at vertex k of all images, undo its projection; parts belong to the view."""
    view, x, scene, box, corners, faces, adj = args
    n, i = k // x.shape[1], k % x.shape[1]
    if is_used(i, box[n], corners):
        (eye, frame), adj_view = unpack_view(view[n]), adj.view[n, i]
        vertex_vjp_body(i, x[n], eye, frame, box[n], corners, faces.slots[n], adj.x[n], adj_view)
        if faces.sums.shape[2] > SLOT:
            towards_vjp_body(
                i, scene.by_pixel, view[n], box[n], corners, faces.sums[n], adj.x[n], adj_view
            )


class GroupOnGpu(NamedTuple):
    """A group of images to be pulled back."""

    xp: Any
    job: Job
    layers: Layers
    group: Group
    adj_images: tuple[Any, ...]  # of each layer, (n_images, n_pixels, 4), on the device


def vjp_on_gpu(
    jobs: Sequence[Job], layers: Sequence[Layers], kept: DrawnGroup | None, adj_images: Any
) -> Iterator[paths.Packed]:
    """Pull the adjoints of the layers back, a group of images after the other.

    They have the shape (n_views, n_frames, n_layers, height, width, 4) of the pictures.
    """
    adj = adj_images.reshape(-1, *adj_images.shape[2:])
    shared = kept.group.shared if kept else share(jobs, layers)
    for numbers in image_groups(jobs):
        of_group = adj[numbers.start : numbers.stop].swapaxes(0, 1)
        samples = average_vjp(of_group, jobs[0].samples)
        samples = samples.reshape(*samples.shape[:2], -1, 4)
        drawn = kept or DrawnGroup(gather_group(jobs, layers, shared, numbers), None)
        yield pull_group(jobs[0], layers[0], drawn, samples)
        del drawn  # so that its memory is there for the next


def pull_group(job: Job, layers: Layers, drawn: DrawnGroup, adj_images: Any) -> paths.Packed:
    """Adjoints of all that a group of images depends on, from (n_layers, n_images, n_pixels, 4)."""
    xp, group, dtype = array_module(Device.CUDA), drawn.group, job.x.dtype
    there = on_device(tuple(map(module_of(adj_images).ascontiguousarray, adj_images)))
    gpu = GroupOnGpu(xp, job, layers, group, there)
    results = result_shapes(job, group)
    shapes = results | part_shapes_of(job, group)
    places = places_in_block(shapes)
    planned, size = plan_sums(tables_of(job, group, places), places["view parts"].stop)
    block = xp.zeros(size, dtype)
    by_name = split_block(block, shapes)
    of_pairs, flat = empty_pair_parts(gpu), normals_on_gpu(layers, group)
    for batch in group.batches:
        of_batch = drawn.of_batch or find_fragments(job.x.dtype, group, batch)
        undo_batch(gpu, of_batch, flat, by_name["pixel parts"], of_pairs, by_name["texels"])
        del of_batch  # so that its memory is there for the next
    table = by_name["face table"]
    sums, slots, colors = (by_name[name] for name in ("face sums", "face slots", "color parts"))
    of_faces = FaceParts(sums, slots, colors, table, shades_in(table, job))
    undo_faces(gpu, of_pairs, of_faces)
    undo_vertices(gpu, of_faces, VertexParts(by_name["x"], by_name["view parts"]))
    sum_tables(block, planned)
    return unpack_results(job, split_block(to_host(block[: places["texels"].stop]), results))


def places_in_block(shapes: Mapping[str, tuple]) -> dict[str, slice]:
    """Return where arrays of these shapes lie one after the other in a block."""
    ends = accumulate(map(prod, shapes.values()), initial=0)
    return {name: slice(a, b) for name, (a, b) in zip(shapes, pairwise(ends), strict=True)}


def split_block(block: Any, shapes: Mapping[str, tuple]) -> dict[str, Any]:
    """Return the arrays of these shapes that lie one after the other in a block."""
    places = places_in_block(shapes)
    return {name: block[places[name]].reshape(shape) for name, shape in shapes.items()}


def result_shapes(job: Job, group: Group) -> dict[str, tuple]:
    """Return the shapes of all that a group gives."""
    n, scene = len(group.numbers), job.scene
    n_faces, n_vertices = len(scene.faces), job.x.shape[1]
    n_pixels = len(job.grid.pixel_x) * len(job.grid.pixel_y)
    width = PIXEL_SLOT if scene.by_pixel.any() else SLOT
    return {
        "x": (n, n_vertices, 3),
        "view": (n, VIEW_SIZE),
        "pixels": (n, PIXEL_PARTS),
        "behind": (1, n_pixels * PIXEL_PARTS if len(job.background_shape) == 3 else 0),
        "faces": (n * len(scene.ambient), 1 + table_width(job)),
        "face_colors": (1, 3 * n_faces),
        "slots": (1, CORNER_SLOTS * n_faces if len(scene.vertex_colors) else 0),
        "uv": (1, width * n_faces if len(scene.uv) else 0),
        "texels": scene.texels.shape,
    }


def part_shapes_of(job: Job, group: Group) -> dict[str, tuple]:
    """Return the shapes of what the pixels, faces and vertices of a group add."""
    n, n_faces, n_vertices = len(group.numbers), len(job.scene.faces), job.x.shape[1]
    n_pixels = len(job.grid.pixel_x) * len(job.grid.pixel_y)
    return {
        "pixel parts": (n, n_pixels, PIXEL_PARTS),
        "face sums": (n, n_faces, PIXEL_SLOT if job.scene.by_pixel.any() else SLOT),
        "face slots": (n, n_faces, 3, 9),
        "color parts": (n, n_faces, 3),
        "face table": (n * n_faces, 1 + table_width(job)),
        "view parts": (n, n_vertices, VIEW_SIZE),
    }


def tables_of(job: Job, group: Group, places: Mapping[str, slice]) -> tuple[Table, ...]:
    """Return what is summed of pixels, faces and vertices, for each image or over all images."""
    n, n_faces, n_vertices = len(group.numbers), len(job.scene.faces), job.x.shape[1]
    n_pixels, every = len(job.grid.pixel_x) * len(job.grid.pixel_y), (0, n)
    of_objects = tuple(i * n_faces + int(f) for i in range(n) for f in job.face_offsets[:-1])
    width = {name: (place.stop - place.start) // n for name, place in places.items()}

    def table(parts: str, columns: int, ends: Sequence[int], sums: str) -> Table:
        return Table(places[parts].start, columns, ends, places[sums].start)

    tables = [
        table("pixel parts", PIXEL_PARTS, ends_of(n, n_pixels), "pixels"),
        table("face table", 1 + table_width(job), (*of_objects, n * n_faces), "faces"),
        table("view parts", VIEW_SIZE, ends_of(n, n_vertices), "view"),
        table("color parts", width["color parts"], every, "face_colors"),
    ]
    of_scene = ("pixel parts", "behind"), ("face slots", "slots"), ("face sums", "uv")
    tables += [
        table(parts, width[parts], every, sums) for parts, sums in of_scene if width[sums] > 0
    ]
    return tuple(tables)


def table_width(job: Job) -> int:
    """Return how many numbers of lights and materials a face adds to."""
    return sum(rows * columns for rows, columns in part_shapes(job.scene))


def shades_in(table: Any, job: Job) -> ShadeParts:
    """Return views of what shades in a table (n, ...) of sigma and then that."""
    shapes, n = part_shapes(job.scene), len(table)
    ends = accumulate((rows * columns for rows, columns in shapes), initial=1)
    parts = zip(pairwise(ends), shapes, strict=True)
    return ShadeParts(*(table[:, a:b].reshape((n, *shape)) for (a, b), shape in parts))


def empty_pair_parts(gpu: GroupOnGpu) -> PairParts:
    """Return room for what the pairs of a group add."""
    xp, job, layers, group, _ = gpu
    dtype, n = job.x.dtype, len(group.pairs.face)
    by_pixel, shows_normals = bool(job.scene.by_pixel.any()), NORMALS in layers.kinds
    new, width = (xp.zeros, 1 + table_width(job)) if by_pixel else (xp.empty, 1)
    table = new((n, width), dtype)
    return on_device(
        PairParts(
            xp.empty((n, PIXEL_SLOT if by_pixel else SLOT), dtype),
            xp.empty((n if shows_normals else 0, 3), dtype),
            table,
            shades_in(table[: n if by_pixel else 0], job),
        )
    )


def undo_batch(
    gpu: GroupOnGpu,
    batch: FoundFragments,
    flat: Any,
    of_pixels: Any,
    of_pairs: PairParts,
    texels: Any,
) -> None:
    """From the pixels of a batch to what its pixels and pairs add, and to texels."""
    xp, job, layers, group, _ = gpu
    shared, fragments, pairs = group.shared, batch.fragments, batch.pairs
    parts, n, n_pairs = on_device(of_pixels), fragments.y.shape[0], pairs.face.shape[0]
    adj = adj_layer = undo_pixels(gpu, 0, batch, parts)
    for i in range(1, len(layers.kinds)):
        layer_batch = batch._replace(fragments=show_on_gpu(i, group, batch, flat))
        adj_layer = undo_pixels(gpu, i, layer_batch, parts)
        args = (shared.kinds[i], shared.pixels, pairs, fragments, adj_layer, adj)
        launch(add_layer_thread, n_pairs, args)
    has_texels = len(job.scene.texels) > 0
    records = empty_records(xp, n if has_texels else 0, job.x.dtype)
    if has_texels:
        records.at[:] = -1
    place = on_device(group.place)
    args = ((shared.scene, shared.pixels, group.images.numbers, shared.flags), group.faces, place)
    args = (*args, pairs, fragments, adj, of_pairs, on_device(records))
    launch(pair_vjp_thread, n_pairs, args)
    if NORMALS in layers.kinds:
        args = (shared.scene, shared.pixels, group.faces, place, pairs, fragments)
        launch(normals_vjp_thread, n_pairs, (*args, adj_layer, of_pairs))
    if has_texels:
        add_texel_records(xp, records, texels)


def undo_pixels(gpu: GroupOnGpu, i: int, of_batch: FoundFragments, parts: Any) -> FragmentAdjoints:
    """From the pixels of layer i to its fragments, and to parts of the pixels."""
    xp, job, _, group, adj_images = gpu
    shared, n = group.shared, of_batch.fragments.y.shape[0]
    y, z, w, T = on_device(tuple(xp.empty(n, job.x.dtype) for _ in range(4)))
    adj = FragmentAdjoints(y, z, w, T, adj_images[i])
    args = (shared.kinds[i], of_batch.bins, shared.pixels, group.images.behind[i])
    args = (*args, (group.images.numbers, shared.flags), of_batch.fragments, adj, parts)
    launch(pixel_vjp_thread, PIXELS * of_batch.bins.number.shape[0], args)
    return adj


def undo_faces(gpu: GroupOnGpu, of_pairs: PairParts, of_faces: FaceParts) -> None:
    """From what the pairs add to what the faces add."""
    _, job, layers, group, _ = gpu
    n_faces = len(group.numbers) * len(job.scene.faces)
    there, place = on_device(of_faces), on_device(group.place)
    scene, x = group.shared.scene, group.images.x
    args = (scene, x, group.faces.box, place, of_pairs, there)
    launch(face_vjp_thread, n_faces, args)
    if NORMALS in layers.kinds:
        args = (scene, x, place, of_pairs.normals, there.slots)
        launch(flat_normal_vjp_thread, n_faces, args)


def undo_vertices(gpu: GroupOnGpu, of_faces: FaceParts, of_vertices: VertexParts) -> None:
    """From what the faces add to what the vertices add."""
    xp, job, _, group, _ = gpu
    n, n_vertices, dtype = len(group.numbers), job.x.shape[1], job.x.dtype
    there, faces, shared = on_device(of_vertices), on_device(of_faces), group.shared
    x, box, corners = group.images.x, group.faces.box, shared.corners
    args = (group.images.view, x, shared.scene, box, corners, faces, there)
    launch(vertex_vjp_thread, n * n_vertices, args)
    n_normals = group.faces.normals.shape[1]
    adj_normals = on_device(xp.empty((n, n_normals, 3), dtype))
    args = (x, shared.scene, box, corners, faces.sums, adj_normals)
    launch(normal_vjp_thread, n * n_normals, args)
    args = (x, shared.scene.faces, corners, adj_normals, there.x)
    launch(points_vjp_thread, n * n_normals, args)


def ends_of(n: int, size: int) -> range:
    """Return where n runs of one size end, after where the first begins."""
    return range(0, n * size + 1, size)


def unpack_results(job: Job, arrays: Mapping[str, np.ndarray]) -> paths.Packed:
    """Return the adjoints of all that a group of images depends on, from the sums on the host."""
    n, scene = len(arrays["x"]), job.scene
    of_faces = arrays["faces"].reshape(n, len(scene.ambient), -1)
    numbers = np.zeros((n, 6), job.x.dtype)
    numbers[:, paths.SIGMA] = of_faces[:, :, 0].sum(axis=1)
    numbers[:, OF_PIXELS], of_behind = np.split(arrays["pixels"], [BEHIND], axis=1)
    of_objects, sums = of_faces.sum(axis=0)[:, 1:], {}
    for name, shape in zip(ShadeParts._fields, part_shapes(scene), strict=True):
        block, of_objects = np.split(of_objects, [prod(shape)], axis=1)
        sums[name] = block if name in OF_MATERIALS else block.sum(axis=0).reshape(shape)
    background = of_behind.sum(axis=0).reshape(1, 1, 3)
    if len(job.background_shape) == 3:
        samples = arrays["behind"].reshape(-1, PIXEL_PARTS)[:, BEHIND:]
        background = repeat_vjp(samples.reshape(scene.background.shape), job.samples)
    adj_uv = np.zeros_like(scene.uv)
    if len(adj_uv):
        add_uv(scene.uv_faces, arrays["uv"].reshape(len(scene.faces), -1), adj_uv)
    adj_colors = np.zeros_like(scene.vertex_colors)
    if len(adj_colors):
        add_colors(scene.color_faces, arrays["slots"].reshape(-1, 3, 9), adj_colors)
    adj_scene = scene._replace(
        face_colors=arrays["face_colors"].reshape(-1, 3),
        vertex_colors=adj_colors,
        texels=arrays["texels"],
        uv=adj_uv,
        background=background,
        **sums,
    )
    return paths.Packed(arrays["x"], adj_scene, arrays["view"], numbers)
