"""A photorealistic video of a moving body: VTK's physically based rendering, by an image for light.

Base colour, metalness and roughness, light from everywhere by an image of a sky and two lamps that
is computed here, a sun with shadows, a floor. Edges are smooth by supersampling. A renderer that
knows of none of this sees the same camera, the same motion and the colour of the body.

VTK draws off-screen; `missing` says what it lacks to do so.
"""

from typing import Any

import numpy as np
import scipy.sparse

from render.camera import AnyCamera
from studies.reports.view import drawing_problem, set_camera
from studies.runs import media


Color = tuple[float, float, float]
Size = tuple[int, int]  # height and width [pixels]
NAME = "VTK"
SUN = (0.5, 1.0, 0.6)  # direction towards it
# Lamps of the image: direction, half their angle [rad], radiance.
LAMPS = ((SUN, 0.22, (5.0, 4.6, 4.0)), ((-0.9, 0.45, 0.5), 0.25, (1.6, 2.0, 2.6)))
SKY, HORIZON, GROUND = (0.2, 0.27, 0.38), (0.34, 0.36, 0.38), (0.2, 0.19, 0.18)
RIM = 0.02  # softness of a lamp's rim, in cosines
GAMMA = 2.2  # of a screen: physically based rendering takes colours that are linear
CREASE = 40.0  # faces at a sharper angle have an edge between them [deg]
SUPERSAMPLE = 4  # samples along each side of a pixel
ROWS = 64  # of the image of the light
METALLIC, ROUGHNESS = 0.0, 0.35  # of the body [-]
SUN_STRENGTH = 2.2  # of the light that throws shadows
FLOOR_SIZE, FLOOR_COLOR, FLOOR_ROUGHNESS = 80.0, (0.45, 0.43, 0.4), 0.6  # [m], linear RGB, [-]


def missing() -> str | None:
    """Return what is missing to draw, or None."""
    return drawing_problem(on_screen=False)


def environment(rows: int) -> np.ndarray:
    """Return the image of the light, longitude over latitude, (rows, 2 rows, 3), linear, not < 0.

    The row 0 is above, y upwards; a sky that is paler at the horizon, a ground, and two lamps.
    """
    return radiance(directions(rows))


def directions(rows: int) -> np.ndarray:
    """Return unit vectors over latitude, from above, and longitude, (rows, 2 rows, 3)."""
    polar = np.pi * (np.arange(rows)[:, None] + 0.5) / rows
    around = np.pi * (np.arange(2 * rows)[None] + 0.5) / rows
    out, along = np.sin(polar), 0.0 * around
    return np.stack([out * np.cos(around), np.cos(polar) + along, out * np.sin(around)], -1)


def radiance(direction: np.ndarray) -> np.ndarray:
    """Return the light that comes from unit directions, (..., 3), linear RGB."""
    up = direction[..., 1:2]
    above = np.sqrt(np.clip(up, 0.0, 1.0))
    light = np.where(up > 0.0, (1.0 - above) * HORIZON + above * np.array(SKY), GROUND)
    for towards, angle, radiance in LAMPS:
        cosine = direction @ (np.array(towards) / np.linalg.norm(towards))
        lit = np.clip((cosine - np.cos(angle)) / RIM + 0.5, 0.0, 1.0)
        light = light + lit[..., None] * np.array(radiance)
    return light


def photograph(
    faces: np.ndarray, frames: np.ndarray, *, color: Color, camera: AnyCamera, size: Size
) -> tuple[np.ndarray, np.ndarray]:
    """Return a video of a body, and the picture of the empty scene, RGB in [0, 1].

    `frames` are its vertices, (n_frames, n_vertices, 3) [m], and `color` is RGB as a screen shows
    it. The pictures have the shapes (n_frames, height, width, 3) and (height, width, 3).
    """
    import pyvista

    plotter = _stage((SUPERSAMPLE * size[0], SUPERSAMPLE * size[1]))
    set_camera(plotter.camera, camera)
    empty = _shot(plotter)
    corners = np.arange(3 * len(faces)).reshape(-1, 3)
    body = pyvista.PolyData.from_regular_faces(frames[0][faces].reshape(-1, 3), corners)
    smoothing = corner_faces(faces, frames[0])
    body.point_data["Normals"] = corner_normals(smoothing, faces, frames[0])
    body.GetPointData().SetNormals(body.GetPointData().GetArray("Normals"))
    plotter.add_mesh(
        body, color=np.power(color, GAMMA), pbr=True, metallic=METALLIC,
        roughness=ROUGHNESS, reset_camera=False,
    )  # fmt: skip
    set_camera(plotter.camera, camera)
    images = []
    for x in frames:
        body.points = x[faces].reshape(-1, 3)
        np.asarray(body.point_data["Normals"])[...] = corner_normals(smoothing, faces, x)
        body.Modified()
        images.append(_shot(plotter))
    plotter.close()
    return np.stack(images), empty


def corner_faces(faces: np.ndarray, x: np.ndarray) -> scipy.sparse.csr_array:
    """Return which faces the normal of each corner is the mean of, (3 n_faces, n_faces).

    They are those at its vertex that make no crease with its own face.
    """
    normals = _normals(faces, x)
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    at = [np.flatnonzero((faces == vertex).any(axis=1)) for vertex in range(len(x))]
    pairs = [
        (corner, other)
        for corner, vertex in enumerate(faces.ravel())
        for other in at[vertex]
        if unit[corner // 3] @ unit[other] > np.cos(np.radians(CREASE))
    ]
    rows, columns = np.array(pairs).T
    ones = np.ones(len(pairs))
    return scipy.sparse.csr_array((ones, (rows, columns)), shape=(3 * len(faces), len(faces)))


def corner_normals(
    smoothing: scipy.sparse.csr_array, faces: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Return the unit normal of every corner, weighted by area, (3 n_faces, 3)."""
    normals = smoothing @ _normals(faces, x)
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def _normals(faces: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, b, c = np.moveaxis(np.asarray(x, float)[faces], 1, 0)
    return np.cross(b - a, c - a)


def _stage(window: tuple[int, int]) -> Any:
    """Return a plotter with light and floor, and nothing on it."""
    import pyvista
    from vtkmodules.vtkCommonCore import vtkLogger
    from vtkmodules.vtkRenderingOpenGL2 import vtkOpenGLSkybox

    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)  # it tells of displays it does without
    plotter: Any = pyvista.Plotter(
        off_screen=True, window_size=[window[1], window[0]], lighting="none"
    )
    plotter.render_window.SetMultiSamples(0)
    grid = pyvista.ImageData(dimensions=(2 * ROWS, ROWS, 1))
    grid.point_data["light"] = environment(ROWS)[::-1].reshape(-1, 3).astype(np.float32)
    light = pyvista.Texture(grid)  # over longitude and latitude
    light.SetColorModeToDirectScalars()
    light.SetInterpolate(True)
    light.SetMipmap(True)
    plotter.set_environment_texture(light, is_srgb=False, show_background=False)
    sky = vtkOpenGLSkybox()  # shows the light itself, behind everything
    sky.SetTexture(light)
    sky.SetProjectionToSphere()
    sky.GammaCorrectOn()
    plotter.add_actor(sky)
    floor = pyvista.Plane(
        center=(0, 0, 0), direction=(0, 1, 0), i_size=FLOOR_SIZE, j_size=FLOOR_SIZE
    )
    plotter.add_mesh(floor, color=FLOOR_COLOR, pbr=True, metallic=0.0, roughness=FLOOR_ROUGHNESS)
    sun = pyvista.Light(
        position=10.0 * np.array(SUN), focal_point=(0, 0, 0), intensity=SUN_STRENGTH
    )
    sun.positional = False
    plotter.add_light(sun)
    plotter.enable_shadows()
    return plotter


def _shot(plotter: Any) -> np.ndarray:
    """Return the picture, each pixel the mean of its samples."""
    plotter.render()
    picture = media.as_float(plotter.screenshot(return_img=True))
    return media.area_mean(picture[None], SUPERSAMPLE)[0]
