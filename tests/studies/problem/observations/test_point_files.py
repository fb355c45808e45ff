"""Points from c3d files, which the package c3d writes, and from text that Tracker exports."""

import sys
import warnings

import c3d
import numpy as np
import pytest

from studies.problem.observations.points import read_points
from studies.runs.errors import StudyError
from studies.scene.declared import Camera, Points


PLACES = np.arange(24.0).reshape(4, 2, 3)  # frames, points, x y z
TRACKER = "mass_A\t\t\tmass_B\t\t\nt\tx\ty\tt\tx\ty\n0\t1\t2\t0\t3,5\t4\n0.04\t\t\t0.04\t5\t6\n"


def written(path, places=PLACES, units="mm  ", labels=("tip", "base"), rate=50.0):
    """Write a c3d file; places that are NaN are invalid."""
    writer = c3d.Writer(point_rate=rate, point_units=units)
    writer.set_point_labels(labels)
    for frame in places:
        samples = np.zeros((len(frame), 5), np.float32)
        samples[:, :3] = np.nan_to_num(frame)
        samples[np.isnan(frame[:, 0]), 3] = -1.0
        writer.add_frames([(samples, np.zeros((0, 1)))])
    with path.open("wb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer.write(file)
    return path


def read(path, **keys):
    return read_points(Points(file=str(path), body="beam", **keys))


def test_a_c3d_file_has_times_units_and_gaps(tmp_path):
    places = PLACES.copy()
    places[1, 0] = np.nan
    data = read(written(tmp_path / "a.c3d", places))
    assert data.names == ("tip", "base")
    np.testing.assert_allclose(data.times, [0.0, 0.02, 0.04, 0.06])
    np.testing.assert_allclose(data.values, 1e-3 * places, rtol=1e-6)


def test_frames_and_points_are_chosen_and_put_into_the_world(tmp_path):
    path = written(tmp_path / "a.c3d", units="m   ")
    keys = {"points": ("base",), "frames": (1, 3), "rotation": (0, 0, 90), "position": (0, 0, 7)}
    data = read(path, **keys)
    assert data.names == ("base",)
    np.testing.assert_allclose(data.times, [0.0, 0.02], rtol=1e-6)
    x, y, z = PLACES[1, 1]
    np.testing.assert_allclose(data.values[0, 0], [-y, x, z + 7.0], rtol=1e-6)
    np.testing.assert_allclose(read(path, units="cm").values, 1e-2 * PLACES, rtol=1e-6)


def test_a_point_that_is_never_seen_is_left_out(tmp_path):
    places = PLACES.copy()
    places[:, 0] = np.nan
    path = written(tmp_path / "a.c3d", places)
    assert read(path).names == ("base",)
    with pytest.raises(StudyError, match=r"nothing is left of tip: every sample"):
        read(path, points=("tip",))
    places[:2] = np.nan
    path = written(tmp_path / "b.c3d", places)
    with pytest.raises(StudyError, match=r"nothing is left: .* in the frames \[0, 2\]"):
        read(path, frames=(0, 2))


@pytest.mark.parametrize(
    ("keys", "parts"),
    [
        ({"points": ("tap",)}, ["`points.points`: Unknown point `tap`", "`tip`?"]),
        ({"frames": (2, 9)}, ["`points.frames` must lie within the 4 frames", "[2, 9]"]),
    ],
)
def test_bad_choices_give_one_clear_message(tmp_path, keys, parts):
    with pytest.raises(StudyError) as caught:
        read(written(tmp_path / "a.c3d"), **keys)
    for phrase in parts:
        assert phrase in str(caught.value)


def test_units_must_be_said(tmp_path):
    path = written(tmp_path / "a.c3d", units="    ")
    with pytest.raises(StudyError, match=r'`points\.units` is missing: .* "m", "cm" or "mm"'):
        read(path)
    np.testing.assert_allclose(read(path, units="mm").values, 1e-3 * PLACES, rtol=1e-6)


@pytest.mark.parametrize("kept", [0.9, 0.6])
def test_a_c3d_file_that_is_cut_is_refused(tmp_path, kept):
    path = written(tmp_path / "a.c3d", np.ones((200, 2, 3)))
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(StudyError, match=r"a\.c3d is cut: it has \d+ of the 200 frames"):
        read(path)


def test_a_file_that_is_no_c3d(tmp_path):
    (tmp_path / "a.c3d").write_bytes(b"nothing of the kind")
    with pytest.raises(StudyError, match="cannot be read as a c3d file"):
        read(tmp_path / "a.c3d")


def test_the_extra_is_named_where_the_package_is_missing(tmp_path, monkeypatch):
    path = written(tmp_path / "a.c3d")
    monkeypatch.setitem(sys.modules, "c3d", None)
    with pytest.raises(StudyError, match=r"package c3d, which is missing: .*\[tracks\]"):
        read(path)


@pytest.mark.parametrize("change", [str, lambda text: text.replace(",", ".").replace("\t", ",")])
def test_masses_of_tracker_stand_side_by_side(tmp_path, change):
    (tmp_path / "t.txt").write_text(change(TRACKER), encoding="utf-8")
    data = read(tmp_path / "t.txt")
    assert data.names == ("mass_A", "mass_B")
    np.testing.assert_array_equal(data.times, [0.0, 0.04])
    nothing = [np.nan] * 3
    np.testing.assert_array_equal(data.values, [[[1, 2, 0], [3.5, 4, 0]], [nothing, [5, 6, 0]]])


def test_masses_of_tracker_may_share_their_time(tmp_path):
    header = "A\t\t\tB\nt (s)\tx (mm)\ty (mm)\tx (mm)\ty (mm)\n"
    (tmp_path / "t.txt").write_text(f"{header}0\t1\t2\t3\t4\n")
    data = read(tmp_path / "t.txt")
    assert data.names == ("A", "B")
    np.testing.assert_allclose(data.values, [[[1e-3, 2e-3, 0], [3e-3, 4e-3, 0]]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TRACKER.replace("mass_B", ""),
            "line 1 of .* must name the 2 masses of line 2, got mass_A",
        ),
        ("".join(TRACKER.splitlines(keepends=True)[:2]), "has no points"),
        (TRACKER.replace("\t5\t", "\tfive\t"), "line 4 of .* must have finite numbers, got .five."),
        (TRACKER.replace("\t5\t", "\t" + 400 * "9"), "must have finite numbers, got .9{40}.\\.$"),
        (TRACKER.replace("t\tx\ty\n", "t\tx\tv\n"), "has no column y for 'mass_B'"),
        (TRACKER.replace("x", "x (mm)", 1), r"line 2 of .* each with its unit or none of them"),
    ],
)
def test_bad_text_of_tracker_gives_one_clear_message(tmp_path, text, message):
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=message):
        read(tmp_path / "t.txt")


def test_pixels_have_no_units(tmp_path):
    (tmp_path / "p.csv").write_text("time,point,u,v\n0,a,1,2\n")
    points = Points(file=str(tmp_path / "p.csv"), body="beam", camera="front", units="mm")
    with pytest.raises(StudyError, match=r"`points\.units` must be left out"):
        read_points(points, Camera(eye=(0, 0, 1), target=(0, 0, 0), fov_y=40.0))
