"""The one file that knows about compilers, caches, threads and devices.

Element functions are written once and decorated with `device_fn`. On the CPU they are
inlined into loops compiled by `cpu_kernel`; on a GPU `numba.cuda` compiles the same
Python source as device functions. Only this file imports `numba.cuda` or `cupy`, and
only this file reads the environment.

Compiled code is cached on disk. Numba's cache does not notice a change in a function
that was inlined from another file, so the folder of the cache is keyed by a hash of
the sources of every package that holds kernels.
"""

import hashlib
import os
import tempfile
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core.errors import NumbaExperimentalFeatureWarning


KERNEL_PACKAGES = ("adjsim", "render", "adjoint")
# Contraction (fused multiply-add) only: nnan or reassoc would change what a NaN or a
# sum means. numpy's error model: a division by zero gives inf, and no branch.
CPU_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
JIT_DISABLED = bool(numba.config.DISABLE_JIT)  # pyright: ignore[reportAttributeAccessIssue]

warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)


def sources_hash() -> str:
    """Return 16 hex digits that change whenever a source with kernels changes."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(numba.__version__.encode())
    for package in KERNEL_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_base() -> Path:
    """Return the folder under which compiled code is kept, writable for this user."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    base = Path(named) if named else Path(home) / "adjsim"
    try:
        base.mkdir(parents=True, exist_ok=True)
        if os.access(base, os.W_OK):
            return base
    except OSError:
        pass
    return Path(tempfile.gettempdir()) / f"adjsim-{os.getuid()}"


CACHE_DIR = _cache_base() / f"kernels-{sources_hash()}"
numba.config.CACHE_DIR = str(CACHE_DIR)  # pyright: ignore[reportAttributeAccessIssue]


class _TargetOptions(dict):
    """Options of a device function whose copy, taken by `numba.cuda`, has no fastmath.

    On CUDA any fastmath flag means approximate division and square root; contraction is
    on there by default.
    """

    def copy(self) -> dict:
        """Return the options that hold on every target."""
        return {key: value for key, value in self.items() if key != "fastmath"}


def device_fn(fn: Callable) -> Callable:
    """Compile an element function: inlined on the CPU, a device function on CUDA."""
    dispatcher = numba.njit(forceinline=True, **CPU_OPTIONS)(fn)
    if not JIT_DISABLED:
        dispatcher.targetoptions = _TargetOptions(dispatcher.targetoptions)
    return dispatcher


def cpu_kernel(
    fn: Callable, signatures: Iterable[Any] | None = None, *, parallel: bool = False
) -> Callable:
    """Compile a loop for the CPU, cached on disk; it releases the GIL.

    A loop with `numba.prange` may be compiled twice, serial and parallel. Loops that are
    passed on as first-class functions need their `signatures` given.
    """
    options = {"cache": True, "nogil": True, "parallel": parallel, **CPU_OPTIONS}
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
    available = 1 if JIT_DISABLED else numba.config.NUMBA_NUM_THREADS  # pyright: ignore
    if threads is None:
        return min(numba.get_num_threads(), available) if large else 1
    if not 1 <= threads:
        raise ValueError(f"`threads` must be at least 1, got {threads}.")
    return min(threads, available)


@contextmanager
def using_threads(n: int) -> Iterator[None]:
    """Run the block with Numba's pool limited to `n` threads."""
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
