from types import SimpleNamespace

import numpy as np
import pytest

from studies import media
from studies.body import read_body
from studies.footage import Footage, make_skin_filming, mask, over, read_footage
from studies.identify import shipped


VIDEO = shipped("adjsim:hexbeam.mp4")
MOTION = None  # a skin asks nothing of it but the trajectory


def settings(**changed):
    out = {
        "mesh": "pyvista:hexbeam.vtk",
        "body": {"scale": 0.1, "edge_length": 0.1},
        "pinned": {"shape": "none"},
        "time": {"fps": 0.0, "frames": 0},
        "image": {"downsample": 8, "softness": 0.5, "compare": "rgb"},
        "camera": {
            "eye": [1.1, 0.2, 0.08],
            "target": [0.05, -0.06, 0.25],
            "up": [0.0, 1.0, 0.0],
            "fov_y": 28.0,
        },
        "background": {"color": [0.85, 0.88, 0.92], "image": "", "threshold": 0.15},
        "appearance": {
            "color": [0.8, 0.4, 0.2],
            "ambient": 0.5,
            "light": [1.0, 1.0, 0.0],
            "fit": False,
        },
    }
    for key, value in changed.items():
        table, _, name = key.partition("__")
        out[table][name] = value
    return out


def test_the_shipped_video_is_read():
    footage = read_footage(settings(), VIDEO)
    assert footage.frames.shape == (14, 24, 32, 3)
    assert footage.fps == 24.0


def test_the_first_frames_can_be_taken():
    footage = read_footage(settings(time__frames=5, time__fps=48.0), VIDEO)
    assert len(footage.frames) == 5
    assert footage.fps == 48.0


def test_more_frames_than_the_video_has_are_refused():
    with pytest.raises(ValueError, match=r"`time.frames` must be at most the 14 frames .* got 15"):
        read_footage(settings(time__frames=15), VIDEO)


def test_one_frame_of_a_longer_video_is_refused_by_the_name_of_the_setting():
    with pytest.raises(ValueError, match=r"`time.frames` must be at least 2 .* or 0 for all"):
        read_footage(settings(time__frames=1), VIDEO)


def test_a_folder_of_pictures_needs_a_rate(tmp_path):
    for i in range(2):
        media.write_png(tmp_path / f"{i}.png", np.zeros((8, 8, 3)))
    with pytest.raises(ValueError, match=r"`time.fps` must be given"):
        read_footage(settings(), str(tmp_path))


def test_one_frame_shows_no_motion(tmp_path):
    media.write_png(tmp_path / "a.png", np.zeros((8, 8, 3)))
    with pytest.raises(ValueError, match="at least 2 frames"):
        read_footage(settings(), str(tmp_path))


def test_a_camera_that_looks_away_is_refused():
    changed = settings(camera__target=[3.0, 0.2, 0.0])
    body, footage = read_body(changed), read_footage(changed, VIDEO)
    with pytest.raises(
        ValueError, match=r"`camera` does not see the body: .* from \[0.0, 0.0, 0.0\]"
    ):
        make_skin_filming(changed, body, footage)


def test_an_unknown_comparison_is_refused_with_the_nearest():
    changed = settings(image__compare="silhouete")
    body, footage = read_body(changed), read_footage(changed, VIDEO)
    with pytest.raises(ValueError, match="Did you mean `silhouette`"):
        make_skin_filming(changed, body, footage)


def test_a_silhouette_is_compared_in_white_on_black():
    changed = settings(image__compare="silhouette")
    body, footage = read_body(changed), read_footage(changed, VIDEO)
    filming, targets = make_skin_filming(changed, body, footage)
    image = filming.shoot(MOTION, SimpleNamespace(x=body.mesh.points[None]))
    # The body covers as much of the first frame as the video's mask says, within its edge.
    assert image[0, ..., 0].sum() == pytest.approx(targets[0, ..., 0].sum(), rel=0.15)
    # 0.85 in 8 bits, through the encoder, is within two levels: 2 / 255 / threshold.
    assert targets.min() < 2 / 255 / 0.15
    assert targets.max() == 1.0


def test_a_picture_of_the_background_takes_its_place(tmp_path):
    footage = read_footage(settings(), VIDEO)
    media.write_png(tmp_path / "plate.png", np.full((192, 256, 3), 0.2))
    changed = settings(background__image=str(tmp_path / "plate.png"))
    filming, _ = make_skin_filming(changed, read_body(changed), footage)
    assert filming.rasterizer.background == pytest.approx(np.full((24, 32, 3), 0.2), abs=1e-12)
    media.write_png(tmp_path / "plate.png", np.full((96, 64, 3), 0.2))
    with pytest.raises(ValueError, match=r"`background.image` must be as large as the video"):
        make_skin_filming(changed, read_body(changed), footage)


def test_the_filming_has_a_tangent_and_its_transpose(rng):
    changed = settings()
    body, footage = read_body(changed), read_footage(changed, VIDEO)
    filming, _ = make_skin_filming(changed, body, footage)
    x = body.mesh.points + 0.01 * rng.normal(size=(2, body.mesh.n_points, 3))
    tan_x, adj = rng.normal(size=x.shape), rng.normal(size=(2, *footage.size, 4))
    run, tan_run = SimpleNamespace(x=x), SimpleNamespace(x=tan_x)
    images, tan_images = filming.jvp(MOTION, run, tan_run, {})
    assert (images == filming.shoot(MOTION, run)).all()
    pulled = filming.vjp(MOTION, run, adj)
    assert np.vdot(tan_images, adj) == pytest.approx(np.vdot(tan_x, pulled.frames["x"]), rel=1e-10)


def test_alpha_of_the_video_is_used():
    frames = np.full((2, 4, 4, 4), 0.5)
    frames[..., 3] = 0.25
    plate = np.full((4, 4, 3), 1.0)
    assert (over(frames, plate) == 0.25 * 0.5 + 0.75).all()
    assert (mask(frames, plate, 0.1) == 0.25).all()


def test_the_mask_saturates_at_the_threshold():
    frames = np.broadcast_to(np.array([0.5, 0.55, 0.7])[None, :, None, None], (1, 3, 1, 3))
    assert mask(frames, np.full((3, 1, 3), 0.5), 0.1)[0, :, 0, 0] == pytest.approx([0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match=r"`background.threshold` must be positive"):
        mask(frames, np.zeros((3, 1, 3)), 0.0)


def test_a_footage_knows_its_size():
    assert Footage(np.zeros((2, 4, 6, 3)), 24.0).size == (4, 6)
