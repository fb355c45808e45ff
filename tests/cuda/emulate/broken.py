"""Kernels with a mistake each, run on the emulated device: what it says of them, as JSON."""

import inspect
import json
import sys

import numpy as np

from adjoint.rollout import record
from adjsim.engine import cuda_timeloop
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.jit import backend, cuda_launch, device_arrays, devices
from adjsim.jit.backend import device_fn, specialise
from adjsim.jit.cuda_launch import launch
from adjsim.jit.device_arrays import on_device
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.cuda import reduced_scenes
from tests.cuda.emulate import install  # noqa: F401
from tests.cuda.emulate.driver import DEVICE


MISTAKES = {  # function, what stands there, what stands there by mistake
    "none": ("place_phase", "return True", "return True"),
    "no barrier": ("place_phase", "return True", "return False"),
    "a lane too many": ("_longer", "* TILE\n", "* TILE + 1\n"),
    "two swapped": ("make_forces", "(state.x, state.v)", "(state.v, state.x)"),
}


def with_mistake(name: str, right: str, wrong: str):
    """Return a function of the time loop with its first `right` replaced."""
    source = inspect.getsource(getattr(cuda_timeloop, name))
    assert right in source
    space = dict(vars(cuda_timeloop))
    exec(compile(source.replace(right, wrong, 1), f"<{name}>", "exec"), space)
    return space[name]


def put(name: str, function) -> None:
    """Put a function in the place of one of the time loop."""
    setattr(cuda_timeloop, name, function)
    phases = [getattr(cuda_timeloop, phase.__name__) for phase in cuda_timeloop.ADVANCE]
    cuda_timeloop.ADVANCE = tuple(phases)


def rollouts():
    """A small block, falling, with each mistake: the difference from the CPU and the faults."""
    mesh = box_tets(cells=(2, 2, 2), size=(0.2, 0.2, 0.2))
    model = Model(forces={"block": NeoHookeanTets(mesh.tets, mesh.points, 1e4, 4e4, density=1e3)})
    state = State(1.02 * mesh.points)
    cpu = rollout(model, state, 1e-4, 3).x
    for mistake, (name, right, wrong) in MISTAKES.items():
        usual = getattr(cuda_timeloop, name)
        put(name, with_mistake(name, right, wrong))
        for kept in (cuda_timeloop.advance_kernel, cuda_timeloop.make_lane):
            kept.cache_clear()
        DEVICE.reset()
        try:
            difference = float(np.abs(rollout(model, state, 1e-4, 3, device="cuda").x - cpu).max())
        except Exception:  # numbers that are not finite, or a launch that was stopped
            difference = np.inf
        put(name, usual)
        yield mistake, {"difference": difference, "faults": DEVICE.faults}


@device_fn
def beyond(i, arrays):
    """Read past the end."""
    arrays[1][i] = arrays[0][i + 1]


@device_fn
def unwritten(i, arrays):
    """Read what nobody wrote."""
    arrays[0][i] += 1.0


@device_fn
def onto_one(i, arrays):
    """Write where all write."""
    arrays[1][0] = arrays[0][i]


def launches():
    """Single launches that read or write what they should not."""
    cupy = devices.array_module(devices.Device.CUDA)
    n = 64
    for body in (beyond, unwritten, onto_one):
        DEVICE.reset()
        first = cupy.empty(n) if body is unwritten else cupy.zeros(n)
        launch(body, n, on_device((first, cupy.zeros(n))))
        yield body.__name__, {"faults": DEVICE.faults}


def uneven(args):
    """Wait at a barrier, half of the threads once more."""
    grid = CUDA.cg.this_grid()
    grid.sync()
    if CUDA.grid(1) % 2 == 0:
        grid.sync()
    args[0][CUDA.grid(1)] = 1.0


CUDA = None


def barriers():
    """A launch whose threads do not agree on how often they wait."""
    kernel = specialise(uneven, "uneven", CUDA=devices.cuda_module())
    DEVICE.reset()
    try:
        zeros = on_device((np.zeros(128),))
        cuda_launch.launch_cooperative(kernel, 64, zeros)
        device_arrays.to_host(zeros)
    except Exception as error:
        yield "uneven", {"faults": DEVICE.faults, "error": str(error)}


def backwards(args):
    """Write the numbers of each block, from one array, in reverse order and doubled, to another."""
    given, out, how = args
    fixed, dynamic = CUDA.shared.array(128, np.float64), CUDA.shared.array(0, np.float64)
    i = CUDA.threadIdx.x
    dynamic[i] = fixed[max(i, int(how[0] == 2.0))] = 0.0
    CUDA.syncthreads()
    dynamic[i] = fixed[max(i, int(how[0] == 2.0))] = given[CUDA.grid(1)]
    if how[0] != 1.0:
        CUDA.syncthreads()
    n = dynamic.size - 1 if how[0] < 3.0 else dynamic.size
    out[CUDA.grid(1)] = fixed[127 - i] + dynamic[n - i]
    CUDA.syncthreads()
    fixed[i] = 0.0


def backwards_with_grid(args):
    """As `backwards`, with all blocks at the same time."""
    CUDA.cg.this_grid().sync()
    BACKWARDS(args)
    CUDA.cg.this_grid().sync()


BACKWARDS = None


def shared_memory():
    """Two blocks that reverse numbers in shared memory, rightly and with a mistake each."""
    cuda, cupy = devices.cuda_module(), devices.array_module(devices.Device.CUDA)
    body = specialise(backwards, "backwards", CUDA=cuda)
    body_with_grid = specialise(
        backwards_with_grid, "backwards_with_grid", CUDA=cuda, BACKWARDS=backend.device_fn(body)
    )
    for name, function, how in (
        ("reversed", body, 0.0), ("reversed with grid", body_with_grid, 0.0),
        ("unordered", body, 1.0), ("unordered with grid", body_with_grid, 1.0),
        ("empty place", body, 2.0), ("beyond shared", body, 3.0),
    ):  # fmt: skip
        kernel = cuda_launch.Launcher(function)
        DEVICE.reset()
        given = np.arange(256.0)
        arrays = on_device((given, cupy.zeros(256), np.full(1, how)))
        kernel.run(2, 128, arrays, shared=8 * 128)
        right = 2.0 * given.reshape(2, 128)[:, ::-1].ravel()
        is_right = bool((device_arrays.to_host(arrays[1]) == right).all())
        yield name, {"faults": DEVICE.faults, "is right": is_right}


def neighbours(args):
    """Read what the next thread of the block, or of the grid, has written before a barrier."""
    thread, n = CUDA.grid(1), args[1].size
    args[0][thread] = 1.0 + thread
    CUDA.syncthreads()
    if thread % 128 < 127 or args[1][0] > 0:
        args[2][thread] = args[0][(thread + 1) % n]


def blocks():
    """Two blocks whose threads read each other's numbers, within them and beyond."""
    cupy = devices.array_module(devices.Device.CUDA)
    body = specialise(neighbours, "neighbours", CUDA=devices.cuda_module())
    kernel = cuda_launch.Launcher(body)
    for beyond_blocks in (0.0, 1.0):
        DEVICE.reset()
        arrays = on_device((cupy.empty(256), np.full(256, beyond_blocks), cupy.zeros(256)))
        kernel.run(2, 128, arrays)
        read = device_arrays.to_host(arrays[2])[:127]
        yield (
            "beyond blocks" if beyond_blocks else "within blocks",
            {"faults": DEVICE.faults, "is right": bool((read == np.arange(127) + 2.0).all())},
        )


def messages():
    """What is said of a driver that is too old, of a CuPy without cuFFT, of a full device."""
    mesh = box_tets(cells=(2, 2, 2), size=(0.2, 0.2, 0.2))
    model = Model(forces={"block": NeoHookeanTets(mesh.tets, mesh.points, 1e4, 4e4, density=1e3)})
    DEVICE.version, known = 12080, DEVICE.version
    yield "old driver", said(lambda: rollout(model, State(mesh.points), 1e-4, 3, device="cuda"))
    DEVICE.version = known
    smoke, state, _ = reduced_scenes.scenes()["smoke"]
    del sys.modules["cupy.cuda.cufft"]
    yield "no cuFFT", said(lambda: rollout(smoke, state, 0.1, 3, device="cuda"))
    start, devices.MUCH = State(mesh.points), 0
    DEVICE.memory = 1000
    yield "no model", said(lambda: rollout(model, start, 1e-4, 3, device="cuda"))
    DEVICE.memory = DEVICE.used + 300_000
    options = {"device": "cuda", "frames": range(0, 201, 2)}
    yield "no states", said(lambda: record(model, start, 1e-4, 200, **options))
    budget = {"device": "cuda", "checkpoint": "20kB"}
    yield "budget", said(lambda: record(model, start, 1e-4, 200, **budget))
    devices.MUCH, DEVICE.memory = 1 << 60, 1000
    yield "full", said(lambda: rollout(model, start, 1e-4, 3, device="cuda"))


def said(call):
    """Return the kind and the text of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None


if __name__ == "__main__":
    json.dump(
        dict([*rollouts(), *launches(), *barriers(), *blocks(), *shared_memory(), *messages()]),
        sys.stdout,
    )
