"""`adjsim camera` finds the camera with which pictures of a chessboard are drawn here."""

import sys
import tomllib

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("corners", "square", "part"),
    [
        ("9x6", SQUARE, "shows no chessboard with 9 x 6 inner corners"),
        ("7", SQUARE, "`--corners` must be the inner corners as COLUMNSxROWS"),
        ("7x5", 0.0, "`--square` must be a length above 0"),
    ],
)
def test_bad_boards_give_one_clear_message(pictures, corners, square, part):
    with pytest.raises(StudyError) as caught:
        camera_table(pictures, corners, square, "side")
    assert part in str(caught.value)


def test_the_extra_is_named_where_opencv_is_missing(pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(StudyError, match=r"opencv-python-headless, which is missing: .*\[camera\]"):
        camera_table(pictures, "7x5", SQUARE, "side")
