"""What the gallery calls of PyTorch3D and PyTorch, in NumPy, as their documentation has it.

Points are rows, x_view = x R + T; x is to the left, y up, z into the picture; the shorter side
of the screen is 2 long; counter-clockwise faces are seen from the front. The z-buffer is written
out here; the soft blend keeps what it was asked for and shows the nearest face.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


ASKED: list[dict[str, Any]] = []  # of each soft blend, its settings


@dataclass
class PerspectiveCameras:
    focal_length: Any
    principal_point: Any
    R: Any
    T: Any

    def screen(self, points):
        """Return x, y and depth, a row for each point."""
        view = points @ self.R[0] + self.T[0]
        (focal,), (middle,) = self.focal_length, self.principal_point
        return np.column_stack([view[:, :2] / self.depth(view) * focal + middle, view[:, 2]])

    def depth(self, view):
        return view[:, 2:]


class OrthographicCameras(PerspectiveCameras):
    def depth(self, view):
        return np.ones_like(view[:, 2:])


@dataclass
class RasterizationSettings:
    image_size: Any = 256
    blur_radius: float = 0.0
    faces_per_pixel: int = 1
    cull_backfaces: bool = False


@dataclass
class MeshRasterizer:
    cameras: Any
    raster_settings: Any

    def __call__(self, mesh):
        """Return the nearest face of each pixel, -1 of none, and the weights of its corners."""
        height, width = self.raster_settings.image_size
        shorter = min(height, width)
        x = (width - 1 - 2 * np.arange(width)) / shorter
        y = (height - 1 - 2 * np.arange(height)) / shorter
        nearest = np.full((height, width), np.inf)
        face_of = np.full((height, width), -1)
        weights = np.zeros((height, width, 3))
        for number, corners in enumerate(self.cameras.screen(mesh.points)[mesh.faces]):
            (left, low, _), (right, high, _) = corners.min(axis=0), corners.max(axis=0)
            rows = np.flatnonzero((y >= low) & (y <= high))
            columns = np.flatnonzero((x >= left) & (x <= right))
            if not (len(rows) and len(columns)):
                continue
            place = np.ix_(rows, columns)
            shares, area = barycentrics(corners, x[columns], y[rows][:, None])
            if area == 0.0 or (self.raster_settings.cull_backfaces and area > 0.0):
                continue  # with x to the left a face that faces us has a negative area
            if isinstance(self.cameras, OrthographicCameras):
                depth = shares @ corners[:, 2]
            else:
                shares = shares / corners[:, 2]
                depth = 1.0 / shares.sum(axis=-1)
                shares = shares * depth[..., None]
            seen = (shares >= 0.0).all(axis=-1) & (depth < nearest[place])
            nearest[place] = np.where(seen, depth, nearest[place])
            face_of[place] = np.where(seen, number, face_of[place])
            weights[place] = np.where(seen[..., None], shares, weights[place])
        return SimpleNamespace(
            pix_to_face=face_of[None, ..., None], bary_coords=weights[None, :, :, None],
            settings=self.raster_settings,
        )  # fmt: skip


def barycentrics(corners, x, y):
    """Return the shares of three corners on the screen at (x, y), and twice the signed area."""
    (ax, ay), (bx, by), (cx, cy) = corners[:, :2]
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    of_a = (bx - x) * (cy - y) - (by - y) * (cx - x)
    of_b = (cx - x) * (ay - y) - (cy - y) * (ax - x)
    if area == 0.0:
        return None, area
    return np.stack([of_a, of_b, area - of_a - of_b], axis=-1) / area, area


class Meshes:
    def __init__(self, verts, faces, textures):
        (self.points,), (self.faces,), self.textures = verts, faces, textures

    def sample_textures(self, fragments):
        """Return the colours of the corners by their weights, (1, height, width, 1, 3)."""
        (colors,) = self.textures.verts_features
        found = colors[self.faces][fragments.pix_to_face]
        return (found * fragments.bary_coords[..., None]).sum(axis=-2)


def hard_rgb_blend(texels, fragments, blend_params):
    """Return the RGBA of the nearest face, or of the background."""
    covered = fragments.pix_to_face[..., :1] >= 0
    rgb = np.where(covered, texels[..., 0, :], blend_params.background_color)
    return np.concatenate([rgb, covered], axis=-1)


def softmax_rgb_blend(texels, fragments, blend_params, znear=1.0, zfar=100.0):
    """Keep the settings; show the nearest face."""
    kept = {**vars(blend_params), **vars(fragments.settings), "znear": znear, "zfar": zfar}
    ASKED.append(kept)
    return hard_rgb_blend(texels, fragments, blend_params)


def modules():
    """Return the modules by name, for `sys.modules`."""
    made = {n: ModuleType(n) for n in ("torch", "pytorch3d", "pytorch3d.structures")}
    made["pytorch3d.renderer"] = renderer = ModuleType("pytorch3d.renderer")
    torch: Any = made["torch"]
    torch.float32, torch.int64, torch.no_grad = np.float64, np.int64, nullcontext
    torch.tensor = np.array
    for tool in (PerspectiveCameras, OrthographicCameras, RasterizationSettings, MeshRasterizer):
        setattr(renderer, tool.__name__, tool)
    for tool in (hard_rgb_blend, softmax_rgb_blend):
        setattr(renderer, tool.__name__, tool)
    vars(renderer)["TexturesVertex"] = vars(renderer)["BlendParams"] = SimpleNamespace
    vars(made["pytorch3d"])["renderer"] = renderer
    vars(made["pytorch3d.structures"])["Meshes"] = Meshes
    return made
