"""CUDA without a GPU: PTX of every kernel, and the simulator against the CPU; and with one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adjsim.backend import cuda_problem
from tests.cuda.scenes import everything


ROOT = Path(__file__).resolve().parents[2]


def run(module, **environment):
    """Run a module in a process of its own and return what it printed as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_every_kernel_compiles_to_ptx_and_float32_stays_float32():
    report = run("tests.cuda.compile_ptx")
    assert len({row["kernel"] for row in report}) >= 3
    assert {row["target"] for row in report} == {"sm_80", "sm_90"}
    for row in report:
        assert row["names_target"], row
        assert row["lines"] > 100, row
        assert row["has_f64"] == (row["real"] == "float64"), row
        assert not row["is_approximate"], row


def test_the_simulator_gives_the_numbers_of_the_cpu():
    report = run("tests.cuda.simulate", NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT="1")
    assert len(report) > 30
    for name, row in report.items():
        assert row["largest"] > 0.0, f"{name} is zero: nothing was compared"
        # The same Python operations in the same order, per element and per node.
        assert row["difference"] == 0.0, (name, row)


@pytest.mark.cuda
@pytest.mark.skipif(cuda_problem() is not None, reason=f"no GPU to use: {cuda_problem()}")
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 2e-3)])
def test_a_gpu_gives_the_numbers_of_the_cpu(dtype, tolerance):
    # Contraction differs between targets: eps times about 1e4 operations, times the
    # conditioning of the stiff contact.
    cpu, cuda = everything("cpu", dtype), everything("cuda", dtype)
    for name, value in cpu.items():
        scale = np.abs(value).max()
        np.testing.assert_allclose(cuda[name], value, rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.cuda
@pytest.mark.skipif(cuda_problem() is not None, reason=f"no GPU to use: {cuda_problem()}")
def test_a_gpu_repeats_itself_to_the_bit():
    first, second = everything("cuda"), everything("cuda")
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value, err_msg=name)
