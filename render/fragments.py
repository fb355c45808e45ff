r"""Which faces a pixel sees: bands of rows, fragments of a face, lists of a pixel.

A fragment is one face at one pixel with D >= D_min: its logit y = delta d^2/sigma, depth
z and shaded colour. The image is cut into bands of rows, the units of parallel work.
Within a band the fragments lie face by face, in the order of the faces, row by row, and
each pixel has a list of its fragments. The bands depend on the scene alone, never on the
number of threads.

Frozen, that is, not differentiated: which fragments there are and their order in depth.

Adjoint: `adjoint/render/fragments.py`. Tests: `tests/render/test_fragments.py`.
"""

from typing import NamedTuple

import numpy as np

from adjsim.backend import cpu_kernel, device_fn, lit
from adjsim.vec3 import axpy, scale
from render.barycentrics import barycentrics, clip_barycentrics, perspective
from render.coverage import signed_square_distance
from render.face_setup import load_corners


BAND_ROWS = 16
RUN = 16  # lists up to this length are sorted by insertion


class Grid(NamedTuple):
    """Where the pixels are on the screen, and the height of a band."""

    pixel_x: np.ndarray  # (width,) [-]
    pixel_y: np.ndarray  # (height,) [-]
    band_rows: int


class Bands(NamedTuple):
    """The faces that reach into each band of rows, in the order of the faces."""

    start: np.ndarray  # (n_bands + 1,) int64
    faces: np.ndarray  # (n_pairs,) int64
    capacity: np.ndarray  # (n_bands,) int64: pixels in the boxes, more than fragments


class Fragments(NamedTuple):
    """The fragments of one band, and the list of each of its pixels."""

    row: np.ndarray  # (capacity,) int32, row of the pixel in the image
    column: np.ndarray  # (capacity,) int32, column of the pixel
    y: np.ndarray  # (capacity,) logit of the coverage [-]
    z: np.ndarray  # (capacity,) depth [m]
    u: np.ndarray  # (capacity,) Softmax: logit of the weight, written as pixels are blended
    rgb: np.ndarray  # (capacity, 3) shaded colour [-]
    order: np.ndarray  # (capacity,) int32, fragments pixel by pixel
    spare: np.ndarray  # (capacity,) int32, scratch of the sort
    start: np.ndarray  # (band_rows width + 2,) int32, where the list of a pixel starts
    pair: np.ndarray  # (n_pairs + 1,) int64, where the fragments of a (band, face) start
    logits: np.ndarray  # (width,) logits of a row of pixels, scratch


@device_fn
def fragment_logit(p, a0, a1, a2, sigma):
    """Logit y = delta d^2/sigma of the coverage of pixel p."""
    return signed_square_distance(p, a0, a1, a2) * (lit(1.0, sigma) / sigma)


@device_fn
def fragment_place(p, a0, a1, a2, z):
    """Depth [m] and weights of the corners at pixel p."""
    b0, b1, b2 = barycentrics(p, a0, a1, a2)  # (1)
    b = clip_barycentrics(b0, b1, b2)  # (2)
    return perspective(b, z)  # (3)


@device_fn
def corner_color(f, k, shaded):
    """Shaded colour of corner k of face f."""
    return (shaded[f, 3 * k], shaded[f, 3 * k + 1], shaded[f, 3 * k + 2])


@device_fn
def blend_corners(w, c0, c1, c2):
    """Colour w0 c0 + w1 c1 + w2 c2."""
    return axpy(w[0], c0, axpy(w[1], c1, scale(w[2], c2)))


@device_fn
def fragment_color(f, w, smooth, shaded):
    """Shaded colour of face f where its corners have the weights w."""
    if smooth[f]:
        c0, c1, c2 = (
            corner_color(f, 0, shaded),
            corner_color(f, 1, shaded),
            corner_color(f, 2, shaded),
        )
        return blend_corners(w, c0, c1, c2)
    return corner_color(f, 0, shaded)


@device_fn
def row_logits(i, first, last, corners, sigma, grid, logits):
    """Logits of a face at the pixels first..last-1 of row i: a loop that vectorises."""
    a0, a1, a2, _ = corners
    for j in range(np.uint64(first), np.uint64(last)):
        logits[j] = fragment_logit((grid.pixel_x[j], grid.pixel_y[i]), a0, a1, a2, sigma)


@device_fn
def write_fragment(n, y, f, i, j, corners, grid, smooth, shaded, fragments):
    """Write fragment n, that of face f at the pixel in row i and column j, with logit y."""
    a0, a1, a2, z = corners
    depth, w = fragment_place((grid.pixel_x[j], grid.pixel_y[i]), a0, a1, a2, z)
    rgb = fragment_color(f, w, smooth, shaded)
    fragments.row[n], fragments.column[n] = i, j
    fragments.y[n] = y
    fragments.z[n] = depth
    fragments.rgb[n, 0], fragments.rgb[n, 1], fragments.rgb[n, 2] = rgb


@device_fn
def fragments_body(f, first_row, last_row, n, grid, smooth, faces, settings, fragments):
    """Face f: append its fragments in these rows from place n on; return the next place."""
    corners = load_corners(f, faces.corners)
    left, right = faces.box[f, 2], faces.box[f, 3]
    for i in range(max(first_row, faces.box[f, 0]), min(last_row, faces.box[f, 1])):
        row_logits(i, left, right, corners, settings.sigma, grid, fragments.logits)
        for j in range(left, right):
            y = fragments.logits[j]
            if y >= settings.lowest:
                write_fragment(n, y, f, i, j, corners, grid, smooth, faces.shaded, fragments)
                n += 1
    return n


@device_fn
def sort_runs(first, last, z, order):
    """Sort each run of a list by depth, equal depths as they stand."""
    for low in range(first, last, RUN):
        for k in range(low + 1, min(low + RUN, last)):
            q = order[k]
            at = k
            while at > low and z[order[at - 1]] > z[q]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = q


@device_fn
def merge(first, middle, last, z, source, target):
    """Merge two sorted neighbours of a list; of equal depths the left one goes first."""
    left, right = first, middle
    for k in range(first, last):
        if left < middle and (right >= last or z[source[left]] <= z[source[right]]):
            target[k] = source[left]
            left += 1
        else:
            target[k] = source[right]
            right += 1


@device_fn
def sort_body(first, last, z, order, spare):
    """Sort the list of a pixel by depth; ties stay in the order of the faces."""
    sort_runs(first, last, z, order)
    size = RUN
    while size < last - first:
        for low in range(first, last, 2 * size):
            merge(low, min(low + size, last), min(low + 2 * size, last), z, order, spare)
        for k in range(first, last):
            order[k] = spare[k]
        size *= 2


@device_fn
def list_fragments(n, first_row, width, n_pixels, fragments):
    """Make the list of each pixel of the band from its n fragments, in their order."""
    start = fragments.start
    for k in range(n_pixels + 2):
        start[k] = 0
    for q in range(n):
        start[(fragments.row[q] - first_row) * width + fragments.column[q] + 2] += 1
    for k in range(n_pixels):
        start[k + 2] += start[k + 1]
    for q in range(n):
        k = (fragments.row[q] - first_row) * width + fragments.column[q] + 1
        fragments.order[start[k]] = q
        start[k] += 1


def _gather_band(band, grid, smooth, faces, bands, settings, fragments):
    """Find the fragments of a band, list them by pixel and, for Over, sort by depth."""
    width = grid.pixel_x.shape[0]
    first_row = band * grid.band_rows
    last_row = min(first_row + grid.band_rows, grid.pixel_y.shape[0])
    n = 0
    fragments.pair[0] = 0
    for pair in range(bands.start[band], bands.start[band + 1]):
        f = bands.faces[pair]
        n = fragments_body(f, first_row, last_row, n, grid, smooth, faces, settings, fragments)
        fragments.pair[pair - bands.start[band] + 1] = n
    n_pixels = (last_row - first_row) * width
    list_fragments(n, first_row, width, n_pixels, fragments)
    if settings.over:
        for k in range(n_pixels):
            sort_body(
                fragments.start[k],
                fragments.start[k + 1],
                fragments.z,
                fragments.order,
                fragments.spare,
            )
    return n_pixels


def _count_bands(box, band_rows, start, capacity):
    """Count the faces and the pixels of boxes in each band; `start` becomes offsets."""
    start[:] = 0
    capacity[:] = 0
    for f in range(box.shape[0]):
        for band in range(box[f, 0] // band_rows, (box[f, 1] - 1) // band_rows + 1):
            rows = min(box[f, 1], (band + 1) * band_rows) - max(box[f, 0], band * band_rows)
            if rows > 0:
                start[band + 1] += 1
                capacity[band] += rows * (box[f, 3] - box[f, 2])
    for band in range(capacity.shape[0]):
        start[band + 1] += start[band]


def _fill_bands(box, band_rows, start, faces):
    """Write the faces of each band, in order."""
    place = start.copy()
    for f in range(box.shape[0]):
        if box[f, 0] < box[f, 1]:
            for band in range(box[f, 0] // band_rows, (box[f, 1] - 1) // band_rows + 1):
                faces[place[band]] = f
                place[band] += 1


gather_band = cpu_kernel(_gather_band)
count_bands = cpu_kernel(_count_bands)
fill_bands = cpu_kernel(_fill_bands)
