"""A surface is filled by chance, but a run has one filling from its start to its end."""

import itertools
import pickle

import numpy as np
import pytest
import pyvista

from adjsim.meshes.grid import box_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies import fillings, running
from studies.errors import StudyError
from studies.fillings import KEPT, filled
from studies.run_folder import FILLINGS, MANIFEST, RunFolder
from studies.scans import scanning, survey
from studies.scans.spec import Asked


SIZE = (0.05, 0.05, 0.4)
TINY = (
    "image.downsample=8", "time.frames=2", "appearance.fit=false", "body.scale=1.0",
    "pinned.upper=[1, 1, 0.01]", "camera.fov_y=40", "time.dt=1e-3",
)  # fmt: skip


@pytest.fixture(autouse=True)
def chance(monkeypatch, tmp_path):
    """Fill a box with nodes in other places every time, as the mesher does; return the calls."""
    calls, draws = [], itertools.count()

    def fake(surface, *, edge_length):
        calls.append(edge_length)
        mesh = box_tets((2, 2, 3), np.ptp(surface.points, axis=0))
        points = mesh.points.copy()
        inside = np.setdiff1d(np.arange(len(points)), mesh.surface().nodes)
        points[inside] += 1e-3 * np.random.default_rng(next(draws)).random((len(inside), 3))
        return TetMesh(points, mesh.tets)

    monkeypatch.setattr(fillings, "tetrahedralise", fake)
    another_machine(monkeypatch, tmp_path / "one")
    yield calls
    KEPT.clear()


def another_machine(monkeypatch, path):
    """Forget what is kept in this process and in the cache."""
    monkeypatch.setattr(fillings, "CACHE_DIR", path / "kernels")
    for forget in (KEPT.clear, survey._grid.cache_clear, survey._terrain.cache_clear):
        forget()


def box(path, size=SIZE):
    """Write the surface of a box; return the setting that names it."""
    mesh = box_tets((1, 1, 1), size)
    pyvista.make_tri_mesh(mesh.points, mesh.surface().faces).save(path)
    return f"mesh={path}"


def nodes(job):
    return job.problem.motion.state.x


def test_a_surface_is_filled_once_and_kept(chance, monkeypatch, tmp_path):
    mesh = box_tets((1, 1, 1))
    surface = TriangleMesh(mesh.points, mesh.surface().faces)
    made = [filled(surface, edge_length) for edge_length in (0.1, 0.1, 0.2, 0.1)]
    KEPT.clear()
    again = filled(surface, 0.1)
    assert chance == [0.1, 0.2]
    assert made[0] is made[1] is made[3]
    assert (again.points == made[0].points).all()
    assert (again.tets == made[0].tets).all()
    another_machine(monkeypatch, tmp_path / "two")
    assert (filled(surface, 0.1).points != made[0].points).any()


def test_a_run_goes_on_with_its_filling_on_another_machine(monkeypatch, tmp_path):
    mesh, out = box(tmp_path / "box.ply"), tmp_path / "run"
    _, begun = running.start("identify", [mesh, *TINY], out, {})
    another_machine(monkeypatch, tmp_path / "two")
    _, again = running.resume("identify", [], out, {})
    assert (nodes(again) == nodes(begun)).all()
    assert again.problem.motion.system.parameters()["mass"].tolist() == (
        begun.problem.motion.system.parameters()["mass"].tolist()
    )


def test_a_surface_that_was_changed_under_a_run_is_refused(tmp_path):
    mesh, out = box(tmp_path / "box.ply"), tmp_path / "run"
    running.start("identify", [mesh, *TINY], out, {})
    box(tmp_path / "box.ply", (0.05, 0.06, 0.4))
    with pytest.raises(StudyError, match=r"`mesh` is not the surface that .*/run began with"):
        running.resume("identify", [], out, {})


def test_a_start_that_was_killed_behind_its_filling_begins_anew(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_json(MANIFEST, {})
    folder.write_npz(FILLINGS, a=np.zeros(3))
    mesh = box(tmp_path / "box.ply")
    _, job = running.resume("identify", [mesh, *TINY], folder.path, {})
    (points,) = (value for key, value in folder.read_npz(FILLINGS).items() if "points" in key)
    assert (points == nodes(job)).all()


def test_a_volume_mesh_leaves_no_filling(chance, tmp_path):
    folder, _ = running.start("identify", TINY[:3], tmp_path / "run", {})
    assert not folder.has(FILLINGS)
    assert chance == []


def test_a_run_says_what_its_estimate_owes_to_the_filling(tmp_path):
    few = (*TINY, "time.dt=2e-4", "optimizer.max_evaluations=2")
    folder, job = running.start("identify", [box(tmp_path / "box.ply"), *few], tmp_path / "run", {})
    told = job.run(folder)
    assert "tetrahedra, which depend on `body.edge_length` (0.08)" in told
    assert "run again with another, such as `body.edge_length=0.06`" in told
    report = folder.file("report.html").read_text()
    assert "tetrahedra, which depend on `body.edge_length`" in report
    _, job = running.start("identify", few[:3], tmp_path / "volume", {})
    assert job.findings(job.problem.parameters.start) == []


OVER = ("body.edge_length=0.25:1.25:3",)


def test_a_scan_brings_its_fillings_to_workers(chance, monkeypatch, tmp_path):
    asked = Asked("identify", [box(tmp_path / "box.ply"), *TINY], OVER, trust=False)
    _, job = scanning.start(asked, tmp_path / "scan")
    assert chance == [0.08, 0.25, 0.75]  # 1.25 is out of range: its point says so
    sent, pieces = pickle.dumps(job.survey), job.survey.pieces([(0,), (1,)])
    here = [job.survey(piece) for piece in pieces]
    another_machine(monkeypatch, tmp_path / "two")
    there = pickle.loads(sent)
    assert [there(piece) for piece in pieces] == here
    assert chance == [0.08, 0.25, 0.75]


def test_a_scan_goes_on_with_its_fillings_on_another_machine(chance, monkeypatch, tmp_path):
    asked = Asked("identify", [box(tmp_path / "box.ply"), *TINY], OVER, trust=False)
    _, begun = scanning.start(asked, tmp_path / "scan")
    another_machine(monkeypatch, tmp_path / "two")
    _, again = scanning.resume(Asked("identify"), tmp_path / "scan")
    assert chance == [0.08, 0.25, 0.75]
    for key, mesh in begun.survey.fillings.items():
        assert (again.survey.fillings[key].points == mesh.points).all()
