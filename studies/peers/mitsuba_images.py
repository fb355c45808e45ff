"""The ball in Mitsuba 3: 16 samples a pixel, edges sampled by the projective integrator."""

from typing import Any

import drjit as dr  # pyright: ignore[reportMissingImports]
import mitsuba as mi  # pyright: ignore[reportMissingImports]
import numpy as np

from studies.peers import PeerRun
from studies.timing_scenes import DISTANCE, Ball, make_ball


SAMPLES = 16
POSITIONS = "ball.vertex_positions"
INTEGRATOR = {"type": "direct_projective", "sppi": 0, "guiding": "none"}


def prepare(ball: Ball, pixels: int, threads: int) -> PeerRun:
    """Return drawing, and drawing with the gradient of the vertices; it takes all cores."""
    del threads
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


def _scene(ball: Ball, pixels: int) -> dict[str, Any]:
    mesh = mi.Mesh("ball", vertex_count=len(ball.points), face_count=len(ball.faces))
    arrays = mi.traverse(mesh)
    arrays["vertex_positions"] = ball.points.astype(np.float32).ravel()
    arrays["faces"] = ball.faces.astype(np.uint32).ravel()
    arrays.update()
    look = mi.ScalarTransform4f().look_at([0, 0, DISTANCE], [0, 0, 0], [0, 1, 0])
    film = {"type": "hdrfilm", "width": pixels, "height": pixels, "pixel_format": "rgba"}
    light = {"type": "directional", "direction": [-1, -1, -1], "irradiance": 1.0}
    sensor = {"type": "perspective", "fov": ball.fov_y, "to_world": look, "film": film}
    return {
        "type": "scene", "integrator": INTEGRATOR, "light": light, "sensor": sensor, "ball": mesh,
    }  # fmt: skip


if __name__ == "__main__":  # an LLVM that it cannot use ends the process: tried in one apart
    trial = prepare(make_ball(20, 0), 8, 1)
    trial.forward()
    assert trial.gradient is not None
    trial.gradient()
