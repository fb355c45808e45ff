"""What a picture of the gallery is made of, and the same scene without any light, for others."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from render.camera import AnyCamera
from render.harmonics import Y0, Y1, Y2, Y20, Y22
from render.outputs import Output, rasterize_outputs
from render.scene import DirectionalLight, Light, Mesh, Scene, SphericalHarmonics
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

    @property
    def background(self) -> np.ndarray:
        """What lies behind everything, (3,) or (height, width, 3)."""
        plain = {Output.NORMALS: 0.5, Output.MASK: 0.0}.get(self.output)
        return np.asarray(self.rasterizer.background) if plain is None else np.full(3, plain)


def show(output: Output, values: np.ndarray) -> np.ndarray:
    """Return a picture of an output: near is bright, x, y and z are red, green and blue."""
    if output is Output.DEPTH:
        nearness = (FARTHEST - values) / (FARTHEST - NEAREST)
        return np.repeat(nearness.clip(0.0, 1.0)[..., None], 3, axis=-1)
    return 0.5 + 0.5 * values if output is Output.NORMALS else values @ flags(values.shape[-1])


def flags(n: int) -> np.ndarray:
    """Return colours of n objects that are easy to tell apart, (n, 3)."""
    return np.array([FLAGS[k % len(FLAGS)] for k in range(n)]) / 255.0


@dataclass(frozen=True, eq=False)
class Entry:
    """One picture of the gallery.

    Attributes
    ----------
    name : str
        Of the file, and the heading.
    group : str
        Under which heading it stands.
    text : str
        What is seen, in a sentence or two.
    make : callable
        Size (height, width) to `Shot`.
    remark : str
        Why others may draw it differently.
    """

    name: str
    group: str
    text: str
    make: Callable[[Size], Shot]
    remark: str = ""


def face_normals(x: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return normals of faces, as long as twice the area, (n_faces, 3) [m^2]."""
    a, b, c = (x[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def vertex_normals(x: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return unit normals of vertices, those of their faces by area, (n_vertices, 3)."""
    total = np.zeros_like(x)
    for k in range(3):
        np.add.at(total, faces[:, k], face_normals(x, faces))
    return unit(total)


def unit(v: np.ndarray) -> np.ndarray:
    """Return vectors (n, 3) of length 1."""
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), np.finfo(float).tiny)


def corner_colors(mesh: Mesh) -> np.ndarray:
    """Return the colours of the corners of faces before any light, (n_faces, 3, 3)."""
    if mesh.vertex_colors is not None:
        return np.asarray(mesh.vertex_colors)[mesh.faces]
    colors = np.ones((len(mesh.faces), 3)) if mesh.face_colors is None else mesh.face_colors
    return np.repeat(np.asarray(colors)[:, None], 3, axis=1)


def shade(mesh: Mesh, lights: list[Light], n: np.ndarray) -> np.ndarray:
    """Return what multiplies the colour at unit normals (..., 3), written out anew in NumPy."""
    x, y, z = np.moveaxis(n, -1, 0)
    for light in lights:
        if isinstance(light, SphericalHarmonics):
            rows = (Y0 + 0 * x, Y1 * y, Y1 * z, Y1 * x, Y2 * x * y, Y2 * y * z, Y2 * x * z)
            rows += (Y20 * (3 * z * z - 1), Y22 * (x * x - y * y))
            return np.stack(rows, axis=-1) @ light.coefficients
    total = np.zeros_like(n) + mesh.material.ambient
    for light in lights:
        if isinstance(light, DirectionalLight):
            cosine = np.maximum(0.0, n @ (light.direction / np.linalg.norm(light.direction)))
            total = total + cosine[..., None] * light.color * mesh.material.diffuse
    return total


def is_plain(shot: Shot) -> bool:
    """Whether colours of corners show all of it: no highlight, no texture."""
    return all(
        mesh.material.specular is None and mesh.texture is None
        for mesh in shot.scene.objects.values()
    )


def lit_corners(shot: Shot) -> tuple[np.ndarray, np.ndarray]:
    """Return all faces as loose triangles with their light in their colours.

    For packages whose lights are not ours, or where normals and masks are shown: corners
    (n_faces, 3, 3) [m], and the RGB of each, (n_faces, 3, 3). With smooth normals it is exact at
    the corners only.
    """
    points, colors = [], []
    lights = list(shot.scene.lights.values())
    for flag, (name, mesh) in zip(
        flags(len(shot.scene.objects)), shot.scene.objects.items(), strict=True
    ):
        x = np.asarray(shot.vertices[name], float)
        flat = np.repeat(unit(face_normals(x, mesh.faces))[:, None], 3, axis=1)
        n = vertex_normals(x, mesh.faces)[mesh.faces] if mesh.smooth_normals else flat
        points.append(x[mesh.faces])
        if shot.output is Output.NORMALS:
            colors.append(0.5 + 0.5 * n)
        elif shot.output is Output.MASK:
            colors.append(np.broadcast_to(flag, n.shape))
        else:
            colors.append(corner_colors(mesh) * shade(mesh, lights, n))
    return np.concatenate(points), np.concatenate(colors)
