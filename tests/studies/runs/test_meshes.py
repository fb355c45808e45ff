"""A surface is filled by chance, but a run has one filling from its start to its end."""

import itertools
import subprocess

import numpy as np
import pytest
import pyvista

from adjsim.meshes.grid import box_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.fitting.running import start_scene
from studies.runs import meshes
from studies.runs.errors import StudyError
from studies.runs.folder import MESHES
from studies.runs.meshes import KEPT, filled


SCENE = """
[bodies.block]
kind = "soft"
mesh = "{mesh}"
E = 1e4
nu = 0.3
[observations.marks]
file = "marks.csv"
body = "block"
[free]
"block.E" = {{ bounds = [1e3, 1e5] }}
"""


@pytest.fixture(autouse=True)
def calls(monkeypatch, tmp_path):
    """Fill a box with nodes in other places every time, as the mesher does; return the calls."""
    calls, draws = [], itertools.count()

    def fake(surface, edge_length, envelope):
        calls.append(edge_length if envelope == 2e-3 else (edge_length, envelope))
        mesh = box_tets((2, 2, 3), np.ptp(surface.points, axis=0))
        points = mesh.points.copy()
        inside = np.setdiff1d(np.arange(len(points)), mesh.surface().nodes)
        points[inside] += 1e-3 * np.random.default_rng(next(draws)).random((len(inside), 3))
        return TetMesh(points, mesh.tets)

    monkeypatch.setattr(meshes, "meshed_apart", fake)
    another_machine(monkeypatch, tmp_path / "one")
    yield calls
    KEPT.clear()


def another_machine(monkeypatch, path):
    """Forget what is kept in this process and in the cache."""
    monkeypatch.setattr(meshes, "CACHE_DIR", path / "kernels")
    KEPT.clear()


def write_scene(folder, width=0.05, mesh="box.ply"):
    """Write a scene of a box whose surface is in a file, and return the path."""
    box = box_tets((1, 1, 1), (0.05, width, 0.4))
    pyvista.make_tri_mesh(box.points, box.surface().faces).save(folder / "box.ply")
    rows = [f"{t},corner,0,{-4.9 * t * t},0" for t in (0.0, 0.05, 0.1)]
    (folder / "marks.csv").write_text("\n".join(["time,point,x,y,z", *rows]))
    path = folder / "scene.toml"
    path.write_text(SCENE.format(mesh=mesh))
    return path


def nodes(job):
    return job.made.problem.built.state.x


def test_a_surface_is_filled_once_and_kept(calls, monkeypatch, tmp_path):
    mesh = box_tets((1, 1, 1))
    surface = TriangleMesh(mesh.points, mesh.surface().faces)
    made = [filled(surface, edge_length) for edge_length in (0.1, 0.1, 0.2, 0.1)]
    KEPT.clear()
    again = filled(surface, 0.1)
    assert calls == [0.1, 0.2]
    assert made[0] is made[1] is made[3]
    assert (again.points == made[0].points).all()
    assert (again.tets == made[0].tets).all()
    another_machine(monkeypatch, tmp_path / "two")
    assert (filled(surface, 0.1).points != made[0].points).any()


def test_a_surface_is_filled_no_more_finely_than_it_is_known(calls):
    mesh = box_tets((1, 1, 1))
    surface = TriangleMesh(mesh.points, mesh.surface().faces)
    coarse, _, fine = (filled(surface, 0.1, error) for error in (0.005, 0.5, 0.001))
    assert calls == [(0.1, pytest.approx(0.01 / np.sqrt(3.0))), (0.1, pytest.approx(0.01)), 0.1]
    assert filled(surface, 0.1) is fine
    assert filled(surface, 0.1, 0.005) is coarse


def test_a_run_goes_on_with_its_filling_on_another_machine(monkeypatch, tmp_path):
    scene, out = write_scene(tmp_path), tmp_path / "run"
    folder, begun = start_scene(scene, [], out, {})
    folder.release()
    another_machine(monkeypatch, tmp_path / "two")
    _, again = start_scene(scene, [], out, {}, resume=True)
    assert (nodes(again) == nodes(begun)).all()


def test_a_surface_that_was_changed_under_a_run_is_refused(tmp_path):
    scene, out = write_scene(tmp_path), tmp_path / "run"
    folder, _ = start_scene(scene, [], out, {})
    folder.release()
    write_scene(tmp_path, width=0.06)
    with pytest.raises(StudyError, match=r"the file of `bodies.block.mesh` has changed"):
        start_scene(scene, [], out, {}, resume=True)


def test_a_damaged_mesh_in_the_cache_is_made_again(calls, tmp_path, capsys):
    mesh = box_tets((1, 1, 1))
    surface = TriangleMesh(mesh.points, mesh.surface().faces)
    filled(surface, 0.1)
    (cached,) = tmp_path.rglob("*.npz")
    cached.write_bytes(cached.read_bytes()[:100])
    KEPT.clear()
    filled(surface, 0.1)
    assert calls == [0.1, 0.1]
    assert f"warning: {cached} is damaged: the mesh is made again" in capsys.readouterr().err


def test_sizes_that_no_mesher_takes_are_refused():
    mesh = box_tets((1, 1, 1))
    faces = mesh.surface().faces
    with pytest.raises(ValueError, match=r"`edge_length` = 1e-09 gives about .* tetrahedra.* Use"):
        filled(TriangleMesh(mesh.points, faces), 1e-9)
    points = mesh.points.copy()
    points[1] = points[0] + [0.0, 0.0, 1e-30]
    with pytest.raises(ValueError, match=r"the surface has an edge of .* at triangle \d+, but is"):
        filled(TriangleMesh(points, faces), 0.1)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise SystemExit(__import__('os').kill(__import__('os').getpid(), 11))", "has crashed"),
        ("import sys; print('`x` is open', file=sys.stderr); sys.exit(2)", "`x` is open"),
    ],
)
def test_a_mesher_that_fails_is_one_message(monkeypatch, code, message):
    monkeypatch.undo()
    real = subprocess.run

    def run(command, **more):
        return real([command[0], "-c", code], **more)

    monkeypatch.setattr(subprocess, "run", run)
    mesh = box_tets((1, 1, 1))
    with pytest.raises(StudyError, match=message):
        meshes.meshed_apart(TriangleMesh(mesh.points, mesh.surface().faces), 0.1, 2e-3)


def test_the_mesher_fills_a_box_in_a_process_of_its_own(monkeypatch):
    pytest.importorskip("pytetwild")
    monkeypatch.undo()
    mesh = box_tets((1, 1, 1))
    made = meshes.meshed_apart(TriangleMesh(mesh.points, mesh.surface().faces), 0.3, 2e-3)
    assert made.volumes.sum() == pytest.approx(1.0, rel=0.02)


def test_a_volume_mesh_leaves_no_filling(calls, tmp_path):
    place = ["bodies.block.size=[0.05, 0.05, 0.4]", "bodies.block.position=[0.025, 0.025, 0.2]"]
    folder, _ = start_scene(write_scene(tmp_path, mesh="box"), place, tmp_path / "run", {})
    assert not folder.has(MESHES)
    assert calls == []
