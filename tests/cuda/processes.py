"""Modules of the CUDA checks run in processes of their own, since they change numba's targets."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path


ROOT = Path(__file__).resolve().parents[2]
PACKAGES, LAUNCH = ("adjsim", "render", "adjoint"), re.compile(r"\blaunch\(\s*(\w+_thread)\b")


def run(module, *arguments, **environment):
    """Run a module in a process of its own and return what it printed as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def launched_threads():
    """Return the names of the kernels that the renderer and sparse products launch."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {name for path in files for name in LAUNCH.findall(path.read_text())}
