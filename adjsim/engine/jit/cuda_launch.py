"""Launches on a GPU: arguments are prepared once for each array, not at every launch.

A kernel is given up to a hundred arrays, in nested tuples. For each launch `numba.cuda` finds the
type and the descriptor of every one of them again, which takes half a millisecond. Here an array
keeps both, and a launch puts them together.

How `numba.cuda` hands an array to a kernel is private: `pyproject.toml` bounds its version.
Tests: `tests/cuda`.
"""

from functools import cache
from importlib import import_module
from typing import Any

from numba.core import types
from numba.np.numpy_support import from_dtype


FREE_SHARED = 48 << 10  # bytes of shared memory that a kernel has without being allowed to


class DeviceArray:
    """An array of CuPy as kernels take it."""

    __slots__ = ("_description", "array")

    def __init__(self, array: Any) -> None:
        self.array, self._description = array, None

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    size = property(lambda self: self.array.size)
    nbytes = property(lambda self: self.array.nbytes)

    def description(self) -> tuple[Any, tuple[int, ...]]:
        """Return the array's type, and the numbers that a kernel is given for it."""
        if self._description is None:
            array = self.array
            shape, dtype, address = array.shape, array.dtype, array.data.ptr
            kind = array_kind(dtype, len(shape), "C" if array.flags.c_contiguous else "A")
            # No owner and no parent, as nothing counts references there.
            words = (0, 0, array.size, dtype.itemsize, address, *shape, *array.strides)
            self._description = kind, words
        return self._description


@cache
def array_kind(dtype: Any, ndim: int, layout: str) -> types.Array:
    """Return Numba's type of an array."""
    return types.Array(from_dtype(dtype), ndim, layout)


def describe(tree: Any, key: list[Any], words: list[int]) -> None:
    """Append what tells the types of nested tuples apart, and the numbers of their arrays."""
    for part in tree:
        if type(part) is DeviceArray:
            kind, own = part.description()
            key.append(id(kind))  # `array_kind` keeps it: no other type gets its place
            words += own
        else:
            key.append(type(part))
            key.append(len(part))
            describe(part, key, words)


def kind_of(tree: Any) -> Any:
    """Return Numba's type of nested tuples of arrays."""
    if isinstance(tree, DeviceArray):
        return tree.description()[0]
    kinds = tuple(kind_of(part) for part in tree)
    if hasattr(tree, "_fields"):
        return types.NamedTuple(kinds, type(tree))
    return types.BaseTuple.from_types(kinds)


class Launcher:
    """A kernel of `numba.cuda`, compiled for every combination of types that it is given."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.by_types = kernel, {}

    def compiled(self, args: tuple, n: int | None) -> tuple[Any, Any, list[int]]:
        """Return the kernel for these arguments, its handle, and all numbers that it is given."""
        key: list[Any] = []
        words = [] if n is None else [n]
        describe(args, key, words)
        compiled = self.by_types.get(tuple(key))
        if compiled is None:
            kinds = (kind_of(args),) if n is None else (types.int64, kind_of(args))
            found = self.kernel.compile(kinds)
            compiled = self.by_types[tuple(key)] = found, found._codelibrary.get_cufunc().kernel
        return *compiled, words

    def blocks_at_once(self, args: tuple, threads: int, shared: int) -> int:
        """Return how many blocks of a cooperative kernel the device can hold."""
        found, handle, _ = self.compiled(args, None)
        allow_shared(handle, shared)  # a kernel that may not have it could have no blocks
        return found.max_cooperative_grid_blocks(threads, shared)

    def run(
        self, blocks: int, threads: int, args: tuple, n: int | None = None, shared: int = 0
    ) -> None:
        """Launch the kernel, of (n, args) or of (args,), in the stream in which CuPy works.

        `shared` is the dynamic shared memory of a block [bytes].
        """
        found, handle, words = self.compiled(args, n)
        core, stream = cuda_core()
        allow_shared(handle, shared)
        how = core.LaunchConfig(
            grid=blocks, block=threads, shmem_size=shared, is_cooperative=found.cooperative
        )
        core.launch(stream, how, handle, *words)


def allow_shared(handle: Any, size: int) -> None:
    """Allow a kernel so much dynamic shared memory [bytes] on the current device."""
    if size <= FREE_SHARED:
        return
    driver, device = import_module("cuda.bindings.driver"), cuda_core()[0].Device()
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    (status,) = driver.cuKernelSetAttribute(attribute, size, handle.handle, device.device_id)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"a block cannot have {size} bytes of shared memory ({status.name})")


@cache
def cuda_core() -> tuple[Any, Any]:
    """Return CUDA's own package for Python, and the default stream."""
    core: Any = import_module("cuda.core")
    return core, core.Stream.from_handle(0)
