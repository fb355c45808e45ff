"""Compilers, their cache, and threads.

Element functions are written once and decorated with `device_fn`. On the CPU they are
inlined into loops compiled by `cpu_kernel`; on a GPU `numba.cuda` compiles the same
Python source as device functions (`adjsim/jit/cuda_launch.py`).

Compiled code is cached on disk, in one folder (`adjsim/jit/kernel_cache.py`). Numba's cache
does not notice a change in a function that was inlined from another file, so the name of each
kernel ends in a hash of all that it is made of (`adjsim/jit/kernel_keys.py`).
"""

import os
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any

import llvmlite.binding
import numba
from numba.core import config as numba_config
from numba.core.errors import NumbaExperimentalFeatureWarning

from adjsim import checks
from adjsim.jit.kernel_cache import cache_base, mark, private_folder, prune, warn_once
from adjsim.jit.kernel_keys import kernel_key, sources_hash


config: Any = numba_config  # its members are set when it is loaded
# Contraction (fused multiply-add) only: nnan or reassoc would change what a NaN or a
# sum means. numpy's error model: a division by zero gives inf, and no branch. Kernels own no
# array: what they read and write is their caller's, so nothing counts references, which is
# atomic and, at every call that passes arrays in a loop, dearer than the work.
CPU_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}
JIT_DISABLED = bool(config.DISABLE_JIT)

# A thread that waits at a barrier of GNU's OpenMP looks for the others so many times, then sleeps.
# By default it looks for long: on cores that are busy elsewhere a rollout on two threads took 2 to
# 9 times as long as on one, now mostly 1 to 2 times. On quiet cores both are equal. The number is
# read when the library is loaded, which is before Numba's first loop on threads.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)
warnings.filterwarnings("ignore", message=r"Grid size \d+ will likely result in GPU")


def private_parts() -> Any:
    """Return `adjsim/jit/numba_private.py`, or None where it cannot be used or is not to be.

    ADJSIM_PLAIN_NUMBA=1 says so.
    """
    if JIT_DISABLED or os.environ.get("ADJSIM_PLAIN_NUMBA") == "1":
        return None
    problem = f"Numba {numba.__version__} is newer than what adjsim was tried with"
    try:
        from adjsim.jit import numba_private
    except (ImportError, AttributeError) as error:
        problem = f"private parts of Numba {numba.__version__} have changed ({error})"
    else:
        if numba.version_info.short <= numba_private.LAST_TRIED:
            return numba_private
    warn_once("numba", f"{problem}: kernels are compiled in its own way, which takes longer")
    return None


PRIVATE = private_parts()


CACHE_DIR = private_folder(cache_base() / "kernels")
prune(CACHE_DIR)
config.CACHE_DIR = str(CACHE_DIR)
# Numba finds a kernel by its name, its line, and the path and content of its file. Here this is
# an empty file, and the line the first: the name alone, which ends in the key, tells them apart.
STAND_IN = CACHE_DIR / "kernel.py"
with suppress(OSError):
    STAND_IN.touch()
    os.utime(STAND_IN, (0, 0))
# A loop is vectorised once it is known that its arrays do not overlap. Beyond 100 addresses LLVM
# gives up, and an element of a joint has 200.
llvmlite.binding.set_option("", "--memory-check-merge-threshold=1000")
if PRIVATE:
    PRIVATE.share_cache()
    PRIVATE.name_code_apart()
    PRIVATE.compare_options_by_what_is_set()
    PRIVATE.call_llvm_unrecorded()


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


def compiler_of(fn: Callable, compiler: Callable, *beside: Any, cached: bool = True) -> Any:
    """Return Numba's dispatcher of a kernel, whose machine code is kept on disk if it has a key.

    `compiler` is `numba.njit` or `numba.cuda.jit` with its options; `beside` is hashed, too.
    """
    key, unknown = None, ""
    if cached and STAND_IN.exists():
        key, unknown = kernel_key(fn, *beside, "" if PRIVATE else sources_hash())
    if unknown:
        warn_once(unknown, f"{fn.__qualname__} is compiled in every run: {unknown}")
    if key is None:
        return compiler(fn, cache=False)
    kernel: Any = specialise(fn, f"{fn.__qualname__}_{key}")
    code = kernel.__code__
    kernel.__code__ = code.replace(co_filename=str(STAND_IN), co_firstlineno=1)
    dispatcher = compiler(kernel, cache=True)
    kernel.__code__ = code  # for messages
    mark(Path(dispatcher.stats.cache_path), key)
    return dispatcher


class Kernel:
    """A loop that is compiled, or found on disk, once it is called: what it reads is there then."""

    def __init__(self, fn: Callable, options: dict[str, Any], *, cached: bool) -> None:
        self.py_func, self._options, self._cached = fn, options, cached
        update_wrapper(self, fn)

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's own object."""
        compiler = partial(PRIVATE.njit if PRIVATE else numba.njit, **self._options)
        return compiler_of(self.py_func, compiler, self._options, cached=self._cached)

    def __call__(self, *args: Any) -> Any:
        """Run the loop."""
        return self.dispatcher(*args)


def cpu_kernel(
    fn: Callable,
    signatures: Iterable[Any] | None = None,
    *,
    parallel: bool = False,
    cached: bool = True,
) -> Callable:
    """Compile a loop for the CPU, cached on disk; it releases the GIL and allocates nothing.

    A loop with `numba.prange` may be compiled twice, serial and parallel. Loops that are called
    through a table (`adjsim/jit/calls.py`) need their `signatures` given; none is called
    from C.
    """
    options = {**CPU_OPTIONS, "nogil": True, "parallel": parallel, "no_cfunc_wrapper": True}
    options["_nrt"] = parallel  # `prange` allocates its own bookkeeping
    if JIT_DISABLED:
        return fn
    kernel = Kernel(fn, options, cached=cached)
    if signatures is None:
        return kernel
    for signature in signatures:
        kernel.dispatcher.compile(signature)
    kernel.dispatcher.disable_compile()
    return kernel.dispatcher


@cache
def loop_kernel(loop: Callable) -> Callable:
    """Return a loop compiled for the CPU, once."""
    return cpu_kernel(loop)


def specialise(template: Callable, name: str, **bindings: Any) -> Callable:
    """Return a copy of a function with another name and some of its globals bound again.

    A closure over a compiled function is never found again in Numba's cache, since the
    pickled cell differs from process to process; a global is no part of Numba's key.
    """
    code = template.__code__.replace(co_name=name, co_qualname=name)
    names = {**template.__globals__, **bindings} if bindings else template.__globals__
    defaults, cells = template.__defaults__, template.__closure__
    copy = types.FunctionType(code, names, name, defaults, cells)
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


@device_fn
def lit(value, like):
    """Return the constant `value` in the type of `like`.

    An untyped literal would promote float32 arithmetic to float64.
    """
    return type(like)(value)
