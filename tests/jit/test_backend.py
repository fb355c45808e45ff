"""Compilers, caches and threads behind one file."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from adjsim.jit import backend, devices
from adjsim.jit.backend import (
    JIT_DISABLED,
    cpu_kernel,
    device_fn,
    lit,
    shared_fn,
    specialise,
    thread_count,
)
from adjsim.jit.row_gathers import prefetch


ROOT = Path(backend.__file__).resolve().parents[2]
OFFSET = 1.0


def shifted(x):
    """Shift by what the global OFFSET is bound to."""
    return x + OFFSET


@device_fn
def half(x):
    return lit(0.5, x) * x


def halve_all(out, x):
    for i in range(x.size):
        out[i] = half(x[i])


def test_specialise_binds_globals_and_leaves_the_template_alone():
    five = specialise(shifted, "shifted_by_five", OFFSET=5.0)
    assert (five(1.0), shifted(1.0)) == (6.0, 2.0)
    assert (five.__name__, five.__qualname__, five.__module__) == (
        "shifted_by_five", "shifted_by_five", __name__,
    )  # fmt: skip
    assert five.__doc__ == shifted.__doc__


def test_specialised_copies_compile_apart():
    kernels = [numba.njit(specialise(shifted, f"shifted_{k}", OFFSET=float(k))) for k in (10, 20)]
    assert [kernel(1.0) for kernel in kernels] == [11.0, 21.0]


@shared_fn
def halve_one(i, out, x):
    out[i] = half(x[i])


def halve_each(out, x):
    for i in range(x.size):
        halve_one(i, out, x)


@pytest.mark.skipif(JIT_DISABLED, reason="asks the compiler")
def test_what_is_shared_is_in_a_loop_once_and_called_and_what_it_calls_is_inlined():
    out, x = np.empty(3), np.arange(3.0)
    kernel = cpu_kernel(halve_each, cached=False)
    kernel(out, x)
    np.testing.assert_array_equal(out, 0.5 * x)
    (code,) = kernel.dispatcher.inspect_llvm().values()
    lines = [line for line in code.splitlines() if line.startswith("define") or " call " in line]
    shared = [line for line in lines if "9halve_one" in line]
    assert sorted(line.startswith("define") for line in shared) == [False, True]
    assert not [line for line in lines if "4half" in line]
    halve_one(2, out, np.full(3, 8.0))
    assert out.tolist() == [0.0, 0.5, 4.0]


def test_what_is_inlined_is_compiled_without_machine_code_and_by_itself_with_it():
    out, x = np.empty(3, np.float32), np.arange(3, dtype=np.float32)
    cpu_kernel(halve_all, cached=False)(out, x)
    np.testing.assert_array_equal(out, 0.5 * x)
    (inlined,) = (c for c in half.overloads.values() if c.signature.args == (numba.float32,))
    assert inlined.library.get_pointer_to_function(inlined.fndesc.llvm_func_name) == 0
    assert "fmul" in inlined.library.get_llvm_str()
    assert half(np.float32(3.0)) == 1.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_literal_takes_the_type_of_its_neighbour(dtype):
    x = np.array([1.0, 3.0], dtype)
    out = np.empty_like(x)
    real = numba.from_dtype(np.dtype(dtype))
    kernel = cpu_kernel(
        specialise(halve_all, f"halve_{x.dtype.name}"), [numba.void(real[::1], real[::1])]
    )
    kernel(out, x)
    np.testing.assert_array_equal(out, x / 2)
    assert isinstance(half(dtype(3)), dtype | float)
    if not JIT_DISABLED:
        half.compile((real,))
        assert half.overloads[(real,)].signature.return_type == real


def wrappers(dispatcher, *args):
    """Return which kinds of wrappers are compiled, after a call where arguments are given."""
    if args:
        dispatcher(*args)
    libraries = [compiled.library for compiled in dispatcher.overloads.values()]
    names = [fn.name for library in libraries for fn in library.get_defined_functions()]
    return {kind for kind in ("cfunc", "_ZN7cpython") for name in names if name.startswith(kind)}


def test_a_device_function_that_a_loop_inlined_is_called_from_python_too():
    x = np.array([1.0, 3.0])
    out = np.empty_like(x)
    cpu_kernel(specialise(halve_all, "halve_inlined"), cached=False)(out, x)
    assert [half(value) for value in x] == list(out)
    assert half(np.float32(3.0)) == 1.5
    if not JIT_DISABLED:  # wrappers that nothing calls are a third of the time of compilation
        assert wrappers(half) == set()
        assert wrappers(numba.njit(half.py_func), x[0]) == {"cfunc", "_ZN7cpython"}


def test_a_device_function_is_contracted_on_the_cpu_only():
    if JIT_DISABLED:
        assert half.__name__ == "half"
        return
    assert half.targetoptions["fastmath"] == {"contract"}
    assert "fastmath" not in half.targetoptions.copy()


@pytest.mark.skipif(JIT_DISABLED, reason="asks the compiler")
def test_a_prefetch_asks_for_a_line_and_changes_nothing():
    @numba.njit
    def fetch_all(rows):
        for i in range(rows.shape[0]):
            prefetch(rows, np.uint64(i))

    for rows in (np.arange(12.0).reshape(4, 3), np.arange(5, dtype=np.float32), np.zeros((0, 3))):
        before = rows.copy()
        fetch_all(rows)
        np.testing.assert_array_equal(rows, before)
    assert all("prefetch" in code for code in fetch_all.inspect_asm().values())


def test_small_work_stays_on_one_thread():
    available = 1 if JIT_DISABLED else numba.config.NUMBA_NUM_THREADS
    assert thread_count(None, large=False) == 1
    assert thread_count(None, large=True) == min(numba.get_num_threads(), available)
    assert thread_count(1, large=True) == 1
    assert thread_count(10_000, large=False) == available


@pytest.mark.parametrize("threads", [0, -3])
def test_a_number_of_threads_must_be_positive(threads):
    with pytest.raises(ValueError, match=f"`threads` must be a whole number .* got {threads}"):
        thread_count(threads, large=True)


def test_threads_are_given_back():
    before = numba.get_num_threads()

    def fail():
        with backend.using_threads(1):
            assert numba.get_num_threads() == 1
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert numba.get_num_threads() == before


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_parallel_rollouts_from_several_threads_do_not_end_the_process():
    # Numba's workqueue pool, where there is neither OpenMP nor TBB, must not be entered twice.
    script = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rollout import rollout
x = np.linspace(-1, 1, 3000).reshape(-1, 3)
model, state = Model(np.ones(1000), {"floor": HalfSpaceContact(stiffness=10.0)}), State(x)
def run(threads):
    return rollout(model, state, 1e-3, 3000, threads=threads).x
with ThreadPoolExecutor(4) as pool:
    ends = list(pool.map(run, [2, 2, 1, 2, 2, 2]))
print(all((end == ends[0]).all() for end in ends))
"""
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, check=False,
        env={**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"},
    )  # fmt: skip
    assert run.stdout.split() == ["True"], run.stderr


@pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")
def test_a_second_process_finds_every_loop_in_the_cache():
    script = """
import numpy as np
from adjoint.rollout import record, rollout_jvp
from adjsim.engine.tangents import TANGENT
from adjoint.engine.timeloop import REVERSE
from adjsim.engine.phases import sweep_kernel
from adjsim.engine.timeloop import ADVANCE
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
model, state = Model(np.ones(2), {"floor": HalfSpaceContact()}), State(np.zeros((2, 3)))
record(model, state, 0.1, 1, threads=1).vjp(np.ones((1, 2, 3)))
rollout_jvp(model, state, 0.1, 1, {}, threads=1)
sweeps = {"advance": ADVANCE, "reverse": REVERSE, "tangent": TANGENT}
loops = [sweep_kernel(name, phases, threads=1, together=False) for name, phases in sweeps.items()]
for kernel in loops:
    stats = kernel.dispatcher.stats
    print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
"""
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True, check=True
        )
    assert run.stdout.split() == ["0", "1"] * 3


def test_a_numba_cuda_that_cannot_compile_is_a_problem_with_a_way_out(monkeypatch):
    def import_module(name):
        raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    monkeypatch.setattr(devices, "import_module", import_module)
    problem = devices.compiler_problem.__wrapped__()
    assert "numba-cuda cannot compile (module 'numpy' has no attribute 'row_stack')" in problem
    assert "pip install" in problem
