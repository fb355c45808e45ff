r"""How far two surfaces are from each other, and how well their silhouettes overlap.

    chamfer = (mean over a of min_b |a - b| + mean over b of min_a |a - b|)/2

with points a, b drawn evenly on the one and the other surface. Points of one surface drawn twice
are not 0 apart: n points on an area A leave about sqrt(A/n)/2, which is the floor of the measure;
`floor` draws twice and tells it.

    overlap = pixels covered by both / pixels covered by one or both, over all pictures

Source of the first: Fan, Su & Guibas, A Point Set Generation Network, CVPR 2017, sec. 4.1, here
with distances that are not squared.
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial import KDTree

from adjsim.meshes.triangle_mesh import TriangleMesh
from render.blending import Hard
from render.camera import AnyCamera, Camera
from render.posed_camera import PosedCamera
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


POINTS = 6000  # drawn on each surface


def surface_points(mesh: TriangleMesh, count: int = POINTS, seed: int = 0) -> np.ndarray:
    """Return points drawn evenly on a surface, (count, 3) [m]: for a seed always the same ones."""
    rng = np.random.default_rng(seed)
    a, b, c = (mesh.points[mesh.faces[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    on = rng.choice(len(mesh.faces), count, p=areas / areas.sum())
    u, v = rng.random((2, count, 1))
    beyond = u + v > 1.0
    u, v = np.where(beyond, 1.0 - u, u), np.where(beyond, 1.0 - v, v)
    return a[on] + u * (b - a)[on] + v * (c - a)[on]


def chamfer(points: np.ndarray, others: np.ndarray) -> float:
    """Return the mean distance of two sets of points, (n, 3) [m], to and fro."""
    forth, _ = KDTree(others).query(points)
    back, _ = KDTree(points).query(others)
    return float((forth.mean() + back.mean()) / 2.0)


def floor(mesh: TriangleMesh) -> float:
    """Return what `chamfer` makes of a surface and itself, drawn twice [m]."""
    return chamfer(surface_points(mesh), surface_points(mesh, seed=1))


def silhouettes(
    mesh: TriangleMesh, cameras: Sequence[AnyCamera], size: tuple[int, int]
) -> np.ndarray:
    """Return which pixels a mesh covers, (n_cameras, height, width) bool."""
    scene = Scene({"mesh": Mesh(mesh.faces)})
    images = rasterize(scene, cameras, SoftRasterizer(blend=Hard()), {"mesh": mesh.points}, size)
    return images[..., 3] > 0.0


def between(cameras: Sequence[PosedCamera]) -> list[Camera]:
    """Return cameras that took no picture, looking at the origin: between the others if these
    stand evenly around it, and as far below as they are above.
    """
    angle = np.pi / len(cameras)
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, 0.0, s], [0.0, -1.0, 0.0], [-s, 0.0, c]])
    return [
        Camera(turn @ one.pose()[0], (0.0, 0.0, 0.0), fov_y=one.fov_y, near=one.near, far=one.far)
        for one in cameras
    ]


def overlap(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Return intersection over union of covered pixels."""
    return float((mine & theirs).sum() / max(1, (mine | theirs).sum()))
