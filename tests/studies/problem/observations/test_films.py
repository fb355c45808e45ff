import re

import numpy as np
import pytest
from PIL import Image

from studies.problem.observations.films import default_factor, plate_of, read_film, silhouettes
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.declared import Background, Camera, Film


FRONT = Camera(eye=(0, 0, 1), target=(0, 0, 0), fov_y=40.0)
H, W, N = 24, 32, 6
BODY, WALL = np.array([0.9, 0.2, 0.1]), np.array([0.3, 0.5, 0.7])


def moving_square(noise=0.0, seed=0):
    """Return frames of a square that moves to the right over a wall, and the wall."""
    wall = np.tile(WALL + 0.1 * np.linspace(0, 1, W)[:, None], (H, 1, 1))
    frames = np.repeat(wall[None], N, axis=0)
    for k in range(N):
        frames[k, 8:14, 4 + 4 * k : 10 + 4 * k] = BODY
    frames = frames + noise * np.random.default_rng(seed).standard_normal(frames.shape)
    return np.clip(frames, 0.0, 1.0), wall


def write_folder(folder, frames):
    folder.mkdir()
    for k, frame in enumerate(frames):
        media.write_png(folder / f"{k}.png", frame)
    return str(folder)


@pytest.fixture
def square(tmp_path):
    frames, _ = moving_square()
    return write_folder(tmp_path / "square", frames)


def test_frames_and_times(square):
    data = read_film(Film(video=square, fps=20.0, frames=(1, 5)), FRONT)
    frames, _ = moving_square()
    assert (data.size, data.full_size, data.factor, data.fps) == ((H, W), (H, W), 1, 20.0)
    np.testing.assert_allclose(data.frames, frames[1:5], atol=0.5 / 255 + 1e-9)
    np.testing.assert_allclose(data.times, [0.0, 0.05, 0.1, 0.15])
    assert data.masks is None
    assert data.backdrop is None


def test_blocks_become_pixels(square):
    data = read_film(Film(video=square, fps=20.0, downsample=4), FRONT)
    full = read_film(Film(video=square, fps=20.0), FRONT)
    assert data.size == (6, 8)
    assert data.full_size == (H, W)
    np.testing.assert_allclose(data.frames[0, 1, 2], full.frames[0, 4:8, 8:12].mean(axis=(0, 1)))


@pytest.mark.parametrize(
    ("size", "factor"),
    [
        ((240, 320), 2),
        ((1080, 1920), 8),
        ((1920, 1080), 6),
        ((720, 1280), 5),
        ((96, 128), 1),
        ((481, 641), 1),
    ],
)
def test_the_default_factor(size, factor):
    assert default_factor(size) == factor


def test_a_film_file_says_its_rate(tmp_path):
    frames, _ = moving_square()
    path = media.write_video(tmp_path / "a.mp4", frames, 25.0)
    data = read_film(Film(video=str(path)), FRONT)
    assert data.fps == 25.0
    assert np.abs(data.frames - frames)[:, :6].max() < 0.05
    declared = read_film(Film(video=str(path), fps=50.0), None)
    assert (declared.fps, declared.own_fps) == (50.0, 25.0)


def test_a_still_needs_no_rate(tmp_path):
    frames, _ = moving_square()
    Image.fromarray(media.as_uint8(frames[0])).save(tmp_path / "a.jpg")
    data = read_film(Film(video=str(tmp_path / "a.jpg")), FRONT)
    assert data.fps is None
    assert data.frames.shape == (1, H, W, 3)
    np.testing.assert_allclose(data.times, [0.0])


def test_distortion_is_taken_out(tmp_path):
    frames, _ = moving_square()
    path = write_folder(tmp_path / "a", frames)
    eye = np.eye(3).tolist()
    K = ((30.0, 0, 15.5), (0, 30.0, 11.5), (0, 0, 1))
    bent = Camera(K=K, R=eye, t=(0, 0, 1), distortion=(-0.2, 0.0))
    straight = Camera(K=K, R=eye, t=(0, 0, 1))
    film = Film(video=path, fps=10.0)
    with_lens, without = (read_film(film, camera).frames for camera in (bent, straight))
    assert np.abs(with_lens - without).max() > 0.1
    np.testing.assert_allclose(with_lens[:, 11, 15], without[:, 11, 15], atol=0.02)


def test_masks(tmp_path, square):
    frames, _ = moving_square()
    white = (np.abs(frames - BODY).max(axis=-1, keepdims=True) < 1e-9) * np.ones(3)
    masks = write_folder(tmp_path / "masks", white)
    data = read_film(Film(video=square, masks=masks, fps=20.0, frames=(0, 3)), FRONT)
    assert data.masks is not None
    np.testing.assert_array_equal(data.masks, white[:3, ..., 0])
    assert silhouettes(data, np.zeros((H, W, 3))) is data.masks


def test_alpha_is_a_mask_over_the_backdrop(tmp_path):
    frames, _ = moving_square()
    alpha = np.zeros((N, H, W, 1))
    alpha[:, 8:14] = 1.0
    path = write_folder(tmp_path / "a", np.concatenate([frames, alpha], axis=-1))
    film = Film(video=path, fps=5.0, background=Background(color=(0.0, 1.0, 0.0)))
    data = read_film(film, FRONT)
    np.testing.assert_array_equal(data.masks, alpha[..., 0])
    np.testing.assert_allclose(data.frames[0, 0, 0], [0.0, 1.0, 0.0])
    np.testing.assert_allclose(plate_of(data, alpha[0, ..., 0] > 0), data.backdrop)


def test_a_declared_picture_is_the_plate(tmp_path, square):
    _, wall = moving_square()
    picture = media.write_png(tmp_path / "wall.png", wall)
    film = Film(video=square, fps=5.0, downsample=2, background=Background(picture=str(picture)))
    plate = plate_of(read_film(film, FRONT), np.zeros((12, 16), bool))
    np.testing.assert_allclose(plate, media.area_mean(wall, 2), atol=0.5 / 255)


@pytest.mark.parametrize("noise", [0.0, 0.006])
def test_the_plate_is_found_in_the_film(tmp_path, noise):
    frames, wall = moving_square(noise)
    data = read_film(Film(video=write_folder(tmp_path / "a", frames), fps=5.0), FRONT)
    covered = np.zeros((H, W), bool)
    covered[7:15, 3:11] = True
    plate = plate_of(data, covered)
    assert np.abs(plate - wall).max() < 0.01 + 4.0 * noise
    mask = silhouettes(data, plate)
    body = np.zeros((N, H, W))
    for k in range(N):
        body[k, 8:14, 4 + 4 * k : 10 + 4 * k] = 1.0
    np.testing.assert_allclose(mask, body, atol=0.01)


def test_the_plate_has_a_horizon_behind_the_body_and_no_shadow(tmp_path):
    """Frames in which the first pixels are left for good, and a shadow goes with the body."""
    wall = np.full((H, W, 3), 0.9)
    wall[11:] = 0.5
    frames = np.repeat(wall[None], N, axis=0)
    for k in range(N):
        left = 4 if k == 0 else 20
        frames[k, 8:14, left : left + 6] = BODY
        frames[k, 18:20, left : left + 6] = 0.3
    data = read_film(Film(video=write_folder(tmp_path / "a", frames), fps=5.0), FRONT)
    covered = np.zeros((H, W), bool)
    covered[6:16, 2:12] = True
    off = np.abs(plate_of(data, covered) - wall).max(axis=-1)
    assert off[:, :18].max() < 0.01  # what was left, and where the shadow was
    assert off[8:14, 20:26].max() < 0.01  # where the body came to rest


def test_what_a_body_never_leaves_is_filled_from_around_it(tmp_path):
    frames, wall = moving_square()
    film = Film(video=write_folder(tmp_path / "a", frames[:1].repeat(3, axis=0)), fps=5.0)
    data = read_film(film, FRONT)
    covered = np.zeros((H, W), bool)
    covered[7:15, 3:11] = True
    assert np.abs(plate_of(data, covered) - wall).max() < 0.03


def write_mixed(folder, frames):
    write_folder(folder, frames)
    media.write_png(folder / "z.png", np.ones((*frames.shape[1:3], 4)))
    return str(folder)


def bad(tmp_path, square):
    frames, _ = moving_square()
    return {
        "no file": ({"video": "nowhere.mp4"}, ["`film.video`", "no file or folder"]),
        "no rate": ({"video": square}, ["`film.fps` is missing"]),
        "frames": ({"video": square, "fps": 5.0, "frames": (2, 9)}, ["`film.frames`", "6 frames"]),
        "factor": (
            {"video": square, "fps": 5.0, "downsample": 5},
            ["`film.downsample`", "1, 2, 4"],
        ),
        "masks of another size": (
            {"video": square, "fps": 5.0, "masks": write_folder(tmp_path / "b", frames[:, :20])},
            ["`film.masks`", "24 x 32", "20 x 32"],
        ),
        "masks of another length": (
            {"video": square, "fps": 5.0, "masks": write_folder(tmp_path / "c", frames[:4])},
            ["`film.masks`", "6 frames", "got 4"],
        ),
        "picture of another size": (
            {
                "video": square,
                "fps": 5.0,
                "background": Background(
                    picture=str(media.write_png(tmp_path / "d.png", frames[0, :6]))
                ),
            },
            ["`film.background.picture`", "24 x 32", "6 x 32"],
        ),
        "frames with and without alpha": (
            {"video": write_mixed(tmp_path / "e", frames), "fps": 5.0},
            ["`film.video`", "must have alpha, or none"],
        ),
        "no film": ({"video": __file__}, ["`film.video`", "cannot be"]),
    }


def test_bad_films_give_one_clear_message(tmp_path, square):
    for name, (keys, parts) in bad(tmp_path, square).items():
        with pytest.raises(StudyError) as caught:
            read_film(Film(**keys), FRONT)
        for phrase in parts:
            assert re.search(re.escape(phrase), str(caught.value)), (name, str(caught.value))
