"""What a page of a run shows of a film: large, over what is behind the bodies, with obstacles."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from render.posed_camera import PosedCamera
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize, softness
from studies.problem.observers import Observer
from studies.scene import declared
from studies.scene.building import Lit
from studies.scene.obstacle_shapes import shape_of


ROWS = 480  # of a film on a page, at least
MOST_FRAMES = 48
AT_ONCE = 4  # frames
SUPERSAMPLED = 24  # films of so many frames or fewer are drawn with twice the rows
SOFT = 0.5  # width of edges [pixels]
OPACITY = 0.3  # of obstacles that the scene does not draw
PLAIN = 0.1  # by how much the colours of a background may differ that shows no obstacles
AROUND = 2.0  # times the distance of the camera: edge of the part of a floor that is shown
SQUARES = (0.35, 0.75)  # grey levels of a floor; of one patch, the last


@dataclass(frozen=True, eq=False)
class PageFilm:
    """What a page shows of one film, in RGB of 8 bits, (n, height, width, 3)."""

    footage: np.ndarray
    answer: np.ndarray  # the whole motion where the film is a picture
    is_simulated: bool = False  # whether the film was drawn again from the truth
    has_joints: bool = False  # whether joints are marked in the answer
    is_over_film: bool = False  # whether the answer is drawn over the film
    is_hatched: bool = False  # where it is not compared


def until(observer: Observer, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return times from the start of the motion to that of a picture."""
    end = float(observer.instants(values)[0])
    return np.linspace(0.0, end, MOST_FRAMES) if end > 0.0 else np.array([end])


def page_rasterizer(rows: int) -> SoftRasterizer:
    """Return what draws a picture of so many rows for a page."""
    return SoftRasterizer(sigma=softness(SOFT, rows), seamless=True)


def with_obstacles(
    plate: np.ndarray,
    obstacles: Mapping[str, declared.Obstacle],
    *,
    lights: Mapping[str, Lit],
    camera: PosedCamera,
    center: np.ndarray,
) -> np.ndarray:
    """Return a plain background with the obstacles that the scene does not draw, lightly.

    A picture shows the real ones: a second floor would lie beside its own. One that a body carries
    does not stand still. The camera turns about `center`, (3,) [m].
    """
    if float(np.ptp(plate, axis=(0, 1)).max()) > PLAIN:
        return plate
    meshes: dict[str, Mesh] = {}
    vertices: dict[str, np.ndarray] = {}
    far = AROUND * float(np.linalg.norm(camera.translation))
    for name, obstacle in obstacles.items():
        if not (obstacle.draw or obstacle.fixed_to):
            patches, points = shape_of(name, obstacle).patches(center, far)
            for k, (faces, grey) in enumerate(zip(patches, SQUARES[-len(patches) :], strict=True)):
                material = Material(ambient=0.6 * grey, diffuse=0.4 * grey)
                meshes[f"{name}-{k}"] = Mesh(faces, material=material)
                vertices[f"{name}-{k}"] = (points - center)[None]
    if not meshes:
        return plate
    size = plate.shape[0], plate.shape[1]
    (drawn,) = rasterize(Scene(meshes, lights), camera, page_rasterizer(size[0]), vertices, size)
    return plate * (1.0 - OPACITY * drawn[..., 3:]) + OPACITY * drawn[..., :3]
