import numpy as np
import pytest
import pyvista

from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
from adjsim.meshes.sheets import sheet
from adjsim.model import Trajectory
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyTrajectory, vertices
from adjsim.series_files import write_bodies, write_moved, write_series


BOX = box_tets((2, 1, 1))


def trajectory(mesh, rng, n_frames=3, dtype=float):
    """Frames 0, 7, 14, ... of random numbers."""
    x, v = rng.normal(size=(2, n_frames, len(mesh.points), 3)).astype(dtype)
    return Trajectory(7 * np.arange(n_frames), 1e-3 / 3.0, x, v)


def frames_of(path):
    """Times and meshes of a series, as ParaView would read it."""
    reader = pyvista.PVDReader(path)
    for k, time in enumerate(reader.time_values):
        reader.set_active_time_point(k)
        yield time, reader.read()[0]


@pytest.mark.parametrize(("mesh", "kind"), [(BOX, "UnstructuredGrid"), (sheet((2, 3)), "PolyData")])
def test_a_series_is_read_back_to_the_bit(tmp_path, rng, mesh, kind):
    t = trajectory(mesh, rng)
    cells = mesh.tets if kind == "UnstructuredGrid" else mesh.faces
    path = write_series(
        tmp_path / "run.pvd",
        mesh,
        t,
        fields={"speed": np.linalg.norm(t.v, axis=2), "rest": mesh.points},
        cell_fields={"number": np.arange(len(cells))},
    )
    frames = list(frames_of(path))
    assert [time for time, _ in frames] == t.times.tolist()
    for k, (_, data) in enumerate(frames):
        assert type(data).__name__ == kind
        assert data.points.dtype == np.float64
        assert (data.points == t.x[k]).all()
        assert (data["velocity"] == t.v[k]).all()
        assert (data["speed"] == np.linalg.norm(t.v[k], axis=1)).all()
        assert (data["rest"] == mesh.points).all()
        assert (data["number"] == np.arange(len(cells))).all()
        nodes = data.cells_dict[10] if kind == "UnstructuredGrid" else data.regular_faces
        assert (nodes == cells).all()


def test_single_precision_stays_what_it_was(tmp_path, rng):
    t = trajectory(BOX, rng, dtype=np.float32)
    for k, (_, data) in enumerate(frames_of(write_series(tmp_path / "run.pvd", BOX, t))):
        assert (data.points == t.x[k]).all()


def test_bodies_are_read_back_where_they_are_drawn(tmp_path, rng):
    bodies = RigidBodies([shape("cube"), shape("cone")], mass=1.0, points={"tip": [9, 9, 9]})
    x, v, omega = rng.normal(size=(3, 2, 2, 3))
    r = rng.normal(size=(2, 2, 4))
    r /= np.linalg.norm(r, axis=-1, keepdims=True)
    states = BodyTrajectory(x, r, v, omega)
    frames = list(frames_of(write_bodies(tmp_path / "fall.pvd", bodies, states, [0.0, 0.5])))
    assert [time for time, _ in frames] == [0.0, 0.5]
    for k, (_, data) in enumerate(frames):
        assert (data.points == vertices(bodies, states)[k]).all()
        assert (data.regular_faces == bodies.faces).all()
        for b, mesh in enumerate(bodies.meshes):
            assert len(data.regular_faces[data["body"] == b]) == len(mesh.faces)
            # The mean over the cube's vertices, at its centre, moves with the body.
        assert np.allclose(data["velocity"][:8].mean(axis=0), v[k, 0], atol=1e-14)
    with pytest.raises(ValueError, match=r"`times` must have shape \(2,\)"):
        write_bodies(tmp_path / "fall.pvd", bodies, states, [0.0])


def test_a_mesh_moves_however_its_points_were_computed(tmp_path, rng):
    surface = sheet((1, 2))
    points, times = rng.normal(size=(2, 6, 3)), [0.1, 1.0 / 3.0]
    path = write_moved(tmp_path / "skin.pvd", surface, points, times)
    frames = list(frames_of(path))
    assert [time for time, _ in frames] == times
    assert all((data.points == x).all() for (_, data), x in zip(frames, points, strict=True))
    with pytest.raises(ValueError, match=r"`points` must have shape \(n_frames, 6, 3\)"):
        write_moved(path, surface, points[:, :5], times)
    with pytest.raises(ValueError, match=r"`times` must have shape \(2,\), got \(3,\)"):
        write_moved(path, surface, points, [0.0, 0.1, 0.2])


def test_a_shorter_series_leaves_no_frame_of_a_longer_one(tmp_path, rng):
    for n_frames in (5, 2):
        path = write_series(tmp_path / "a run & more.pvd", BOX, trajectory(BOX, rng, n_frames))
        (tmp_path / "a run & more" / "notes.txt").write_text("kept")
    assert len(list(frames_of(path))) == 2
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == [
        "a run & more.pvd", "a run & more_000000.vtu", "a run & more_000001.vtu", "notes.txt",
    ]  # fmt: skip


def test_writing_that_is_cut_off_leaves_no_list(tmp_path, rng, monkeypatch):
    path = write_series(tmp_path / "run.pvd", BOX, trajectory(BOX, rng))

    def full_disk(*_args, **_kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(pyvista.UnstructuredGrid, "save", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_series(path, BOX, trajectory(BOX, rng))
    assert not path.exists()


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"fields": {"a": np.zeros((3, 5))}}, r"`fields\['a'\]` must have shape \(3, 12\) or"),
        ({"fields": {"a": 1.0}}, r"`fields\['a'\]` must have shape"),
        ({"cell_fields": {"b": np.zeros(12)}}, r"`cell_fields\['b'\]` .* \(10,\) or \(10, k\)"),
        ({"fields": {"a": np.full(12, np.nan)}}, r"`fields\['a'\]` must be finite"),
    ],
)
def test_a_field_that_does_not_fit_is_named(tmp_path, rng, kwargs, match):
    with pytest.raises(ValueError, match=match):
        write_series(tmp_path / "run.pvd", BOX, trajectory(BOX, rng), **kwargs)
    assert list(tmp_path.iterdir()) == []


def test_a_mesh_of_another_size_is_refused(tmp_path, rng):
    with pytest.raises(ValueError, match=r"`trajectory` .* expected 12, got 18. .* take the part"):
        write_series(tmp_path / "run.pvd", BOX, trajectory(box_tets((2, 2, 1)), rng))


def test_the_name_must_be_that_of_a_list_in_a_folder_that_exists(tmp_path, rng):
    with pytest.raises(ValueError, match=r"`path` must end in \.pvd, got run\.vtu"):
        write_series(tmp_path / "run.vtu", BOX, trajectory(BOX, rng))
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nothing to write to"):
        write_series(tmp_path / "nothing" / "run.pvd", BOX, trajectory(BOX, rng))
