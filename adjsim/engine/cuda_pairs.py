r"""Pairs that change, on a GPU: a thread takes a pair, and later a row of a surface.

All pairs that a search has found (`adjsim/engine/cuda_search.py`) are elements of the steps: a GPU
makes no shorter lists. Their lanes write slots, and mark those that are not 0; after a barrier the
marked slots of each row of a surface are added up, in the order of the pairs, into the sum that the
nodes read. No bit depends on which search found the pairs.

A sweep forward ends after a step in which a row has moved too far for its pairs. Motion that all of
a set shares does not count: rows are seen from one of them, the guide.

Adjoint: `adjoint/engine/cuda_pairs.py`. Tests: `tests/cuda`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjsim.algebra.vec3 import add, dot, sub
from adjsim.jit.backend import device_fn
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import on_device
from adjsim.jit.devices import Device, array_module
from adjsim.pairs.pair_force import N_PARAMS, PAIR
from adjsim.tiles.assembly import N_TILES, NODES, TILE
from adjsim.tiles.element_kind import ElementKind
from adjsim.tiles.node_sum import slot_at, zero_of


CORNERS = PAIR.n_nodes
SHARES = 64  # threads that look at the rows of one state


class TeamPairs(NamedTuple):
    """The pairs of all surface contacts of some worlds, and the rows of their surfaces.

    The fields up to `more_params` are the same as in `NearPairs`.
    """

    pair_table: Any
    pair_nodes: Any
    pair_consts: Any
    pair_params: Any
    series: Any
    slots: Any
    more_slots: Any
    v_slots: Any
    more_params: Any
    rows: Any  # of X
    places: Any  # rows of the sums
    param_places: Any  # where the parameters of a row begin
    sum_ptr: Any
    sum_slots: Any  # row i adds up sum_slots[sum_ptr[i]:sum_ptr[i + 1]], of those with marks
    marks: Any
    entries: Any  # of each of `pair_nodes`, the place of its slot in `sum_slots` and `marks`
    found_at: Any  # positions when pairs were found
    guides: Any  # the row that stands for the motion of all of a set
    limits: Any  # square of how far a row may move, seen from its guide [m^2]
    turns: Any  # (1,) how many turns the sweep has at most


def pair_kind(kinds: Sequence[ElementKind]) -> ElementKind | None:
    """Return the kind of the pairs of some kinds of element, which have one in common."""
    return next((kind.pairs for kind in kinds if kind.pairs), None)


def serves_from(pairs: TeamPairs, x: Any, rows: np.ndarray) -> int:
    """Return the first of several states, `x[rows]`, from which on the pairs serve.

    They serve the last one.
    """
    n = len(rows) - 1
    if n == 0:
        return 0
    far = array_module(Device.CUDA).zeros(n * SHARES, np.int64)
    launch(far_thread, n * SHARES, on_device((pairs, x, np.asarray(rows, np.int64), far)))
    return int(far.max())


@device_fn
def far_thread(i, args):
    """Write from which state on the pairs may serve: none in which a row of a share is too far."""
    pairs, x, rows, far = args
    state, share = i // SHARES, i % SHARES
    for row in range(share, pairs.rows.size, SHARES):
        if has_moved_far(pairs, row, x[rows[state]]):
            far[i] = state + 1


@device_fn
def has_moved_far(pairs, i, x):
    """Whether row i of the surfaces has moved too far since the pairs were found."""
    relative = sub(moved(pairs, i, x), moved(pairs, pairs.guides[i], x))
    return dot(relative, relative) > pairs.limits[i]


@device_fn
def moved(pairs, i, x):
    """Return by how much row i of the surfaces has moved."""
    n, before = pairs.rows[i], pairs.found_at
    return x[n, 0] - before[i, 0], x[n, 1] - before[i, 1], x[n, 2] - before[i, 2]


@device_fn
def mark_pairs(team, pairs):
    """Mark the slots that this thread's pairs have just written, if they are not 0."""
    table, i = pairs.pair_table, team.start
    for row in range(table.shape[0]):
        n = table[row, N_TILES] * TILE
        while i < n:  # as `make_chain` shares out lanes
            tile, q = i // TILE, i % TILE
            for a in range(CORNERS):
                first = table[row, NODES] + (tile * CORNERS + a) * TILE
                entry = pairs.entries[first + q]
                if entry < pairs.marks.size:
                    pairs.marks[entry] = is_some(pairs, first, q)
            i += team.stride
        i -= n


@device_fn
def is_some(pairs, first, q):
    """Return 1 if a pair wrote a number that is not 0 for a corner; its nodes begin at `first`."""
    slot, zero = 3 * first + q, zero_of(pairs.slots)
    some = has_number(pairs.slots, slot, zero) or has_number(pairs.more_slots, slot, zero)
    if pairs.v_slots.size > 0 and not some:  # a reverse sweep
        some = has_number(pairs.v_slots, slot, zero)
        start, is_first = first // CORNERS * N_PARAMS + q, first // TILE % CORNERS == 0
        for column in range(N_PARAMS if is_first and not some else 0):
            some = some or pairs.more_params[start + column * TILE] != zero
    return 1 if some else 0


@device_fn
def has_number(slots, slot, zero):
    """Whether one of the three numbers of a slot is not 0; there may be no slots."""
    if slots.size == 0:
        return False
    return slots[slot] != zero or slots[slot + TILE] != zero or slots[slot + 2 * TILE] != zero


@device_fn
def sum_pair_slots(team, pairs, slots, sums):
    """Add up what the pairs wrote in `slots`, for this thread's rows of surfaces."""
    zero = zero_of(slots)
    for i in range(team.start, pairs.rows.size, team.stride):
        f = (zero, zero, zero)
        for k in range(pairs.sum_ptr[i], pairs.sum_ptr[i + 1]):
            if pairs.marks[k] != 0:
                f = add(f, slot_at(slots, np.uint64(pairs.sum_slots[k])))
        at = pairs.places[i]
        sums[at, 0], sums[at, 1], sums[at, 2] = f


@device_fn
def watch_pairs(team, turn, pairs, x):
    """End the sweep with this turn if one of this thread's rows has moved too far."""
    for i in range(team.start, pairs.rows.size, team.stride):
        if has_moved_far(pairs, i, x):
            team.lower(pairs.turns, 0, turn + 1)


@device_fn
def ends_with(turn, args):
    """Whether the sweep ends with a turn."""
    return turn + 1 >= args.pairs.turns[0]
