"""Camera, light and rasterizer from a study's settings."""

from typing import Any

import numpy as np

from adjsim import checks
from render.camera import Camera
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer
from studies.video_problem import Filming


def make_filming(settings: dict[str, Any], name: str, mesh: Mesh, nodes: np.ndarray) -> Filming:
    """Return how the mesh is seen, by the tables `camera` and `image` of the settings.

    The rasterizer's sigma is set by the pixel: sqrt(sigma) = softness 2/height.
    """
    camera, image = settings["camera"], settings["image"]
    height, width = image["height"], image["width"]
    for key in ("height", "width", "softness"):
        checks.positive(f"image.{key}", image[key])
    background = checks.array("image.background", image["background"], (3,))
    light = DirectionalLight(checks.array("image.light", image["light"], (3,)))
    return Filming(
        Scene({name: mesh}, {"sun": light}),
        Camera(camera["eye"], camera["target"], fov_y=camera["fov_y"]),
        SoftRasterizer(sigma=(2.0 * image["softness"] / height) ** 2, background=background),
        name,
        nodes,
        (height, width),
    )
