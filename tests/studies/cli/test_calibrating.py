"""`adjsim camera` finds the camera with which pictures of a chessboard are drawn here."""

import sys
import tomllib

import numpy as np
import pytest

from studies.cli import calibrating
from studies.cli.calibrating import camera_table
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.checking import check_scene
from studies.scene.reading import scene_from_dict
from tests.studies.cli.boards import R_OF, SQUARE, K, picture


TILTS = [(0.4, 0.2, 0.05), (-0.35, 0.3, 0.0), (0.2, -0.4, 0.1), (0.0, 0.35, -0.1)]
T = np.array([-0.08, -0.06, 0.5])


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boards")
    return [
        media.write_png(folder / f"{k}.png", picture(R_OF(tilt), T)) for k, tilt in enumerate(TILTS)
    ]


def test_the_camera_is_found(pictures):
    table, doubts = camera_table(pictures, "7x5", SQUARE, "side")
    assert doubts == []
    camera = tomllib.loads(table)["cameras"]["side"]
    np.testing.assert_allclose(camera["K"], K, rtol=0.01, atol=0.6)
    np.testing.assert_allclose(camera["R"], R_OF(TILTS[0]), atol=5e-3)
    np.testing.assert_allclose(camera["t"], T, atol=5e-3)
    k1, k2 = camera["distortion"]
    assert abs(0.1 * k1 + 0.01 * k2) < 2e-3  # at the edge of the picture
    bodies = {"ball": {"kind": "rigid", "mesh": "ball"}}
    check_scene(scene_from_dict({"bodies": bodies, "cameras": {"side": camera}}, "."))


def test_a_single_picture_warns(pictures):
    table, doubts = camera_table(pictures[:1], "7x5", SQUARE, "side")
    assert "less than 3 pictures" in doubts[0]
    camera = tomllib.loads(table)["cameras"]["side"]
    assert camera["distortion"] == [0.0, 0.0]
    assert camera["K"][0][0] == pytest.approx(K[0][0], rel=0.05)


def test_an_edge_in_millimetres_is_named(pictures):
    _, doubts = camera_table(pictures, "7x5", 1000.0 * SQUARE, "side")
    assert any("millimetres, give 0.0" in line for line in doubts)


@pytest.mark.parametrize(
    ("corners", "square", "message"),
    [
        ("9x6", SQUARE, "shows no chessboard with 9 x 6 inner corners"),
        ("7", SQUARE, "`--corners` must be the inner corners as COLUMNSxROWS"),
        (f"{10**30}x5", SQUARE, "`--corners` must be the inner corners"),
        ("²x6", SQUARE, "`--corners` must be the inner corners"),
        ("7x5", 0.0, "`--square` must be a length from 1e-06 to 1000 m, got 0"),
        ("7x5", np.inf, "`--square` must be a length from"),
        ("7x5", np.nan, "`--square` must be a length from"),
    ],
)
def test_bad_boards_give_one_clear_message(pictures, corners, square, message):
    with pytest.raises(StudyError) as caught:
        camera_table(pictures, corners, square, "side")
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["a b", "", "é", "a]\n[bodies.x"])
def test_a_name_that_is_no_key_is_refused(pictures, name):
    with pytest.raises(StudyError, match="`--name` must be letters from A to Z, digits and _, not"):
        camera_table(pictures[:1], "7x5", SQUARE, name)


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (3, 300)])
def test_a_picture_that_is_too_small_is_refused(tmp_path, size):
    path = media.write_png(tmp_path / "a.png", np.ones((*size, 3)))
    with pytest.raises(StudyError, match=r"a\.png must have 32 pixels or more along each"):
        camera_table([path], "7x5", SQUARE, "side")


def test_corners_that_fit_no_camera_are_one_message(pictures, monkeypatch):
    at_one_place = np.zeros((35, 2), np.float32), (320, 240)
    monkeypatch.setattr(calibrating, "_corners", lambda *_: at_one_place)
    with pytest.raises(StudyError, match="no camera fits the corners"):
        camera_table(pictures[:1], "7x5", SQUARE, "side")


def test_the_extra_is_named_where_opencv_is_missing(pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(StudyError, match=r"opencv-python-headless, which is missing: .*\[camera\]"):
        camera_table(pictures, "7x5", SQUARE, "side")
