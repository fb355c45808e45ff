"""The devices that code runs on. Only this file imports `numba.cuda` or `cupy`."""

from collections.abc import Callable
from enum import StrEnum
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from adjsim.extras import how_to_install
from adjsim.jit.backend import config


LEAST_CUDA, LEAST_DRIVER = 13000, 580  # what code of the extra's compiler needs
MUCH = 1 << 26  # bytes: to ask a GPU whether it has fewer takes longer than it is worth


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
    called = (module for linked in library._linking_libraries for module in linked.modules)
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


def module_of(array: Any) -> Any:
    """Return the module whose array this is: NumPy or CuPy."""
    is_of_cupy = type(array).__module__.partition(".")[0] == "cupy"
    return array_module(Device.CUDA) if is_of_cupy else np


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
