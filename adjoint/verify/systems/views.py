"""One scene in several views: every kind of camera and of lens, all parameters of both.

The pictures are as in `pixels.py`; here only the cameras and one object move.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.verify.problem import Problem, System, Values, changed
from adjoint.verify.systems import pixels
from adjoint.verify.systems.pixel_margins import picture_margins
from adjsim.rotations import rotation_matrix
from render.camera import AnyCamera, Camera
from render.lenses import Intrinsics, Orthographic
from render.posed_camera import PosedCamera
from render.soft_raster import rasterize


SIZE = (6, 7)
NOMINAL = rotation_matrix(np.array([0.3, -0.5, 0.4]))
VIEWS: tuple[AnyCamera, ...] = (
    PosedCamera((0.09, 0.21, -0.13), (0.04, -0.06, -3.5), NOMINAL, fov_y=46.0, near=0.5, far=8.0),
    Camera(
        (-0.7, 0.3, 3.4),
        (0.0, 0.02, 0.01),
        near=0.5,
        far=8.0,
        lens=Intrinsics((7.1, 6.7), (3.2, 2.3), SIZE, 0.3),
    ),
    PosedCamera((0.3, -0.4, 0.1), (0.03, 0.05, -3.5), near=0.5, far=8.0, lens=Orthographic(2.9)),
)


def several() -> Problem:
    """Return the views as a problem; its outputs are the channels of all their pixels."""
    seen = dataclasses.replace(pixels.over(), camera=VIEWS, size=SIZE)
    scene, _, soft, vertices, _ = seen.arguments
    point = {
        f"camera.{k}.{name}": value
        for k, view in enumerate(VIEWS)
        for name, value in view.parameters().items()
    }
    owners = {
        f"camera.{k}.{name}": (
            type(view if name in view.POSE else view.lens or view).__name__,
            name,
        )
        for k, view in enumerate(VIEWS)
        for name in view.parameters()
    }
    run = record_images(*seen.arguments)

    def forward(values: Values) -> np.ndarray:
        return rasterize(*seen.at(changed(values, point)).arguments).ravel()

    def jvp(tangents: Values) -> np.ndarray:
        return rasterize_jvp(*seen.arguments, tangents=tangents)[1].ravel()

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return run.vjp(adj.reshape(run.images.shape), wrt)

    def margins(values: Values) -> np.ndarray:
        views = seen.at(changed(values, point)).views
        parts = [picture_margins(scene, v, soft, vertices, SIZE) for v in views.values()]
        return np.concatenate(parts)

    return Problem(point, owners, forward, jvp, vjp, margins)


SYSTEMS = (System("raster/views", several),)
