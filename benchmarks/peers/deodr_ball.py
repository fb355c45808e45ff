"""The ball in DEODR: hard faces in C++, antialiased at the outline, vertex colours."""

import deodr  # pyright: ignore[reportMissingImports]
import numpy as np

from benchmarks.peers import PeerRun
from benchmarks.timing.scenes import DISTANCE, Ball


def prepare(ball: Ball, pixels: int, threads: int) -> PeerRun:
    """Return drawing and drawing with the adjoint of everything; DEODR takes one core."""
    del threads
    rng = np.random.default_rng(0)
    turn = np.diag([1.0, -1.0, -1.0])  # its camera looks along +z, with y down
    extrinsic = np.column_stack((turn, -turn @ [0.0, 0.0, DISTANCE]))
    focal = 0.5 * pixels / np.tan(np.radians(float(ball.camera.fov_y)) / 2.0)
    middle = 0.5 * pixels - 0.5
    intrinsic = np.array([[focal, 0.0, middle], [0.0, focal, middle], [0.0, 0.0, 1.0]])
    camera = deodr.Camera(extrinsic, intrinsic, height=pixels, width=pixels)
    colors = rng.random((len(ball.points), 3))
    mesh = deodr.ColoredTriMesh(
        ball.faces.astype(np.uint32), ball.points.copy(), nb_colors=3, colors=colors
    )
    scene = deodr.Scene3D(sigma=1)
    scene.set_mesh(mesh)
    scene.set_light(light_directional=np.full(3, -0.5), light_ambient=0.4)
    scene.set_background_color(np.zeros(3))
    adj_image = rng.standard_normal((pixels, pixels, 3))
    last = {}

    def forward() -> None:
        last["image"] = scene.render(camera)

    def both() -> None:
        scene.clear_gradients()
        scene.render(camera)
        scene.render_backward(adj_image)

    return PeerRun(forward, lambda: last["image"].max(axis=2) > 0.0, both)
