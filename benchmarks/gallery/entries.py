"""The list of all that the renderer can show. A new mode is one more entry."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from adjsim.meshes.shapes import shape
from benchmarks.gallery.shots import Entry, Shot, Size
from render.blending import DIBR, Hard, Over, Softmax
from render.camera import AnyCamera, Camera
from render.lenses import Intrinsics, Orthographic
from render.outputs import Output
from render.posed_camera import PosedCamera
from render.scene import DirectionalLight, Light, Material, Mesh, Scene, SphericalHarmonics
from render.soft_raster import SoftRasterizer, softness
from render.textures import Texture, Wrap


WHITE = (1.0, 1.0, 1.0)
SAMPLES = 4  # of a pixel in each direction, where edges are smooth
SUN: dict[str, Light] = {"sun": DirectionalLight((0.5, 0.9, 0.7))}
THREE: dict[str, Light] = {
    "red": DirectionalLight((1.0, 0.3, 0.4), (0.9, 0.2, 0.1)),
    "green": DirectionalLight((-0.9, 0.2, 0.5), (0.1, 0.7, 0.2)),
    "blue": DirectionalLight((0.0, 1.0, 0.1), (0.2, 0.3, 0.9)),
}
SKY = ((2.3, 2.4, 2.5), (0.7, 0.8, 1.0), (0.2, 0.2, 0.16), (0.5, 0.1, -0.3), (0.1, 0.0, 0.0),
       (0.0, 0.1, 0.1), (-0.1, 0.0, 0.1), (0.1, 0.05, 0.0), (-0.15, -0.1, 0.05))  # fmt: skip
EYE, TARGET = (0.0, 1.5, 5.0), (0.0, -0.05, 0.2)
DEPTHS: dict[str, Any] = {"near": 1.0, "far": 20.0}
FRONT = Camera(EYE, TARGET, fov_y=30.0, **DEPTHS)  # most pictures are seen by it
OFF_MIDDLE = Camera(
    EYE, TARGET, **DEPTHS, lens=Intrinsics((340.0, 340.0), (140.0, 60.0), (180, 240))
)
FLAT_VIEW = Camera(EYE, TARGET, **DEPTHS, lens=Orthographic(2.6))
POSED = PosedCamera((0.25, -0.15, 0.3), (0.0, 0.1, -5.0), fov_y=34.0, **DEPTHS)


@cache
def still_life() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the meshes without their colours, and the vertices: four bodies on a board."""
    placed = {
        "apple": (shape("apple", 0.62), (-0.75, -0.12, 0.15)),
        "ring": (shape("torus", 0.6), (0.72, -0.36, 0.45)),
        "star": (shape("star", 0.5), (0.5, 0.5, -0.55)),
        "dog": (shape("dog", 0.55), (-0.1, -0.2, 0.85)),
    }
    faces = {name: mesh.faces for name, (mesh, _) in placed.items()}
    vertices = {name: mesh.points + at for name, (mesh, at) in placed.items()}
    corners = [(-1.7, 1.5), (1.7, 1.5), (1.7, -1.3), (-1.7, -1.3)]
    vertices["board"] = np.array([(x, -0.62, z) for x, z in corners])
    faces["board"] = np.array([(0, 1, 2), (0, 2, 3)])
    return faces, vertices


def palette(n: int, seed: int) -> np.ndarray:
    """Return colours of n faces or vertices, whole steps of 8 bits so that all draw the same."""
    rng = np.random.default_rng(seed)
    base = np.array([(219, 92, 58), (66, 122, 179), (242, 190, 74), (96, 160, 108), (150, 96, 160)])
    tint = np.tile(base[seed % len(base)], (n, 1))
    if n > 1:
        tint += rng.integers(-40, 41, (n, 3))
    return np.clip(tint, 0, 255) / 255.0


def colored(by: str, *, smooth: bool = False, materials: tuple[Material, ...] = ()) -> Scene:
    """Return the still life with colours by "face", "vertex" or "object"."""
    faces, vertices = still_life()
    objects = {}
    for k, (name, triangles) in enumerate(faces.items()):
        material = materials[k % len(materials)] if materials else Material(0.35, 0.65)
        rounded = smooth and name in {"apple", "ring"}
        count = len(vertices[name]) if by == "vertex" else len(triangles)
        colors: dict[str, Any]
        if name == "board":
            colors = {"face_colors": np.full((2, 3), 204 / 255)}
        elif by == "object":
            colors = {"face_colors": np.tile(palette(1, k), (count, 1))}
        else:
            colors = {f"{by}_colors": palette(count, k)}
        objects[name] = Mesh(triangles, **colors, material=material, smooth_normals=rounded)
    return Scene(objects, SUN)


def rasterizer(size: Size, pixels: float = 1.0, **changes: Any) -> SoftRasterizer:
    """Return a rasterizer on white with edges so many pixels soft."""
    return SoftRasterizer(softness(pixels, size[0]), background=WHITE, **changes)


def smooth_edges(size: Size) -> SoftRasterizer:
    """Return the z-buffer with many samples of a pixel."""
    return rasterizer(size, blend=Hard(), supersample=SAMPLES)


def shot(
    scene: Callable[[], Scene],
    raster: Callable[[Size], SoftRasterizer] = smooth_edges,
    camera: AnyCamera = FRONT,
    *,
    lights: dict[str, Light] | None = None,
    output: Output = Output.RGBA,
) -> Callable[[Size], Shot]:
    """Return what makes the shot of an entry at any size."""

    def make(size: Size) -> Shot:
        what = scene()
        what = what if lights is None else replace(what, lights=lights)
        return Shot(what, camera, raster(size), still_life()[1], size, output)

    return make


def sunset(size: Size) -> SoftRasterizer:
    """Return a rasterizer over an image."""
    rise, run = np.linspace(0.0, 1.0, size[0])[:, None, None], np.linspace(0.0, 1.0, size[1])
    low, high = np.array((1.0, 0.75, 0.45)), np.array((0.35, 0.55, 0.85))
    sky = high + rise * (low - high) + 0.0 * run[:, None]
    return replace(smooth_edges(size), background=sky)


def open_ball(size: Size) -> Shot:
    """Return a ball without its top, of which faces that turn away are culled."""
    ball = shape("sphere", 1.0)
    faces = ball.faces[ball.points[ball.faces].mean(axis=1)[:, 1] < 0.35]
    mesh = Mesh(faces, face_colors=palette(len(faces), 2), material=Material(0.35, 0.65))
    raster = replace(smooth_edges(size), cull=True)
    return Shot(Scene({"ball": mesh}, SUN), FRONT, raster, {"ball": ball.points}, size)


def textured(wrap: Wrap = Wrap.REPEAT) -> Scene:
    """Return the still life with pictures on the board and on the apple."""
    plain, (_, vertices) = colored("object"), still_life()
    board, apple = plain.objects["board"], plain.objects["apple"]
    tiles, paint = Texture(chequers(8), wrap), Texture(palette(64, 0).reshape(8, 8, 3), wrap)
    corners = [(-0.5, 1.5), (1.5, 1.5), (1.5, -0.5), (-0.5, -0.5)]
    x = vertices["apple"] - vertices["apple"].mean(axis=0)
    objects = {
        **plain.objects,
        "board": replace(board, face_colors=None, texture=tiles, uv=corners),
        "apple": replace(apple, face_colors=None, texture=paint, uv=0.5 + 0.8 * x[:, :2]),
    }
    return Scene(objects, SUN)


def chequers(n: int) -> np.ndarray:
    """Return n x n texels, bright and dark in turn, redder towards the first row."""
    row, column = np.mgrid[0:n, 0:n]
    bright = np.where((row + column) % 2, 230, 120)
    return np.stack([bright, bright - 8 * (n - row), bright - 12 * (n - row)], axis=-1) / 255.0


by_face, by_object, by_vertex = (partial(colored, by) for by in ("face", "object", "vertex"))
rounded = partial(colored, "object", smooth=True)
glossy = partial(rounded, materials=(Material(0.3, 0.5, 0.6, 20.0), Material(0.3, 0.6, 0.25, 5.0)))
of_materials = partial(by_object, materials=(
    Material(0.1, 0.9), Material(0.7, 0.2), Material((0.5, 0.3, 0.1), (0.2, 0.5, 0.8)),
))  # fmt: skip

ENTRIES: tuple[Entry, ...] = (
    Entry("hard", "Modes", "The z-buffer: each pixel shows the nearest face at its centre.",
          shot(by_face, lambda size: rasterizer(size, blend=Hard()))),
    Entry("over", "Modes", "Soft rasterization, Over: faces with edges 1 pixel soft, nearest "
          "first. An edge between two faces lets a quarter of what is behind them through: seams.",
          shot(by_face, rasterizer)),
    Entry("seamless", "Modes", "Over with seamless coverage, edges 1 pixel soft: silhouettes and "
          "boundaries alone are soft.",
          shot(by_face, lambda size: rasterizer(size, seamless=True))),
    Entry("softmax", "Modes", "Soft rasterization, Softmax with the paper's gamma: colours are a "
          "mask that ends where coverage falls below 1e-4.",
          shot(by_face, lambda size: rasterizer(size, blend=Softmax()))),
    Entry("wide", "Modes", "Over with edges 4 pixels soft, as at the start of a search.",
          shot(by_face, lambda size: rasterizer(size, 4.0, blend=Over()))),
    Entry("dibr", "Modes", "DIB-R: hard colours; its softness is in alpha alone.",
          shot(by_face, lambda size: rasterizer(size, blend=DIBR()))),
    Entry("culled", "Modes", "A ball without its top, faces that turn away culled: where it is "
          "open, nothing is drawn of the far wall.", open_ball),
    Entry("over-an-image", "Modes", "Drawn over an image, here a gradient.",
          shot(by_face, sunset)),
    Entry("ambient", "Lights", "Ambient light alone.", shot(by_object, lights={})),
    Entry("sun", "Lights", "One directional light, Lambert.", shot(by_object)),
    Entry("three-lights", "Lights", "Three coloured directional lights.",
          shot(by_object, lights=THREE)),
    Entry("harmonics", "Lights", "Spherical harmonics of order 2: light from everywhere.",
          shot(by_object, lights={"sky": SphericalHarmonics(SKY)})),
    Entry("face-colors", "Appearance", "A colour for each face.", shot(by_face)),
    Entry("vertex-colors", "Appearance", "A colour for each vertex, interpolated in perspective.",
          shot(by_vertex)),
    Entry("smooth-normals", "Appearance", "Apple and ring with interpolated normals, shaded pixel "
          "by pixel.", shot(rounded)),
    Entry("highlights", "Appearance", "Phong: highlights, shiny and dull.", shot(glossy)),
    Entry("textures", "Appearance", "Pictures on the board and the apple, bilinear between texels, "
          "repeated.", shot(textured)),
    Entry("materials", "Appearance", "Each object with ambient and diffuse coefficients of its "
          "own, one of them by channel.", shot(of_materials)),
    Entry("depth", "Outputs", "Depth along the view, near is bright; the mean of the samples, as "
          "all outputs.", shot(by_object, output=Output.DEPTH)),
    Entry("normals", "Outputs", "Normals: x, y and z as red, green and blue about grey.",
          shot(by_object, output=Output.NORMALS)),
    Entry("mask", "Outputs", "Which object is seen, each with a colour of its own.",
          shot(by_object, output=Output.MASK)),
    Entry("posed", "Cameras", "By rotation vector and translation.", shot(by_vertex, camera=POSED)),
    Entry("intrinsics", "Cameras", "With an intrinsics matrix: the principal point is off the "
          "middle.", shot(by_vertex, camera=OFF_MIDDLE)),
    Entry("orthographic", "Cameras", "Orthographic: nothing gets smaller with depth.",
          shot(by_vertex, camera=FLAT_VIEW)),
)  # fmt: skip
