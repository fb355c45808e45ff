"""The bodies of the renderer are fit for CUDA, though a GPU is not at hand."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest


ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
def test_every_body_compiles_to_ptx_and_float32_stays_single():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.render.compile_ptx"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert len(report) == 6 * 2 * 2
    assert [name for name, double in report.items() if double != ("float64" in name)] == []
