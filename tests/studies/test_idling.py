"""Threads of linear algebra that have nothing to do leave their core to others."""

import os
import subprocess
import sys

import pytest


LISTING = """
import os, sys
from studies import cli
assert "numpy" not in sys.modules  # as it is loaded, its linear algebra reads this
sys.argv = ["adjsim", "list"]
try:
    cli.main()
finally:
    print(os.environ["OPENBLAS_THREAD_TIMEOUT"])
"""


@pytest.mark.parametrize(("given", "expected"), [(None, "16"), ("26", "26")])
def test_the_command_lets_idle_threads_rest_soon_unless_told_otherwise(given, expected):
    own = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OPENBLAS_THREAD_TIMEOUT": given,
    }
    done = subprocess.run(
        [sys.executable, "-c", LISTING],
        capture_output=True,
        text=True,
        env={name: value for name, value in own.items() if value is not None},
        check=True,
    )
    assert done.stdout.splitlines()[-1] == expected
