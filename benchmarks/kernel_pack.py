"""Make the pack of kernels that a platform wheel carries: `python -m benchmarks.kernel_pack FILE`.

Bundled scenes run in an empty cache, compiled for x86-64-v3, and the pack is what they leave there.
Each search ends after a few evaluations: that runs every kernel. `ADJSIM_KERNELS=FILE` then has the
build of a wheel put the pack into it (`hatch_build.py`).
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from json import dumps
from pathlib import Path

from adjsim.jit.kernel_keys import versions
from adjsim.jit.kernel_pack import CPU, VERSIONS


COMMAND = [sys.executable, "-P", "-c", "from studies.cli.main import main; main()"]
FEW = "search.max_evaluations=4"  # enough to run every kernel
SCENES = (
    "beam", "identify", "pendulum", "double-pendulum", "bounce", "rigid-contact", "links",
    "cloth-velocity", "draped-cloth", "two-balls", "sagging-beam", "control-walker",
)  # fmt: skip


def compile_scenes(folder: Path, scenes: tuple[str, ...]) -> list[Path]:
    """Run scenes with a cache in a folder; return the files of their kernels."""
    target = {"NUMBA_CPU_NAME": CPU, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(folder)}
    for scene in scenes:
        command = [*COMMAND, "run", scene, FEW, "--out", f"runs/{scene}"]
        subprocess.run(command, env=os.environ | target, cwd=folder, check=True)
    return sorted(folder.rglob("*.nbc"))


def write_pack(path: Path, files: list[Path]) -> None:
    """Write files of the kernel cache to a pack, and by which versions they were compiled."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr(VERSIONS, dumps(versions()))
        for file in files:
            pack.write(file, file.name)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_in:
        write_pack(Path(sys.argv[1]), compile_scenes(Path(made_in), SCENES))
