"""Have numba.cuda run on the emulated device: import this before anything that asks for a GPU.

What is replaced: NVVM and the linker (by retarget.py), the driver (by driver.py) and CuPy (by
the stand-in that Numba's simulator has too, whose arrays here lie in the device's memory). All
else is real: typing, lowering, the preparation of arguments, numba-cuda, cuda-core, cuda-bindings.
"""

import ctypes
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adjsim.jit import device_arrays, devices
from tests.cuda import stand_ins
from tests.cuda.emulate import driver, retarget
from tests.cuda.emulate.driver import DEVICE


FREE, WRITTEN = 0, 2  # as in device.c
# What launches a kernel of CuPy, or fills memory: all that makes numbers, and no views.
METHODS = (
    "__array_ufunc__",
    "__setitem__",
    "copy",
    "astype",
    "repeat",
    "clip",
    "sum",
    "max",
    "mean",
    "all",
)
FUNCTIONS = (
    "searchsorted", "sort", "argsort", "cumsum", "isfinite", "concatenate", "stack", "zeros_like",
    "zeros", "ones", "full", "arange",
)  # fmt: skip


def use_emulated_code() -> None:
    """Have kernels compiled for the emulated device, and kept where no GPU looks for them."""
    from cuda.core import ObjectCode
    from numba.core import config
    from numba.cuda import codegen

    def get_cubin(library, cc=None):
        code = retarget.code_of(library.llvm_strs, library._entry_name)
        return ObjectCode.from_cubin(driver.IMAGE + len(code).to_bytes(8, "little") + code)

    codegen.CUDACodeLibrary.get_cubin = get_cubin
    codegen.CUDACodeLibrary.get_asm_strs = lambda self, cc=None: [""]

    cuda = devices.cuda_module()
    usual = cuda.jit

    def jit(body, *, cache):
        shared = config.CACHE_DIR
        config.CACHE_DIR = str(retarget.FOLDER / os.path.basename(shared))
        try:
            return usual(body, cache=cache)
        finally:
            config.CACHE_DIR = shared

    cuda.jit = jit


def on_device(data: np.ndarray, *, written: bool = True) -> np.ndarray:
    """Return an array of the device's memory with these numbers; what it is a view of stays."""
    base = data
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    if data.size == 0 or getattr(base, "of_device", False):
        return data
    address = driver.allocate(data.nbytes)
    if not address:
        raise MemoryError(f"Out of memory allocating {data.nbytes} bytes")
    memory = (ctypes.c_char * data.nbytes).from_address(address)
    memory.of_device = True
    weakref.finalize(memory, driver.release, address)
    array = np.frombuffer(memory, data.dtype).reshape(data.shape)
    array[...] = data
    if written:
        driver.LIBRARY.emu_fill(address, data.nbytes)
    return array


def mark_written(data: np.ndarray, index: Any = ...) -> None:
    """Note that the host wrote part of an array of the device."""
    at = driver.LIBRARY.emu_states(data.ctypes.data) if data.size else None
    if at:
        reach = sum((n - 1) * step for n, step in zip(data.shape, data.strides, strict=True))
        memory = (ctypes.c_uint8 * (reach + data.itemsize)).from_address(at)
        shape, strides = (*data.shape, data.itemsize), (*data.strides, 1)
        states = np.ndarray(shape, np.uint8, memory, strides=strides)
        states[index] = WRITTEN


class Memory(NamedTuple):
    """Where an array is."""

    ptr: int


def use_stand_in() -> None:
    """Have CuPy's stand-in keep its arrays on the emulated device."""
    kind, left_over = stand_ins.CupyArray, stand_ins.left_over

    def begin(self, data):
        self.numbers = data if DEVICE.is_idle else on_device(data)
        self.data = Memory(self.numbers.ctypes.data if data.size else 0)

    def empty(shape, dtype=np.float64):
        if DEVICE.is_idle:
            return kind(np.empty(shape, dtype))
        return kind(on_device(left_over(shape, dtype).numbers.copy(), written=False))

    def counted(what, name):
        usual = getattr(kind, name)

        def read(self, *rest):
            DEVICE.counts[what] += 1
            DEVICE.counts["bytes read back"] += self.numbers.nbytes
            if DEVICE.is_idle:
                DEVICE.answers.rotate(-1)
                return DEVICE.answers[-1]
            DEVICE.answers.append(usual(self, *rest))
            return DEVICE.answers[-1]

        setattr(kind, name, read)

    set_item, calculate = kind.__setitem__, kind.__array_ufunc__

    def write(self, index, value):
        set_item(self, index, value)
        mark_written(self.numbers, stand_ins.indices(index))

    def compute(self, ufunc, method, *inputs, out=(), **options):
        result = calculate(self, ufunc, method, *inputs, out=out, **options)
        mark_written(result.numbers)
        return result

    kind.__init__, kind.__setitem__, kind.__array_ufunc__ = begin, write, compute
    for name in ("__int__", "__float__", "__bool__", "__index__", "get"):
        counted("downloads" if name == "get" else "host reads", name)
    stand_ins.left_over = empty
    stand_ins.memory_info = driver.memory_info
    stand_ins.copied = counted_upload(stand_ins.copied)
    device_arrays._uploaded = with_gaps(device_arrays._uploaded)
    stand_ins.add_modules()


def count_kernels() -> None:
    """Have CuPy's stand-in count what it would launch."""
    for owner, names in ((stand_ins.CupyArray, METHODS), (sys.modules["cupy"], FUNCTIONS)):
        for name in names:
            setattr(owner, name, counted_kernel(getattr(owner, name)))


def with_gaps(uploaded: Callable) -> Callable:
    """Return the copy of arrays to the device; what lies between them there is in no array."""

    def copy(arrays: list) -> list:
        copies = uploaded(arrays)
        for array in copies:
            data = array.array.numbers
            if data.size and not DEVICE.is_idle:
                states = driver.LIBRARY.emu_states(data.ctypes.data + data.nbytes)
                ctypes.memset(
                    states, FREE, device_arrays.ALIGNED - data.nbytes % device_arrays.ALIGNED
                )
        return copies

    return copy


def counted_kernel(function: Callable) -> Callable:
    """Return a function of CuPy that launches a kernel of its own or fills memory, counted."""

    def call(*args: Any, **options: Any) -> Any:
        DEVICE.counts["of CuPy"] += 1
        return function(*args, **options)

    return call


def counted_upload(copied: Callable) -> Callable:
    """Return the copy to the device, counted where an array comes from the host."""

    def copy(value, dtype=None):
        DEVICE.counts["uploads"] += not isinstance(value, stand_ins.CupyArray)
        return copied(value, dtype)

    return copy


use_emulated_code()
use_stand_in()
count_kernels()
