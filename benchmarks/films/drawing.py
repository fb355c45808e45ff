"""Draws films with VTK and compresses them with H.264."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyvista
from pydantic.dataclasses import dataclass


Color = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Shot:
    """How a film is taken."""

    size: tuple[int, int] = (320, 240)  # width and height [pixels]
    fps: int = 30
    n_frames: int = 31
    light: tuple[float, float, float] = (1.0, 2.0, 1.5)  # where it is; a weaker one: the camera
    ambient: float = 0.3
    specular: float = 0.1
    background: Color = (0.85, 0.87, 0.9)
    floor: float | None = None  # height of a floor that is drawn [m]
    tiles: bool = False  # whether the floor is a chessboard
    shadow: bool = False  # whether the body throws a shadow on it
    noise: float = 0.0  # standard deviation of the sensor's noise, of 255
    crf: int = 23  # quality of H.264: 18 is very good, 23 usual, 30 poor
    shutter: float = 0.0  # part of a frame's time in which it is exposed, from its time on

    @property
    def times(self) -> np.ndarray:
        """Time of every frame, (n_frames,) [s]."""
        return np.arange(self.n_frames) / self.fps


def draw(
    surfaces: Sequence[tuple[np.ndarray, np.ndarray]],
    looks: Sequence[dict[str, Any]],
    camera: dict[str, Any],
    shot: Shot,
    *,
    seed: int,
) -> np.ndarray:
    """Return the film, (n_frames, height, width, 3) uint8; without surfaces, an empty picture.

    A surface is vertices (n_frames, n, 3) and faces; its look is given to `add_body`.
    """
    width, height = shot.size
    plotter = pyvista.Plotter(off_screen=True, window_size=[2 * width, 2 * height], lighting="none")
    plotter.set_background(list(shot.background))  # pyright: ignore[reportArgumentType]
    plotter.camera.position = camera["eye"]
    plotter.camera.focal_point = camera["target"]
    plotter.camera.up = camera.get("up", (0.0, 1.0, 0.0))
    plotter.camera.view_angle = camera["fov_y"]
    plotter.camera.clipping_range = (0.02, 100.0)
    plotter.add_light(pyvista.Light(position=shot.light, focal_point=(0, 0, 0), intensity=0.75))
    plotter.add_light(pyvista.Light(light_type="headlight", intensity=0.25))
    if shot.floor is not None:
        add_floor(plotter, shot)
    n_frames = len(surfaces[0][0]) if surfaces else 1
    frames = []
    for k in range(n_frames):
        for i, (surface, look) in enumerate(zip(surfaces, looks, strict=True)):
            add_body(plotter, surface, shot, k=k, name=f"body {i}", **look)
        picture = np.asarray(plotter.screenshot(return_img=True), float)
        frames.append(picture.reshape(height, 2, width, 2, 3).mean(axis=(1, 3)))
    plotter.close()
    noise = np.random.default_rng(seed).normal(0.0, 1.0, (n_frames, height, width, 3))
    return np.clip(np.rint(np.array(frames) + shot.noise * noise), 0, 255).astype(np.uint8)


def exposed(pictures: Sequence[np.ndarray]) -> np.ndarray:
    """Return the film of a shutter that is open from the first of these films to the last."""
    return np.rint(np.mean(pictures, axis=0)).astype(np.uint8)


def add_floor(plotter: Any, shot: Shot) -> None:
    """Add a large square, plain or a chessboard."""
    n = 60 if shot.tiles else 1
    floor = pyvista.Plane(
        center=(0.0, shot.floor or 0.0, 0.0),
        direction=(0, 1, 0),
        i_size=6.0,
        j_size=6.0,
        i_resolution=n,
        j_resolution=n,
    )
    row, column = np.divmod(np.arange(n * n), n)
    gray = np.where((row + column) % 2 == 0, 150, 185) if shot.tiles else np.array([170])
    floor.cell_data["gray"] = np.repeat(gray[:, None], 3, 1).astype(np.uint8)
    plotter.add_mesh(floor, scalars="gray", rgb=True, lighting=False, reset_camera=False)


def add_body(
    plotter: Any,
    surface: tuple[np.ndarray, np.ndarray],
    shot: Shot,
    *,
    k: int,
    name: str,
    color: Color,
    texture: bool = False,
    sharp: bool = False,
) -> None:
    """Draw the body, and its shadow, as they are in frame k."""
    vertices, faces = surface[0][k], surface[1]
    mesh = pyvista.PolyData.from_regular_faces(vertices, faces)
    look: dict[str, Any] = {"color": color}
    if texture:
        mesh.active_texture_coordinates = around(surface[0][0])
        look = {"texture": pyvista.Texture(pattern(color))}
    plotter.add_mesh(
        mesh,
        name=name,
        smooth_shading=True,
        split_sharp_edges=sharp,
        ambient=shot.ambient,
        diffuse=1 - shot.ambient,
        specular=shot.specular,
        specular_power=20,
        reset_camera=False,
        **look,
    )
    if shot.shadow and shot.floor is not None:
        light = np.array(shot.light)
        above = vertices[:, 1:2] - shot.floor
        flat = vertices - above * light / light[1] + [0.0, 1e-3, 0.0]
        plotter.add_mesh(
            pyvista.PolyData.from_regular_faces(flat, faces),
            name=f"shadow of {name}",
            color=(0.35, 0.35, 0.36),
            lighting=False,
            reset_camera=False,
        )


def pattern(color: Color) -> np.ndarray:
    """Return a picture with bands and dots of a colour, (128, 128, 3) uint8."""
    y, x = np.mgrid[:128, :128] / 128.0
    bands = np.where((8 * y) % 1 < 0.5, 0.8, 1.1)
    dots = np.where(np.hypot((6 * x) % 1 - 0.5, (6 * y) % 1 - 0.5) < 0.25, 0.65, 1.0)
    return np.clip(255 * (bands * dots)[..., None] * np.array(color), 0, 255).astype(np.uint8)


def around(vertices: np.ndarray) -> np.ndarray:
    """Return texture coordinates of a picture that is wrapped around a body, (n, 2)."""
    p = vertices - vertices.mean(axis=0)
    height = p[:, 1] / max(np.ptp(p[:, 1]), 1e-9) + 0.5
    return np.stack([np.abs(np.arctan2(p[:, 2], p[:, 0])) / np.pi, height], 1)


def write(path: Path, frames: np.ndarray, shot: Shot) -> None:
    """Write frames (n, height, width, 3) uint8 as H.264."""
    with av.open(str(path), "w") as film:
        stream = film.add_stream("libx264", rate=Fraction(shot.fps))
        stream.width, stream.height = shot.size
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": str(shot.crf), "threads": "1"}
        for frame in frames:
            film.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        film.mux(stream.encode(None))
