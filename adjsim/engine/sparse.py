"""Sparse matrices times arrays, on either device; a number's terms are added in the matrix's order.

Tests: `tests/engine/test_sparse.py`, `tests/cuda`.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from adjsim.jit.backend import device_fn, lit
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import kept_on_device, on_device
from adjsim.jit.devices import module_of


class Entries(NamedTuple):
    """A sparse matrix by rows: row i has the entries ptr[i] to ptr[i + 1] - 1."""

    values: Any
    columns: Any
    ptr: Any


@device_fn
def product_thread(k, args):
    """Write number k of the products (n, n_rows, m) of a matrix with arrays (n, n_columns, m)."""
    entries, x, out = args
    n_rows, m = out.shape[1], out.shape[2]
    b, i, c = k // (n_rows * m), k // m % n_rows, k % m
    total = lit(0.0, x[0, 0, 0])
    for e in range(entries.ptr[i], entries.ptr[i + 1]):
        total += entries.values[e] * x[b, entries.columns[e], c]
    out[b, i, c] = total


def product(matrix: scipy.sparse.csr_array, x: Any) -> Any:
    """Return matrix @ x over the second axis of x from the end, in the type of x, where x is.

    A matrix that is multiplied with arrays of a GPU must have their type.
    """
    if isinstance(x, np.ndarray):
        if x.ndim == 2:
            return (matrix @ x).astype(x.dtype, copy=False)
        return np.stack([matrix @ frame for frame in x]).astype(x.dtype, copy=False)
    n_rows, n_columns = len(matrix.indptr) - 1, x.shape[-2]
    flat = x.reshape(-1, n_columns, x.shape[-1])
    out = module_of(x).empty((flat.shape[0], n_rows, flat.shape[2]), x.dtype)
    entries = kept_on_device(Entries(matrix.data, matrix.indices, matrix.indptr))
    launch(product_thread, out.size, (entries, *on_device((flat, out))))
    return out.reshape(*x.shape[:-2], n_rows, x.shape[-1])
