"""The same scene drawn by VTK through PyVista: its own camera, its own lights, its own rasterizer.

VTK samples pixels at their centres, as we do; smooth edges are the mean of the same samples,
drawn as a larger picture. Ambient and directional light are VTK's; materials by channel and
spherical harmonics, which it lacks, come as colours of corners. VTK turns normals towards the
camera, so it agrees on faces that are seen from outside.
"""

from typing import Any

import numpy as np

from render.camera import AnyCamera
from render.lenses import Intrinsics, Orthographic
from render.outputs import Output
from render.scene import DirectionalLight, Mesh
from render.textures import Wrap
from studies import media
from studies.gallery.shots import Shot, lit_corners, show, vertex_normals
from studies.view import drawing_problem


NO_LIGHT = DirectionalLight((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))  # without one VTK makes its own


def missing() -> str | None:
    """Return what is missing to draw, or None."""
    return drawing_problem(on_screen=False)


def draw(shot: Shot) -> np.ndarray:
    """Return VTK's picture, RGB (height, width, 3)."""
    import pyvista
    from vtkmodules.vtkCommonCore import vtkLogger

    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)  # it tells of displays it does without
    k = shot.rasterizer.supersample
    height, width = shot.size
    plotter: Any = pyvista.Plotter(
        off_screen=True, window_size=[k * width, k * height], lighting="none"
    )
    plotter.render_window.SetMultiSamples(0)
    behind = shot.background
    plotter.set_background(behind if behind.ndim == 1 else "black")
    if vtk_can_light(shot):
        for name, mesh in shot.scene.objects.items():
            _add_mesh(plotter, mesh, shot.vertices[name], cull=shot.rasterizer.cull)
        for light in shot.scene.lights.values() or [NO_LIGHT]:
            _add_light(plotter, light)
    else:
        _add_corners(plotter, *lit_corners(shot))
    set_camera(plotter.camera, shot.camera)
    picture = plotter.screenshot(return_img=True, transparent_background=behind.ndim == 3)
    if shot.output is Output.DEPTH:
        depth = -plotter.get_image_depth(fill_value=-shot.camera.far)
        plotter.close()
        return show(Output.DEPTH, media.area_mean(depth[None, ..., None], k)[0, ..., 0])
    plotter.close()
    image = media.as_float(picture)
    if behind.ndim == 3:
        samples = behind.repeat(k, axis=0).repeat(k, axis=1)
        image = np.where(image[..., 3:] > 0.0, image[..., :3], samples)
    return media.area_mean(image[None], k)[0]


def vtk_can_light(shot: Shot) -> bool:
    """Whether VTK has these lights and materials itself."""
    of_one_number = all(
        np.ndim(value) == 0
        for mesh in shot.scene.objects.values()
        for value in mesh.material.parameters().values()
    )
    lights = shot.scene.lights.values()
    if shot.output in {Output.NORMALS, Output.MASK}:
        return False
    return of_one_number and all(isinstance(light, DirectionalLight) for light in lights)


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


def _add_corners(plotter: Any, points: np.ndarray, colors: np.ndarray) -> None:
    """Add loose triangles, (n, 3, 3), that have their light in the colours of their corners."""
    import pyvista

    faces = np.arange(3 * len(points)).reshape(-1, 3)
    body = pyvista.PolyData.from_regular_faces(points.reshape(-1, 3), faces)
    body.point_data["colors"] = media.as_uint8(colors.reshape(-1, 3))
    plotter.add_mesh(body, scalars="colors", rgb=True, lighting=False, show_scalar_bar=False)


def set_camera(theirs: Any, camera: AnyCamera) -> None:
    """Make VTK's camera see what ours does."""
    eye, (_, up, forward) = camera.pose()
    theirs.position, theirs.focal_point, theirs.up = eye, eye + forward, up
    theirs.clipping_range = (camera.near, camera.far)
    lens = camera.lens
    if isinstance(lens, Orthographic):
        theirs.parallel_projection, theirs.parallel_scale = True, float(lens.height) / 2.0
    elif isinstance(lens, Intrinsics):
        height, width = lens.size
        theirs.view_angle = 2.0 * np.degrees(np.arctan(height / 2.0 / lens.focal[1]))
        c_u, c_v = lens.principal_point
        theirs.SetWindowCenter(
            -(2.0 * c_u + 1.0 - width) / width, (2.0 * c_v + 1.0 - height) / height
        )
    else:
        theirs.view_angle = float(camera.fov_y)
