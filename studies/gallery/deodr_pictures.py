"""The same scene drawn by DEODR: loose triangles with the colours of their corners, no light.

Smooth edges are the mean of our samples, drawn as a larger picture.
"""

import numpy as np

from render.lenses import Orthographic
from render.outputs import Output
from studies import media
from studies.gallery.shots import Shot, is_plain, lit_corners
from studies.peers import PEERS


SHARP = 1e-3  # pixels that it softens edges by: all edges of loose triangles are outlines
PEER = next(peer for peer in PEERS if peer.name == "DEODR")


def missing() -> str | None:
    """Return what is missing to draw, or None."""
    return PEER.missing()


def draw(shot: Shot) -> np.ndarray | None:
    """Return its picture, RGB (height, width, 3), or None if it has no such view."""
    import deodr  # pyright: ignore[reportMissingImports]

    background = shot.background
    if shot.output is Output.DEPTH or not is_plain(shot):
        return None
    if isinstance(shot.camera.lens, Orthographic) or shot.rasterizer.cull or background.ndim == 3:
        return None
    k = shot.rasterizer.supersample
    height, width = (k * n for n in shot.size)
    f_x, skew, c_x, f_y, c_y = shot.camera.optics.numbers()
    half = height / 2.0
    intrinsic = np.array(
        [
            [half * f_x, -half * skew, half * c_x + (width - 1) / 2.0],
            [0.0, half * f_y, (height - 1) / 2.0 - half * c_y],
            [0.0, 0.0, 1.0],
        ]
    )
    points, colors = lit_corners(shot)
    faces = np.arange(3 * len(points), dtype=np.uint32).reshape(-1, 3)
    mesh = deodr.ColoredTriMesh(
        faces, points.reshape(-1, 3), nb_colors=3, colors=colors.reshape(-1, 3)
    )
    scene = deodr.Scene3D(sigma=SHARP)
    scene.set_mesh(mesh)
    scene.set_light(light_directional=np.zeros(3), light_ambient=1.0)
    scene.set_background_color(background)
    camera = deodr.Camera(shot.camera.extrinsics(), intrinsic, height=height, width=width)
    return media.area_mean(np.asarray(scene.render(camera))[None], k)[0]
