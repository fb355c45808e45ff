"""How far a device may be from the CPU: as far as rounding can move each number.

In float32 the CPU rounds every operation otherwise than in float64. So their difference, in eps of
float32, is the number of roundings by which a result can be off, its conditioning included. A
device contracts other products, and takes exponentials and sums otherwise: it may be off by a few
times as many roundings of its own dtype. Where the errors of a sum happen to cancel in float32,
there is a least number.

As a module it prints these of float64 for toy scenes, by name: with NUMBA_DISABLE_JIT=1 in seconds,
where to compile all forces in float32 takes a minute.
"""

import json
import sys

import numpy as np

from tests.cuda import reduced_scenes, scenes


FEWEST, TIMES = 64, 16
ROUNDED = {  # what this module prints of
    "physics": scenes.everything,
    "worlds": scenes.many_worlds,
    "nodes": scenes.own_nodes,
    "reduced": reduced_scenes.all_scenes,
}


def tolerances(what, dtype, **options):
    """Tolerances of what a function of device and dtype returns by name, absolute."""
    exact, rounded = (what("cpu", kind, **options) for kind in (np.float64, np.float32))
    allowed = {}
    for name, value in exact.items():
        largest = np.abs(value).max(initial=0.0) or 1.0
        off = np.abs(rounded[name] - value).max(initial=0.0) / largest / np.finfo(np.float32).eps
        allowed[name] = float(TIMES * max(FEWEST, off) * np.finfo(dtype).eps * largest)
    return allowed


if __name__ == "__main__":
    json.dump(tolerances(ROUNDED[sys.argv[1]], np.float64), sys.stdout)
