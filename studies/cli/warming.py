"""Compile the kernels of a first run in two processes where there are two cores.

One runs the scene. The other begins with what a run needs late, so that the two seldom wait for
the same kernel. They share the kernel cache, into which each kernel is compiled once.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def compiling_beside(scene: str, overrides: Sequence[str]) -> Iterator[None]:
    """Compile late kernels of a scene in another process during the block, on a second core."""
    from adjsim.jit import backend

    if backend.PRIVATE is None or _cores() < 2:  # one cannot wait for another
        yield
        return
    # -P: what lies in the current folder is not imported. What is wrong with the scene is said by
    # the run itself.
    command = [sys.executable, "-P", "-m", "studies.cli.warming", scene, *overrides]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing) as other:
        try:
            yield
        finally:
            other.terminate()


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
