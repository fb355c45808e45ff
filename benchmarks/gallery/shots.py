"""What a picture of the gallery is made of, and how adjsim and VTK draw it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim.meshes.triangle_mesh import vertex_normals
from render.blending import Hard
from render.camera import AnyCamera
from render.outputs import Output, rasterize_outputs
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from render.textures import Wrap
from studies.reports.view import set_camera
from studies.runs import media


Size = tuple[int, int]
NEAREST, FARTHEST = 3.5, 6.5  # depths [m] that are shown white and black
NO_LIGHT = DirectionalLight((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))  # without one VTK makes its own
FLAGS = ((219, 92, 58), (66, 122, 179), (242, 190, 74), (96, 160, 108), (200, 200, 200))


@dataclass(frozen=True, eq=False)
class Shot:
    """Everything that `rasterize` is given for one picture."""

    scene: Scene
    camera: AnyCamera
    rasterizer: SoftRasterizer
    vertices: dict[str, np.ndarray]
    size: Size
    output: Output = Output.RGBA

    def draw(self) -> np.ndarray:
        """Draw it; return RGB, (height, width, 3): of depth, normals and masks as `show` says."""
        args = (self.scene, self.camera, self.rasterizer, self.vertices, self.size)
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


def draw_by_vtk(shot: Shot) -> np.ndarray | None:
    """Return VTK's picture, RGB (height, width, 3), or None if it has no such picture.

    VTK samples pixels at their centres, as we do; smooth edges are the mean of the same samples,
    drawn as a larger picture. VTK turns normals towards the camera, so it agrees on faces that are
    seen from outside.
    """
    if not can_draw(shot):
        return None
    import pyvista
    from vtkmodules.vtkCommonCore import vtkLogger

    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)  # it tells of displays it does without
    k = shot.rasterizer.supersample
    height, width = shot.size
    plotter: Any = pyvista.Plotter(
        off_screen=True, window_size=[k * width, k * height], lighting="none"
    )
    plotter.render_window.SetMultiSamples(0)
    plotter.set_background(shot.rasterizer.background)
    for name, mesh in shot.scene.objects.items():
        _add_mesh(plotter, mesh, shot.vertices[name], cull=shot.rasterizer.cull)
    for light in shot.scene.lights.values() or [NO_LIGHT]:
        _add_light(plotter, light)
    set_camera(plotter.camera, shot.camera)
    picture = plotter.screenshot(return_img=True)
    depth = -plotter.get_image_depth(fill_value=-shot.camera.far)
    plotter.close()
    if shot.output is Output.DEPTH:
        return show(Output.DEPTH, media.area_mean(depth[None, ..., None], k)[0, ..., 0])
    return media.area_mean(media.as_float(picture)[None], k)[0]


def can_draw(shot: Shot) -> bool:
    """Whether VTK has these edges, outputs, lights and materials: hard, directional, one number."""
    by_channel = any(
        np.ndim(value)
        for mesh in shot.scene.objects.values()
        for value in mesh.material.parameters().values()
    )
    lights = shot.scene.lights.values()
    return (
        isinstance(shot.rasterizer.blend, Hard)
        and np.ndim(shot.rasterizer.background) == 1
        and shot.output in {Output.RGBA, Output.DEPTH}
        and not by_channel
        and all(isinstance(light, DirectionalLight) for light in lights)
    )


def _add_mesh(plotter: Any, mesh: Mesh, x: np.ndarray, *, cull: bool) -> None:
    """Add a mesh with its colours, normals and material."""
    import pyvista

    body = pyvista.PolyData.from_regular_faces(np.asarray(x, float), mesh.faces)
    by_vertex = mesh.vertex_colors is not None
    colors = mesh.vertex_colors if by_vertex else mesh.face_colors
    colors = np.ones((len(mesh.faces), 3)) if colors is None else colors
    (body.point_data if by_vertex else body.cell_data)["colors"] = media.as_uint8(colors)
    look: dict[str, Any] = {"scalars": "colors", "rgb": True}
    look["preference"] = "point" if by_vertex else "cell"
    if mesh.texture is not None:
        body.active_texture_coordinates = np.asarray(mesh.uv, float)
        picture = pyvista.Texture(media.as_uint8(mesh.texture.texels))
        picture.SetInterpolate(True)
        picture.repeat = mesh.texture.wrap is Wrap.REPEAT
        look = {"texture": picture, "color": "white"}
    if mesh.smooth_normals:
        body.point_data["Normals"] = vertex_normals(np.asarray(x, float), mesh.faces)
        body.GetPointData().SetNormals(body.GetPointData().GetArray("Normals"))
    actor = plotter.add_mesh(
        body, **look, ambient=float(mesh.material.ambient), diffuse=float(mesh.material.diffuse),
        specular=float(mesh.material.specular or 0.0),
        specular_power=float(mesh.material.shininess),
        interpolation="Phong" if mesh.smooth_normals else "Flat",
        culling="back" if cull else False, show_scalar_bar=False,
    )  # fmt: skip
    actor.GetProperty().SetSpecularColor(1.0, 1.0, 1.0)  # else that of the body


def _add_light(plotter: Any, light: Any) -> None:
    """Add a directional light."""
    import pyvista

    lamp = pyvista.Light(position=tuple(light.direction), focal_point=(0, 0, 0), intensity=1.0)
    lamp.positional = False
    color = tuple(np.asarray(light.color, float))
    lamp.SetDiffuseColor(color)  # PyVista would round it to 8 bits
    lamp.SetSpecularColor(color)
    plotter.add_light(lamp)
