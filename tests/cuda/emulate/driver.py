"""A CUDA driver without a GPU: what numba.cuda, cuda-core and cuda-bindings ask of libcuda.

They load `libcuda.so.1` and ask it for functions by name. `device.c` is loaded under this name
before, and hands out the functions of this file. Arguments are addresses and numbers, as C passes
them. What is not here is refused by name by cuda-bindings when it is called.
"""

import ctypes
import hashlib
import inspect
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llvmlite import binding

from tests.cuda.emulate.retarget import FOLDER, machine


IMAGE = b"EMU:"  # then the object file of a kernel
ORDERS = {"in order": 0, "reversed": 1, "shuffled": 2}
INVALID, OUT_OF_MEMORY, LOST, NOT_FOUND = 1, 2, 46, 500
TOO_LARGE, UNKNOWN, DEADLOCK = 720, 999, 702
MOST_FAULTS = 32  # of a launch, as in device.c
MOST_THREADS = 192  # of a block: fewer than worlds of the scenes ask for
COOPERATIVE = 2  # the attribute of a launch
MOST_SHARED = 8  # the attribute of a kernel: dynamic shared memory of a block
P, N, I, U = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint
# Attributes of a device by number: threads of a block, sizes of block and grid, shared memory,
# warp, registers, processors, cooperative launches, threads of a processor, capability; the shared
# memory of a block that asks for it.
ATTRIBUTES = {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152}
ATTRIBUTES |= {10: 32, 12: 65536, 16: 4, 39: 2048, 41: 1, 75: 9, 76: 0, 95: 1, 97: 232448}


class Counts(ctypes.Structure):
    """What `device.c` counts in a launch."""

    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            *("threads", "barriers", "block_barriers", "loads", "stores", "read", "written"),
            *("sectors_read", "sectors_written", "shared", "busy"),
        )
    )


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: its number, and a union of 64 bytes."""

    _fields_ = (("id", I), ("pad", I), ("value", I), ("rest", ctypes.c_char * 60))


class Launch(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((name, U) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", P),
        ("attributes", ctypes.POINTER(Attribute)),
        ("n", U),
    )


@dataclass
class Device:
    """State of the emulated device, and what was asked of it."""

    order: str = "in order"
    version: int = 13000
    processors: int = 4
    memory: int = 1 << 33  # [bytes]; allocations beyond it fail
    used: int = 0  # [bytes]
    peak: int = 0  # the most that was used
    launches_left: int | None = None  # then it is lost
    is_idle: bool = False  # whether it takes launches and does nothing
    answers: deque[Any] = field(default_factory=deque)  # to reads of the host; an idle one repeats
    counts: Counter = field(default_factory=Counter)  # launches, syncs, uploads, ...
    kernels: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    names: dict[int, str] = field(default_factory=dict)  # kernels, by address
    shared: dict[int, int] = field(default_factory=dict)  # their fixed shared memory [bytes]
    most_shared: dict[int, int] = field(default_factory=dict)  # and how much more they may have
    contexts: list[int] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)  # arrays, by address
    faults: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)  # of this file
    seconds: float = 0.0  # spent in the driver: kernels, for the most part
    engines: list[Any] = field(default_factory=list)  # code is theirs

    def reset(self) -> None:
        """Forget what was counted."""
        self.counts.clear()
        self.kernels.clear()
        self.answers.clear()
        self.faults, self.errors = [], []
        self.seconds = 0.0


DEVICE = Device()


def build() -> ctypes.CDLL:
    """Compile `device.c`, once for its text, and load it as the driver's library."""
    source = Path(__file__).with_name("device.c")
    built = FOLDER / hashlib.sha256(source.read_bytes()).hexdigest()[:16] / "libcuda.so.1"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        partial = built.with_suffix(f".{time.time_ns()}")
        compiler = [sys.executable, "-m", "ziglang", "cc", "-O2", "-shared", "-fPIC"]
        subprocess.run(
            [*compiler, "-Wl,-soname,libcuda.so.1", "-o", partial, source, "-lm"], check=True
        )
        partial.replace(built)
    library = ctypes.CDLL(str(built), mode=ctypes.RTLD_GLOBAL)
    binding.load_library_permanently(str(built))
    library.emu_alloc.restype, library.emu_alloc.argtypes = P, [N]
    library.emu_free.argtypes = library.emu_fill.argtypes = [P, N]
    library.emu_states.restype, library.emu_states.argtypes = P, [P]
    library.emu_faults.restype = ctypes.c_uint64
    library.emu_fault.restype, library.emu_fault.argtypes = ctypes.c_char_p, [ctypes.c_uint64]
    library.emu_launch.argtypes = [P, P, U, U, N, N, I, I, P]
    return library


LIBRARY = build()


def put(address: int | None, value: int, kind: Any = I) -> None:
    """Write a number where C wants it, if it does."""
    if address:
        kind.from_address(address).value = value


FUNCTIONS: dict[str, Any] = {}


def api(function: Callable) -> Callable:
    """Make a function one of the driver's; its annotations are the types that C passes."""
    kinds = [each.annotation for each in inspect.signature(function).parameters.values()]

    def call(*arguments: Any) -> int:
        start = time.thread_time()
        try:
            return function(*arguments) or 0
        except BaseException as error:  # C knows no exceptions
            DEVICE.errors.append(error)
            return UNKNOWN
        finally:
            DEVICE.seconds += time.thread_time() - start

    FUNCTIONS[function.__name__] = ctypes.CFUNCTYPE(I, *kinds)(call)
    return function


# The device


@api
def cuInit(flags: U): ...


@api
def cuDriverGetVersion(out: P):
    put(out, DEVICE.version)


@api
def cuDeviceGetCount(out: P):
    put(out, 1)


@api
def cuDeviceGet(out: P, ordinal: I):
    put(out, 0)


@api
def cuDeviceGetName(out: P, size: I, device: I):
    ctypes.memmove(out, b"no GPU: an emulated device\0", 27)


@api
def cuDeviceGetUuid(out: P, device: I):
    ctypes.memset(out, 7, 16)


@api
def cuDeviceTotalMem(out: P, device: I):
    put(out, DEVICE.memory, N)


@api
def cuDeviceGetAttribute(out: P, attribute: I, device: I):
    put(out, {**ATTRIBUTES, 16: DEVICE.processors}.get(attribute, 0))


@api
def cuDevicePrimaryCtxRetain(out: P, device: I):
    put(out, 1, N)


@api
def cuDevicePrimaryCtxRelease(device: I): ...


@api
def cuDevicePrimaryCtxGetState(device: I, flags: P, active: P):
    put(flags, 0)
    put(active, 1)


@api
def cuCtxGetCurrent(out: P):
    put(out, DEVICE.contexts[-1] if DEVICE.contexts else 0, N)


@api
def cuCtxSetCurrent(context: P):
    DEVICE.contexts[-1:] = [context or 0]


@api
def cuCtxPushCurrent(context: P):
    DEVICE.contexts.append(context or 0)


@api
def cuCtxPopCurrent(out: P):
    put(out, DEVICE.contexts.pop() if DEVICE.contexts else 0, N)


@api
def cuCtxGetDevice(out: P):
    put(out, 0)


@api
def cuCtxGetFlags(out: P):
    put(out, 0)


@api
def cuStreamGetCtx(stream: P, out: P):
    put(out, 1, N)


@api
def cuStreamGetDevice(stream: P, out: P):
    put(out, 0)


@api
def cuCtxSynchronize():
    DEVICE.counts["syncs"] += 1


@api
def cuStreamSynchronize(stream: P):
    DEVICE.counts["syncs"] += 1


@api
def cuGetErrorName(error: I, out: P):
    put(out, ctypes.cast(ctypes.c_char_p(_name(error)), P).value or 0, N)


@api
def cuGetErrorString(error: I, out: P):
    put(out, ctypes.cast(ctypes.c_char_p(_name(error)), P).value or 0, N)


_NAMES = {OUT_OF_MEMORY: b"CUDA_ERROR_OUT_OF_MEMORY", NOT_FOUND: b"CUDA_ERROR_NOT_FOUND"}
_NAMES |= {TOO_LARGE: b"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", DEADLOCK: b"CUDA_ERROR_TIMEOUT"}
_NAMES |= {UNKNOWN: b"CUDA_ERROR_UNKNOWN"}


def _name(error: int) -> bytes:
    return _NAMES.setdefault(error, b"CUDA_ERROR_%d" % error)


# Memory


def allocate(size: int) -> int:
    """Return the address of new memory, or 0 if there is no room."""
    if DEVICE.used + size > DEVICE.memory:
        return 0
    address = LIBRARY.emu_alloc(size) or 0
    DEVICE.sizes[address] = size
    DEVICE.used += size
    DEVICE.peak = max(DEVICE.peak, DEVICE.used)
    DEVICE.counts["allocations"] += 1
    return address


def release(address: int) -> None:
    """Give memory back; a later access is a fault."""
    size = DEVICE.sizes.pop(address)
    DEVICE.used -= size
    LIBRARY.emu_free(address, size)


def memory_info() -> tuple[int, int]:
    """Return how many bytes are free, and how many there are."""
    return DEVICE.memory - DEVICE.used, DEVICE.memory


@api
def cuMemGetInfo(free: P, total: P):
    for out, size in zip((free, total), memory_info(), strict=True):
        put(out, size, N)


@api
def cuPointerGetAttribute(out: P, attribute: I, address: P):
    put(out, address or 0, N)


# Kernels


def short_name(entry: str) -> str:
    """Return the name of a kernel's function in the name that numba.cuda gives to its code."""
    rest, parts = entry.removeprefix("_ZN"), []
    while digits := re.match(r"\d+", rest):
        size = int(digits[0])
        parts.append(rest[digits.end() : digits.end() + size])
        rest = rest[digits.end() + size :]
    name = re.sub(r"_[0-9a-f]{16}$", "", parts[-1])  # the key
    return name.removesuffix("_of_each_index")


@api
def cuLibraryLoadData(out: P, code: P, a: P, b: P, c: U, d: P, e: P, f: U):
    head = ctypes.string_at(code, 12)
    assert head.startswith(IMAGE), "the emulated device was given code for a GPU"
    image = ctypes.string_at(code + 12, int.from_bytes(head[4:], "little"))
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine())
    file = binding.ObjectFileRef.from_data(image)
    engine.add_object_file(file)
    engine.finalize_object()
    DEVICE.engines.append((engine, file, image))  # the engine copies nothing
    put(out, len(DEVICE.engines), N)


@api
def cuLibraryUnload(library: P): ...


@api
def cuLibraryGetKernel(out: P, library: P, name: P):
    entry = ctypes.string_at(name).decode()
    engine = DEVICE.engines[library - 1][0]
    address = engine.get_function_address(f"{entry}__packed")
    DEVICE.names[address] = short_name(entry)
    if address:
        size = ctypes.CFUNCTYPE(N)(engine.get_function_address(f"{entry}__shared"))
        DEVICE.shared[address] = size()
    put(out, address, N)
    return 0 if address else NOT_FOUND


@api
def cuLibraryGetModule(out: P, library: P):
    put(out, library, N)


@api
def cuModuleGetFunction(out: P, module: P, name: P):
    return cuLibraryGetKernel(out, module, name)


@api
def cuModuleLoadDataEx(out: P, code: P, n: U, options: P, values: P):
    return cuLibraryLoadData(out, code, None, None, 0, None, None, 0)


@api
def cuModuleUnload(module: P): ...


@api
def cuKernelGetFunction(out: P, kernel: P):
    put(out, kernel, N)


@api
def cuKernelGetAttribute(out: P, attribute: I, kernel: P, device: I):
    put(out, {0: MOST_THREADS, 4: 168}.get(attribute, 0))  # threads of a block, registers


@api
def cuFuncGetAttribute(out: P, attribute: I, kernel: P):
    return cuKernelGetAttribute(out, attribute, kernel, 0)


@api
def cuKernelSetAttribute(attribute: I, value: I, kernel: P, device: I):
    if attribute == MOST_SHARED:
        DEVICE.most_shared[kernel] = value
    return INVALID if value > ATTRIBUTES[97] else 0


@api
def cuFuncSetAttribute(kernel: P, attribute: I, value: I):
    return cuKernelSetAttribute(attribute, value, kernel, 0)


def has_room(kernel: int, shared: int) -> bool:
    """Return whether a block may have this much dynamic shared memory [bytes]."""
    allowed = max(ATTRIBUTES[8], DEVICE.most_shared.get(kernel, 0))
    return DEVICE.shared[kernel] + shared <= allowed


@api
def cuOccupancyMaxActiveBlocksPerMultiprocessor(out: P, kernel: P, block: I, shared: N):
    put(out, int(has_room(kernel, shared)))


@api
def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    out: P, kernel: P, block: I, shared: N, flags: U
):
    put(out, int(has_room(kernel, shared)))


@api
def cuLaunchKernelEx(config: P, kernel: P, arguments: P, extra: P):
    if DEVICE.is_idle:
        return 0
    if DEVICE.launches_left is not None:
        if not DEVICE.launches_left:
            return LOST
        DEVICE.launches_left -= 1
    how = Launch.from_address(config)
    assert how.gy == how.gz == how.by == how.bz == 1, "a grid or block of more than one dimension"
    cooperative = any(a.id == COOPERATIVE and a.value for a in how.attributes[: how.n])
    if cooperative and how.gx > DEVICE.processors:
        return TOO_LARGE
    fixed = DEVICE.shared[kernel]
    if not has_room(kernel, how.shared) or how.bx > MOST_THREADS:
        return INVALID
    name, counts = DEVICE.names[kernel], Counts()
    LIBRARY.emu_forget_faults()
    ended = LIBRARY.emu_launch(
        kernel,
        arguments,
        how.gx,
        how.bx,
        fixed,
        how.shared,
        cooperative,
        ORDERS[DEVICE.order],
        ctypes.addressof(counts),
    )
    faults = range(min(LIBRARY.emu_faults(), MOST_FAULTS))
    DEVICE.faults += [f"{name}: {LIBRARY.emu_fault(k).decode()}" for k in faults]
    DEVICE.counts["launches"] += 1
    total = DEVICE.kernels[name]
    total["launches"] += 1
    for key, _ in Counts._fields_:
        total[key] += getattr(counts, key)
    return 0 if ended else DEADLOCK


@ctypes.CFUNCTYPE(P, ctypes.c_char_p)
def function_named(name: bytes) -> int | None:
    function = FUNCTIONS.get(name.decode().removesuffix("_v2"))
    return ctypes.cast(function, P).value if function else None


LIBRARY.emu_set_driver(function_named)
