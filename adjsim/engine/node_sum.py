"""The sum of what the elements wrote for one node: every stage after the elements reads it."""

import numpy as np

from adjsim.engine.assembly import TILE, U_TILE
from adjsim.engine.jit.backend import device_fn, lit


TWO_TILES = np.uint64(2 * TILE)


@device_fn
def node_sum(n, ptr, slots_of, slots):
    """Return the sum of a node's slots, in their fixed order."""
    zero = lit(0, slots[0])
    f0, f1, f2 = zero, zero, zero
    for k in range(ptr[n], ptr[n + np.uint64(1)]):
        s = np.uint64(slots_of[np.uint64(k)])
        f0 += slots[s]
        f1 += slots[s + U_TILE]
        f2 += slots[s + TWO_TILES]
    return (f0, f1, f2)


@device_fn
def node_sums(n, ptr, slots_of, slots, more_slots):
    """Return the sums of a node's slots in two arrays, each as `node_sum` does."""
    zero = lit(0, slots[0])
    f0, f1, f2, g0, g1, g2 = zero, zero, zero, zero, zero, zero
    for k in range(ptr[n], ptr[n + np.uint64(1)]):
        s = np.uint64(slots_of[np.uint64(k)])
        f0 += slots[s]
        f1 += slots[s + U_TILE]
        f2 += slots[s + TWO_TILES]
        g0 += more_slots[s]
        g1 += more_slots[s + U_TILE]
        g2 += more_slots[s + TWO_TILES]
    return (f0, f1, f2), (g0, g1, g2)
