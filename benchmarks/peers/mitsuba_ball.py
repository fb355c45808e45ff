"""The ball in Mitsuba 3: 16 samples a pixel, edges sampled by the projective integrator."""

import subprocess
import sys
from typing import Any

import drjit as dr  # pyright: ignore[reportMissingImports]
import mitsuba as mi  # pyright: ignore[reportMissingImports]
import numpy as np

from benchmarks.peers import PeerRun
from benchmarks.timing.scenes import DISTANCE, Ball, make_ball


SAMPLES = 16
POSITIONS = "ball.vertex_positions"
INTEGRATOR = {"type": "direct_projective", "sppi": 0, "guiding": "none"}


def prepare(ball: Ball, pixels: int, threads: int) -> PeerRun:
    """Return drawing, and drawing with the gradient of the vertices; it takes all cores."""
    del threads
    if __name__ != "__main__":
        _try_apart()
    mi.set_variant("llvm_ad_rgb")
    mi.set_log_level(mi.LogLevel.Error)
    scene = mi.load_dict(_scene(ball, pixels))
    params = mi.traverse(scene)
    adj = np.random.default_rng(0).standard_normal((pixels, pixels, 4))
    adj_image = mi.TensorXf(adj.astype(np.float32))

    def forward() -> None:
        dr.eval(mi.render(scene, spp=SAMPLES))
        dr.sync_thread()

    def both() -> None:
        dr.enable_grad(params[POSITIONS])
        params.update()
        image = mi.render(scene, params, spp=SAMPLES)
        dr.backward(dr.sum(image * adj_image, axis=None))
        dr.eval(dr.grad(params[POSITIONS]))
        dr.sync_thread()

    def covered() -> np.ndarray:
        depth = mi.render(scene, integrator=mi.load_dict({"type": "depth"}), spp=SAMPLES)
        return np.array(depth)[..., 0] > 0.5 * (DISTANCE - 1.0)

    return PeerRun(forward, covered, both)


def _try_apart() -> None:
    """Raise RuntimeError where it cannot run: without an LLVM that suits it ends the process."""
    done = subprocess.run([sys.executable, "-m", __name__], capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError("it needs LLVM as a shared library, e.g. Debian's libllvm19")


def _scene(ball: Ball, pixels: int) -> dict[str, Any]:
    mesh = mi.Mesh("ball", vertex_count=len(ball.points), face_count=len(ball.faces))
    arrays = mi.traverse(mesh)
    arrays["vertex_positions"] = ball.points.astype(np.float32).ravel()
    arrays["faces"] = ball.faces.astype(np.uint32).ravel()
    arrays.update()
    look = mi.ScalarTransform4f().look_at([0, 0, DISTANCE], [0, 0, 0], [0, 1, 0])
    film = {"type": "hdrfilm", "width": pixels, "height": pixels, "pixel_format": "rgba"}
    light = {"type": "directional", "direction": [-1, -1, -1], "irradiance": 1.0}
    sensor = {
        "type": "perspective",
        "fov": float(ball.camera.fov_y),
        "to_world": look,
        "film": film,
    }
    return {
        "type": "scene", "integrator": INTEGRATOR, "light": light, "sensor": sensor, "ball": mesh,
    }  # fmt: skip


if __name__ == "__main__":
    prepare(make_ball(20), 8, 1).gradient()
