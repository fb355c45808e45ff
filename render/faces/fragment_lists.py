"""Which faces a tile of pixels holds, and which fragments a pixel sees, by depth.

Faces are taken roughly from near to far, so the list that names the fragments of a pixel is
nearly sorted from the start. For Over it is sorted by depth, and of equal depths the face
that comes first goes first. Depths are compared without their last bits: beside an edge that two
faces share both have the depth of the edge, but for rounding, which must not decide what is seen.

Tests: `tests/render/faces/test_fragment_lists.py`.
"""

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, lit


RUN = 16  # lists up to this length are sorted by insertion
BINS = 1 << 16  # of depth, at most


@device_fn
def rounded_depth(z):
    """Depth z rounded to 37 bits, 1 part in 1e11; float32 has fewer, and is left as it is.

    The last bits are lost in the sum. 2^16 z is exact, so that contraction changes nothing.
    """
    is_double = (lit(1.0 + 2.0**-30, z) - lit(1.0, z)) * lit(2.0**30, z)  # 0 in float32
    big = z * (is_double * lit(2.0**16, z))
    return (z + big) - big


@device_fn
def goes_before(q, p, z, face):
    """Whether fragment q lies before p in the list of their pixel: by depth, then by face."""
    a, b = rounded_depth(z[q]), rounded_depth(z[p])
    return a < b or (a == b and face[q] < face[p])


@device_fn
def sort_runs(first, last, z, face, order):
    """Sort each run of a list: most fragments lie behind all before them already."""
    for low in range(np.uint64(first), np.uint64(last), np.uint64(RUN)):
        deepest = rounded_depth(z[np.uint64(order[low])])
        for k in range(low + np.uint64(1), min(low + np.uint64(RUN), np.uint64(last))):
            q = np.uint64(order[k])
            depth = rounded_depth(z[q])
            if depth > deepest:  # of equal depths the face decides, below
                deepest = depth
            else:
                at = k
                while at > low and goes_before(q, np.uint64(order[at - np.uint64(1)]), z, face):
                    order[at] = order[at - np.uint64(1)]
                    at -= np.uint64(1)
                order[at] = q


@device_fn
def merge(first, middle, last, z, face, source, target):
    """Merge two sorted neighbours of a list."""
    left, right = first, middle
    for k in range(first, last):
        if left < middle and (
            right >= last or not goes_before(source[right], source[left], z, face)
        ):
            target[k] = source[left]
            left += 1
        else:
            target[k] = source[right]
            right += 1


@device_fn
def sort_body(first, last, z, face, order, spare):
    """Sort the list order[first:last] of a pixel."""
    sort_runs(first, last, z, face, order)
    size = RUN
    while size < last - first:
        for low in range(first, last, 2 * size):
            merge(low, min(low + size, last), min(low + 2 * size, last), z, face, order, spare)
        for k in range(first, last):
            order[k] = spare[k]
        size *= 2


@device_fn
def list_fragments(n, n_pixels, fragments):
    """Make the list of each pixel of the tile from its n fragments, in their order."""
    start, unity, two = fragments.start, np.uint64(1), np.uint64(2)
    for k in range(np.uint64(n_pixels) + two):
        start[k] = 0
    if n == 0:
        return
    for q in range(np.uint64(n)):
        start[np.uint64(fragments.pixel[q]) + two] += 1
    for k in range(np.uint64(n_pixels)):
        start[k + two] += start[k + unity]
    for q in range(np.uint64(n)):
        k = np.uint64(fragments.pixel[q]) + unity
        fragments.order[np.uint64(start[k])] = q
        start[k] += 1


@device_fn
def depth_bin(f, corners, low, scale):
    """Bin of the mean depth of face f."""
    z = corners[f, 6] + corners[f, 7] + corners[f, 8]
    return np.int64((z - low) * scale)


def _order_faces(corners, box, start, order):
    """Write the faces that are drawn, from near to far up to the width of a bin of depth.

    How many they are is returned. `start` (n_bins + 1,) is scratch. The order of lists does
    not rest on this one: it only has to be near, and the same in every run.
    """
    n_bins = start.shape[0] - 1
    low, high = np.inf, -np.inf
    for f in range(box.shape[0]):
        if box[f, 0] < box[f, 1]:
            z = corners[f, 6] + corners[f, 7] + corners[f, 8]
            low, high = min(low, z), max(high, z)
    scale = (n_bins - 1) / (high - low) if high > low else 0.0
    start[:] = 0
    for f in range(box.shape[0]):
        if box[f, 0] < box[f, 1]:
            start[depth_bin(f, corners, low, scale) + 1] += 1
    for k in range(n_bins):
        start[k + 1] += start[k]
    n = start[n_bins]
    for f in range(box.shape[0]):
        if box[f, 0] < box[f, 1]:
            k = depth_bin(f, corners, low, scale)
            order[start[k]] = f
            start[k] += 1
    return n


def _count_tiles(box, shift, n_across, start, capacity):
    """Count the faces and the pixels of boxes in each tile; `start` becomes offsets."""
    start[:] = 0
    capacity[:] = 0
    for f in range(box.shape[0]):
        top, bottom, left, right = box[f, 0], box[f, 1], box[f, 2], box[f, 3]
        if top < bottom:
            for i in range(top >> shift, ((bottom - 1) >> shift) + 1):
                rows = min(bottom, (i + 1) << shift) - max(top, i << shift)
                for j in range(left >> shift, ((right - 1) >> shift) + 1):
                    columns = min(right, (j + 1) << shift) - max(left, j << shift)
                    start[i * n_across + j + 1] += 1
                    capacity[i * n_across + j] += rows * columns
    for tile in range(capacity.shape[0]):
        start[tile + 1] += start[tile]


def _fill_tiles(box, shift, n_across, order, place, faces):
    """Write the faces of each tile in the order of `order`; `place` is a copy of `start`."""
    for f in order:
        for i in range(box[f, 0] >> shift, ((box[f, 1] - 1) >> shift) + 1):
            for j in range(box[f, 2] >> shift, ((box[f, 3] - 1) >> shift) + 1):
                faces[place[i * n_across + j]] = f
                place[i * n_across + j] += 1


order_faces = cpu_kernel(_order_faces)
count_tiles = cpu_kernel(_count_tiles)
fill_tiles = cpu_kernel(_fill_tiles)
