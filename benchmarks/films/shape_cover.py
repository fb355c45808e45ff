"""Does an interval hold what the error of a hull does to E and nu, to first order?

A fit of films for each of many twins takes hours. What a hull is wrong by takes seconds: the first
frame of cameras that are placed anew about the true surface, for each twin. How far the hull is
outward at faces of a mesh is fitted with the modes c of `studies.scene.bodies.shape`, and E and nu
move by D c, D = -(J^T J)^-1 J^T dr/dc at the true values. Half-widths are those of the budget's row
of the shape, with the error that a run would say of this hull. What no mode has, whatever is not
linear, and noise are left out.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyvista
from scipy.spatial.transform import Rotation

from adjsim.meshes.tet_mesh import TetMesh
from benchmarks.films.views import CELLS, FIELD, SHOT, arm
from render.blending import Hard
from render.camera import Camera
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.answer.budget import QUANTILE
from studies.problem.carving import View
from studies.problem.making import make_problem
from studies.problem.outlines import surface_from_views
from studies.problem.pixels import posed
from studies.scene.reading import read_scene


HEADER = ("body", "views", "number", "off, rms", "largest", "half-width, median", "holds")
NUMBERS = ("E", "nu")  # as the scene has them, first of what is free; E as log10 E
TWINS = 20
OFF = 0.25  # part of the angle between neighbouring cameras, by which each may be off
SUPERSAMPLE = 4


def cover_rows(folder: Path, name: str, count: int) -> list[tuple[str, ...]]:
    """Return the cells of `HEADER` of E and nu, for `TWINS` hulls of so many views."""
    file = read_scene(folder / f"scene-{count}.toml")
    path = str(file.truth[f"bodies.{name}.mesh"])
    surface: Any = pyvista.read(path)
    truth = json.loads((folder / "truth.json").read_text())["parameters"]
    values = {key.removeprefix(f"{name}."): value for key, value in truth.items()}
    body: Any = replace(file.bodies[name], mesh=path, cells=None, shape_error=1.0, **values)
    of_shape = f"{name}.shape"
    free = {key: entry for key, entry in file.free.items() if key != of_shape}
    problem = make_problem(replace(file, bodies={name: body}, truth={}, free=free)).everything
    theta = problem.parameters.start
    problem = problem.with_steps_for(theta)
    J = problem.residuals_and_jacobian(theta)[1]
    products = problem.products_with(theta, J, [of_shape])[of_shape]
    rates = problem.parameters.natural_rates(theta)
    D = -rates[:, None] * np.linalg.solve(J.T @ J, products)
    D = D[: len(NUMBERS)]
    D[0] /= values["E"] * np.log(10.0)
    built: Any = problem.built
    mesh = TetMesh(built.state.x[built.nodes[name]], built.system.forces[name].tets)
    faces = np.asarray(mesh.surface().faces)
    a, b, c = (mesh.points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    areas = np.linalg.norm(normals, axis=1)
    outward = np.einsum("fim,fi->fm", built.shapes[name].modes[faces].mean(1), normals)
    outward /= areas[:, None]
    weights = np.sqrt(areas)
    off, half = [], []
    for seed in range(TWINS):
        carved = surface_from_views(_views(surface, count, seed), CELLS, name)
        there = pyvista.PolyData.from_regular_faces(carved.surface.points, carved.surface.faces)
        apart: Any = pyvista.PolyData((a + b + c) / 3).compute_implicit_distance(there)
        wrong = -weights * np.asarray(apart["implicit_distance"])  # of faces inside the hull
        off.append(D @ np.linalg.lstsq(weights[:, None] * outward, wrong, rcond=None)[0])
        half.append(QUANTILE * carved.error * np.linalg.norm(D, axis=1))
    each = zip(NUMBERS, np.abs(off).T, np.transpose(half), strict=True)
    return [
        (name, str(count), number, f"{np.sqrt(np.square(wrong).mean()):.3f}", f"{wrong.max():.3f}",
         f"{np.median(widths):.3f}", f"{(wrong <= widths).sum()} of {TWINS}")
        for number, wrong, widths in each
    ]  # fmt: skip


def _views(surface: Any, count: int, seed: int) -> dict[str, View]:
    """Return what cameras see that are placed as those of `views`, but turned and off at random."""
    rng = np.random.default_rng(seed)
    turn = Rotation.from_quat(rng.normal(size=4))
    points, faces = np.asarray(surface.points, float), np.asarray(surface.regular_faces)
    middle, scene = points.mean(axis=0), Scene({"body": Mesh(faces)})
    raster = SoftRasterizer(blend=Hard(), supersample=SUPERSAMPLE)
    size = (SHOT.size[1], SHOT.size[0])
    views = {}
    for k in range(count):
        eye = middle + turn.apply(arm(k + rng.uniform(-OFF, OFF), count, k))
        camera = Camera(eye, middle, fov_y=FIELD, up=turn.apply([0.0, 1.0, 0.0]))
        picture = rasterize(scene, camera, raster, {"body": points}, size)
        mask = np.reshape(picture[..., 3], size)
        views[f"view{k + 1}"] = View(mask, posed(camera, np.zeros(3)))
    return views
