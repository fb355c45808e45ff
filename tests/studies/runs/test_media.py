import errno
import os
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from PIL import Image

from studies.runs import media


def moving_square(n_frames=5, height=32, width=48):
    """A grey ramp with a square that moves to the right."""
    ramp = np.linspace(0.1, 0.6, width)[None, :, None]
    images = np.broadcast_to(ramp, (n_frames, height, width, 3)).copy()
    for t in range(n_frames):
        images[t, 8:24, 4 * t : 4 * t + 16] = 0.9
    return images


@pytest.fixture
def png_folder(tmp_path):
    for t, image in enumerate(moving_square()):
        media.write_png(tmp_path / f"frame_{2 * t + 1}.png", image)
    return tmp_path


def test_a_video_comes_back_within_a_few_grey_levels(tmp_path):
    images = moving_square()
    video = media.read_video(media.write_video(tmp_path / "a.mp4", images, 24.0))
    assert video.frames.shape == images.shape
    assert video.fps == 24.0
    # Grey survives the chroma subsampling. Rounding to 8 bit and to the 220 levels of the
    # limited range costs 1.1 levels; the quantiser at crf 8 a few, at the edges.
    error = 255.0 * np.abs(video.frames - images)
    assert error.mean() < 1.5
    assert error.max() < 12.0


def test_a_fractional_rate_survives(tmp_path):
    path = media.write_video(tmp_path / "a.mp4", moving_square(), 30000 / 1001)
    assert media.read_video(path).fps == pytest.approx(30000 / 1001, rel=1e-6)


def test_a_video_of_a_phone_that_was_held_upright_is_upright(tmp_path):
    """A quarter turn clockwise, written into the header of the track."""
    frames = np.zeros((2, 32, 48, 3))
    frames[:, :8, :, 0] = 1.0
    path = media.write_video(tmp_path / "a.mp4", frames, 10.0)
    data = bytearray(path.read_bytes())
    matrix = data.index(b"tkhd") + 44
    turn = (0, 1 << 16, 0, -1 << 16, 0, 0, 32 << 16, 0, 1 << 30)
    data[matrix : matrix + 36] = struct.pack(">9i", *turn)
    path.write_bytes(data)
    upright = media.read_video(path).frames
    assert upright.shape == (2, 48, 32, 3)
    np.testing.assert_allclose(upright, np.rot90(frames, -1, axes=(1, 2)), atol=0.2)


def test_a_picture_of_a_phone_that_was_held_upright_is_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn clockwise
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[0, :, 0] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    upright = media.read_image(tmp_path / "a.png")
    np.testing.assert_array_equal(upright, np.rot90(pixels, -1) / 255.0)


def test_alpha_is_dropped_from_a_video(tmp_path):
    images = np.concatenate([moving_square(), np.zeros((5, 32, 48, 1))], axis=3)
    video = media.read_video(media.write_video(tmp_path / "a.mp4", images, 10.0))
    assert video.frames.shape == (5, 32, 48, 3)
    assert video.frames.mean() == pytest.approx(moving_square().mean(), abs=2 / 255)


def test_a_png_comes_back_within_half_a_level(tmp_path):
    rgba = np.random.default_rng(0).uniform(-0.2, 1.2, (6, 7, 4))
    media.write_png(tmp_path / "a.png", rgba)
    video = media.read_video(tmp_path)
    assert video.fps is None
    assert video.frames.shape == (1, 6, 7, 4)
    assert np.abs(video.frames[0] - np.clip(rgba, 0.0, 1.0)).max() <= 0.5 / 255 + 1e-15


def test_png_frames_are_taken_in_natural_order(png_folder):
    # frame_1, frame_3, ... frame_9: write 11 as well, which sorts before 3 as text.
    media.write_png(png_folder / "frame_11.png", np.zeros((32, 48, 3)))
    video = media.read_video(png_folder)
    assert len(video.frames) == 6
    assert np.abs(video.frames[:5] - moving_square()).max() <= 0.5 / 255 + 1e-15


def test_a_grey_png_becomes_rgb(tmp_path):
    Image.fromarray(np.full((4, 6), 51, np.uint8)).save(tmp_path / "a.png")
    assert (media.read_video(tmp_path).frames == np.full((1, 4, 6, 3), 0.2)).all()


def test_a_16_bit_grey_png_keeps_its_scale(tmp_path):
    Image.fromarray(np.full((4, 6), 13107, np.uint16)).save(tmp_path / "a.png")
    assert (media.read_video(tmp_path).frames == np.full((1, 4, 6, 3), 0.2)).all()


def test_a_gif_is_read_with_its_rate(tmp_path):
    pixels = media.as_uint8(moving_square())
    frames = [Image.fromarray(p).convert("L") for p in pixels]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:], duration=40)
    video = media.read_video(tmp_path / "a.gif")
    assert video.fps == 25.0
    assert video.frames.shape == (5, 32, 48, 3)
    assert np.abs(video.frames - pixels / 255.0).max() < 2 / 255


def test_a_transparent_gif_has_four_channels(tmp_path):
    rgba = np.zeros((8, 8, 4), np.uint8)
    rgba[2:6, 2:6] = (255, 0, 0, 255)
    Image.fromarray(rgba).save(tmp_path / "a.gif")
    frames = media.read_video(tmp_path / "a.gif").frames
    assert frames.shape == (1, 8, 8, 4)
    assert frames[0, ..., 3].sum() == 16.0


def write_gif(path, n_frames, size):
    frames = [Image.new("L", size, 10 * k) for k in range(n_frames)]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=100)
    return path


def test_a_gif_is_unpacked_frame_by_frame(tmp_path):
    path = write_gif(tmp_path / "a.gif", 20, (1000, 1000))
    tracemalloc.start()
    sizes = [frame.shape for frame in media.open_video(path).frames]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sizes == [(1000, 1000, 3)] * 20
    assert most < 20e6  # all frames take 80 MB


def test_a_gif_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(media, "MOST_GIF", 300)
    path = write_gif(tmp_path / "a.gif", 4, (10, 8))
    with pytest.raises(ValueError, match=r"a\.gif has 4 frames of 8 x 10 pixels .* convert it"):
        media.open_video(path)


def test_a_pipe_is_no_film(tmp_path):
    os.mkfifo(tmp_path / "a.mp4")
    with pytest.raises(FileNotFoundError, match="neither a file nor a folder"):
        media.open_video(tmp_path / "a.mp4")


def test_frames_with_digits_that_are_no_decimals_are_read(tmp_path):
    for name in ("\N{SUPERSCRIPT TWO}1.png", "1.png"):
        media.write_png(tmp_path / name, np.zeros((2, 2, 3)))
    assert len(media.read_video(tmp_path).frames) == 2


def test_downsampling_averages_blocks(png_folder):
    whole = media.read_video(png_folder).frames
    half = media.area_mean(whole, 2)
    assert half.shape == (5, 16, 24, 3)
    assert half[1, 3, 5, 0] == pytest.approx(whole[1, 6:8, 10:12, 0].mean(), rel=1e-15)


def test_png_frames_of_two_sizes_are_refused(png_folder):
    media.write_png(png_folder / "frame_4.png", np.zeros((32, 40, 3)))
    with pytest.raises(
        ValueError, match=r"frame 2 of .* is 32 x 40 x 3 and frame 0 is 32 x 48 x 3"
    ):
        media.read_video(png_folder)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nothing\.mp4"):
        media.read_video(tmp_path / "nothing.mp4")


def test_a_folder_without_frames_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no PNG file in the folder"):
        media.read_video(tmp_path)


@pytest.mark.parametrize("suffix", ["mp4", "gif"])
def test_a_file_that_is_no_video_is_named(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_text("this is not a video, not at all")
    with pytest.raises(ValueError, match=f"a.{suffix} cannot be read as a") as caught:
        media.read_video(path)
    assert "Errno" not in str(caught.value)
    if suffix == "mp4":
        assert str(caught.value).endswith("a gif, or a folder of PNG frames.")


def test_a_broken_png_is_named(tmp_path):
    media.write_png(tmp_path / "a.png", np.zeros((64, 64, 3)))
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"a\.png cannot be read as an image"):
        media.read_video(tmp_path)


def test_a_truncated_video_is_named(tmp_path):
    path = media.write_video(tmp_path / "a.mp4", moving_square(), 10.0)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"a\.mp4 cannot be"):
        media.read_video(path)


def test_a_video_of_whole_numbers_is_that_of_their_parts_of_255(tmp_path):
    images = moving_square()
    paths = [
        media.write_video(tmp_path / f"{k}.mp4", frames, 10.0)
        for k, frames in enumerate((images, media.as_uint8(images)))
    ]
    given, ready = (media.read_video(path).frames for path in paths)
    np.testing.assert_array_equal(given, ready)


def test_an_odd_size_is_refused_or_padded(tmp_path):
    images = moving_square(height=31, width=47)
    with pytest.raises(ValueError, match=r"even height and width .* got 31 x 47 x 3"):
        media.write_video(tmp_path / "a.mp4", images, 10.0)
    path = media.write_video(tmp_path / "a.mp4", images, 10.0, pad=True)
    assert media.read_video(path).frames.shape[1:3] == (32, 48)


def test_a_video_too_long_for_the_encoder_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`images` must be at most 16384 pixels along a side"):
        media.write_video(tmp_path / "a.mp4", np.zeros((1, 20_000, 2, 3), np.uint8), 10.0)


def test_bad_arguments_of_write_video_are_named(tmp_path):
    images = moving_square()
    for kwargs, match in [
        ({"path": "a.avi"}, r"`path` must end in \.mp4, got a\.avi"),
        ({"fps": 0.0}, "`fps` must be positive, got 0.0"),
        ({"crf": 52}, "`crf` must be in 0 to 51, got 52"),
        ({"images": images[0]}, r"`images` must have shape \(n_frames, height"),
        ({"images": np.where(images > 0.8, np.nan, images)}, "`images` must be finite"),
    ]:
        arguments = {"path": "a.mp4", "images": images, "fps": 10.0, **kwargs}
        path = tmp_path / arguments.pop("path")
        with pytest.raises(ValueError, match=match):
            media.write_video(path, arguments.pop("images"), arguments.pop("fps"), **arguments)
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_of_write_png_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"`image` must have shape"):
        media.write_png(tmp_path / "a.png", np.zeros((4, 4, 2)))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        media.write_png(tmp_path / "no" / "a.png", np.zeros((4, 4, 3)))


def png_of(width, height):
    """Return a PNG file whose header says this size, and which holds little."""

    def chunk(kind, data):
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("side", [8001, 50_000, 2**31 - 1])
def test_a_picture_that_unpacks_to_too_much_is_refused(tmp_path, side):
    path = tmp_path / "0.png"
    path.write_bytes(png_of(side, side))
    for read in (lambda: media.read_image(path), lambda: media.read_video(tmp_path)):
        with pytest.raises(ValueError, match=r"0\.png (has|cannot be read)"):
            read()


def test_a_picture_with_less_than_its_header_says_is_refused(tmp_path):
    path = tmp_path / "0.png"
    path.write_bytes(png_of(1000, 1000))
    with pytest.raises(ValueError, match=r"0\.png cannot be read as an image"):
        media.read_image(path)


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("PIL.Image.Image.save", full)
    with pytest.raises(ValueError, match=r"a\.png cannot be written: No space left"):
        media.write_png(tmp_path / "a.png", np.zeros((2, 2, 3)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("size", "expected"), [((4, 6), (480, 720)), ((2, 400), (20, 4000)), ((5000, 2), (5000, 2))]
)
def test_small_images_are_magnified_within_what_encoders_take(size, expected):
    images = np.arange(np.prod(size)).reshape(1, *size, 1)
    large = media.magnified(images, height=480)
    assert large.shape == (1, *expected, 1)
    step = expected[0] // size[0]
    assert np.array_equal(large[:, ::step, ::step], images)
