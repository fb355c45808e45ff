"""CUDA without a GPU: PTX of every kernel, and the simulator against the CPU; and with one."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from adjoint.engine.cuda_timeloop import twin_kernel
from adjoint.forces.neo_hookean import VISCOUS_TWIN
from adjoint.forces.springs import SPRING_TWIN
from adjsim.engine.cuda_timeloop import advance_kernel
from adjsim.jit.backend import device_fn
from adjsim.jit.devices import cuda_problem
from adjsim.jit.kernel_keys import kernel_key
from tests.cuda import reduced_scenes
from tests.cuda.pair_scenes import surfaces
from tests.cuda.processes import launched_threads, run
from tests.cuda.rounding import ROUNDED, tolerances
from tests.cuda.scenes import everything, many_worlds, own_nodes


# Inside libdevice's exp and pow of a float32, and log1p, log and pow of a float64, where an
# approximation is the start of an accurate result. Ours are never approximate.
WITHIN_LIBDEVICE = {
    "float32": {"ex2.approx.ftz.f32", "rcp.approx.ftz.f32"},
    "float64": {"rcp.approx.ftz.f64"},
}
WITHOUT_REALS = {"lengths_thread", "outline_thread", "entry_thread"}
# A search for pairs, as on the CPU.
ALWAYS_DOUBLE = {f"{name}_thread" for name in ("box", "enter", "count", "trouble", "write", "lane")}
REALS, CAPABILITIES = ("float64", "float32"), ("80", "90")
EVERY = dict.fromkeys(REALS, "")
# One kernel of each kind, in float32 with all forces, of joints only forward.
SOME = {
    "float64": "^advance on grid|^product_thread|^fragments_thread|^pixel_vjp_thread|^count_thread",
    "float32": "^reverse with rest in blocks|^advance in blocks|^face_vjp_thread|^pair_jvp_thread",
}
LINKED = {"float64": ("--link", "90"), "float32": ()}  # as long again
TEAMS, RESTS = (" on grid", " in blocks"), (" with rest", "")
PHYSICS = {f"advance{team}" for team in TEAMS}
PHYSICS |= {"".join(parts) for parts in product(("reverse", "tangent"), RESTS, TEAMS)}
BARRIERS = {
    "advance of own nodes": 1,
    "advance of pairs": 6,
    "reverse of pairs": 5,
    "tangent of pairs": 6,
}  # of the grid
PHYSICS |= {f"{sweep} on grid" for sweep in BARRIERS}
MOST_REGISTERS, MOST_SPILLED = 255, 512  # of a thread, a limit of the hardware; [bytes]
# The adjoint of a joint holds 24 vectors and up to 36 parameters: more than 127 numbers in float64.
WITH_JOINTS, MOST_SPILLED_BY_JOINTS = ("reverse on grid", "reverse in blocks"), 2048


@pytest.mark.parametrize(
    ("which", "capabilities"),
    [(SOME, ("90",)), pytest.param(EVERY, CAPABILITIES, marks=pytest.mark.nightly)],
    ids=["some", "every"],
)
def test_kernels_compile_to_ptx_and_float32_stays_float32(which, capabilities):
    def compiled(real):
        options = (*LINKED[real], "--only", which[real])
        return run("tests.cuda.compile_ptx", real, *capabilities, *options)

    with ThreadPoolExecutor(len(REALS)) as pool:
        report = [row for rows in pool.map(compiled, REALS) for row in rows]
    linked = [row for row in report if row.get("is_machine_code")]
    assert len(linked) == sum((row["real"], row["target"]) == ("float64", "90") for row in report)
    assert max(row["registers"] for row in linked) <= MOST_REGISTERS
    for row in linked:
        most = MOST_SPILLED_BY_JOINTS if row["kernel"] in WITH_JOINTS else MOST_SPILLED
        assert row["spilled"] <= most, row
    for real, capability in product(REALS, capabilities):
        names = [
            row["kernel"] for row in report if (row["real"], row["target"]) == (real, capability)
        ]
        assert len(set(names)) == len(names)
        assert which is SOME or launched_threads() | PHYSICS <= set(names)
        for each in which[real].split("|"):
            assert any(re.search(each, kernel) for kernel in names), each
    for row in report:
        assert row["names_target"], row
        assert row["unknown"] == "", row  # it is kept on disk
        # One call for each barrier of the grid, and of pieces of bodies: no branch has a copy.
        on_grid, in_blocks = (f" {team}" in row["kernel"] for team in ("on grid", "in blocks"))
        with_bodies = "with rest" in row["kernel"] or row["kernel"].startswith("advance ")
        of_grid = BARRIERS.get(row["kernel"].removesuffix(" on grid"), 4 if with_bodies else 2)
        assert row["barriers"] == (of_grid if on_grid else 0), row
        assert row["meets_in_blocks"] == (on_grid or in_blocks), row
        assert row["lines"] > 100, row
        double = row["real"] == "float64" or row["kernel"] in ALWAYS_DOUBLE
        double &= row["kernel"] not in WITHOUT_REALS
        assert row["has_f64"] == double, row
        exponential = row["kernel"].startswith(("pixel_", "fragments_", "pair_"))
        allowed = WITHIN_LIBDEVICE[row["real"]] if exponential else set()
        assert set(row["approximate"]) <= allowed, row


@pytest.mark.parametrize(
    ("what", "count", "error"), [("physics", 31, 0.0), ("worlds", 105, 1e-13), ("reduced", 44, 0.0)]
)
def test_the_simulator_gives_the_numbers_of_the_cpu(what, count, error):
    report = run("tests.cuda.simulate", what, NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT="1")
    assert len(report) >= count
    for name, row in report.items():
        assert row["alike"], name
        assert row["largest"] > 0.0, f"{name} is zero: nothing was compared"
        # The same Python operations in the same order; of worlds bodies are summed in pieces.
        assert row["difference"] <= error * row["largest"], (name, row)


def test_a_study_finds_on_a_device_what_it_finds_on_the_cpu():
    report = run("tests.cuda.simulate", "study", NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT="1")
    assert len(report) == 6
    assert report["images"]["difference"] > 0.0, "the device was not asked"
    for name, row in report.items():
        assert row["alike"], name
        # Pixels of about 1 that differ by two roundings, of which the residuals are 1e-5.
        assert 0.0 <= row["difference"] <= 1e-10 * row["largest"], (name, row)


def test_kernels_of_other_forces_have_other_keys():
    """Compiled code is found on disk by the key of a kernel and the types of its arguments."""
    orders = [(SPRING_TWIN,), (VISCOUS_TWIN,), (SPRING_TWIN, VISCOUS_TWIN)]
    orders.append((VISCOUS_TWIN, SPRING_TWIN))
    keys = set()
    for twins, in_blocks, with_bodies in product(orders, (True, False), (True, False)):
        kinds = tuple(twin.kind for twin in twins)
        how = {"in_blocks": in_blocks, "with_bodies": with_bodies}
        keys.add(kernel_key(advance_kernel(kinds, **how))[0])
        for sweep, with_rest in product(("reverse", "tangent"), (True, False)):
            laws = kinds if sweep == "tangent" else twins
            kernel = twin_kernel(sweep, laws, with_rest=with_rest, **how)
            keys.add(kernel_key(kernel)[0])
    assert len(keys - {None}) == 4 * 5 * len(orders)


THING = object()


@device_fn
def users_function(*args):
    return args[0]


@device_fn
def users_function_of_a_thing(*args):
    return THING


@pytest.mark.parametrize("derivative", ["vjp", "vjp_consts"])
def test_a_kernel_with_a_users_own_force_has_a_key_of_its_own(derivative):
    twins = (
        VISCOUS_TWIN,
        replace(VISCOUS_TWIN, **{derivative: users_function}),
        replace(VISCOUS_TWIN, **{derivative: users_function_of_a_thing}),
    )
    how = {"with_rest": True, "in_blocks": False, "with_bodies": False}
    (usual, _), (users, _), (nothing, unknown) = (
        kernel_key(twin_kernel("reverse", (SPRING_TWIN, twin), **how)) for twin in twins
    )
    assert len({usual, users, None}) == 3
    assert nothing is None
    assert "users_function_of_a_thing reads <object object at" in unknown


@pytest.mark.nightly  # compiles all forces, their adjoints and tangents in float32
@pytest.mark.parametrize("what", ROUNDED)
def test_float32_on_the_cpu_is_off_by_its_roundings(what):
    allowed = run("tests.cuda.rounding", what, NUMBA_DISABLE_JIT="1")
    exact, rounded = (ROUNDED[what]("cpu", dtype) for dtype in (np.float64, np.float32))
    larger = np.finfo(np.float32).eps / np.finfo(np.float64).eps
    for name, value in exact.items():
        assert np.abs(rounded[name] - value).max(initial=0.0) <= larger * allowed[name], name


@pytest.mark.cuda
@pytest.mark.skipif(cuda_problem() is not None, reason=f"no GPU to use: {cuda_problem()}")
@pytest.mark.parametrize(
    "what", [reduced_scenes.all_scenes, everything, many_worlds, own_nodes, surfaces]
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gpu_gives_the_numbers_of_the_cpu(what, dtype):
    cpu, cuda, allowed = what("cpu", dtype), what("cuda", dtype), tolerances(what, dtype)
    for name, value in cpu.items():
        np.testing.assert_allclose(cuda[name], value, rtol=0, atol=allowed[name], err_msg=name)


@pytest.mark.cuda
@pytest.mark.skipif(cuda_problem() is not None, reason=f"no GPU to use: {cuda_problem()}")
def test_a_gpu_repeats_itself_to_the_bit():
    first, second = everything("cuda"), everything("cuda")
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value, err_msg=name)
