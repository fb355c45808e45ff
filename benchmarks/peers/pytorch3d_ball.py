"""The ball in PyTorch3D: its soft rasterizer with the blend of the paper."""

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from pytorch3d import renderer  # pyright: ignore[reportMissingImports]
from pytorch3d.structures import Meshes  # pyright: ignore[reportMissingImports]

from benchmarks.peers import PeerRun
from benchmarks.timing.laps import SIGMA
from benchmarks.timing.scenes import DISTANCE, Ball


FACES_PER_PIXEL = 8
D_MIN = 1e-4
GAMMA = 1e-4


def prepare(ball: Ball, pixels: int, threads: int) -> PeerRun:
    """Return drawing, and drawing with the gradient of the vertices, float32; 0 is the GPU."""
    torch.set_num_threads(threads or 1)
    device = torch.device("cpu" if threads else "cuda")
    points = torch.tensor(ball.points, dtype=torch.float32, device=device, requires_grad=True)
    faces = torch.tensor(ball.faces, dtype=torch.int64, device=device)
    rng = np.random.default_rng(0)
    colors = torch.tensor(
        rng.random((len(ball.faces), 1, 1, 3)), dtype=torch.float32, device=device
    )
    textures = renderer.TexturesAtlas(atlas=[colors])
    rotation, translation = renderer.look_at_view_transform(dist=DISTANCE, elev=0.0, azim=0.0)
    cameras = renderer.FoVPerspectiveCameras(
        R=rotation, T=translation, fov=float(ball.camera.fov_y), device=device
    )
    blend = renderer.BlendParams(sigma=SIGMA, gamma=GAMMA, background_color=(0.0, 0.0, 0.0))
    settings = renderer.RasterizationSettings(
        image_size=pixels,
        blur_radius=float(np.log(1.0 / D_MIN - 1.0)) * SIGMA,
        faces_per_pixel=FACES_PER_PIXEL,
        perspective_correct=True,
    )
    rasterizer = renderer.MeshRasterizer(cameras=cameras, raster_settings=settings)
    adj = torch.tensor(
        rng.standard_normal((1, pixels, pixels, 4)), dtype=torch.float32, device=device
    )
    wait = torch.cuda.synchronize if device.type == "cuda" else int
    last = {}

    def draw() -> torch.Tensor:
        mesh = Meshes(verts=[points], faces=[faces], textures=textures)
        fragments = rasterizer(mesh)
        texels = mesh.sample_textures(fragments)
        return renderer.softmax_rgb_blend(texels, fragments, blend)

    def forward() -> None:
        with torch.no_grad():
            last["image"] = draw()
        wait()

    def both() -> None:
        points.grad = None
        draw().backward(adj)
        wait()

    return PeerRun(forward, lambda: last["image"][0, ..., 3].cpu().numpy() > 0.5, both)
