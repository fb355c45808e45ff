"""Compile the kernels of a scene for this machine, in two processes where there are two cores.

One runs the scene. The other begins with what a run needs late, so that the two seldom wait for
the same kernel. They share the kernel cache, into which each kernel is compiled once.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


WARMING = "ADJSIM_WARMING"  # set in the run of `adjsim warm`
FEW = "search.max_evaluations=4"  # enough to run every kernel
PYTHON = [sys.executable, "-P"]  # which does not import what lies in the current folder
COMMAND = [*PYTHON, "-c", "from studies.cli.main import main; main()"]


@contextmanager
def compiling_beside(scene: str, overrides: Sequence[str]) -> Iterator[None]:
    """Compile late kernels of a scene in another process during the block, on a second core."""
    from adjsim.jit import backend

    if backend.PRIVATE is None or _cores() < 2:  # one cannot wait for another
        yield
        return
    # What is wrong with the scene is said by the run itself.
    command = [*PYTHON, "-m", "studies.cli.warming", scene, *overrides]
    with _started(command) as other:
        try:
            yield
        finally:
            other.terminate()


def warm(scene: str, overrides: Sequence[str]) -> int:
    """Compile all kernels of a scene that are not in the cache; return the run's exit code.

    Kernels of the wheel are not used: they are for other machines, too. Nothing is done where
    another process is at it.
    """
    from filelock import FileLock, Timeout

    from adjsim.jit.backend import CACHE_DIR

    try:
        with FileLock(CACHE_DIR / "warming.lock", timeout=0):
            return _run(scene, overrides)
    except Timeout:
        print("Another process compiles kernels already.", file=sys.stderr)
        return 0


def _run(scene: str, overrides: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [*COMMAND, "run", scene, *overrides, FEW, "--out", f"{folder}/run"]
        env = os.environ | {"ADJSIM_OWN_KERNELS": "1", WARMING: "1"}
        return subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=False).returncode


def warm_in_background(scene: str, overrides: Sequence[str]) -> None:
    """Start `adjsim warm` in a process that outlives this one."""
    _started([*COMMAND, "warm", scene, *overrides], outlives=True)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, however that ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


def _started(command: list[str], *, outlives: bool = False) -> subprocess.Popen[bytes]:
    """Start a command that neither reads nor prints anything."""
    nothing = subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=outlives
    )


def _compile_late_kernels(scene: str, overrides: list[str]) -> None:
    """Compile the kernels of tangents, then those of gradients."""
    import numpy as np

    from adjoint.engine.timeloop import turn_kernel
    from adjoint.render.raster.frames import compile_shading
    from adjsim.engine.tangents import tangent_kernel
    from adjsim.meshes import shape
    from render import Camera, Mesh, Scene, SoftRasterizer
    from render.raster.packing import pack
    from studies.problem.making import make_problem
    from studies.scene.drawing import instance_of
    from studies.scene.files import find_scene
    from studies.scene.reading import read_scene

    # What is the same for all scenes: the other process needs it in half a minute.
    ball = shape("sphere", radius=1.0)
    camera = Camera(eye=(0.0, 0.0, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
    picture = Scene({"ball": Mesh(ball.faces, smooth_normals=True)}), [camera], SoftRasterizer()
    compile_shading(pack(*picture, {"ball": ball.points}, (16, 16))[0])
    for kernel in (turn_kernel, tangent_kernel):
        kernel(np.dtype(np.float64))
    problem = make_problem(instance_of(read_scene(find_scene(scene), overrides), 0)).problem
    problem.residuals_and_jacobian(problem.parameters.start)
    problem.loss_and_gradient(problem.parameters.start)


if __name__ == "__main__":
    from studies.runs.blas import limit_before_loading

    limit_before_loading()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    _compile_late_kernels(sys.argv[1], sys.argv[2:])
