import math

import numpy as np
import pytest
from PIL import Image

from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.exif import notes_on_fields_of_view
from studies.scene.reading import plain, scene_from_dict


def write_picture(folder, size=(60, 40), focal=26, orientation=1):
    """Write a JPEG picture of a width and height with EXIF data."""
    data = Image.Exif()
    data[0x0112] = orientation
    data.get_ifd(0x8769)[0xA405] = focal
    Image.fromarray(np.zeros((size[1], size[0], 3), np.uint8)).save(folder / "a.jpg", exif=data)


def scene(folder, **camera):
    return scene_from_dict(
        {
            "bodies": {"brick": {"kind": "rigid", "mesh": "box", "density": 1000.0}},
            "cameras": {"front": {"eye": [0.0, 0.0, 2.0], "target": [0.0, 0.0, 0.0], **camera}},
            "observations": {"photo": {"video": "a.jpg"}},
            "free": {"brick.position": {}},
        },
        folder,
    )


@pytest.mark.parametrize(
    ("size", "orientation", "height"),
    [
        ((60, 40), 1, 24.0),  # as 35 mm film
        ((60, 40), 6, 36.0),  # which a phone held upright turned on its side
        ((40, 60), 1, 36.0),
        ((64, 48), 1, 0.6 * math.hypot(36.0, 24.0)),
    ],
)
def test_the_field_of_view_is_that_of_the_picture(tmp_path, size, orientation, height):
    write_picture(tmp_path, size, orientation=orientation)
    file = scene(tmp_path)
    front = file.cameras["front"]
    assert front.fov_y == pytest.approx(math.degrees(2.0 * math.atan(height / 52.0)))
    assert front.fov_error == 0.5 / 26.0  # a focal length in whole millimetres
    (note,) = notes_on_fields_of_view(file)
    assert "`cameras.front.fov_y` = " in note
    assert "a.jpg: 26 mm" in note
    assert notes_on_fields_of_view(scene_from_dict(plain(file))) == [note]
    assert note in make_problem(file, fits_first=False).notes


def test_a_field_of_view_that_is_given_counts(tmp_path):
    write_picture(tmp_path)
    file = scene(tmp_path, fov_y=30.0)
    assert file.cameras["front"].fov_y == 30.0
    assert notes_on_fields_of_view(file) == []


def test_a_picture_that_does_not_say_it_leaves_the_key_missing(tmp_path):
    write_picture(tmp_path, focal=0)
    with pytest.raises(StudyError, match=r"`cameras\.front` needs fov_y"):
        scene(tmp_path)
    (tmp_path / "a.jpg").write_bytes(b"no picture")
    with pytest.raises(StudyError, match=r"`cameras\.front` needs fov_y"):
        scene(tmp_path)
