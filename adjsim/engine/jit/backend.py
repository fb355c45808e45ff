"""The one file that sets compilers, caches, threads and devices up.

Element functions are written once and decorated with `device_fn`. On the CPU they are
inlined into loops compiled by `cpu_kernel`; on a GPU `numba.cuda` compiles the same
Python source as device functions. Only this file imports `numba.cuda` or `cupy`.

Compiled code is cached on disk. Numba's cache does not notice a change in a function
that was inlined from another file, so the folder of the cache is keyed by a hash of
the sources of every package that holds kernels (`adjsim/engine/jit/kernel_cache.py`).
"""

import hashlib
import os
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from threading import Lock, RLock
from typing import Any
from weakref import finalize

import llvmlite.binding
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.extending import intrinsic

from adjsim import checks
from adjsim.engine.jit.cuda_launch import FREE_SHARED, DeviceArray, Launcher
from adjsim.engine.jit.kernel_cache import cache_base, private_folder, prune, warn_once
from adjsim.engine.jit.own_functions import KERNEL_PACKAGES, own_key
from adjsim.extras import how_to_install


config: Any = numba_config  # its members are set when it is loaded
# Contraction (fused multiply-add) only: nnan or reassoc would change what a NaN or a
# sum means. numpy's error model: a division by zero gives inf, and no branch. Kernels own no
# array: what they read and write is their caller's, so nothing counts references, which is
# atomic and, at every call that passes arrays in a loop, dearer than the work.
CPU_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}
JIT_DISABLED = bool(config.DISABLE_JIT)
LEAST_CUDA, LEAST_DRIVER = 13000, 580  # what code of the extra's compiler needs
BLOCK, SIMULATED = 128, 8  # threads of a block, on a GPU and in the simulator
ALIGNED = 256  # bytes: where arrays that share a buffer of a device begin
LARGE = 1 << 20  # bytes: such an array travels alone, since putting arrays together takes memory
MUCH = 1 << 26  # bytes: to ask a GPU whether it has fewer takes longer than it is worth
# Arrays up to this size are found again on a device by their numbers, which takes as long as to
# copy them where they are more [bytes]; how many are kept there.
SMALL, MOST_KEPT = 1 << 14, 1024

# A thread that waits at a barrier of GNU's OpenMP looks for the others so many times, then sleeps.
# By default it looks for long: on cores that are busy elsewhere a rollout on two threads took 2 to
# 9 times as long as on one, now mostly 1 to 2 times. On quiet cores both are equal. The number is
# read when the library is loaded, which is before Numba's first loop on threads.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)
warnings.filterwarnings("ignore", message=r"Grid size \d+ will likely result in GPU")


def private_parts() -> Any:
    """Return `adjsim/engine/jit/numba_private.py`, or None where it cannot be used or is not to be.

    ADJSIM_PLAIN_NUMBA=1 says so.
    """
    if JIT_DISABLED or os.environ.get("ADJSIM_PLAIN_NUMBA") == "1":
        return None
    problem = f"Numba {numba.__version__} is newer than what adjsim was tried with"
    try:
        from adjsim.engine.jit import numba_private
    except (ImportError, AttributeError) as error:
        problem = f"private parts of Numba {numba.__version__} have changed ({error})"
    else:
        if numba.version_info.short <= numba_private.LAST_TRIED:
            return numba_private
    warn_once("numba", f"{problem}: kernels are compiled in its own way, which takes longer")
    return None


PRIVATE = private_parts()


def sources_hash() -> str:
    """Return 16 hex digits that change whenever a source with kernels changes."""
    root = Path(__file__).resolve().parents[3]
    digest = hashlib.sha256(f"{numba.__version__} {PRIVATE is None}".encode())
    for package in KERNEL_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


CACHE_DIR = private_folder(cache_base() / f"kernels-{sources_hash()}")
prune(CACHE_DIR.parent, CACHE_DIR)
config.CACHE_DIR = str(CACHE_DIR)
# A loop is vectorised once it is known that its arrays do not overlap. Beyond 100 addresses LLVM
# gives up, and an element of a joint has 200.
llvmlite.binding.set_option("", "--memory-check-merge-threshold=1000")
if PRIVATE:
    PRIVATE.check_files()


class TargetOptions(dict):
    """Options of an element function whose copy, taken by `numba.cuda`, has no fastmath.

    On CUDA any fastmath flag means approximate division and square root; contraction is
    on there by default.
    """

    def copy(self) -> dict:
        """Return the options that hold on every target."""
        of_the_cpu = {"fastmath", "_nrt", "no_cpython_wrapper", "no_cfunc_wrapper"}
        return {key: value for key, value in self.items() if key not in of_the_cpu}


def _element(fn: Callable, *, inlined: bool) -> Callable:
    options = {"forceinline": inlined, **CPU_OPTIONS}
    element = PRIVATE.Element(fn, targetoptions=options) if PRIVATE else numba.njit(**options)(fn)
    element.targetoptions = TargetOptions(element.targetoptions)
    return element


def device_fn(fn: Callable) -> Callable:
    """Compile an element function: inlined on the CPU, a device function on CUDA."""
    return fn if JIT_DISABLED else _element(fn, inlined=True)


def shared_fn(fn: Callable) -> Callable:
    """Compile a function for loops on the CPU that call one copy of it and never inline it.

    So its numbers are equal to the bit in all of them: a copy that is inlined may contract
    otherwise. From Python it is called as a copy of its own.
    """
    return fn if JIT_DISABLED else _element(fn, inlined=False)


@cache
def is_hashed(fn: Callable) -> bool:
    """Whether the sources of a function, and of all that it calls, are in the key of the cache."""
    return own_key(fn) == ""


def cpu_kernel(
    fn: Callable,
    signatures: Iterable[Any] | None = None,
    *,
    parallel: bool = False,
    cached: bool = True,
) -> Callable:
    """Compile a loop for the CPU, cached on disk; it releases the GIL and allocates nothing.

    A loop with `numba.prange` may be compiled twice, serial and parallel. Loops that are called
    through a table (`adjsim/engine/jit/calls.py`) need their `signatures` given; none is called
    from C. One with a function bound into it whose source is not hashed must not be `cached`,
    unless its name has the function's `own_key`.
    """
    options = {**CPU_OPTIONS, "cache": cached, "nogil": True, "parallel": parallel}
    options["no_cfunc_wrapper"] = True
    options["_nrt"] = parallel  # `prange` allocates its own bookkeeping
    if signatures is None or JIT_DISABLED:
        return numba.njit(**options)(fn)
    return numba.njit(list(signatures), **options)(fn)


def specialise(template: Callable, name: str, **bindings: Any) -> Callable:
    """Return a copy of a module-level function with some of its globals bound anew.

    A closure over a compiled function is never found again in Numba's cache, since the
    pickled cell differs from process to process; a global is no part of the key.
    """
    code = template.__code__.replace(co_name=name, co_qualname=name)
    copy = types.FunctionType(code, {**template.__globals__, **bindings}, name)
    copy.__qualname__ = name
    copy.__module__ = template.__module__
    copy.__doc__ = template.__doc__
    return copy


def thread_count(threads: int | None, *, large: bool) -> int:
    """Return how many threads to use: those asked for, or all of them for large work."""
    available = 1 if JIT_DISABLED else config.NUMBA_NUM_THREADS
    if threads is None:
        return min(numba.get_num_threads(), available) if large else 1
    return min(checks.whole("threads", threads, 1), available)


_pool = RLock()  # Numba's simplest pool ends the process if two threads enter it at once


@contextmanager
def using_threads(n: int) -> Iterator[None]:
    """Run the block with Numba's pool limited to `n` threads; those of more take turns."""
    with _pool if n > 1 else nullcontext():
        before = numba.get_num_threads()
        numba.set_num_threads(n)
        try:
            yield
        finally:
            numba.set_num_threads(before)


class Device(StrEnum):
    """Where a rollout or a rendering runs."""

    CPU = "cpu"
    CUDA = "cuda"


@cache
def cuda_module() -> Any:
    """Return `numba.cuda`; each module of a kernel is handed to NVVM once.

    It would hand a module on once along each path of calls that leads to it.
    """
    from numba import cuda

    if not in_cuda_simulator():
        from numba.cuda.codegen import CUDACodeLibrary

        setattr(CUDACodeLibrary, "modules", property(_modules_once))  # noqa: B010
    return cuda


def _modules_once(library: Any) -> list[Any]:
    """Return the modules of a library and of those that it calls."""
    called = (module for own in library._linking_libraries for module in own.modules)
    return list(dict.fromkeys([library._module, *called]))


def in_cuda_simulator() -> bool:
    """Whether `numba.cuda` runs kernels as Python threads (NUMBA_ENABLE_CUDASIM=1)."""
    return bool(config.ENABLE_CUDASIM)


def cuda_problem() -> str | None:
    """Return why CUDA cannot be used here and the way out, or None if it can."""
    if in_cuda_simulator():
        return None
    missing = [name for name in ("numba_cuda", "cupy") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed: {how_to_install('cuda')}"
    try:
        array_module(Device.CUDA)
    except (ImportError, OSError) as error:
        return f"cupy cannot be loaded ({error}): {how_to_install('cuda')}"
    if not cuda_module().is_available():
        return "no CUDA GPU or driver was found; check `nvidia-smi`, or use the CPU"
    driver: Any = import_module("cuda.bindings.driver")
    _, version = driver.cuDriverGetVersion()
    if version < LEAST_CUDA:
        return (
            f"the NVIDIA driver knows CUDA {version // 1000}.{version % 1000 // 10}, and "
            f"{LEAST_CUDA // 1000}.{LEAST_CUDA % 1000 // 10} is needed: install driver "
            f"{LEAST_DRIVER} or later, or use the CPU"
        )
    return compiler_problem()


@cache
def compiler_problem() -> str | None:
    """Return why `numba.cuda` cannot compile a kernel here and the way out, or None if it can.

    It loads what compiles when a kernel is first made, so a version that does not fit the others,
    or a library that is not there, would be noticed no earlier.
    """
    try:
        import_module("numba.cuda.cudaimpl")
        import_module("numba.cuda.cudadrv.nvvm").NVVM()
        import_module("numba.cuda.cudadrv.libs").get_libdevice()
    except Exception as error:  # whatever is wrong, nothing can be compiled
        return f"numba-cuda cannot compile ({error}): {how_to_install('cuda')}"
    return None


def check_device(device: Device | str) -> Device:
    """Return the device if it exists and can be used.

    Raises
    ------
    ValueError
        If it is neither "cpu" nor "cuda".
    RuntimeError
        If no GPU can be used.
    """
    if device not in list(Device):
        raise ValueError(f"`device` must be cpu or cuda, got {device!r}.")
    if device == Device.CUDA and (problem := cuda_problem()):
        raise RuntimeError(f"`device` is cuda, but {problem}.")
    return Device(device)


def is_of_gpu(error: BaseException) -> bool:
    """Whether an error is of the GPU or its driver, and not that its memory is full."""
    owner = type(error).__module__.partition(".")[0]
    return owner in ("cuda", "cupy", "cupy_backends") and not isinstance(error, MemoryError)


def array_module(device: Device) -> Any:
    """Return the module whose arrays live on the device: NumPy or CuPy."""
    if device is Device.CUDA and not in_cuda_simulator():
        import cupy  # pyright: ignore[reportMissingImports]

        return cupy
    return np


def require_room(n_bytes: int, what: str, remedy: str) -> None:
    """Raise a MemoryError if the GPU has no room for so many bytes; it is asked if they are many.

    The free part of what CuPy keeps is room too.
    """
    if n_bytes < MUCH or in_cuda_simulator():
        return
    xp = array_module(Device.CUDA)
    free = xp.cuda.runtime.memGetInfo()[0] + xp.get_default_memory_pool().free_bytes()
    if n_bytes > free:
        raise MemoryError(
            f"{what} must have room on the GPU: needed are {n_bytes:,} bytes, and {free:,} are "
            f"free. {remedy}"
        )


def module_of(array: Any) -> Any:
    """Return the module whose array this is: NumPy or CuPy."""
    is_of_cupy = type(array).__module__.partition(".")[0] == "cupy"
    return array_module(Device.CUDA) if is_of_cupy else np


def beside(array: np.ndarray, other: Any) -> Any:
    """Return an array that nobody ever writes to where another is; it is copied there once."""
    return array if module_of(other) is np else constants(array, Device.CUDA)


def joined(parts: Sequence[Any]) -> Any:
    """Return arrays one after the other, on the device if all of them are there."""
    if len(parts) == 1:
        return parts[0]
    modules = [module_of(part) for part in parts]
    if np in modules:
        return np.concatenate(to_host(tuple(parts)))
    return modules[0].concatenate(parts)


def fourier_transforms(device: Device, threads: int) -> tuple[Callable, Callable]:
    """Return `rfft2` and `irfft2` of arrays on the device: SciPy's or CuPy's."""
    if device is Device.CUDA and not in_cuda_simulator():
        try:
            import_module("cupy.cuda.cufft")
            fft = import_module("cupyx.scipy.fft")
        except (ImportError, OSError) as error:
            raise RuntimeError(
                f"`device` is cuda, but cuFFT cannot be loaded ({error}): {how_to_install('cuda')}."
            ) from error
        return fft.rfft2, fft.irfft2
    from scipy import fft

    return partial(fft.rfft2, workers=threads), partial(fft.irfft2, workers=threads)


def to_host(arrays: Any) -> Any:
    """Return the arrays of nested tuples, or one array, as NumPy's, those of the device copied."""
    there = {id(leaf): bare(leaf) for leaf in leaves(arrays) if not isinstance(leaf, np.ndarray)}
    copies = dict(zip(there, _in_one_go(_downloaded, list(there.values())), strict=True))
    return _map_arrays(lambda leaf: copies.get(id(leaf), leaf), arrays)


def bare(array: Any) -> Any:
    """Return CuPy's array of one from `on_device`, and any other as it is."""
    return array.array if isinstance(array, DeviceArray) else array


def _in_one_go(copy: Callable[[list], list], arrays: list) -> list:
    """Return copies of arrays: of large ones one by one, of the others together."""
    together = [k for k, array in enumerate(arrays) if array.nbytes < LARGE]
    found = {k: copy([array])[0] for k, array in enumerate(arrays) if array.nbytes >= LARGE}
    found |= zip(together, copy([arrays[k] for k in together]), strict=True)
    return [found[k] for k in range(len(arrays))]


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
    return [part.copy().view(array.dtype).reshape(array.shape) for array, part in parts]


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


@cache
def _cuda_kernel(body: Callable, cached: bool) -> Any:
    """Return a kernel; a cached one is found on disk by its name and its types alone."""
    kernel = cuda_module().jit(body, cache=cached)
    return kernel if in_cuda_simulator() else Launcher(kernel)


def launch_cooperative(
    body: Callable, width: int, args: tuple, *, cached: bool, shared: int = 0
) -> None:
    """Run a kernel whose grid synchronises, on about `width` threads.

    `args` is a tuple of arrays, nested at will, which the kernel takes as one argument
    and walks with a stride; it writes to those of the device, and never to NumPy's. It must not be
    `cached` where a function is bound into it whose source is not hashed.
    """
    kernel = _cuda_kernel(body, cached)
    if in_cuda_simulator():
        kernel[1, SIMULATED, 0, shared](args)  # the simulator runs blocks one after the other
        return
    arrays = kept_on_device(args)
    n_blocks = min(-(-max(width, 1) // BLOCK), kernel.blocks_at_once(arrays, BLOCK, shared))
    kernel.run(n_blocks, BLOCK, arrays, shared=shared)


@cache
def most_shared() -> int:
    """Return how much shared memory a block of the current GPU can have [bytes]."""
    return getattr(
        cuda_module().get_current_device(), "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", FREE_SHARED
    )


def launch_blocks(
    body: Callable, blocks: int, threads: int, shared: int, args: tuple, *, cached: bool
) -> None:
    """Run a kernel of so many blocks and threads with some shared memory [bytes].

    `args` and `cached` as in `launch_cooperative`; blocks share nothing that is written.
    """
    kernel = _cuda_kernel(body, cached)
    if in_cuda_simulator():
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


def on_device(arrays: Any) -> Any:
    """Return the arrays of nested tuples as `launch` takes them; one copy for all of NumPy's.

    CuPy owns all memory: a second allocator would not see what its pool keeps. Its work and our
    kernels are in one stream, so nothing waits. In the simulator all arrays are NumPy's own.
    """
    if in_cuda_simulator():
        return arrays
    here = {id(leaf): leaf for leaf in leaves(arrays) if isinstance(leaf, np.ndarray)}
    copies = dict(zip(here, _in_one_go(_uploaded, list(here.values())), strict=True))

    def wrapped(array: Any) -> DeviceArray:
        if isinstance(array, DeviceArray):
            return array
        return copies[id(array)] if id(array) in copies else DeviceArray(array)

    return _map_arrays(wrapped, arrays)


def to_device(arrays: Any, device: Device) -> Any:
    """Return the arrays of nested tuples, or one array, as those of the device's module."""
    return arrays if device is Device.CPU else _map_arrays(bare, on_device(arrays))


_kept: dict[Any, DeviceArray] = {}
_kept_lock = Lock()


def kept_on_device(arrays: Any) -> Any:
    """Return what `on_device` does, of arrays that nobody ever writes to: they are copied once."""
    if in_cuda_simulator():
        return arrays
    here = {id(leaf): leaf for leaf in leaves(arrays) if isinstance(leaf, np.ndarray)}
    keys = {k: _key_of(array) for k, array in here.items()}
    with _kept_lock:
        if len(_kept) > MOST_KEPT:
            _kept.clear()
        new = {key: here[k] for k, key in keys.items() if key not in _kept}
        large = {key: array for key, array in new.items() if isinstance(key, int)}
        small = {key: array for key, array in new.items() if key not in large}
        for part in (large, small):  # a small one would keep the buffer of a large one
            _kept.update(zip(part, _in_one_go(_uploaded, list(part.values())), strict=True))
        for key, array in large.items():
            finalize(array, _kept.pop, key, None)
        found = {k: _kept[key] for k, key in keys.items()}
    return on_device(_map_arrays(lambda leaf: found.get(id(leaf), leaf), arrays))


def constants(arrays: Any, device: Device) -> Any:
    """Return the arrays of nested tuples, never written to, as `to_device` does; copied once."""
    return arrays if device is Device.CPU else _map_arrays(bare, kept_on_device(arrays))


def _key_of(array: np.ndarray) -> Any:
    """Return by what an array is found again: a large one by its id, as long as it lives."""
    if array.nbytes > SMALL:
        return id(array)
    return array.dtype.char, array.shape, array.tobytes()


def launch(body: Callable, n: int, args: tuple, *, cached: bool = True) -> None:
    """Run the device function `body(i, args)` for each index i below n, a thread each.

    `args` is a tuple of arrays from `on_device`, nested at will. Launches run one after the
    other, in order with CuPy's work; `to_host` waits for them. As for the CPU, a body with a
    function bound into it whose source is not hashed must not be `cached`.
    """
    if n == 0:
        return
    kernel = _cuda_kernel(index_kernel(body), cached)
    if in_cuda_simulator():
        kernel[-(-n // SIMULATED), SIMULATED](n, args)
    else:
        kernel.run(-(-n // BLOCK), BLOCK, args, n)


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


@device_fn
def lit(value, like):
    """Return the constant `value` in the type of `like`.

    An untyped literal would promote float32 arithmetic to float64.
    """
    return type(like)(value)


def _prefetch(context, rows, i):
    """Ask for the cache line where `rows[i]` begins, ahead of its use; i is unsigned."""
    from llvmlite import ir
    from numba.core import cgutils, types as kinds

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, args[0])
        index = [args[1], *[context.get_constant(kinds.uint64, 0)] * (kind.ndim - 1)]
        place = cgutils.get_item_pointer(context, builder, kind, array, index)
        address, number = builder.bitcast(place, cgutils.voidptr_t), ir.IntType(32)
        ask = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], ask)
        builder.call(prefetch, [address, number(0), number(3), number(1)])  # read, keep, data
        return context.get_dummy_value()

    return kinds.none(rows, kinds.uint64), codegen


def _no_prefetch(rows, i):
    """Ask for nothing: Python without compiler."""


prefetch: Callable[..., None] = _no_prefetch if JIT_DISABLED else intrinsic(_prefetch)
