"""The sum of what the elements wrote for one node: every stage after the elements reads it."""

import numpy as np

from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.assembly import TILE, U_TILE


TWO_TILES = np.uint64(2 * TILE)


@device_fn
def slot_at(slots, s):
    """Return the three numbers of slot s: of tiles, or a row of (n, 3)."""
    if slots.ndim == 2:
        return slots[s, 0], slots[s, 1], slots[s, 2]
    return slots[s], slots[s + U_TILE], slots[s + TWO_TILES]


@device_fn
def node_sum(n, ptr, slots_of, slots):
    """Return the sum of a node's slots, in their fixed order."""
    zero = zero_of(slots)
    f0, f1, f2 = zero, zero, zero
    for k in range(ptr[n], ptr[n + np.uint64(1)]):
        a0, a1, a2 = slot_at(slots, np.uint64(slots_of[np.uint64(k)]))
        f0 += a0
        f1 += a1
        f2 += a2
    return (f0, f1, f2)


@device_fn
def node_sums(n, ptr, slots_of, slots, more_slots):
    """Return the sums of a node's slots in two arrays, each as `node_sum` does."""
    zero = zero_of(slots)
    f0, f1, f2, g0, g1, g2 = zero, zero, zero, zero, zero, zero
    for k in range(ptr[n], ptr[n + np.uint64(1)]):
        s = np.uint64(slots_of[np.uint64(k)])
        a0, a1, a2 = slot_at(slots, s)
        f0 += a0
        f1 += a1
        f2 += a2
        b0, b1, b2 = slot_at(more_slots, s)
        g0 += b0
        g1 += b1
        g2 += b2
    return (f0, f1, f2), (g0, g1, g2)


@device_fn
def zero_of(slots):
    """Return 0 in the type of slots."""
    if slots.ndim == 2:
        return lit(0, slots[0, 0])
    return lit(0, slots[0])
