"""The same scene drawn by Mitsuba 3: loose triangles that shine in the colours of their corners."""

from typing import Any

import numpy as np

from render.lenses import Intrinsics, Orthographic
from render.outputs import Output
from studies.gallery.shots import Shot, is_plain, lit_corners
from studies.peers import PEERS


SAMPLES = 64  # of a pixel
PEER = next(peer for peer in PEERS if peer.name == "Mitsuba")


def missing() -> str | None:
    """Return what is missing to draw, or None."""
    return PEER.missing() or PEER.trouble()


def draw(shot: Shot) -> np.ndarray | None:
    """Return its picture, RGB (height, width, 3), or None if it has no such view."""
    import mitsuba as mi  # pyright: ignore[reportMissingImports]

    background = shot.background
    if shot.output is Output.DEPTH or not is_plain(shot):
        return None
    if isinstance(shot.camera.lens, Intrinsics | Orthographic) or shot.rasterizer.cull:
        return None
    mi.set_variant("llvm_ad_rgb")
    mi.set_log_level(mi.LogLevel.Error)
    points, colors = lit_corners(shot)
    scene = mi.load_dict(
        {
            "type": "scene", "integrator": {"type": "direct"}, "sensor": _sensor(mi, shot),
            "mesh": _mesh(mi, points, colors),
        }
    )  # fmt: skip
    rgba = np.array(mi.render(scene, spp=SAMPLES), float)
    return rgba[..., :3] + (1.0 - rgba[..., 3:]) * background


def _sensor(mi: Any, shot: Shot) -> dict[str, Any]:
    height, width = shot.size
    eye, (_, up, forward) = shot.camera.pose()
    look = mi.ScalarTransform4f().look_at(eye.tolist(), (eye + forward).tolist(), up.tolist())
    film = {
        "type": "hdrfilm", "width": width, "height": height, "pixel_format": "rgba",
        "rfilter": {"type": "box"},
    }  # fmt: skip
    return {
        "type": "perspective", "fov": float(shot.camera.fov_y), "fov_axis": "y",
        "near_clip": shot.camera.near, "far_clip": shot.camera.far, "to_world": look, "film": film,
        "sampler": {"type": "stratified", "sample_count": SAMPLES},
    }  # fmt: skip


def _mesh(mi: Any, points: np.ndarray, colors: np.ndarray) -> Any:
    n = len(points)
    properties = mi.Properties()
    glow = mi.load_dict(
        {"type": "area", "radiance": {"type": "mesh_attribute", "name": "vertex_color"}}
    )
    properties["emitter"] = glow
    mesh = mi.Mesh("mesh", vertex_count=3 * n, face_count=n, props=properties)
    mesh.add_attribute("vertex_color", 3, colors.astype(np.float32).ravel())
    arrays = mi.traverse(mesh)
    arrays["vertex_positions"] = points.astype(np.float32).ravel()
    arrays["faces"] = np.arange(3 * n, dtype=np.uint32)
    arrays.update()
    return mesh
