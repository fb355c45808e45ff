"""Cameras, scenes, soft rasterization and image losses: forward only.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from adjsim.lazy import lazy_names


if TYPE_CHECKING:
    from render.blending import DIBR as DIBR, Hard as Hard, Over as Over, Softmax as Softmax
    from render.camera import Camera as Camera
    from render.lenses import (
        Intrinsics as Intrinsics,
        Orthographic as Orthographic,
        Perspective as Perspective,
    )
    from render.losses import (
        Huber as Huber,
        Mse as Mse,
        PyramidMse as PyramidMse,
        SoftIou as SoftIou,
    )
    from render.posed_camera import PosedCamera as PosedCamera
    from render.scene import (
        DirectionalLight as DirectionalLight,
        Material as Material,
        Mesh as Mesh,
        Scene as Scene,
        SphericalHarmonics as SphericalHarmonics,
    )
    from render.shape_losses import (
        EdgeLength as EdgeLength,
        Laplacian as Laplacian,
        NormalConsistency as NormalConsistency,
    )
    from render.soft_raster import SoftRasterizer as SoftRasterizer, rasterize as rasterize
    from render.textures import Texture as Texture, Wrap as Wrap

__getattr__, __dir__ = lazy_names(__name__)
