r"""Semi-Lagrangian advection on a periodic grid: look up where the flow comes from.

    S(f; u) at cell p = f at p - u(p), bilinear, periodic          u in cells per step

A field is flat, (n_cells, n_channels), cell (row i, column j) of an (N_y, N_x) grid in row
i N_x + j; u has the components (u_x, u_y). The lookup lies in the cell floor(p - u) at the
offsets s along x and t along y. On its border, u = 0 say, the right-hand slope is the one
taken. The offset is formed from u alone, so that a grid shifted by whole cells gives the same
bits, and no precision is lost far from the origin.

The adjoint needs to know who looked a cell up: `Sources` lists, for every cell, the cells whose
lookup lies in it, in increasing order. Then every cell gathers, and nothing is scattered: the
order of every sum is fixed, on one thread and many, and on a GPU.

Adjoint: `adjoint/reduced/advection.py`. Tests: `tests/reduced/test_advection.py`.
Source: Stam, Stable Fluids, SIGGRAPH 1999, sec. 2.2.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from adjsim.jit.backend import cpu_kernel, device_fn, lit, specialise
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import on_device
from adjsim.jit.devices import Device, array_module


@device_fn
def wrapped(i, n):
    """Return i modulo n; the division is left to lookups from afar."""
    if i < 0:
        i += n
    elif i >= n:
        i -= n
    return i % n if i < 0 or i >= n else i


@device_fn
def departure(p, u, n):
    """Return the cell below p - u along one axis, the next one, and the offset between."""
    below = lit(math.floor(-u), n)  # an integer: CUDA's floor is not
    s = -u - lit(below, u)  # (1)
    lo = wrapped(p + below, n)
    return lo, wrapped(lo + 1, n), s


@device_fn
def corner_cells(i, j, velocity, size):
    """Return the four cells around the lookup of cell (i, j), and its offsets s and t."""
    here = i * size[1] + j
    left, right, s = departure(j, velocity[here, 0], size[1])
    low, high, t = departure(i, velocity[here, 1], size[0])
    low, high = low * size[1], high * size[1]
    return (low + left, low + right, high + left, high + right), s, t


@device_fn
def bilinear(f, s, t):
    """Return the value between four corners, f = (f00, f01, f10, f11) with x running first."""
    low = f[0] + s * (f[1] - f[0])  # (2)
    high = f[2] + s * (f[3] - f[2])  # (3)
    return low + t * (high - low)  # (4)


@device_fn
def corner_values(field, cells, c):
    """Return channel c of a field at four cells."""
    return (field[cells[0], c], field[cells[1], c], field[cells[2], c], field[cells[3], c])


@device_fn
def advect_cell(i, j, args):
    """Write S(f; u) of one cell; args are (size, f, u, out)."""
    size, field, velocity, out = args
    cells, s, t = corner_cells(i, j, velocity, size)
    for c in range(field.shape[1]):
        out[i * size[1] + j, c] = bilinear(corner_values(field, cells, c), s, t)


@device_fn
def base_cell(i, j, args):
    """Write the cell that one lookup lies in; args are (size, u, base)."""
    size, velocity, base = args
    cells, _, _ = corner_cells(i, j, velocity, size)
    base[i * size[1] + j] = cells[0]


# Bound by `specialise`.
CELL: Any = None


def each_row(lo, hi, args):
    """Run `CELL(i, j, args)` for the cells of rows lo to hi; args begin with (N_y, N_x)."""
    for i in range(lo, hi):
        for j in range(args[0][1]):
            CELL(i, j, args)


def each_index(n, args):
    """Run `CELL` for the cell at a flat index."""
    i = n // args[0][1]
    CELL(i, n - i * args[0][1], args)


def sort_cells(base, start, order):
    """Fill `order` with all cells by their base, stably, and `start` with where each begins."""
    start[:] = 0
    for n in range(base.size):
        start[base[n] + 1] += 1
    for n in range(base.size):
        start[n + 1] += start[n]
    for n in range(base.size):
        order[start[base[n]]] = n
        start[base[n]] += 1
    for n in range(base.size, 0, -1):
        start[n] = start[n - 1]
    start[0] = 0


@cache
def row_kernel(cell: Callable) -> Callable:
    """Return the compiled loop of a cell function over rows."""
    return cpu_kernel(specialise(each_row, f"rows_{cell.__name__}", CELL=cell))


@cache
def index_body(cell: Callable) -> Callable:
    """Return a cell function as one of a flat index, for `launch`."""
    return device_fn(specialise(each_index, f"index_{cell.__name__}", CELL=cell))


@cache
def sort_kernel() -> Callable:
    """Return the compiled `sort_cells`."""
    return cpu_kernel(specialise(sort_cells, "sort_cells"))


class Sources(NamedTuple):
    """Who looks up in a cell: cells `order[start[b]:start[b + 1]]` have b below left."""

    start: Any
    order: Any


class CellRows:
    """Runs cell functions over an (N_y, N_x) grid, on threads or on a GPU.

    A row is always worked by one compiled loop from its first cell to its last, so the bits
    do not depend on how rows are shared out.
    """

    def __init__(self, shape: tuple[int, int], device: Device, threads: int = 1) -> None:
        self.device, self.xp = device, array_module(device)
        self.shape, self.n_cells = shape, shape[0] * shape[1]
        self.size = self.xp.array(shape, np.int64)
        self.n_chunks = min(threads, shape[0])
        self.pool = ThreadPoolExecutor(self.n_chunks) if self.n_chunks > 1 else None

    def run(self, cell: Callable, *arrays: Any) -> None:
        """Run `cell(i, j, (size, *arrays))` for every cell."""
        args = (self.size, *arrays)
        if self.device is Device.CUDA:
            launch(index_body(cell), self.n_cells, on_device(args))
        elif self.pool is None:
            row_kernel(cell)(0, self.shape[0], args)
        else:
            ends = [self.shape[0] * k // self.n_chunks for k in range(self.n_chunks + 1)]
            kernel = row_kernel(cell)
            list(self.pool.map(lambda lo, hi: kernel(lo, hi, args), ends[:-1], ends[1:]))

    def advect(self, field: Any, velocity: Any, out: Any) -> None:
        """Write S(field; velocity) to `out`, all of them flat."""
        self.run(advect_cell, field, velocity, out)

    def sources(self, velocity: Any) -> Sources:
        """Return who looks up where, in an order that depends on nothing but the velocity."""
        xp, n = self.xp, self.n_cells
        base = xp.empty(n, np.int64)
        self.run(base_cell, velocity, base)
        if self.device is Device.CUDA:
            order = xp.argsort(base, kind="stable")
            start = xp.searchsorted(base[order], xp.arange(n + 1))
            return Sources(start.astype(np.int64), order.astype(np.int64))
        start, order = np.empty(n + 1, np.int64), np.empty(n, np.int64)
        sort_kernel()(base, start, order)
        return Sources(start, order)
