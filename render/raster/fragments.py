r"""Which faces a pixel sees: tiles of pixels, fragments of a face, lists of a pixel.

A fragment is one face at one pixel with D >= D_min: its logit y = delta d^2/sigma, D, depth
z and shaded colour. The image is cut into square tiles, the units of parallel work, so
small that the fragments of one stay in the cache of a core. Within a tile the fragments lie
face by face, roughly from near to far, row by row, and each pixel has a list of its
fragments. The tiles depend on the scene alone, never on the number of threads.

The loops over the pixels of a box, over the fragments of a face and over those of a tile
have no branch, so that they work several pixels per instruction.

Frozen, that is, not differentiated: which fragments there are and their order in depth.

Adjoint: `adjoint/render/raster/fragments.py`. Tests: `tests/render/raster/test_fragments.py`.
"""

import math
from typing import NamedTuple

import numpy as np

from adjsim.algebra.vec3 import axpy, scale
from adjsim.jit.backend import device_fn, lit, shared_fn
from render.blending import NEAREST, OVER
from render.faces.coverage import coverage, cross2, exp_minus, sigmoid_parts, signed_square_distance
from render.faces.face_setup import load_corners
from render.faces.fragment_lists import list_fragments, sort_body
from render.faces.nearest import outer_coverage
from render.raster.barycentrics import fragment_place
from render.raster.pixel_shading import face_light, pixel_color
from render.raster.tile_rows import whole
from render.raster.tile_shading import shade_tile
from render.seamless import seamless_logit


TILE_SHIFT = 5  # a tile has 1 << TILE_SHIFT pixels in each direction
BLOCK = 512  # pixels of a box that are worked at a time, or one row of it


class TileGrid(NamedTuple):
    """Where the pixels are on the screen, and the size of a tile."""

    pixel_x: np.ndarray  # (width,) [-]
    pixel_y: np.ndarray  # (height,) [-]
    shift: int  # a tile has 1 << shift pixels in each direction


class Tiles(NamedTuple):
    """The faces that reach into each tile; tiles lie row by row."""

    start: np.ndarray  # (n_tiles + 1,) int64
    faces: np.ndarray  # (n_pairs,) int64, roughly from near to far
    capacity: np.ndarray  # (n_tiles,) int64: pixels in the boxes, more than fragments


class Fragments(NamedTuple):
    """The fragments of one tile, and the list of each of its pixels."""

    pixel: np.ndarray  # (capacity,) int32, row x side + column in the tile; on a GPU in the image
    face: np.ndarray  # (capacity,) int32
    p_x: np.ndarray  # (capacity,) the pixel on the screen [-]
    p_y: np.ndarray  # (capacity,)
    y: np.ndarray  # (capacity,) logit of the coverage [-]
    D: np.ndarray  # (capacity,) coverage [-]
    rest: np.ndarray  # (capacity,) 1 - D, without cancellation
    z: np.ndarray  # (capacity,) depth [m]
    u: np.ndarray  # (capacity,) Softmax: logit of the weight
    rgb: np.ndarray  # (capacity, 3) shaded colour [-]
    order: np.ndarray  # (capacity,) int32, fragments pixel by pixel
    spare: np.ndarray  # (capacity or PLACES,) int32, scratch: places of texels, then of the sort
    start: np.ndarray  # (pixels of a tile + 2,) int32, where the list of a pixel starts
    pair: np.ndarray  # (n_pairs + 1,) int64, where the fragments of a (tile, face) start
    logits: np.ndarray  # (largest block,) logits of a block of a box, scratch
    box_x: np.ndarray  # (largest block,) its pixels on the screen, scratch
    box_y: np.ndarray  # (largest block,)
    shade: np.ndarray  # (SCRATCH,) of `tile_shading.py`


@device_fn
def fragment_logit(p, a0, a1, a2, sigma):
    """Logit y = delta d^2/sigma of the coverage of pixel p."""
    return signed_square_distance(p, a0, a1, a2) * (lit(1.0, sigma) / sigma)


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
def fill_row(at, n, y, fragments):
    """Pixels of a row of a block: the x of the first row, four at a time, and y."""
    x, out = fragments.box_x, fragments.box_y
    for k in range(np.uint64(0), np.uint64(n), np.uint64(4)):
        m = np.uint64(at) + k
        x0, x1, x2, x3 = x[k], x[k + np.uint64(1)], x[k + np.uint64(2)], x[k + np.uint64(3)]
        x[m], x[m + np.uint64(1)], x[m + np.uint64(2)], x[m + np.uint64(3)] = x0, x1, x2, x3
        out[m], out[m + np.uint64(1)], out[m + np.uint64(2)], out[m + np.uint64(3)] = y, y, y, y


@device_fn
def block_pixels(first, last, left, right, grid, fragments):
    """Write where the pixels of some rows of a box are; return whole groups of them."""
    n = right - left
    for k in range(n):
        fragments.box_x[k] = grid.pixel_x[left + k]
    for i in range(first, last):
        fill_row((i - first) * n, n, grid.pixel_y[i], fragments)
    return np.uint64(whole((last - first) * n))


@device_fn
def block_logits(first, last, left, right, corners, sigma, grid, fragments):
    """Logits of a face at the pixels of some rows of its box: a loop that vectorises."""
    a0, a1, a2, _ = corners
    for k in range(np.uint64(0), block_pixels(first, last, left, right, grid, fragments)):
        p = (fragments.box_x[k], fragments.box_y[k])
        fragments.logits[k] = fragment_logit(p, a0, a1, a2, sigma)


@device_fn
def seamless_block_logits(first, last, left, right, f, faces, sigma, grid, fragments):
    """Logits of seamless coverage at the pixels of some rows of a box."""
    for k in range(np.uint64(0), block_pixels(first, last, left, right, grid, fragments)):
        p = (fragments.box_x[k], fragments.box_y[k])
        fragments.logits[k] = seamless_logit(p, f, faces, sigma)


@device_fn
def keep_fragments(first, last, left, right, n, lowest, grid, fragments):
    """Append the pixels of a block with logits >= lowest, without a branch; return the next."""
    at, k = np.uint64(n), np.uint64(0)
    side = 1 << grid.shift
    tile_left = np.uint64(left // side * side)
    for i in range(first, last):
        p_y = grid.pixel_y[i]
        row = np.uint64(i % side * side)
        for j in range(np.uint64(left), np.uint64(right)):
            y = fragments.logits[k]
            fragments.pixel[at] = row + (j - tile_left)
            fragments.p_x[at], fragments.p_y[at] = grid.pixel_x[j], p_y
            fragments.y[at] = y
            at += np.uint64(y >= lowest)
            k += np.uint64(1)
    return np.int64(at)


@device_fn
def fill_colors(first, last, f, shaded, fragments):
    """The one colour of face f at the fragments first..last-1."""
    r, g, b = corner_color(f, 0, shaded)
    for q in range(np.uint64(first), np.uint64(last)):
        fragments.rgb[q, 0], fragments.rgb[q, 1], fragments.rgb[q, 2] = r, g, b


@device_fn
def place_fragments(first, last, f, corners, smooth, shaded, fragments):
    """Depths and colours of the fragments first..last-1, all of face f; these vectorise."""
    a0, a1, a2, z = corners
    end = np.uint64(first + whole(last - first))
    for q in range(np.uint64(first), end):
        fragments.face[q] = f
    if smooth[f]:
        for q in range(np.uint64(first), end):
            p = (fragments.p_x[q], fragments.p_y[q])
            fragments.z[q], w = fragment_place(p, a0, a1, a2, z)
            rgb = fragment_color(f, w, smooth, shaded)
            fragments.rgb[q, 0], fragments.rgb[q, 1], fragments.rgb[q, 2] = rgb
        return
    for q in range(np.uint64(first), end):
        p = (fragments.p_x[q], fragments.p_y[q])
        fragments.z[q], _ = fragment_place(p, a0, a1, a2, z)
    fill_colors(first, last, f, shaded, fragments)


@device_fn
def edge_misses(a, b, turn, low, high, reach):
    """Whether the edge ab has all of a rectangle on its outer side, beyond its reach."""
    u = (turn * (b[0] - a[0]), turn * (b[1] - a[1]))
    x = low[0] if u[1] > lit(0.0, reach) else high[0]  # the corner farthest inwards
    y = high[1] if u[0] > lit(0.0, reach) else low[1]
    c = u[0] * (y - a[1]) - u[1] * (x - a[0])
    return c < lit(0.0, reach) and c * c > reach * reach * (u[0] * u[0] + u[1] * u[1])


@device_fn
def misses(first, last, left, right, corners, settings, grid):
    """Whether a face cannot reach any of these pixels: they lie beyond one of its edges."""
    a0, a1, a2, _ = corners
    low = (grid.pixel_x[left], grid.pixel_y[last - 1])
    high = (grid.pixel_x[right - 1], grid.pixel_y[first])
    area = cross2((a1[0] - a0[0], a1[1] - a0[1]), (a2[0] - a0[0], a2[1] - a0[1]))
    unity = lit(1.0, area)
    turn = unity if area > lit(0.0, area) else -unity
    size = unity + abs(low[0]) + abs(high[0])  # of what is rounded
    for a in (a0, a1, a2):
        size += abs(a[0]) + abs(a[1])
    reach = math.sqrt(-settings.lowest * settings.sigma) * lit(1.001, unity)
    reach += lit(64.0, unity) * settings.eps * size
    return (
        edge_misses(a0, a1, turn, low, high, reach)
        or edge_misses(a1, a2, turn, low, high, reach)
        or edge_misses(a2, a0, turn, low, high, reach)
    )


@device_fn
def fragments_body(f, area, n, grid, smooth, faces, settings, fragments):
    """Face f: append its fragments in this area from place n on; return the next place."""
    corners = load_corners(f, faces.corners)
    begin, end = max(area[0], faces.box[f, 0]), min(area[1], faces.box[f, 1])
    left, right = max(area[2], faces.box[f, 2]), min(area[3], faces.box[f, 3])
    is_cut = right - left == 1 << grid.shift or end - begin == 1 << grid.shift
    if is_cut and misses(begin, end, left, right, corners, settings, grid):
        return n
    rows = max(1, BLOCK // (right - left))
    first = n
    for i in range(begin, end, rows):
        last = min(i + rows, end)
        if faces.soft.shape[0] > 0:
            seamless_block_logits(i, last, left, right, f, faces, settings.sigma, grid, fragments)
        else:
            block_logits(i, last, left, right, corners, settings.sigma, grid, fragments)
        n = keep_fragments(i, last, left, right, n, settings.lowest, grid, fragments)
    place_fragments(first, n, f, corners, smooth, faces.shaded, fragments)
    return n


def _cover_fragments(n, blend, fragments):
    """Coverage of the first n fragments of the tile: loops that vectorise."""
    if blend == NEAREST:
        for q in range(np.uint64(0), np.uint64(whole(n))):
            y = fragments.y[q]
            fragments.D[q], fragments.rest[q] = outer_coverage(y, exp_minus(abs(y)))
        return
    for q in range(np.uint64(0), np.uint64(whole(n))):
        y = fragments.y[q]
        fragments.D[q], fragments.rest[q] = sigmoid_parts(y, exp_minus(abs(y)))


cover_fragments = shared_fn(_cover_fragments)  # one copy: equal bits wherever it is called


@device_fn
def write_fragment(n, y, f, i, j, corners, grid, scene, faces, blend, fragments):
    """Write fragment n, that of face f at the pixel in row i and column j, with logit y."""
    a0, a1, a2, z = corners
    p = (grid.pixel_x[j], grid.pixel_y[i])
    depth, w = fragment_place(p, a0, a1, a2, z)
    if scene.by_pixel[f]:
        rgb = pixel_color(f, w, face_light(f, faces, scene), faces, scene)
    else:
        rgb = fragment_color(f, w, scene.smooth, faces.shaded)
    fragments.pixel[n], fragments.face[n] = i * grid.pixel_x.shape[0] + j, f
    fragments.p_x[n], fragments.p_y[n] = p
    fragments.y[n] = y
    if blend == NEAREST:
        fragments.D[n], fragments.rest[n] = outer_coverage(y, math.exp(-abs(y)))
    else:
        fragments.D[n], fragments.rest[n] = coverage(y)
    fragments.z[n] = depth
    fragments.rgb[n, 0], fragments.rgb[n, 1], fragments.rgb[n, 2] = rgb


@device_fn
def tile_area(tile, grid):
    """Rows from and to, columns from and to, of a tile."""
    height, width = grid.pixel_y.shape[0], grid.pixel_x.shape[0]
    side = 1 << grid.shift
    n_across = (width + side - 1) >> grid.shift
    row, column = tile // n_across * side, tile % n_across * side
    return row, min(row + side, height), column, min(column + side, width)


def gather_tile(tile, grid, scene, faces, tiles, settings, fragments):
    """Find the fragments of a tile, list them by pixel and, for Over, sort by depth."""
    area = tile_area(tile, grid)
    n = 0
    fragments.pair[0] = 0
    for pair in range(tiles.start[tile], tiles.start[tile + 1]):
        f = tiles.faces[pair]
        n = fragments_body(f, area, n, grid, scene.smooth, faces, settings, fragments)
        fragments.pair[pair - tiles.start[tile] + 1] = n
    if faces.towards.shape[0] > 0:
        shade_tile(tile, scene, faces, tiles, fragments)
    cover_fragments(n, settings.blend, fragments)
    n_pixels = (area[1] - area[0]) << grid.shift
    list_fragments(n, n_pixels, fragments)
    if settings.blend == OVER and n > 0:
        for k in range(n_pixels):
            sort_body(
                fragments.start[k],
                fragments.start[k + 1],
                fragments.z,
                fragments.face,
                fragments.order,
                fragments.spare,
            )
