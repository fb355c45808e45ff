"""Rings of cameras: one table for many views."""

import numpy as np
import pytest

from studies.runs.errors import StudyError
from studies.scene.reading import scene_from_dict


FILM = {"height": 8, "width": 8, "frames": 1, "duration": 0.0}


def scene(camera=None, film=None, folder="."):
    side = {"eye": [0.0, 0.0, 4.0], "target": [0.0, 0.0, 0.0], "fov_y": 40.0}
    side |= {"ring": {"views": 4, "elevations": [30.0, -30.0]}, **(camera or {})}
    return scene_from_dict(
        {
            "bodies": {"brick": {"kind": "rigid", "mesh": "box"}},
            "cameras": {"side": side},
            "observations": {"round": film or {"simulate": FILM}},
        },
        folder,
    )


def test_views_stand_evenly_and_as_far_away_as_the_first():
    file = scene()
    assert list(file.cameras) == ["side1", "side2", "side3", "side4"]
    eyes = np.array([camera.eye for camera in file.cameras.values()])
    assert np.allclose(np.linalg.norm(eyes, axis=1), 4.0)
    assert np.allclose(eyes[:, 1], [2.0, -2.0, 2.0, -2.0])
    assert np.allclose(np.degrees(np.arctan2(eyes[:, 0], eyes[:, 2])) % 360.0, [0, 90, 180, 270])
    assert [film.camera for film in file.observations.values()] == list(file.cameras)
    assert list(file.observations) == ["round1", "round2", "round3", "round4"]


def test_the_pictures_of_a_folder_are_taken_in_order(tmp_path):
    for k in (3, 1, 2, 4):
        (tmp_path / f"p{k}.jpg").touch()
    file = scene(film={"video": "."}, folder=tmp_path)
    assert [film.video[-6:] for film in file.observations.values()] == [
        "p1.jpg", "p2.jpg", "p3.jpg", "p4.jpg",
    ]  # fmt: skip
    (tmp_path / "p4.jpg").unlink()
    with pytest.raises(StudyError, match=r"4 pictures.*got 3"):
        scene(film={"video": "."}, folder=tmp_path)


@pytest.mark.parametrize(
    ("camera", "words"),
    [
        ({"eye": [0.0, 4.0, 0.0], "up": [0.0, 1.0, 1e-3]}, None),
        ({"eye": None, "target": None, "R": np.eye(3).tolist(), "t": [0, 0, 4]}, "eye and target"),
    ],
)
def test_a_ring_needs_a_first_view_beside_its_axis(camera, words):
    if words is None:
        assert len(scene(camera).cameras) == 4
        return
    given = {"fov_y": 40.0, **{k: v for k, v in camera.items() if v is not None}}
    with pytest.raises(StudyError, match=words):
        scene_from_dict(
            {
                "bodies": {"brick": {"kind": "rigid", "mesh": "box"}},
                "cameras": {"side": {**given, "ring": {"views": 2}}},
                "observations": {"round": {"simulate": FILM}},
            }
        )
