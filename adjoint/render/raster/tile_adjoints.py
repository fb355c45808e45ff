"""The adjoints of the fragments of a tile in blocks that work several per instruction; CPU only.

What `fragments.py` undoes one fragment after the other is done here for a block of them: a
loop without a branch writes rows, and what they add to the slot, sums of rows and of products
of rows, is added up by `row_sums` (`adjsim/jit/row_sums.py`).

Tests: `tests/render/raster/test_tile_adjoints.py`.
"""

import numpy as np

from adjoint.render.blending import FragmentAdjoints
from adjoint.render.faces.face_setup import COLORS, CORNERS, DEPTHS, SLOT
from adjoint.render.raster.barycentrics import place_vjp
from adjoint.render.raster.fragments import coverage_vjp_body, flat_vjp_body, fragment_logit_vjp
from adjoint.render.raster.pixel_shading import weighted_vjp
from adjoint.render.raster.tile_rows import (
    ADJ_RGB,
    ADJ_W,
    PART,
    SCRATCH_VJP,
    STEP,
    SUMS,
    add_sums,
    adjoint_block,
    only,
    replay_weights,
    weights_block_vjp,
)
from adjsim.jit.backend import device_fn, lit
from adjsim.jit.row_sums import outer, row_sums
from render.blending import NEAREST
from render.faces.face_setup import load_corners
from render.raster.fragments import Fragments
from render.raster.pixel_shading import corner_normals
from render.raster.tile_rows import LANES, ROW, SHADED, WEIGHTS, get3, put3, whole
from render.raster.tile_scratch import TileSize, empty_fragments, own_room


sum_logits = row_sums(*(((int(PART) + i * STEP,),) for i in range(7)))
sum_depths = row_sums(*(((int(PART) + i * STEP,),) for i in range(9)))
sum_colors = row_sums(*outer(WEIGHTS, ADJ_RGB, STEP))


@device_fn
def logit_rows(first, n, corners, sigma, fragments, adj, block):
    """What the logits of the fragments first..first+n-1 add to three corners and to sigma."""
    zero = lit(0.0, sigma)
    for k in range(np.uint64(0), np.uint64(whole(n))):
        q = np.uint64(first) + k
        p, is_there = (fragments.p_x[q], fragments.p_y[q]), k < np.uint64(n)
        adj_a0, adj_a1, adj_a2, adj_sigma = fragment_logit_vjp(
            p, corners, sigma, fragments.y[q], adj.y[q]
        )
        at = k + PART
        put3(block, at, only(is_there, (adj_a0[0], adj_a0[1], adj_a1[0])))
        put3(block, at + np.uint64(3) * ROW, only(is_there, (adj_a1[1], adj_a2[0], adj_a2[1])))
        block[at + np.uint64(6) * ROW] = adj_sigma if is_there else zero


@device_fn
def coverage_vjp_tile(k, f, faces, settings, fragments, adj, pair, slots):
    """As `coverage_vjp_body`, of the coverage of Over and Softmax."""
    corners, block = load_corners(f, faces.corners), fragments.shade
    adj_sigma = lit(0.0, settings.sigma)
    for c in range(CORNERS, DEPTHS):
        slots[pair, c] = lit(0.0, settings.sigma)
    last = fragments.pair[k + 1]
    for first in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - first)
        logit_rows(first, n, corners, settings.sigma, fragments, adj, block)
        sum_logits(block, np.uint64(whole(n)), SUMS)
        add_sums(6, pair, 0, slots, block)
        adj_sigma += block[SUMS + np.uint64(6)]
    return adj_sigma


@device_fn
def depths_vjp_tile(k, f, faces, fragments, adj, pair, slots):
    """As `depths_vjp_body`."""
    corners, block = load_corners(f, faces.corners), fragments.shade
    zero, last = lit(0.0, block[0]), fragments.pair[k + 1]
    for first in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - first)
        for i in range(np.uint64(0), np.uint64(whole(n))):
            q, at = np.uint64(first) + i, i + PART
            p, is_there = (fragments.p_x[q], fragments.p_y[q]), i < np.uint64(n)
            a0, a1, a2, z = place_vjp(p, corners, adj.z[q], (zero, zero, zero))
            put3(block, at, only(is_there, (a0[0], a0[1], a1[0])))
            put3(block, at + np.uint64(3) * ROW, only(is_there, (a1[1], a2[0], a2[1])))
            put3(block, at + np.uint64(6) * ROW, only(is_there, z))
        sum_depths(block, np.uint64(whole(n)), SUMS)
        add_sums(9, pair, 0, slots, block)


@device_fn
def colors_vjp_tile(k, f, faces, fragments, adj, pair, slots):
    """As `smooth_vjp_body`, but for what flows through depths: colours of corners and weights."""
    corners, block = load_corners(f, faces.corners), fragments.shade
    colors, last = corner_normals(f, faces.shaded), fragments.pair[k + 1]
    for first in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - first)
        replay_weights(first, n, corners, fragments, block)
        adjoint_block(first, n, fragments, adj, block)
        for i in range(np.uint64(0), np.uint64(whole(n))):
            put3(block, i + ADJ_W, weighted_vjp(colors, get3(block, i + ADJ_RGB)))
        sum_colors(block, np.uint64(whole(n)), SUMS)
        add_sums(9, pair, COLORS, slots, block)
        weights_block_vjp(n, corners, pair, slots, block)


@device_fn
def pair_vjp_tile(k, f, scene, faces, settings, fragments, adj, pair, slots):
    """As `pair_vjp_body`, and what flows through the depths of a face shaded pixel by pixel."""
    for c in range(DEPTHS, SLOT):
        slots[pair, c] = lit(0.0, settings.sigma)
    if faces.soft.shape[0] > 0 or settings.blend == NEAREST:
        adj_sigma = coverage_vjp_body(k, f, faces, settings, fragments, adj, pair, slots)
    else:
        adj_sigma = coverage_vjp_tile(k, f, faces, settings, fragments, adj, pair, slots)
    if settings.is_deep:
        depths_vjp_tile(k, f, faces, fragments, adj, pair, slots)
    if scene.by_pixel[f]:
        return adj_sigma
    if scene.smooth[f]:
        colors_vjp_tile(k, f, faces, fragments, adj, pair, slots)
    else:
        flat_vjp_body(k, fragments, adj, pair, slots)
    return adj_sigma


def empty_adjoints(size: TileSize) -> FragmentAdjoints:
    """Return room for the adjoints of the fragments and of the pixels of a tile."""
    y, z, w, T = (np.zeros(size.fragments + LANES, size.dtype) for _ in range(4))
    return FragmentAdjoints(y, z, w, T, np.empty((1 << 2 * size.shift, 4), size.dtype))


def empty_scratch(size: TileSize) -> tuple[Fragments, FragmentAdjoints]:
    """Return room for the fragments of a tile and for undoing their colours, and for adjoints."""
    fragments = own_room(empty_fragments, size)
    return fragments._replace(shade=np.zeros(SCRATCH_VJP, size.dtype)), empty_adjoints(size)
