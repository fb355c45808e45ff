import numpy as np
import pytest

from studies.problem.observations.points import read_points
from studies.runs.errors import StudyError
from studies.scene.declared import Camera, Points


K = ((80.0, 0.0, 30.0), (0.0, 80.0, 25.0), (0.0, 0.0, 1.0))
FRONT = Camera(K=K, R=np.eye(3).tolist(), t=(0, 0, 1), distortion=(-0.2, 0.0))
PIXELS = "point,u,v,time\na,30,25,0\nb,60,40,0\n"


def read(tmp_path, text, seen_by=None, **keys):
    path = tmp_path / "points.csv"
    path.write_text(text, encoding="utf-8")
    return read_points(Points(file=str(path), body="duck", **keys), seen_by)


def test_points_in_space(tmp_path):
    text = "time, x, y, z, point\n0,1,2,3,tip\n0.1,4,5,6,tip\n0,,,,7\n0.1,7,8,9,7\n"
    data = read(tmp_path, text)
    assert data.names == ("tip", "7")
    assert not data.is_in_picture
    np.testing.assert_array_equal(data.times, [0.0, 0.1])
    nothing = [np.nan] * 3
    np.testing.assert_array_equal(data.values, [[[1, 2, 3], nothing], [[4, 5, 6], [7, 8, 9]]])


@pytest.mark.parametrize(
    "text",
    [
        "Time (s),Point,X [mm],Y [mm],Z [mm]\n0,tip,1000,2000,3000\n\n0.1,tip,,,\n",
        "Time;Point;X (mm);Y (mm);Z (mm)\n0,0;tip;1000,0;2e3;3000\n0,1;tip;;;\n;;;;\n",
        "time\tpoint\tx (cm)\ty (cm)\tz (cm)\n0\ttip\t100\t200\t300\n0.1\ttip\t\t\t\n",
    ],
)
def test_tables_of_spreadsheets_are_read(tmp_path, text):
    data = read(tmp_path, text)
    assert data.names == ("tip",)
    np.testing.assert_allclose(data.times, [0.0, 0.1])
    np.testing.assert_allclose(data.values[:, 0], [[1, 2, 3], [np.nan] * 3])


def test_points_of_a_picture_are_undistorted(tmp_path):
    data = read(tmp_path, PIXELS, FRONT)
    assert data.is_in_picture
    np.testing.assert_allclose(data.values[0, 0], [30, 25])
    assert data.values[0, 1, 0] > 60.2


@pytest.mark.parametrize(
    ("text", "keys", "parts"),
    [
        ("", {}, ["line 1", "got nothing"]),
        ("0,a,1,2,3\n", {}, ["line 1", "time, point"]),
        ("time,point,x,y,z,note\n", {}, ["line 1", "no others", "note"]),
        ("time,point,x,y,z\n", {}, ["has no points"]),
        ("time (ms),point,x,y,z\n", {}, ["line 1", "time in s", "time (ms)"]),
        ("time,point,x (in),y,z\n", {}, ["line 1", "m, cm, mm", "x (in)"]),
        ("time,point,x (mm),y (m),z (mm)\n", {}, ["line 1", "one of m, cm, mm"]),
        ("time,point,x (mm),y,z\n", {}, ["line 1", "each with its unit or none", "x (mm), y, z"]),
        ("time,point,x,y,z\nnan,a,1,2,3\n", {}, ["line 2", "`time`", "'nan'"]),
        ("time,point,x,y,z\n0,a,1,2,3\n0,b,1,two,3\n", {}, ["line 3", "`y`", "'two'"]),
        ("time,point,x,y,z\n0,a,1,2\n", {}, ["line 2", "5 cells"]),
        ("time,point,x,y,z\n0,a,1,2,3,4\n", {}, ["line 2", "5 cells"]),
        ("time,point,x,y,z\n0,a,1,,3\n", {}, ["line 2", "`y`", "''"]),
        ('time,point,x,y,z\n0,a,"1,000",2,3\n', {}, ["line 2", "`x`", "'1,000'"]),
        ("time,point,x,y,z\n0,,1,2,3\n", {}, ["line 2", "`point`"]),
        ("time,point,x,y,z\n0,a,1,2,3\n0,a,1,2,3\n", {}, ["line 3", "'a' at time 0 after"]),
        ("time,point,x,y,z\n0,a,1,2,3\n0.2,a,1,2,3\n0.1,a,1,2,3\n", {}, ["line 4", "sort the"]),
        (
            "time,point,x,y,z\n0,nose,1,2,3\n",
            {"at": {"nos": (0, 0, 0)}},
            ["`points.at`", "`nose`?"],
        ),
        ("time,point,x,y,z\n0,a,1,2,3\n", {"camera": "c"}, ["`points.camera` must be left out"]),
        (PIXELS, {}, ["`points.camera` is missing"]),
    ],
)
def test_bad_tables_give_one_clear_message(tmp_path, text, keys, parts):
    with pytest.raises(StudyError) as caught:
        read(tmp_path, text, **keys)
    for phrase in parts:
        assert phrase in str(caught.value)


def test_no_file():
    with pytest.raises(StudyError, match=r"`points\.file`: nowhere\.csv cannot be read"):
        read_points(Points(file="nowhere.csv", body="duck"))


def test_distortion_without_a_size(tmp_path):
    camera = Camera(eye=(0, 0, 1), target=(0, 0, 0), fov_y=40, distortion=(0.1, 0.0))
    with pytest.raises(StudyError, match="distortion needs K"):
        read(tmp_path, PIXELS, camera)
