"""Files of clouds: what is read of every format, and what is wrong with others."""

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.problem.observations.clouds import read_cloud
from studies.runs.errors import StudyError
from studies.runs.manifest import contents, input_files
from studies.scene.declared import Box, Cloud
from studies.scene.reading import scene_from_dict


POINTS = np.array([[0.5, -1.0, 2.0], [0.25, 0.0, 1.5], [-3.0, 4.0, 0.125]])
FIELDS = ["x", "y", "z", "red"]


def ply(points, layout="ascii", count=None):
    header = f"ply\nformat {layout} 1.0\ncomment a scan\nelement vertex {count or len(points)}\n"
    header += "property float x\nproperty double y\nproperty float z\nproperty uchar red\n"
    header += "element face 0\nproperty list uchar int vertex_indices\nend_header\n"
    if layout == "ascii":
        return header.encode() + "".join(f"{x} {y} {z} 7\n" for x, y, z in points).encode()
    mark = ">" if "big" in layout else "<"
    return header.encode() + b"".join(struct.pack(f"{mark}fdfB", *p, 7) for p in points)


def pcd(points, layout="ascii"):
    header = "# .PCD v0.7\nVERSION 0.7\nFIELDS normal x y z\nSIZE 4 4 4 4\nTYPE F F F F\n"
    header += f"COUNT 2 1 1 1\nWIDTH {len(points)}\nHEIGHT 1\nPOINTS {len(points)}\nDATA {layout}\n"
    if layout == "ascii":
        return header.encode() + "".join(f"9 9 {x} {y} {z}\n" for x, y, z in points).encode()
    return header.encode() + b"".join(struct.pack("<5f", 9, 9, *p) for p in points)


def csv(points):
    return "\n".join(["x,y,z", *(f"{x},{y},{z}" for x, y, z in points)]).encode()


def cloud_of(path, **more):
    return Cloud(file=str(path), **more)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.ply", ply(POINTS)),
        ("a.ply", ply(POINTS, "binary_little_endian")),
        ("a.ply", ply(POINTS, "binary_big_endian")),
        ("a.pcd", pcd(POINTS)),
        ("a.pcd", pcd(POINTS, "binary")),
        ("a.csv", csv(POINTS)),
    ],
)
def test_every_format_has_the_same_points(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    data = read_cloud(cloud_of(tmp_path / name))
    assert data.times.tolist() == [0.0]
    np.testing.assert_array_equal(data.frames[0], POINTS)


def test_a_folder_has_a_frame_in_each_file_and_its_rate(tmp_path):
    for k in range(4):
        np.savez(tmp_path / f"{k}.npz", points=POINTS[: k + 1 if k < 3 else 1] + k)
    (tmp_path / "notes.txt").write_text("of the sensor")
    data = read_cloud(cloud_of(tmp_path, fps=20.0, frames=(1, 4, 2)))
    np.testing.assert_allclose(data.times, [0.0, 0.1])
    padded = data.padded()
    assert padded.shape == (2, 2, 3)
    np.testing.assert_array_equal(padded[0], POINTS[:2] + 1)
    assert np.isnan(padded[1, 1]).all()
    (tmp_path / "times.csv.txt").write_text("time\n0\n0.1\n0.3\n0.4\n")
    times = str(tmp_path / "times.csv.txt")
    assert read_cloud(cloud_of(tmp_path, times=times)).times.tolist() == [0.0, 0.1, 0.3, 0.4]


def test_a_pattern_chooses_files_in_the_order_of_their_numbers(tmp_path):
    for k in (1, 2, 10):
        np.savez(tmp_path / f"scan_{k}.npz", points=POINTS + k)
    np.savez(tmp_path / "floor.npz", points=POINTS)
    (tmp_path / "._scan_1.npz").write_bytes(b"of a Mac")
    frames = read_cloud(cloud_of(tmp_path / "scan_*.npz", fps=20.0)).frames
    np.testing.assert_array_equal(np.stack(frames), POINTS + np.array([1, 2, 10])[:, None, None])
    table = {"kind": "cloud", "file": "scan_*.npz", "fps": 20.0}
    scene = {"bodies": {"a": {"kind": "rigid", "mesh": "box"}}, "observations": {"scan": table}}
    (path,) = (cloud.file for cloud in scene_from_dict(scene, tmp_path).observations.values())
    before = contents(Path(path))
    assert dict(input_files({"file": path})) == {"file": Path(path)}
    np.savez(tmp_path / "scan_2.npz", points=POINTS)
    assert contents(Path(path)) != before
    table["file"] = "skan_*.npz"
    with pytest.raises(StudyError, match=r"`observations.scan.file`: there is no file .*skan_"):
        scene_from_dict(scene, tmp_path)


def test_one_file_has_all_frames(tmp_path):
    rows = [f"{t},{x},{y},{z}" for t in (0.0, 0.5) for x, y, z in POINTS + t]
    (tmp_path / "a.csv").write_text("\n".join(["time, x, y, z", *rows]))
    stacked = np.stack([POINTS, POINTS + 0.5])
    np.savez(tmp_path / "a.npz", times=[0.0, 0.5], points=stacked)
    for name in ("a.csv", "a.npz"):
        data = read_cloud(cloud_of(tmp_path / name))
        assert data.times.tolist() == [0.0, 0.5]
        np.testing.assert_array_equal(data.padded(), stacked)


def test_points_come_into_the_world_and_into_the_box(tmp_path):
    (tmp_path / "a.csv").write_bytes(csv(1e3 * POINTS))
    box = Box(lower=(-10, 0, -10), upper=(10, 10, 10))
    placed = cloud_of(tmp_path / "a.csv", units="mm", rotation=(0, 0, 90), position=(0, 0, 1))
    turned = np.stack([-POINTS[:, 1], POINTS[:, 0], POINTS[:, 2] + 1], axis=1)
    np.testing.assert_allclose(read_cloud(placed).frames[0], turned, atol=1e-12)
    inside = read_cloud(replace(placed, box=box)).frames[0]
    np.testing.assert_allclose(inside, turned[:2], atol=1e-12)
    thinned = read_cloud(replace(placed, most_points=2)).frames[0]
    np.testing.assert_allclose(thinned, turned[[0, 2]], atol=1e-12)


def test_points_that_pcd_marks_as_invalid_are_left_out(tmp_path):
    (tmp_path / "a.pcd").write_bytes(pcd([[np.nan] * 3, *POINTS], "binary"))
    np.testing.assert_array_equal(read_cloud(cloud_of(tmp_path / "a.pcd")).frames[0], POINTS)


WRONG = np.where(np.arange(3)[:, None] == 1, np.nan, POINTS)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.ply", ply(WRONG), r"1 of 3 points with NaN or infinity, first number 1 .* Leave out"),
        ("a.csv", csv(WRONG), "1 of 3 points with NaN or infinity"),
        ("a.ply", ply(POINTS, count=5), "PLY file: it is cut: there are fewer than its 5 points"),
        ("a.ply", ply(POINTS, "binary_little_endian", 5), "it is cut"),
        ("a.ply", b"solid cube", "PLY file: it does not begin with `ply`"),
        ("a.pcd", b"PK\x03\x04", "PCD file: it has no line DATA"),
        ("a.pcd", pcd(POINTS, "binary_compressed"), "got binary_compressed: save it uncompressed"),
        ("a.pcd", pcd(POINTS).replace(b" z\n", b" q\n"), "it must have x, y and z, got normal"),
        ("a.pcd", pcd(POINTS).replace(b"SIZE 4", b"SIZE 3"), "cannot be read as a PCD file"),
        ("a.csv", b"x,y\n1,2\n", "must have a column `z`, got the columns x, y. The first line"),
        ("a.csv", b"x,y,z\n1,2,one\n", "line 2 of .* in the column `z`, got 'one'"),
        ("a.csv", b"x,y,z,time\n1,2,3\n", "4 numbers, .* x, y, z, time, got 3"),
        ("a.csv", b"time,x,y,z\nnan,1,2,3\n", "1 of 1 points with NaN or infinity"),
        ("a.csv", b"time,x,y,z\n", r"`cloud.file`: .*a.csv has no frames"),
        ("a.csv", b"x,y,z\n", r"a.csv has no points. Leave empty frames out"),
        ("a.npz", b"nothing", r"`cloud.file`: .*a.npz (cannot be read|must be .npz)"),
        ("a.obj", b"v 0 0 0\n", "must be one of .ply, .pcd, .csv, .npz, or a folder"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(name, data, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(StudyError, match=message):
        read_cloud(cloud_of(tmp_path / name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "must have `fps`, or `times` .* for the 3 frames in .*, got neither"),
        ({"fps": 30.0, "times": "t"}, "`cloud.times` must be left out: `fps` says them"),
        ({"times": "t"}, r"`cloud.times` must have a row for each of the 3 frames in .*, got 2"),
        ({"fps": 30.0, "frames": (0, 5)}, r"`cloud.frames` must lie within the 3 frames"),
        ({"fps": 30.0, "box": Box(lower=(9, 9, 9), upper=(10, 10, 10))}, "no points in `cloud.b"),
    ],
)
def test_frames_and_times_that_do_not_fit_are_refused(change, message, tmp_path):
    folder = tmp_path / "scans"
    folder.mkdir()
    for k in range(3):
        (folder / f"{k}.csv").write_bytes(csv(POINTS))
    (tmp_path / "t").write_text("time\n0.0\n0.1\n")
    change = {key: str(tmp_path / "t") if value == "t" else value for key, value in change.items()}
    with pytest.raises(StudyError, match=message):
        read_cloud(cloud_of(folder, **change))


STACKED = np.zeros((2, 4, 3))


@pytest.mark.parametrize(
    ("arrays", "change", "message"),
    [
        ({"times": [0, 1, 2], "points": STACKED}, {}, "each of its 2 frames, got the shape"),
        (
            {"times": [0, 1], "points": STACKED.astype(str)},
            {},
            r"`points` of numbers, \(n, n_points, 3\), got",
        ),
        ({"times": [0.5, 0.5], "points": STACKED}, {}, "finite numbers that increase"),
        ({"times": [0, np.inf], "points": STACKED}, {}, "finite numbers that increase"),
        ({"times": ["a", "b"], "points": STACKED}, {}, "got the shape .* and the type <U1"),
        ({"times": np.zeros(0), "points": STACKED[:0]}, {}, "its missing frames, got the shape"),
        ({"times": [0.0, 0.5], "points": STACKED}, {"fps": 30.0}, "`cloud.fps` must be left out"),
        ({"pts": POINTS}, {}, r"must have an array `points` of numbers, \(n_points, 3\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, change, message, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(StudyError, match=message):
        read_cloud(cloud_of(tmp_path / "a.npz", **change))


def test_a_folder_of_two_kinds_of_files_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", points=POINTS)
    (tmp_path / "b.csv").write_bytes(csv(POINTS))
    with pytest.raises(StudyError, match=r"must have files of one kind, .*, got .csv and .npz"):
        read_cloud(cloud_of(tmp_path, fps=10.0))
