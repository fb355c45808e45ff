r"""From faces to the fragments of bins of pixels on a GPU, for many images at once.

    vertices -> faces -> pairs (bin, face), sorted -> what they cover -> fragments, batch by batch

All frames of all views are one row of images, which is cut into groups of a bounded size. A bin is
a square of 16 x 16 pixels of an image; a pair is a face and a bin that its box reaches.

- One sort puts the pairs of a group in order: by bin, and in a bin about from near to far.
- A pair finds which pixels it covers, and keeps a bit for each and the count.
- Sums of the counts say where the fragments of each pair lie, row by row: no two threads write to
  one place, and every run gives the same bits.
- A pixel goes through the pairs of its bin and lists its fragments; for Over it sorts the list by
  depth.

The last two are done for batches of bins with a bounded number of fragments. All bounds are fixed,
so no result depends on the memory of the device.

Tests: `tests/cuda`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from adjsim.jit.backend import device_fn, lit
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import beside, constants, kept_on_device, on_device, to_host
from adjsim.jit.devices import Device, array_module
from render.blending import OVER
from render.faces.face_setup import (
    FAR,
    NEAR,
    SIGMA,
    Faces,
    PackedScene,
    Settings,
    face_body,
    load_corners,
)
from render.faces.fragment_lists import sort_body
from render.projection import PERSPECTIVE, project_body, towards_body, unpack_view
from render.raster.fragments import Fragments, fragment_logit, misses, write_fragment
from render.raster.layers import Layers
from render.raster.packing import Job
from render.seamless import Edges, outline_body, seamless_logit, soft_edges_body
from render.shaders.normals import VertexCorners, normal_body


BIN = 16  # pixels of a bin in each direction
PIXELS = BIN * BIN
DEPTHS = 1 << 18  # of the faces of a bin, told apart where these are sorted
MOST_FACES, MOST_PIXELS = 1 << 17, 1 << 22  # of a group of more than one image
MOST_FRAGMENTS = 1 << 21  # of a batch of more than one bin


class Pixels(NamedTuple):
    """Where the pixels are on the screen."""

    pixel_x: Any  # (width,) [-]
    pixel_y: Any  # (height,) [-]


class Shared(NamedTuple):
    """What all images share, on the device."""

    scene: PackedScene  # without the background
    flags: Any  # (3,) int64: blend, cull, is_deep
    pixels: Pixels
    corners: VertexCorners
    edges: Edges
    kinds: tuple[Any, ...]  # of each layer what it shows, (1,) int64


class Images(NamedTuple):
    """What each image of a group has for itself, on the device."""

    x: Any  # (n_images, n_vertices, 3)
    view: Any  # (n_images, 18)
    numbers: Any  # (n_images, 7) the real numbers of Settings
    behind: tuple[Any, ...]  # of each layer, (1 or n_images, 1 or height, 1 or width, 3)


class Pairs(NamedTuple):
    """The pairs (bin, face) of a group or of a batch, bin by bin."""

    face: Any  # (n_pairs,) int32, number in its image
    bin: Any  # (n_pairs,) int32, number in the group
    # (n_pairs, 16) int32: in the lower 16 bits the pixels of a row of the bin that are covered, in
    # the upper ones how many fragments the pair has in the rows before
    rows: Any


class Bins(NamedTuple):
    """The bins of a batch."""

    number: Any  # (n_bins,) int64, in the group
    start: Any  # (n_bins + 1,) int64, where the pairs of each bin start


class Batch(NamedTuple):
    """From where to where the bins, the pairs and the fragments of a batch are in the group."""

    bins: slice
    pairs: slice
    fragments: slice


class FoundFragments(NamedTuple):
    """The fragments of a batch, on the device: `pair` by `Pairs`, `start` by pixels of `Bins`."""

    bins: Bins
    pairs: Pairs
    fragments: Fragments


class Group(NamedTuple):
    """A group of images whose pairs are found, on the device."""

    numbers: range  # of the images, frame by frame of view by view
    shared: Shared
    images: Images
    faces: Faces  # each array with an axis of images before
    place: Any  # (n_images n_faces + 1,) int64, where the pairs of a face start, face by face
    pairs: Pairs  # sorted; these three are arrays of CuPy
    start: Any  # (n_pairs + 1,) int64, where the fragments of a pair start
    bins: Any  # (n_bins,) int64, their numbers
    bin_start: Any  # (n_bins + 1,) int64, where the pairs of a bin start
    batches: list[Batch]


@device_fn
def unpack_settings(numbers, flags):
    """The settings of an image from their arrays."""
    return Settings(
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
        flags[0], flags[1] > 0, flags[2] > 0,
    )  # fmt: skip


@device_fn
def faces_of(n, faces):
    """The faces of image n."""
    return Faces(
        faces.screen[n], faces.corners[n], faces.shaded[n], faces.box[n], faces.normals[n],
        faces.soft[n], faces.towards[n], faces.reach[n],
    )  # fmt: skip


@device_fn
def vertex_thread(k, args):
    """Project vertex k of all images; write the vector towards the eye where it is needed."""
    x, view, screen, towards = args
    n, i = k // x.shape[1], k % x.shape[1]
    eye, frame = unpack_view(view[n])
    project_body(i, x[n], eye, frame, screen[n])
    if towards.shape[1] > 0:
        towards_body(i, x[n], eye, frame[2], view[n, PERSPECTIVE], towards[n])


@device_fn
def normal_thread(k, args):
    """Write the normal of vertex k of all images."""
    x, faces, corners, normals = args
    n, i = k // x.shape[1], k % x.shape[1]
    normal_body(i, x[n], faces, corners, normals[n])


@device_fn
def bin_box(f, box):
    """The bins that the box of face f reaches: rows from and to, columns from and to."""
    return (
        box[f, 0] // BIN, (box[f, 1] + BIN - 1) // BIN,
        box[f, 2] // BIN, (box[f, 3] + BIN - 1) // BIN,
    )  # fmt: skip


@device_fn
def face_thread(k, args):
    """Set up face k of all images; write how many bins its box reaches."""
    scene, flags, pixels, images, faces, counts = args
    n, f = k // scene.faces.shape[0], k % scene.faces.shape[0]
    x, view, numbers = images
    shape, image_faces = (pixels.pixel_y.shape[0], pixels.pixel_x.shape[0]), faces_of(n, faces)
    settings = unpack_settings(numbers[n], flags)
    counts[k] = 0
    if face_body(f, scene, x[n], view[n, PERSPECTIVE], settings, shape, image_faces):
        top, bottom, left, right = bin_box(f, image_faces.box)
        counts[k] = (bottom - top) * (right - left)


@device_fn
def soft_edges_thread(k, args):
    """Find the soft edges of face k of all images."""
    numbers, flags, corners, soft, edges = args
    n, f = k // soft.shape[1], k % soft.shape[1]
    soft_edges_body(f, edges, corners[n], unpack_settings(numbers[n], flags), soft[n])


@device_fn
def outline_thread(k, args):
    """Find the soft corners of face k of all images, and how the outline goes on from its edges."""
    faces, edges, vertex_corners, soft = args
    n, f = k // soft.shape[1], k % soft.shape[1]
    outline_body(f, faces, edges, vertex_corners, soft[n])


@device_fn
def bins_across(pixels):
    """How many rows and columns of bins an image has."""
    return ((pixels.pixel_y.shape[0] + BIN - 1) // BIN, (pixels.pixel_x.shape[0] + BIN - 1) // BIN)


@device_fn
def locate(b, pixels):
    """Image of bin b of the group, and its row and column among the bins of the image."""
    rows, columns = bins_across(pixels)
    bin_of_image = b % (rows * columns)
    return b // (rows * columns), bin_of_image // columns, bin_of_image % columns


@device_fn
def keys_thread(k, args):
    """Write the keys of the pairs of face k of all images: by bin, then depth, then face."""
    pixels, numbers, faces, place, keys = args
    n_faces = faces.box.shape[1]
    n, f = k // n_faces, k % n_faces
    image_faces, (rows, columns) = faces_of(n, faces), bins_across(pixels)
    at = place[k]
    if at < place[k + 1]:
        z, near, far = image_faces.corners[f, 6], numbers[n, NEAR], numbers[n, FAR]
        z = (z + image_faces.corners[f, 7] + image_faces.corners[f, 8]) / lit(3.0, z)
        depth = np.int64((z - near) / (far - near) * lit(DEPTHS - 1, z))
        depth = max(0, min(depth, DEPTHS - 1))
        top, bottom, left, right = bin_box(f, image_faces.box)
        for i in range(top, bottom):
            for j in range(left, right):
                b = (n * rows + i) * columns + j
                keys[at] = (b * DEPTHS + depth) * n_faces + f
                at += 1


@device_fn
def pixel_logit(p, f, faces, sigma):
    """Logit of the coverage of pixel p by face f, seamless or not."""
    if faces.soft.shape[0] > 0:
        return seamless_logit(p, f, faces, sigma)
    a0, a1, a2, _ = load_corners(f, faces.corners)
    return fragment_logit(p, a0, a1, a2, sigma)


@device_fn
def cover_thread(k, args):
    """Find face and bin of pair k, and which pixels of the bin it covers; count them."""
    pixels, numbers, flags, faces, keys, pairs, counts = args
    n_faces = faces.box.shape[1]
    f, b = keys[k] % n_faces, keys[k] // n_faces // DEPTHS
    n, i, j = locate(b, pixels)
    image_faces, settings = faces_of(n, faces), unpack_settings(numbers[n], flags)
    top, left = i * BIN, j * BIN
    first, last = max(top, image_faces.box[f, 0]), min(top + BIN, image_faces.box[f, 1])
    begin, end = max(left, image_faces.box[f, 2]), min(left + BIN, image_faces.box[f, 3])
    missed = misses(first, last, begin, end, load_corners(f, image_faces.corners), settings, pixels)
    total = 0
    for row in range(BIN):
        covered, count = 0, 0
        if first <= top + row < last and not missed:
            for j in range(begin, end):
                p = (pixels.pixel_x[j], pixels.pixel_y[top + row])
                if pixel_logit(p, f, image_faces, settings.sigma) >= settings.lowest:
                    covered |= 1 << (j - left)
                    count += 1
        pairs.rows[k, row] = covered | total << BIN
        total += count
    pairs.face[k], pairs.bin[k] = f, b
    counts[k] = total


@device_fn
def bits(mask):
    """How many of 16 bits are 1."""
    mask -= mask >> 1 & 0x5555
    mask = (mask & 0x3333) + (mask >> 2 & 0x3333)
    mask = mask + (mask >> 4) & 0x0F0F
    return mask + (mask >> 8) & 0x1F


@device_fn
def place_in_bin(m):
    """Row and column in its bin of pixel m, where bins lie one after the other."""
    return m % PIXELS // BIN, m % BIN


@device_fn
def fragment_at(k, row, column, rows, pair):
    """The fragment of pair k at a pixel of its bin, or -1 if the pair does not cover that."""
    word = rows[k, row]
    if word >> column & 1:
        return pair[k] + (word >> BIN) + bits(word & ((1 << column) - 1))
    return -1


@device_fn
def fragments_thread(m, args):
    """Write the fragment of a pair at pixel m, if it covers that; all pairs have all of a bin."""
    shared, numbers, faces, pairs, fragments = args
    scene, pixels, flags = shared
    k, (row, column) = m // PIXELS, place_in_bin(m)
    q = fragment_at(k, row, column, pairs.rows, fragments.pair)
    if q >= 0:
        f, (n, i, j) = pairs.face[k], locate(pairs.bin[k], pixels)
        image_faces, y, x = faces_of(n, faces), i * BIN + row, j * BIN + column
        p = (pixels.pixel_x[x], pixels.pixel_y[y])
        logit = pixel_logit(p, f, image_faces, numbers[n, SIGMA])
        corners = load_corners(f, image_faces.corners)
        write_fragment(q, logit, f, y, x, corners, pixels, scene, image_faces, flags[0], fragments)


@device_fn
def lengths_thread(m, args):
    """Count the fragments of pixel m of a batch."""
    start, rows, lengths = args
    b, (row, column), n = m // PIXELS, place_in_bin(m), 0
    for k in range(start[b], start[b + 1]):
        n += rows[k, row] >> column & 1
    lengths[m] = n


@device_fn
def lists_thread(m, args):
    """List the fragments of pixel m of a batch, as the pairs of its bin are; for Over by depth."""
    start, rows, flags, fragments = args
    b, (row, column) = m // PIXELS, place_in_bin(m)
    begin, end = fragments.start[m], fragments.start[m + 1]
    at = begin
    for k in range(start[b], start[b + 1]):
        q = fragment_at(k, row, column, rows, fragments.pair)
        if q >= 0:
            fragments.order[at] = q
            at += 1
    if flags[0] == OVER:
        sort_body(begin, end, fragments.z, fragments.face, fragments.order, fragments.spare)


@lru_cache(maxsize=8)
def bin_arrays(n_bins: int, n_faces: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the bins of a group, and the first key of each and of the next."""
    numbers = np.arange(n_bins + 1)
    return numbers[:-1].copy(), numbers * (DEPTHS * n_faces)


def numbered_from(first: int, numbers: Any) -> Any:
    """Return numbers of CuPy less the first of a batch; of the first batch they are as they are."""
    return numbers - first if first else numbers


def share(jobs: Sequence[Job], layers: Sequence[Layers]) -> Shared:
    """Copy to the device what all images share."""
    job, kinds = jobs[0], layers[0].kinds
    return kept_on_device(
        Shared(
            job.scene._replace(background=job.scene.background[:0]),
            np.array(job.settings[7:], np.int64),
            Pixels(job.grid.pixel_x, job.grid.pixel_y),
            job.corners,
            job.edges,
            tuple(kinds[i : i + 1] for i in range(len(kinds))),
        )
    )


def image_groups(jobs: Sequence[Job]) -> list[range]:
    """Return the images of each group, frame by frame of view by view."""
    job, n = jobs[0], len(jobs) * len(jobs[0].x)
    n_pixels = len(job.grid.pixel_x) * len(job.grid.pixel_y)
    size = max(1, min(MOST_FACES // max(1, len(job.scene.faces)), MOST_PIXELS // n_pixels))
    return [range(first, min(first + size, n)) for first in range(0, n, size)]


def own_arrays(jobs: Sequence[Job], layers: Sequence[Layers], numbers: range) -> Images:
    """Return what each of some images has for itself, on the device."""
    job = jobs[0]
    views, frames = np.divmod(numbers, len(job.x))
    settings = np.array([job.settings[:7] for job in jobs], job.x.dtype)
    behind = [np.stack([view.behind[i] for view in layers]) for i in range(len(layers[0].kinds))]
    x = on_device(job.x[beside(frames, job.x)])
    view = np.stack([job.view for job in jobs])[views]
    behind = (job.scene.background[None], *(layer[views] for layer in behind[1:]))
    return Images(x, *kept_on_device((view, settings[views], behind)))


def empty_faces(xp: Any, job: Job, n_images: int) -> Faces:
    """Return room for the faces of some images."""
    dtype, scene, n = job.x.dtype, job.scene, n_images
    n_vertices, n_faces, n_soft = job.x.shape[1], len(scene.faces), len(job.edges.number)
    return on_device(
        Faces(
            xp.empty((n, n_vertices, 3), dtype),
            xp.empty((n, n_faces, 10), dtype),
            xp.empty((n, n_faces, 9), dtype),
            xp.empty((n, n_faces, 4), np.int64),
            xp.empty((n, n_vertices if scene.rounded.any() else 0, 3), dtype),
            xp.empty((n, n_soft, 12), np.int64),
            xp.empty((n, n_vertices if scene.by_pixel.any() else 0, 3), dtype),
            xp.empty((n, 0, 2), np.bool_),
        )
    )


def setup_faces_on_gpu(xp: Any, job: Job, shared: Shared, images: Images) -> tuple[Faces, Any]:
    """Project the vertices and set up the faces; return them, and where their pairs start."""
    x, view, numbers, _ = images
    n_images, n_vertices, n_faces = x.shape[0], x.shape[1], len(job.scene.faces)
    faces, counts = empty_faces(xp, job, n_images), xp.zeros(n_images * n_faces + 1, np.int64)
    launch(vertex_thread, n_images * n_vertices, (x, view, faces.screen, faces.towards))
    n_normals, n_soft = faces.normals.shape[1], faces.soft.shape[1]
    args = (x, shared.scene.faces, shared.corners, faces.normals)
    launch(normal_thread, n_images * n_normals, args)
    args = (shared.scene, shared.flags, shared.pixels, (x, view, numbers), faces)
    launch(face_thread, n_images * n_faces, (*args, on_device(counts[1:])))
    args = (numbers, shared.flags, faces.corners, faces.soft, shared.edges)
    launch(soft_edges_thread, n_images * n_soft, args)
    args = (shared.scene.faces, shared.edges, shared.corners, faces.soft)
    launch(outline_thread, n_images * n_soft, args)
    return faces, xp.cumsum(counts)


def gather_group(
    jobs: Sequence[Job], layers: Sequence[Layers], shared: Shared, numbers: range
) -> Group:
    """Find the pairs of a group of images, and what each covers."""
    xp, job, n_faces = array_module(Device.CUDA), jobs[0], len(jobs[0].scene.faces)
    images = own_arrays(jobs, layers, numbers)
    faces, place = setup_faces_on_gpu(xp, job, shared, images)
    n, n_bins = int(place[-1]), len(numbers)
    for side in (len(job.grid.pixel_x), len(job.grid.pixel_y)):
        n_bins *= -(-side // BIN)
    bins, first_keys = constants(bin_arrays(n_bins, n_faces), Device.CUDA)
    keys, bin_start = xp.empty(n, np.int64), xp.zeros(n_bins + 1, np.int64)
    args = (shared.pixels, images.numbers, faces, *on_device((place, keys)))
    launch(keys_thread, len(numbers) * n_faces, args)
    if n > 0:
        keys = xp.sort(keys)
        bin_start = xp.searchsorted(keys, first_keys)
    pairs = Pairs(xp.empty(n, np.int32), xp.empty(n, np.int32), xp.empty((n, BIN), np.int32))
    counts = xp.zeros(n + 1, np.int64)
    args = (shared.pixels, images.numbers, shared.flags, faces)
    launch(cover_thread, n, (*args, *on_device((keys, pairs, counts[1:]))))
    start = xp.cumsum(counts)
    batches = cut(*to_host((bin_start, start[bin_start])))
    return Group(numbers, shared, images, faces, place, pairs, start, bins, bin_start, batches)


def cut(pairs: np.ndarray, fragments: np.ndarray) -> list[Batch]:
    """Return batches of bins, from the numbers (n_bins + 1,) of what comes before each bin."""
    batches, n_bins, first = [], len(pairs) - 1, 0
    while first < n_bins:
        most = fragments[first] + MOST_FRAGMENTS
        last = max(first + 1, int(np.searchsorted(fragments, most, "right")) - 1)
        of_pairs, of_fragments = (slice(int(n[first]), int(n[last])) for n in (pairs, fragments))
        batches.append(Batch(slice(first, last), of_pairs, of_fragments))
        first = last
    return batches


def empty_fragments_on_gpu(xp: Any, n: int, dtype: np.dtype, start: Any, pair: Any) -> Fragments:
    """Return room for n fragments; of pixels and pairs it is given where theirs start."""
    pixel, face, order, spare = (xp.empty(n, np.int32) for _ in range(4))
    p_x, p_y, y, D, rest, z, u = (xp.empty(n, dtype) for _ in range(7))
    rgb, unused = xp.empty((n, 3), dtype), (y, y, y, y)
    return Fragments(
        pixel, face, p_x, p_y, y, D, rest, z, u, rgb, order, spare, start, pair, *unused
    )


def find_fragments(dtype: np.dtype, group: Group, batch: Batch) -> FoundFragments:
    """Find the fragments of a batch, and list them by pixel; for Over from near to far."""
    xp, shared = array_module(Device.CUDA), group.shared
    bin_start = group.bin_start[batch.bins.start : batch.bins.stop + 1]
    bins = Bins(group.bins[batch.bins], numbered_from(batch.pairs.start, bin_start))
    pairs = Pairs(*(array[batch.pairs] for array in group.pairs))
    start = group.start[batch.pairs.start : batch.pairs.stop + 1]
    pair = numbered_from(batch.fragments.start, start)
    n_pairs, n_pixels = len(pairs.face), PIXELS * len(bins.number)
    lengths = xp.zeros(n_pixels + 1, np.int64)
    bins, pairs, lengths_there = on_device((bins, pairs, lengths[1:]))
    launch(lengths_thread, n_pixels, (bins.start, pairs.rows, lengths_there))
    n = batch.fragments.stop - batch.fragments.start
    fragments = on_device(empty_fragments_on_gpu(xp, n, dtype, xp.cumsum(lengths), pair))
    args = (shared.scene, shared.pixels, shared.flags), group.images.numbers, group.faces
    launch(fragments_thread, PIXELS * n_pairs, (*args, pairs, fragments))
    launch(lists_thread, n_pixels, (bins.start, pairs.rows, shared.flags, fragments))
    return FoundFragments(bins, pairs, fragments)
