"""Kernels that a wheel brings along, compiled for any processor of the level x86-64-v3.

`benchmarks/kernel_pack.py` makes the pack, a zip archive of files of the kernel cache. They keep
their names, which have the keys of their kernels, and their checksums. So a kernel is found only
if it is made of the same code by the same versions of Python, NumPy, Numba and llvmlite. The pack
is a part of the package and trusted as its Python code is; checksums are against damage.

A pack that does not fit is not used: a warning says why, and kernels are compiled here. So they
are with ADJSIM_OWN_KERNELS=1, without a warning.

Tests: `tests/jit/test_kernel_pack.py`.
"""

import json
import os
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import config as numba_config
from numba.core.codegen import get_host_cpu_features

from adjsim.jit.kernel_cache import warn_once
from adjsim.jit.kernel_keys import versions


config: Any = numba_config  # its members are set when it is loaded
PACK = Path(__file__).with_name("kernels.zip")
VERSIONS = "versions.json"  # the file of the pack that says what its kernels were compiled by
CPU = "x86-64-v3"
# What LLVM calls the instructions of that level, beyond those that all 64-bit processors have.
FEATURES = "avx avx2 bmi bmi2 cx16 f16c fma lzcnt movbe popcnt sahf sse3 sse4.1 sse4.2 ssse3 xsave"
DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, ValueError, KeyError, NotImplementedError)
# The processors that the kernels of this process were compiled for.
processors_used: set[str] = set()


@cache
def open_pack() -> zipfile.ZipFile | None:
    """Return the pack of kernels, or None where there is none that this process can use."""
    if os.environ.get("ADJSIM_OWN_KERNELS") == "1" or not PACK.exists():
        return None
    try:
        pack = zipfile.ZipFile(PACK)
        problem = _misfit(json.loads(pack.read(VERSIONS)))
    except DAMAGED as error:
        warn_unused(f"are damaged ({error})")
        return None
    if problem:
        warn_unused(problem)
        return None
    return pack


def warn_unused(problem: str) -> None:
    """Print once what is wrong with the pack."""
    warn_once("pack", f"the kernels in {PACK} {problem}: they are compiled here")


def _misfit(made_by: dict[str, str]) -> str:
    """Return why kernels cannot be used that were compiled by these versions, if they cannot."""
    differ = [
        f"{name} {made_by.get(name)}, and here is {number}"
        for name, number in versions().items()
        if made_by.get(name) != number
    ]
    if differ:
        return f"were compiled by {'; '.join(differ)}"
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return f"are for {CPU}, and NUMBA_CPU_NAME or NUMBA_CPU_FEATURES names another processor"
    available = {text[1:] for text in get_host_cpu_features().split(",") if text[:1] == "+"}
    if lacking := [name for name in FEATURES.split() if name not in available]:
        return f"need instructions that this processor lacks ({', '.join(lacking)})"
    return ""


def read(name: str) -> bytes | None:
    """Return a file of the pack, or None if it is not there or damaged."""
    pack = open_pack()
    if pack is None or name not in pack.NameToInfo:
        return None
    try:
        return pack.read(name)
    except DAMAGED as error:
        warn_unused(f"are damaged ({name}: {error})")
        return None
