"""Blocks that are freed stay with a process, where its C library is that of GNU."""

import platform
import subprocess
import sys

import pytest


CODE = """
import resource, sys
import numpy as np
from studies.runs.allocation import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.empty(1 << 24, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.parametrize("how", ["kept", "as it is"])
def test_a_block_is_filled_again_without_new_pages(how):
    command = [sys.executable, "-c", CODE, how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    is_kept = how == "kept" and platform.libc_ver()[0] == "glibc"
    assert (int(done.stdout) < 8) == is_kept  # 16 MB are at least 8 huge pages
