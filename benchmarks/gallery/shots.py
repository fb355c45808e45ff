"""What a picture of the gallery is made of."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from render.camera import AnyCamera
from render.outputs import Output, rasterize_outputs
from render.scene import Scene
from render.soft_raster import SoftRasterizer, rasterize


Size = tuple[int, int]
NEAREST, FARTHEST = 3.5, 6.5  # depths [m] that are shown white and black
FLAGS = ((219, 92, 58), (66, 122, 179), (242, 190, 74), (96, 160, 108), (200, 200, 200))


@dataclass(frozen=True, eq=False)
class Shot:
    """Everything that `rasterize` is given for one picture.

    With `alpha` that is shown in place of the colours, white where a pixel is covered.
    """

    scene: Scene
    camera: AnyCamera
    rasterizer: SoftRasterizer
    vertices: dict[str, np.ndarray]
    size: Size
    output: Output = Output.RGBA
    alpha: bool = False

    def draw(self) -> np.ndarray:
        """Draw it; return RGB, (height, width, 3): of depth, normals and masks as `show` says."""
        args = (self.scene, self.camera, self.rasterizer, self.vertices, self.size)
        if self.alpha:
            return np.repeat(rasterize(*args)[..., 3:], 3, axis=-1)
        if self.output is Output.RGBA:
            return rasterize(*args)[..., :3]
        return show(self.output, rasterize_outputs(*args, [self.output])[self.output.value])


def show(output: Output, values: np.ndarray) -> np.ndarray:
    """Return a picture of an output: near is bright, x, y and z are red, green and blue."""
    if output is Output.DEPTH:
        nearness = (FARTHEST - values) / (FARTHEST - NEAREST)
        return np.repeat(nearness.clip(0.0, 1.0)[..., None], 3, axis=-1)
    if output is Output.NORMALS:
        return 0.5 + 0.5 * values
    return values @ (np.resize(FLAGS, (values.shape[-1], 3)) / 255.0)


@dataclass(frozen=True, eq=False)
class Entry:
    """One picture of the gallery."""

    name: str  # of the file, and the heading
    group: str  # under which heading it stands
    text: str  # what is seen, in a sentence or two
    make: Callable[[Size], Shot]
