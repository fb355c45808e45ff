"""The same scene drawn by PyTorch3D: loose triangles with the colours of their corners, no light.

Where we blend by `Softmax` it is asked for the same, with the same sigma and gamma; else it shows
the nearest face, and smooth edges are the mean of our samples, drawn as a larger picture. Its
camera looks along +z with x to the left and y up, and the shorter side of its screen is 2 long.
Where the package is not installed it is tested on a stand-in that does what its documentation
says, `tests/studies/pytorch3d_stand_in.py`.
"""

from typing import Any

import numpy as np

from render.blending import Softmax
from render.lenses import Orthographic
from render.outputs import Output
from studies import media
from studies.gallery.shots import Shot, is_plain, lit_corners
from studies.peers import PEERS


FACES_PER_PIXEL = 32  # of the soft blend, the nearest
PEER = next(peer for peer in PEERS if peer.name == "PyTorch3D")


def missing() -> str | None:
    """Return what is missing to draw, or None."""
    return PEER.missing()


def draw(shot: Shot) -> np.ndarray | None:
    """Return its picture, RGB (height, width, 3), or None if it has no such view."""
    import torch  # pyright: ignore[reportMissingImports]
    from pytorch3d import renderer  # pyright: ignore[reportMissingImports]
    from pytorch3d.structures import Meshes  # pyright: ignore[reportMissingImports]

    background, how = shot.background, shot.rasterizer
    is_soft = isinstance(how.blend, Softmax)
    if shot.output is Output.DEPTH or not is_plain(shot) or background.ndim == 3:
        return None
    if shot.camera.optics.numbers()[1] != 0.0:  # axes of the image that are askew
        return None
    k, unit = how.supersample, _unit(shot)
    points, colors = (np.reshape(each, (-1, 3)) for each in lit_corners(shot))
    mesh = Meshes(
        verts=[torch.tensor(points, dtype=torch.float32)],
        faces=[torch.tensor(np.arange(len(points)).reshape(-1, 3), dtype=torch.int64)],
        textures=renderer.TexturesVertex(
            verts_features=[torch.tensor(colors, dtype=torch.float32)]
        ),
    )
    settings = renderer.RasterizationSettings(
        image_size=(k * shot.size[0], k * shot.size[1]),
        blur_radius=-how.blend.lowest * how.sigma * unit**2 if is_soft else 0.0,
        faces_per_pixel=FACES_PER_PIXEL if is_soft else 1,
        cull_backfaces=how.cull,
    )
    look = renderer.BlendParams(
        sigma=how.sigma * unit**2, gamma=how.gamma, background_color=tuple(background.tolist())
    )
    cameras = _camera(torch, renderer, shot)
    with torch.no_grad():
        fragments = renderer.MeshRasterizer(cameras=cameras, raster_settings=settings)(mesh)
        texels = mesh.sample_textures(fragments)
        if is_soft:
            near, far = shot.camera.near, shot.camera.far
            image = renderer.softmax_rgb_blend(texels, fragments, look, znear=near, zfar=far)
        else:
            image = renderer.hard_rgb_blend(texels, fragments, look)
    return media.area_mean(np.asarray(image, float)[..., :3], k)[0]


def _unit(shot: Shot) -> float:
    """Return how long our unit of the screen, half its height, is on its screen."""
    return shot.size[0] / min(shot.size)


def _camera(torch: Any, renderer: Any, shot: Shot) -> Any:
    """Return our camera with its view along +z, x to the left and y up, points as rows."""
    eye, (right, up, forward) = shot.camera.pose()
    turn = np.stack([-right, up, forward], axis=1)
    f_x, _, c_x, f_y, c_y = shot.camera.optics.numbers()
    unit = _unit(shot)
    is_flat = isinstance(shot.camera.lens, Orthographic)
    kind = renderer.OrthographicCameras if is_flat else renderer.PerspectiveCameras
    return kind(
        focal_length=((unit * float(f_x), unit * float(f_y)),),
        principal_point=((-unit * float(c_x), unit * float(c_y)),),
        R=torch.tensor(turn[None], dtype=torch.float32),
        T=torch.tensor(-(eye @ turn)[None], dtype=torch.float32),
    )
