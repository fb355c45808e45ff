"""Stand-ins of CuPy and of `numba.cuda`: what lives on a device does not mix with NumPy's arrays.

In Numba's simulator all arrays are NumPy's, so it runs code that a GPU refuses: an array of the
device and one of the host in one sum, a method that one kind of array lacks, an array that was
never copied to the device. Here there are three kinds, as on a GPU, and
`adjsim/jit` takes the way that it takes there. Kernels are run by the simulator
all the same.

A stand-in has what our code uses and no more; what each does or refuses is in CuPy's reference
("Differences between CuPy and NumPy") and in that of `numba.cuda` ("Memory management").
"""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
from scipy import fft

from adjsim.jit import cuda_launch, device_arrays, devices
from adjsim.jit.device_arrays import DeviceArray


THREADS = 8  # the simulator's are threads of Python


class OnDevice:
    """An array of a device: its numbers are not to be had without saying so."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_function__(self, function, *_):
        raise TypeError(f"numpy.{function.__name__} was given an array of the device")

    def __len__(self):
        return len(self.numbers)

    shape = property(lambda self: self.numbers.shape)
    dtype = property(lambda self: self.numbers.dtype)
    ndim = property(lambda self: self.numbers.ndim)
    size = property(lambda self: self.numbers.size)
    strides = property(lambda self: self.numbers.strides)
    flags = property(lambda self: self.numbers.flags)
    nbytes = property(lambda self: self.numbers.nbytes)


class CupyArray(OnDevice, np.lib.mixins.NDArrayOperatorsMixin):
    """As `cupy.ndarray`: it has arithmetic, and every result is one too, also a single number."""

    __module__ = "cupy"

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        results = tuple(plain(array) for array in out)
        options |= {"out": results} if out else {}
        result = np.asarray(getattr(ufunc, method)(*map(plain, inputs), **options))
        return out[0] if out else CupyArray(result)

    def __getitem__(self, index):
        return CupyArray(np.asarray(self.numbers[indices(index)]))

    def __setitem__(self, index, value):
        self.numbers[indices(index)] = plain(value)

    def __int__(self):
        return int(self.numbers)

    def __float__(self):
        return float(self.numbers)

    def __index__(self):
        return self.numbers.__index__()

    def __bool__(self):
        return bool(self.numbers)

    def get(self):
        """Copy to the host."""
        return self.numbers.copy()

    def copy(self):
        return CupyArray(self.numbers.copy())

    def astype(self, dtype):
        return CupyArray(self.numbers.astype(dtype))

    def ravel(self):
        return CupyArray(self.numbers.ravel())

    def view(self, dtype):
        return CupyArray(self.numbers.view(dtype))

    def reshape(self, *shape):
        return CupyArray(self.numbers.reshape(*shape))

    def repeat(self, n, axis):
        return CupyArray(self.numbers.repeat(n, axis))

    def swapaxes(self, first, second):
        return CupyArray(self.numbers.swapaxes(first, second))

    def clip(self, low, high, out=None):
        clipped = CupyArray(self.numbers.clip(low, high))
        if out is None:
            return clipped
        out[...] = clipped
        return out

    def sum(self, axis=None):
        return CupyArray(np.asarray(self.numbers.sum(axis=axis)))

    def max(self, axis=None):
        return CupyArray(np.asarray(self.numbers.max(axis=axis)))

    def mean(self, axis=None):
        return CupyArray(np.asarray(self.numbers.mean(axis=axis)))

    def all(self):
        return CupyArray(np.asarray(self.numbers.all()))


def plain(value):
    """Return what an operand of CuPy holds; NumPy's arrays are refused, its scalars are not."""
    if isinstance(value, CupyArray):
        return value.numbers
    if isinstance(value, np.ndarray | OnDevice):
        raise TypeError(f"unsupported type {type(value).__name__}: an array of CuPy is needed")
    return value


def indices(index):
    """Return an index of CuPy; here alone it takes arrays of NumPy as well."""
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(
        axis_index if isinstance(axis_index, np.ndarray) else plain(axis_index)
        for axis_index in parts
    )


def left_over(shape, dtype=np.float64):
    """Return an array that nobody has written to: NaN, and whole numbers that are no index."""
    numbers = np.empty(shape, dtype)
    kind = numbers.dtype.kind
    numbers.fill(
        np.iinfo(numbers.dtype).min // 3 if kind == "i" else np.nan if kind == "f" else True
    )
    return CupyArray(numbers)


def copied(value, dtype=None):
    """Return an array of the device that holds what a number, a list or an array holds."""
    return CupyArray(np.array(value.numbers if isinstance(value, CupyArray) else value, dtype))


def of_cupy(function):
    """Return a function of NumPy as one of CuPy: all its arrays are of the device."""

    def call(*arrays, **options):
        return CupyArray(function(*map(plain, arrays), **options))

    return call


def memory_info():
    """Return how many bytes a device has free, and in all."""
    return 1 << 40, 1 << 40


def make_cupy():
    """Return the module, with the functions that our code calls."""
    module = ModuleType("cupy")
    module.__spec__ = ModuleSpec("cupy", None)
    for name in (
        "searchsorted", "sort", "argsort", "cumsum", "isfinite", "ascontiguousarray",
        "broadcast_to",
    ):  # fmt: skip
        setattr(module, name, of_cupy(getattr(np, name)))
    module.empty, module.array = left_over, copied
    for name in ("concatenate", "stack"):
        join = getattr(np, name)
        setattr(
            module,
            name,
            lambda arrays, axis=0, join=join: CupyArray(join([*map(plain, arrays)], axis)),
        )
    module.asarray = lambda value: value if isinstance(value, CupyArray) else copied(value)
    module.empty_like = lambda like: left_over(like.shape, like.dtype)
    module.zeros_like = lambda like: CupyArray(np.zeros_like(plain(like)))
    module.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 0)
    module.cuda = SimpleNamespace(runtime=SimpleNamespace(memGetInfo=memory_info))
    for name in ("zeros", "ones", "full", "arange"):
        make = getattr(np, name)
        setattr(module, name, lambda *args, make=make: CupyArray(make(*args)))
    return module


def add_modules():
    """Have imports find the stand-in of CuPy, its Fourier transforms and what these are made of."""
    names = ("cupy.cuda", "cupy.cuda.cufft", "cupyx", "cupyx.scipy", "cupyx.scipy.fft")
    sys.modules |= {name: ModuleType(name) for name in names} | {"cupy": make_cupy()}
    transforms = sys.modules["cupyx.scipy.fft"]
    transforms.rfft2, transforms.irfft2 = of_cupy(fft.rfft2), of_cupy(fft.irfft2)


class Kernel:
    """Runs a kernel in the simulator, if all that it is given is on the device."""

    def __init__(self, simulated):
        self.kernel = simulated

    def blocks_at_once(self, args, threads, shared):
        data_of(args)
        return 1

    def run(self, blocks, threads, args, n=None, shared=None):
        if n is None:  # its threads walk with a stride; a cooperative kernel shares no memory
            self.kernel[blocks if shared else 1, THREADS, 0, shared or 0](data_of(args))
            return
        assert blocks * threads >= n > 0
        self.kernel[-(-n // THREADS), THREADS](n, data_of(args))


def data_of(arrays):
    """Return what the arrays of nested tuples hold; each is one that `on_device` gives."""

    def own(array):
        assert isinstance(array, DeviceArray), f"a kernel was given a {type(array).__name__}"
        assert isinstance(array.array, CupyArray), f"a {type(array.array).__name__} is not there"
        return array.array.numbers

    return device_arrays._map_arrays(own, arrays)  # pyright: ignore[reportPrivateUsage]


def install():
    """Have `devices.py` find a GPU, in a process whose `numba.cuda` is the simulator."""
    assert devices.in_cuda_simulator()
    cuda = devices.cuda_module()
    add_modules()
    cuda.is_available = lambda: True
    cuda_launch.Launcher = lambda body: Kernel(cuda.jit(body))
    devices.in_cuda_simulator = lambda: False
    devices.cuda_problem = lambda: None
