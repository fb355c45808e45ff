import numpy as np
import pytest

from adjsim.meshes.files import poly_data
from adjsim.meshes.shapes import shape
from adjsim.rollout import rollout
from studies.scene.bodies.springs import beads, edges_of
from studies.scene.building import build
from studies.scene.declared import Held, Scene, Springs
from studies.scene.mesh_source import read_source


def built(**given):
    return build(Scene(bodies={"a": Springs(**given)}))


def test_a_rope_stretches_by_its_weight():
    k, m, links = 1e4, 0.5, 5
    scene = built(
        mesh="chain", size=(1.0,), cells=(links,), rotation=(0, 0, -90), stiffness=k, mass=m,
        damping=20.0, held=Held(nodes=(0,)),
    )  # fmt: skip
    dt = 0.5 * scene.system.stable_dt()
    n = int(2.0 / dt)
    end = rollout(scene.system, scene.state, dt, n, frames=[n]).x[0]
    below = m / (links + 1) * np.arange(links, 0, -1)
    np.testing.assert_allclose(-np.diff(end[:, 1]) - 1.0 / links, below * 9.81 / k, rtol=1e-3)


def test_every_edge_of_a_mesh_is_a_spring(tmp_path):
    tets = built(mesh="box", cells=(1, 1, 1))
    assert len(tets.system.forces["a"].edges) == 12 + 6  # edges of a cube, a diagonal on each side
    assert tets.system.mass.sum() == pytest.approx(1.0)
    poly_data(shape("cube")).save(tmp_path / "a.ply")
    faces = built(mesh=str(tmp_path / "a.ply"))
    assert len(faces.system.forces["a"].edges) == 18
    assert faces.meshes["a"].faces.shape == (12, 3)
    source = read_source("bodies.a", Springs(mesh="ball", cells=(1,)))
    assert len(edges_of(source.mesh)) == 30 + 12


def test_beads_lie_along_the_springs_as_thick_as_they_are_told():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0]])
    faces, skin, offset = beads(points, np.array([[0, 1], [1, 2]]), 0.1)
    vertices = skin @ points + offset
    assert faces.max() == len(vertices) - 1
    nearest = np.minimum(
        np.hypot(vertices[:, 1], vertices[:, 2]), np.hypot(vertices[:, 0] - 1.0, vertices[:, 2])
    )
    assert nearest.max() <= 0.1 + 1e-12
    np.testing.assert_allclose(np.asarray(skin.sum(axis=1)).ravel(), 1.0)
    moved = skin @ (points + 1.0) + offset
    np.testing.assert_allclose(moved, vertices + 1.0)
