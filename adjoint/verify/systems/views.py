"""One scene in several views: every kind of camera and of lens, all parameters of both.

The picture is as in `pixels.py`; here only the cameras move.
"""

import dataclasses

import numpy as np

from adjoint.verify.problem import Problem, System
from adjoint.verify.systems import pixels
from adjsim.rotations import rotation_matrix
from render.camera import AnyCamera, Camera
from render.lenses import Intrinsics, Orthographic
from render.posed_camera import PosedCamera


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
    problem = pixels.picture_problem(lambda: seen)
    point = {path: value for path, value in problem.point.items() if path.startswith("camera.")}
    owners = {path: problem.owners[path] for path in point}
    return dataclasses.replace(problem, point=point, owners=owners, inert=())


SYSTEMS = (System("raster/views", several),)
