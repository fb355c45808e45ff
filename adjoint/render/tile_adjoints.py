"""The adjoints of the fragments of a tile in blocks that work several per instruction; CPU only.

What `fragments.py` undoes one fragment after the other is done here for a block of them: a
loop without a branch writes what each fragment adds in rows, one for each number of the slot,
and eight rows are added up at a time (`adjsim/lanes.py`).

Tests: `tests/render/test_tile_adjoints.py`.
"""

import numpy as np

from adjoint.render.blending import FragmentAdjoints
from adjoint.render.face_setup import COLORS, SLOT
from adjoint.render.fragments import coverage_vjp_body, flat_vjp_body, fragment_logit_vjp
from adjoint.render.tile_shading import (
    ADJ_RGB,
    ADJ_W,
    PAINT,
    SCRATCH_VJP,
    SLOTS,
    SUMS,
    add_slot,
    adjoint_block,
    clear_rows,
    corners_block_vjp,
    only,
    place_block_vjp,
)
from adjsim.backend import device_fn, lit
from render.blending import NEAREST
from render.face_setup import load_corners
from render.fragments import Fragments
from render.frames import Frame, empty_fragments
from render.pixel_shading import corner_normals
from render.tile_shading import ROW, SHADED, put3, weigh_block, whole


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
        at = k + SLOTS
        put3(block, at, only(is_there, (adj_a0[0], adj_a0[1], adj_a1[0])))
        put3(block, at + np.uint64(3) * ROW, only(is_there, (adj_a1[1], adj_a2[0], adj_a2[1])))
        block[at + np.uint64(6) * ROW] = adj_sigma if is_there else zero


@device_fn
def coverage_vjp_tile(k, f, faces, settings, fragments, adj, pair, slots):
    """As `coverage_vjp_body`, of the coverage of Over and Softmax."""
    corners, block = load_corners(f, faces.corners), fragments.shade
    adj_sigma = lit(0.0, settings.sigma)
    for c in range(6):
        slots[pair, c] = lit(0.0, settings.sigma)
    last = fragments.pair[k + 1]
    for first in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - first)
        logit_rows(first, n, corners, settings.sigma, fragments, adj, block)
        add_slot(n, 6, pair, slots, block)
        adj_sigma += block[SUMS + np.uint64(6)]
    return adj_sigma


@device_fn
def colors_vjp_tile(k, f, scene, faces, fragments, adj, pair, slots):
    """What flows through depths and, of a face with vertex colours, through these and weights."""
    corners, block = load_corners(f, faces.corners), fragments.shade
    last = fragments.pair[k + 1]
    for first in range(fragments.pair[k], last, SHADED):
        n = min(SHADED, last - first)
        clear_rows(ADJ_W, n, block)
        if scene.smooth[f]:
            weigh_block(first, n, corners, fragments, block)
            adjoint_block(first, n, fragments, adj, block)
            colors = corner_normals(f, faces.shaded)
            corners_block_vjp(n, ADJ_RGB, colors, PAINT, block)
        place_block_vjp(first, n, corners, fragments, adj, block)
        add_slot(n, SLOT if scene.smooth[f] else COLORS, pair, slots, block)


@device_fn
def pair_vjp_tile(k, f, scene, faces, settings, fragments, adj, pair, slots):
    """As `pair_vjp_body`."""
    for c in range(6, SLOT):
        slots[pair, c] = lit(0.0, settings.sigma)
    if faces.soft.shape[0] > 0 or settings.blend == NEAREST:
        adj_sigma = coverage_vjp_body(k, f, faces, settings, fragments, adj, pair, slots)
    else:
        adj_sigma = coverage_vjp_tile(k, f, faces, settings, fragments, adj, pair, slots)
    if scene.by_pixel[f]:
        return adj_sigma
    if scene.smooth[f] or settings.is_deep:
        colors_vjp_tile(k, f, scene, faces, fragments, adj, pair, slots)
    if not scene.smooth[f]:
        flat_vjp_body(k, fragments, adj, pair, slots)
    return adj_sigma


def empty_scratch(ready: Frame) -> Fragments:
    """Return room for the fragments of any tile of a frame, and for undoing their colours."""
    fragments = empty_fragments(ready, 0, len(ready.tiles.capacity))
    return fragments._replace(shade=np.empty(SCRATCH_VJP, fragments.shade.dtype))


def empty_adjoints(n: int, n_pixels: int, dtype: np.dtype) -> FragmentAdjoints:
    """Return room for the adjoints of n fragments and of the pixels of a tile."""
    y, z, w, T = (np.empty(n, dtype) for _ in range(4))
    return FragmentAdjoints(y, z, w, T, np.empty((n_pixels, 4), dtype))
