"""Arrays of a device, and copies of nested tuples of arrays to and from it.

Tests: `tests/cuda/test_stand_ins.py`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from adjsim.jit import devices
from adjsim.jit.devices import Device, array_module, module_of


ALIGNED = 256  # bytes: where arrays that share a buffer of a device begin
LARGE = 1 << 20  # bytes: such an array travels alone, since putting arrays together takes memory
# Arrays up to this size are found again on a device by their numbers, which takes as long as to
# copy them where they are more [bytes]; how many are kept there.
SMALL, MOST_KEPT = 1 << 14, 1024


class DeviceArray:
    """An array of CuPy as kernels take it."""

    __slots__ = ("array", "described")

    def __init__(self, array: Any) -> None:
        self.array, self.described = array, None

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    size = property(lambda self: self.array.size)
    nbytes = property(lambda self: self.array.nbytes)

    def description(self) -> tuple[Any, tuple[int, ...]]:
        """Return the array's type, and the numbers that a kernel is given for it."""
        if self.described is None:
            array = self.array
            shape, dtype, address = array.shape, array.dtype, array.data.ptr
            kind = array_kind(dtype, len(shape), "C" if array.flags.c_contiguous else "A")
            # No owner and no parent, as nothing counts references there.
            words = (0, 0, array.size, dtype.itemsize, address, *shape, *array.strides)
            self.described = kind, words
        return self.described


@cache
def array_kind(dtype: Any, ndim: int, layout: str) -> types.Array:
    """Return Numba's type of an array."""
    return types.Array(from_dtype(dtype), ndim, layout)


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of nested tuples."""
    if isinstance(tree, tuple):
        for branch in tree:
            yield from leaves(branch)
    else:
        yield tree


def _map_arrays(fn: Callable, tree: Any) -> Any:
    """Apply `fn` to the leaves of nested tuples, named or not."""
    if isinstance(tree, tuple):
        parts = tuple(_map_arrays(fn, branch) for branch in tree)
        return type(tree)(*parts) if hasattr(tree, "_fields") else parts
    return fn(tree)


def bare(array: Any) -> Any:
    """Return CuPy's array of one from `on_device`, and any other as it is."""
    return array.array if isinstance(array, DeviceArray) else array


def joined(parts: Sequence[Any]) -> Any:
    """Return arrays one after the other, on the device if all of them are there."""
    if len(parts) == 1:
        return parts[0]
    modules = [module_of(array) for array in parts]
    if np in modules:
        return np.concatenate(to_host(tuple(parts)))
    return modules[0].concatenate(parts)


def beside(array: np.ndarray, other: Any) -> Any:
    """Return a constant array on the device of another one; it is copied there once."""
    return array if module_of(other) is np else constants(array, Device.CUDA)


def to_host(arrays: Any) -> Any:
    """Return the arrays of nested tuples, or one array, as NumPy's, those of the device copied."""
    there = {id(leaf): bare(leaf) for leaf in leaves(arrays) if not isinstance(leaf, np.ndarray)}
    copies = dict(zip(there, _in_one_go(_downloaded, list(there.values())), strict=True))
    return _map_arrays(lambda leaf: copies.get(id(leaf), leaf), arrays)


def to_device(arrays: Any, device: Device) -> Any:
    """Return the arrays of nested tuples, or one array, as those of the device's module."""
    return arrays if device is Device.CPU else _map_arrays(bare, on_device(arrays))


def on_device(arrays: Any) -> Any:
    """Return the arrays of nested tuples as `launch` takes them; one copy for all of NumPy's.

    CuPy owns all memory: a second allocator would not see what its pool keeps. Its work and our
    kernels are in one stream, so nothing waits. In the simulator all arrays are NumPy's own.
    """
    if devices.in_cuda_simulator():
        return arrays
    here: dict[int, np.ndarray] = {}

    def wrapped(array: Any) -> Any:
        if type(array) is np.ndarray:
            here[id(array)] = array
            return array
        return array if type(array) is DeviceArray else DeviceArray(array)

    tree = _map_arrays(wrapped, arrays)
    if not here:
        return tree
    copies = dict(zip(here, _in_one_go(_uploaded, list(here.values())), strict=True))
    return _map_arrays(lambda leaf: copies.get(id(leaf), leaf), tree)


def _in_one_go(copy: Callable[[list], list], arrays: list) -> list:
    """Return copies of arrays: of large ones one by one, of the others together."""
    together = [k for k, array in enumerate(arrays) if array.nbytes < LARGE]
    copies = {k: copy([array])[0] for k, array in enumerate(arrays) if array.nbytes >= LARGE}
    copies |= zip(together, copy([arrays[k] for k in together]), strict=True)
    return [copies[k] for k in range(len(arrays))]


def _downloaded(arrays: list[Any]) -> list[np.ndarray]:
    """Return copies on the host of CuPy's arrays, which travel as one."""
    if sum(array.size > 0 for array in arrays) < 2:
        return [
            array.get() if array.size else np.empty(array.shape, array.dtype) for array in arrays
        ]
    xp = array_module(Device.CUDA)
    numbers = xp.concatenate([array.ravel().view(np.uint8) for array in arrays]).get()
    ends = np.cumsum([array.nbytes for array in arrays])
    parts = zip(arrays, np.split(numbers, ends[:-1]), strict=True)
    return [flat.copy().view(array.dtype).reshape(array.shape) for array, flat in parts]


def _uploaded(arrays: list[np.ndarray]) -> list[DeviceArray]:
    """Return views of one buffer of the device that holds copies of arrays, a gap behind each."""
    if not arrays:
        return []
    sizes = [array.nbytes // ALIGNED * ALIGNED + ALIGNED for array in arrays]
    starts = [end - size for size, end in zip(sizes, accumulate(sizes), strict=True)]
    places = [slice(k, k + array.nbytes) for k, array in zip(starts, arrays, strict=True)]
    here = np.empty(sum(sizes), np.uint8)
    for array, place in zip(arrays, places, strict=True):
        here[place].view(array.dtype).reshape(array.shape)[...] = array
    xp = array_module(Device.CUDA)
    there = (
        xp.asarray(here) if any(array.size for array in arrays) else xp.empty(here.size, here.dtype)
    )
    return [
        DeviceArray(there[place].view(array.dtype).reshape(array.shape))
        for array, place in zip(arrays, places, strict=True)
    ]


_kept: dict[Any, DeviceArray] = {}
_kept_lock = Lock()


def kept_on_device(arrays: Any) -> Any:
    """Return constant arrays on the device; each is copied there once."""
    if devices.in_cuda_simulator():
        return arrays
    new: dict[Any, np.ndarray] = {}

    def kept(array: Any) -> Any:
        if type(array) is DeviceArray:
            return array
        if not isinstance(array, np.ndarray):
            return DeviceArray(array)
        key = _key_of(array)
        if key not in _kept:
            new[key] = array
        return _kept.get(key)

    with _kept_lock:
        copies = _map_arrays(kept, arrays)
        if not new:
            return copies
        if len(_kept) > MOST_KEPT:
            _kept.clear()
            _map_arrays(kept, arrays)
        large = {key: array for key, array in new.items() if isinstance(key, int)}
        small = {key: array for key, array in new.items() if key not in large}
        for uploads in (large, small):  # a small one would keep the buffer of a large one
            _kept.update(zip(uploads, _in_one_go(_uploaded, list(uploads.values())), strict=True))
        for key, array in large.items():
            finalize(array, _kept.pop, key, None)
        return _map_arrays(kept, arrays)


def constants(arrays: Any, device: Device) -> Any:
    """Return the arrays of nested tuples, never written to, as `to_device` does; copied once."""
    return arrays if device is Device.CPU else _map_arrays(bare, kept_on_device(arrays))


def _key_of(array: np.ndarray) -> Any:
    """Return by what an array is found again: a large one by its id, as long as it lives."""
    if array.nbytes > SMALL:
        return id(array)
    return array.dtype.char, array.shape, array.tobytes()
