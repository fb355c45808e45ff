import numpy as np
import pytest
import scipy.spatial

from adjsim.forces.hinges import dihedral_angle, rest_shape
from adjsim.meshes.files import poly_data
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rollout import rollout
from studies.runs.errors import StudyError
from studies.scene.bodies.cloth import HINGE
from studies.scene.building import build
from studies.scene.declared import Cloth, Scene, World


SHEET = {"mesh": "sheet", "size": (1.0, 0.5), "cells": (4, 2)}


def built(**table):
    return build(Scene(bodies={"a": Cloth(**table)}, world=World(gravity=(0, 0, 0))))


def triangulated(points):
    """Return the triangles between points of a plane, facing +z."""
    faces = scipy.spatial.Delaunay(points[:, :2]).simplices
    corners = points[faces]
    z = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2]
    faces[z < 0.0] = faces[z < 0.0][:, ::-1]
    return points, faces[np.abs(z) > 1e-6]


def squares(n=16):
    mesh = sheet((n, n))
    return mesh.points.copy(), mesh.faces


def equilateral(n=24):
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    points = np.stack([i + 0.5 * (j % 2), j * np.sqrt(0.75), 0.0 * i], axis=-1) / n
    return triangulated(points.reshape(-1, 3))


def irregular(n=16, seed=0):
    points, _ = squares(n)
    inner = ((points[:, :2] > 1e-9) & (points[:, :2] < 1.0 - 1e-9)).all(axis=1)
    points[inner, :2] += 0.45 / n * np.random.default_rng(seed).uniform(-1, 1, (inner.sum(), 2))
    return triangulated(points)


def inside(points, hinges, share):
    middle = points[hinges].mean(axis=1)[:, :2]
    low, high = points.min(axis=0)[:2], points.max(axis=0)[:2]
    rim = share * (high - low)
    return ((middle > low + rim) & (middle < high - rim)).all(axis=1)


def rigidity(points, faces, angle, relaxed=False):
    """Return the energy of a cylinder in the middle of a sheet over D kappa^2/2 per area."""
    hinges = mesh_hinges(faces)
    c0 = HINGE * rest_shape(points, hinges)
    across = points[:, 0] * np.cos(angle) + points[:, 1] * np.sin(angle)
    z, h = 0.5 * across**2, 1e-4
    slopes = np.zeros((len(hinges), 4))
    for a in range(4):
        corners = points[hinges].copy()
        corners[:, a, 2] += h
        flat = corners.reshape(-1, 3), np.arange(4 * len(hinges)).reshape(-1, 4)
        slopes[:, a] = dihedral_angle(*flat) / h
    if relaxed:
        n, stiffness = len(points), np.zeros((len(points),) * 2)
        for a in range(4):
            for b in range(4):
                terms = 0.5 * c0 * slopes[:, a] * slopes[:, b]
                np.add.at(stiffness, (hinges[:, a], hinges[:, b]), terms)
        low, high = points.min(axis=0)[:2], points.max(axis=0)[:2]
        rim = 2.2 * np.sqrt((high - low).prod() / n)
        free = ((points[:, :2] > low + rim) & (points[:, :2] < high - rim)).all(axis=1)
        load = -stiffness[np.ix_(free, ~free)] @ z[~free]
        z[free] = np.linalg.solve(stiffness[np.ix_(free, free)], load)
    angles = (slopes * z[hinges]).sum(axis=1)
    counted = inside(points, hinges, 0.25)
    # each hinge stands for a third of its two triangles
    e = points[hinges]
    areas = 0.5 * sum(
        np.linalg.norm(np.cross(e[:, 2] - e[:, k], e[:, 3] - e[:, k]), axis=1) for k in (0, 1)
    )
    return (0.25 * c0 * angles**2)[counted].sum() / (0.5 * areas[counted].sum() / 3.0)


ANGLES = np.radians([0.0, 20.0, 45.0, 70.0, 90.0, 120.0])


def test_a_cylinder_of_equilateral_triangles_has_the_rigidity_in_every_direction():
    for relaxed in (False, True):
        ratios = [rigidity(*equilateral(), angle, relaxed) for angle in ANGLES]
        np.testing.assert_allclose(ratios, 1.0, atol=0.1)  # rims count edges of one direction more
        assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)


def test_a_cylinder_of_squares_has_it_along_edges_and_more_along_diagonals():
    mesh = squares()
    ratios = [rigidity(*mesh, angle) for angle in np.radians([0.0, 90.0, 45.0])]
    np.testing.assert_allclose(ratios, [1.0, 1.0, 1.5], rtol=0.08)
    ratios = [rigidity(*mesh, angle, relaxed=True) for angle in np.radians([0.0, 45.0])]
    np.testing.assert_allclose(ratios, [0.83, 1.4], atol=0.1)


def test_a_cylinder_of_irregular_triangles_has_about_the_rigidity():
    ratios = [
        rigidity(*irregular(seed=seed), angle, relaxed=True) for seed in (0, 1) for angle in ANGLES
    ]
    assert min(ratios) > 0.9
    assert max(ratios) < 1.45
    assert np.mean(ratios) == pytest.approx(1.15, abs=0.12)


def test_bending_follows_E_unless_it_is_given():
    h, E, nu = 2e-3, 1e6, 0.25
    plate = E * h**3 / (12.0 * (1.0 - nu**2))
    scene = built(**SHEET, E=E, nu=nu, thickness=h)
    assert scene.system.forces["a_bending"].stiffness == pytest.approx(HINGE * plate)
    assert "a.bending" not in scene.values
    other = built(**SHEET, E=E, nu=nu, thickness=h, bending=1e-3, bending_damping=1e-5)
    assert other.system.forces["a_bending"].stiffness == pytest.approx(HINGE * 1e-3)
    assert other.system.forces["a_bending"].damping == pytest.approx(2e-5)
    assert other.values["a.bending"].value == 1e-3
    assert set(built(**SHEET, E=E, bending=0.0).system.forces) == {"a"}


def test_a_strip_that_is_pulled_answers_with_E_nu_and_thickness():
    E, nu, h, strain = 1e6, 0.3, 1e-3, 1e-4
    scene = built(**SHEET, E=E, nu=nu, thickness=h)
    stretched = scene.state.x * (1.0 + strain * np.array([1.0, -nu, 0.0]))
    model, state = scene.system.with_values(scene.state, {"state.x": stretched})
    dt = 1e-9
    force = model.mass[:, None] * rollout(model, state, dt, 1, frames=[1]).v[0] / dt
    right = scene.state.x[:, 0] > 0.49
    assert -force[right, 0].sum() == pytest.approx(E * h * strain * 0.5, rel=1e-3)
    assert np.abs(force[:, 1]).max() < 2e-3 * abs(force[right, 0].sum())


def test_nodes_of_a_finer_cloth_start_with_velocities_between_those_of_the_file(tmp_path):
    mesh = sheet((2, 1))
    data = poly_data(TriangleMesh(mesh.points, mesh.faces))
    data.point_data["v"] = mesh.points * [1.0, 2.0, 3.0]
    data.save(tmp_path / "a.vtp")
    cloth = Cloth(mesh=str(tmp_path / "a.vtp"), E=1e6, velocity="field:v", position=(0, 1, 0))
    scene = build(Scene(bodies={"a": cloth}), refined=True)
    expected = (scene.state.x - [0.0, 1.0, 0.0]) * [1.0, 2.0, 3.0]
    np.testing.assert_allclose(scene.state.v, expected, atol=1e-14)


def test_fields_reach_triangles_and_the_means_of_hinges(tmp_path):
    mesh = sheet((2, 1))
    data = poly_data(TriangleMesh(mesh.points, mesh.faces))
    data.cell_data["E"] = np.arange(1.0, 5.0) * 1e6
    data.save(tmp_path / "a.vtp")
    scene = built(mesh=str(tmp_path / "a.vtp"), E="field:E")
    np.testing.assert_array_equal(scene.values["a.E"].value, data.cell_data["E"])
    forces = scene.system.forces
    faces = [set(corners) for corners in mesh.faces.tolist()]
    bending = forces["a_bending"]
    for hinge, stiffness in zip(bending.hinges, bending.stiffness, strict=True):
        mean = np.mean(
            [1e6 * (k + 1.0) for k, triangle in enumerate(faces) if triangle <= set(hinge)]
        )
        assert stiffness == pytest.approx(HINGE * mean * 1e-9 / (12.0 * 0.91))


def test_masses_and_air():
    scene = built(**SHEET, E=1e6, thickness=2e-3, density=500.0, drag=1.5, viscosity=10.0)
    assert scene.system.mass.sum() == pytest.approx(0.5 * 2e-3 * 500.0)
    assert scene.system.forces["a_air"].drag == 1.5
    assert scene.system.forces["a_air"].lift == 0.0
    assert scene.system.forces["a"].viscosity == pytest.approx(0.02)
    assert "world.wind" in scene.values


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (SHEET, r"`bodies.a.E` must be given"),
        ({**SHEET, "E": 1e6, "nu": -0.6}, "`bodies.a.nu` must be above -0.5"),
        ({"mesh": "chain", "E": 1e6}, "`bodies.a.mesh` must have faces"),
    ],
)
def test_what_is_no_cloth_is_told(table, message):
    with pytest.raises(StudyError, match=message):
        built(**table)
