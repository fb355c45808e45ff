"""Launches on a GPU: arguments are prepared once for each array, not at every launch.

A kernel is given up to a hundred arrays, in nested tuples. For each launch `numba.cuda` finds the
type and the descriptor of every one of them again, which takes half a millisecond. Here an array
keeps both, and a launch puts them together.

How `numba.cuda` hands an array to a kernel is private: `pyproject.toml` bounds its version.
Tests: `tests/cuda`.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from numba.core import types

from adjsim.jit import devices
from adjsim.jit.backend import compiler_of, specialise
from adjsim.jit.device_arrays import DeviceArray, kept_on_device
from adjsim.jit.devices import cuda_module
from adjsim.jit.kernel_keys import settings


FREE_SHARED = 48 << 10  # bytes of shared memory that a kernel has without being allowed to
BLOCK, SIMULATED = 128, 8  # threads of a block, on a GPU and in the simulator


def describe(tree: Any, key: list[Any], words: list[int]) -> None:
    """Append what tells the types of nested tuples apart, and the numbers of their arrays."""
    for leaf in tree:
        if type(leaf) is DeviceArray:
            kind, numbers = leaf.described or leaf.description()
            key.append(id(kind))  # `array_kind` keeps it: no other type gets its place
            words += numbers
        else:
            key.append(type(leaf))
            key.append(len(leaf))
            describe(leaf, key, words)


def kind_of(tree: Any) -> Any:
    """Return Numba's type of nested tuples of arrays."""
    if isinstance(tree, DeviceArray):
        return tree.description()[0]
    kinds = tuple(kind_of(member) for member in tree)
    if hasattr(tree, "_fields"):
        return types.NamedTuple(kinds, type(tree))
    return types.BaseTuple.from_types(kinds)


class Launcher:
    """A kernel of `numba.cuda`, compiled for every combination of types that it is given."""

    def __init__(self, body: Callable) -> None:
        self.body, self.by_types = body, {}

    def compiled(self, args: tuple, n: int | None) -> tuple[Any, Any, int, list[int]]:
        """Return the kernel for these arguments, its handle, and all numbers that it is given.

        Before these how many threads a block can have: each needs registers.
        """
        key: list[Any] = []
        words = [] if n is None else [n]
        describe(args, key, words)
        compiled = self.by_types.get(tuple(key))
        if compiled is None:
            kinds = (kind_of(args),) if n is None else (types.int64, kind_of(args))
            kernel = self.kernel(kinds).compile(kinds)
            handle, most = kernel._codelibrary.get_cufunc().kernel, kernel.max_threads_per_block
            compiled = self.by_types[tuple(key)] = kernel, handle, most
        return *compiled, words

    def kernel(self, kinds: tuple) -> Any:
        """Return the kernel of `numba.cuda` for arguments of some types."""
        beside = [import_module(name).__version__ for name in ("numba_cuda", "cuda.bindings")]
        return compiler_of(self.body, cuda_module().jit, kinds, beside, settings(cuda=True))

    def blocks_at_once(self, args: tuple, threads: int, shared: int) -> int:
        """Return how many blocks of a cooperative kernel the device can hold."""
        kernel, handle, _, _ = self.compiled(args, None)
        allow_shared(handle, shared)  # a kernel that may not have it could have no blocks
        return kernel.max_cooperative_grid_blocks(threads, shared)

    def run(
        self, blocks: int, threads: int, args: tuple, n: int | None = None, shared: int = 0
    ) -> None:
        """Launch the kernel, of (n, args) or of (args,), in the stream in which CuPy works.

        A block has fewer than `threads` threads where the registers that each needs allow no more;
        `shared` is the dynamic shared memory of a block [bytes].
        """
        kernel, handle, most, words = self.compiled(args, n)
        core, stream = cuda_core()
        allow_shared(handle, shared)
        how = core.LaunchConfig(
            grid=blocks,
            block=min(threads, most),
            shmem_size=shared,
            is_cooperative=kernel.cooperative,
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


@cache
def _cuda_kernel(body: Callable) -> Any:
    return cuda_module().jit(body) if devices.in_cuda_simulator() else Launcher(body)


def launch_cooperative(body: Callable, width: int, args: tuple, *, shared: int = 0) -> None:
    """Run a kernel whose grid synchronises, on about `width` threads.

    `args` is a tuple of arrays, nested at will, which the kernel takes as one argument
    and walks with a stride; it writes to those of the device, and never to NumPy's.
    """
    kernel = _cuda_kernel(body)
    if devices.in_cuda_simulator():
        kernel[1, SIMULATED, 0, shared](args)  # the simulator runs blocks one after the other
        return
    arrays = kept_on_device(args)
    n_blocks = min(-(-max(width, 1) // BLOCK), kernel.blocks_at_once(arrays, BLOCK, shared))
    kernel.run(n_blocks, BLOCK, arrays, shared=shared)


def blocks_at_once(body: Callable, args: tuple, shared: int) -> int:
    """Return how many blocks of a kernel whose grid synchronises the device can hold."""
    return _cuda_kernel(body).blocks_at_once(kept_on_device(args), BLOCK, shared)


@cache
def most_shared() -> int:
    """Return how much shared memory a block of the current GPU can have [bytes]."""
    return getattr(
        cuda_module().get_current_device(), "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", FREE_SHARED
    )


def launch_blocks(body: Callable, blocks: int, threads: int, shared: int, args: tuple) -> None:
    """Run a kernel of so many blocks and threads, or fewer, with some shared memory [bytes].

    `args` as in `launch_cooperative`; blocks share nothing that is written.
    """
    kernel = _cuda_kernel(body)
    if devices.in_cuda_simulator():
        kernel[blocks, SIMULATED, 0, shared](args)
        return
    kernel.run(blocks, threads, kept_on_device(args), shared=shared)


# Bound by `specialise`.
BODY: Any = None
CUDA: Any = None


def _each_index(n, args):
    """Run `BODY(i, args)` in the thread of each index i below n."""
    i = CUDA.grid(1)
    if i < n:
        BODY(i, args)


@cache
def index_kernel(body: Callable) -> Callable:
    """Return the kernel, of (n, args), that runs a device function for each index below n."""
    name = f"{body.__module__}.{body.__name__}_of_each_index".replace(".", "_")
    return specialise(_each_index, name, BODY=body, CUDA=cuda_module())


def launch(body: Callable, n: int, args: tuple) -> None:
    """Run the device function `body(i, args)` for each index i below n, a thread each.

    `args` is a tuple of arrays from `on_device`, nested at will. Launches run one after the
    other, in order with CuPy's work; `to_host` waits for them.
    """
    if n == 0:
        return
    kernel = _cuda_kernel(index_kernel(body))
    if devices.in_cuda_simulator():
        kernel[-(-n // SIMULATED), SIMULATED](n, args)
    else:
        kernel.run(-(-n // BLOCK), BLOCK, args, n)
