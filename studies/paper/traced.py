"""The same photorealistic video drawn by Mitsuba 3: paths of light, in place of VTK's shadows.

Light from the image of `studies.paper.photo`, a sun, a floor, the same materials: what VTK
approximates is computed, as soft shadows and what floor and body throw at each other. It is the
optional extra `photo`; `missing` says how to get it. Only its scalar variant is asked for, which
needs no LLVM.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from adjsim.extras import how_to_install
from render.camera import AnyCamera
from studies.paper import photo


NAME = "Mitsuba"
SAMPLES = 64  # paths of light of a pixel
DEPTH = 6  # of a path, in scatterings and one
VARIANT = "scalar_rgb"


def missing() -> str | None:
    """Return what is missing to draw, or None."""
    if find_spec("mitsuba") is not None:
        return None
    return f"It needs Mitsuba 3, the extra `photo`: {how_to_install('photo')}."


def photograph(
    faces: np.ndarray,
    frames: np.ndarray,
    *,
    color: photo.Color,
    camera: AnyCamera,
    size: photo.Size,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a video of a body, and the picture of the empty scene; see `photo.photograph`."""
    import mitsuba as mi  # pyright: ignore[reportMissingImports]

    mi.set_variant(VARIANT)
    mi.set_log_level(mi.LogLevel.Error)
    stage = _stage(mi, camera, size)
    material = mi.load_dict(
        _principled(np.power(color, photo.GAMMA), photo.METALLIC, photo.ROUGHNESS)
    )
    smoothing = photo.corner_faces(faces, frames[0])
    empty = _shot(mi, stage)
    images = []
    for x in frames:
        normals = photo.corner_normals(smoothing, faces, x)
        body = _mesh(mi, x[faces].reshape(-1, 3), normals, material)
        images.append(_shot(mi, {**stage, "body": body}))
    return np.stack(images), empty


def environment(rows: int) -> np.ndarray:
    """Return the image of the light as Mitsuba reads it, (rows, 2 rows, 3), linear.

    Its longitude u in [0, 1) looks along (sin 2 pi u, -cos 2 pi u) in x and z.
    """
    x, y, z = np.moveaxis(photo.directions(rows), -1, 0)
    return photo.radiance(np.stack([z, y, -x], -1))


def _stage(mi: Any, camera: AnyCamera, size: tuple[int, int]) -> dict[str, Any]:
    """Return camera, light and floor, and nothing on it."""
    flat = mi.ScalarTransform4f().rotate([1, 0, 0], -90).scale(photo.FLOOR_SIZE / 2.0)
    light = mi.Bitmap(environment(photo.ROWS).astype(np.float32))
    return {
        "type": "scene",
        "integrator": {"type": "path", "max_depth": DEPTH},
        "sensor": _sensor(mi, camera, size),
        "light": {"type": "envmap", "bitmap": light},
        "floor": {
            "type": "rectangle", "to_world": flat,
            "material": _principled(photo.FLOOR_COLOR, 0.0, photo.FLOOR_ROUGHNESS),
        },
        "sun": {
            "type": "directional", "direction": [-component for component in photo.SUN],
            "irradiance": {"type": "rgb", "value": photo.SUN_STRENGTH},
        },
    }  # fmt: skip


def _sensor(mi: Any, camera: AnyCamera, size: tuple[int, int]) -> dict[str, Any]:
    eye, (_, up, forward) = camera.pose()
    look = mi.ScalarTransform4f().look_at(eye.tolist(), (eye + forward).tolist(), up.tolist())
    film = {
        "type": "hdrfilm", "height": size[0], "width": size[1], "pixel_format": "rgb",
        "rfilter": {"type": "box"},
    }  # fmt: skip
    return {
        "type": "perspective", "fov": float(camera.fov_y), "fov_axis": "y", "to_world": look,
        "near_clip": camera.near, "far_clip": camera.far, "film": film,
        "sampler": {"type": "independent", "sample_count": SAMPLES},
    }  # fmt: skip


def _principled(color: Any, metallic: float, roughness: float) -> dict[str, Any]:
    base = {"type": "rgb", "value": np.asarray(color, float).tolist()}
    return {
        "type": "principled", "base_color": base, "metallic": metallic, "roughness": roughness,
    }  # fmt: skip


def _mesh(mi: Any, corners: np.ndarray, normals: np.ndarray, material: Any) -> Any:
    """Return loose triangles with a normal at every corner."""
    properties = mi.Properties()
    properties["bsdf"] = material
    mesh = mi.Mesh(
        "body", vertex_count=len(corners), face_count=len(corners) // 3, has_vertex_normals=True,
        props=properties,
    )  # fmt: skip
    arrays = mi.traverse(mesh)
    arrays["vertex_positions"] = corners.astype(np.float32).ravel()
    arrays["vertex_normals"] = normals.astype(np.float32).ravel()
    arrays["faces"] = np.arange(len(corners), dtype=np.uint32)
    arrays.update()
    return mesh


def _shot(mi: Any, scene: Mapping[str, Any]) -> np.ndarray:
    """Return the picture as a screen shows it, (height, width, 3) in [0, 1]."""
    picture = np.array(mi.render(mi.load_dict(dict(scene)), spp=SAMPLES, seed=0), float)
    return np.clip(picture, 0.0, 1.0) ** (1.0 / photo.GAMMA)
