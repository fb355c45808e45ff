from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from studies.problem.observations.films import advice_on_film, read_film
from studies.problem.observations.frames import check_lengths
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.declared import Film
from tests.studies.problem.observations.stamped import write_stamped


N = 6
MS, S600 = Fraction(1, 1000), Fraction(1, 600)


@pytest.fixture
def frames():
    """Frames of a square that moves to the right."""
    images = np.full((N, 24, 32, 3), 0.5)
    for k in range(N):
        images[k, 8:14, 4 + 4 * k : 10 + 4 * k] = 0.9
    return images


def read(path, **keys):
    return read_film(Film(video=str(path), **keys), None)


@pytest.mark.parametrize("fps", [24.0, 30.0, 30000 / 1001])
def test_a_constant_rate_gives_the_bits_that_it_gave(tmp_path, frames, fps):
    data = read(media.write_video(tmp_path / "a.mp4", frames, fps))
    assert data.times.tolist() == (np.arange(N) / data.fps).tolist()
    assert data.fps == media.open_video(tmp_path / "a.mp4").fps


def test_stamps_rounded_to_ticks_are_those_of_the_rate(tmp_path, frames):
    data = read(write_stamped(tmp_path / "a.mkv", frames, [0, 33, 67, 100, 133, 167], MS))
    assert data.fps == 30.0
    assert data.times.tolist() == (np.arange(N) / 30.0).tolist()


def test_stamps_count_where_the_average_of_the_file_is_wrong(tmp_path, frames):
    stamps = (1001 * np.arange(N)).tolist()
    path = write_stamped(tmp_path / "a.mov", frames, stamps, Fraction(1, 60000), last=4000)
    data = read(path)
    assert data.own_fps == pytest.approx(89.9, abs=0.1)  # 6 frames in 1 + 4000 ticks
    assert data.fps == 60000 / 1001
    np.testing.assert_allclose(data.times, np.array(stamps) / 60000, rtol=1e-12)


def test_a_gap_shifts_what_follows_and_is_noticed(tmp_path, frames):
    path = write_stamped(tmp_path / "a.mp4", frames, [0, 10, 20, 30, 60, 70], S600)
    data = read(path)
    np.testing.assert_allclose(data.times, np.array([0, 10, 20, 30, 60, 70]) / 600, rtol=1e-12)
    assert data.fps == pytest.approx(60.0)
    (advice,) = [sentence for sentence in advice_on_film(data) if "missing" in sentence]
    assert "Gaps: 1, the longest from 0.05 to 0.1 s; frames are usually 0.0167 s apart" in advice
    after = read(path, frames=(4, 6))
    assert after.times.tolist() == [0.0, 1 / 60]
    assert not any("missing" in sentence for sentence in advice_on_film(after))


def test_intervals_that_differ_are_kept(tmp_path, frames):
    stamps = [5, 40, 71, 109, 140, 172]
    data = read(write_stamped(tmp_path / "a.mkv", frames, stamps, MS))
    np.testing.assert_allclose(data.times, np.array(stamps) / 1000 - 0.005, atol=1e-15)
    assert data.fps == pytest.approx(1000 / 32)


def test_declared_frames_per_second_count_more_than_stamps(tmp_path, frames):
    path = write_stamped(tmp_path / "a.mkv", frames, [0, 40, 80, 60, 60, 120], MS)
    assert read(path, fps=20.0).times.tolist() == (np.arange(N) / 20.0).tolist()


def test_every_second_frame_is_read_and_its_mask(tmp_path, frames):
    path = write_stamped(tmp_path / "a.mkv", frames, [0, 10, 20, 30, 60, 70], MS)
    masks = write_stamped(tmp_path / "b.mkv", frames, list(range(N)), MS)
    data = read(path, frames=(1, 6, 2), masks=masks)
    np.testing.assert_allclose(data.frames, frames[1::2], atol=1 / 255)
    np.testing.assert_allclose(data.masks, frames[1::2, ..., 0], atol=1 / 255)
    np.testing.assert_allclose(data.times, [0.0, 0.02, 0.06], atol=1e-15)
    even = read(path, frames=(1, 6, 2), fps=10.0)
    assert even.times.tolist() == [0.0, 0.2, 0.4]
    assert (even.fps, even.interval) == (10.0, 0.2)


@pytest.mark.parametrize(
    ("stamps", "words"),
    [
        ([0, 40, 80, 60, 100, 120], "frame 2 is at 0.08 s and frame 3 at 0.06 s"),
        ([0, 40, 40, 80, 120, 160], "frame 1 is at 0.04 s and frame 2 at 0.04 s"),
    ],
)
def test_stamps_that_do_not_increase_are_refused(tmp_path, frames, stamps, words):
    path = write_stamped(tmp_path / "a.mkv", frames, stamps, MS)
    with pytest.raises(StudyError, match=f"`film.video`.*{words}.*Declare `film.fps`"):
        read(path)
    assert len(read(path, frames=(3, 6)).times) == 3  # what is left out may be wrong


def test_a_film_without_stamps_is_refused(tmp_path, frames):
    import av

    path = tmp_path / "a.h264"
    with av.open(str(path), "w", format="h264") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.height, stream.width, stream.pix_fmt = 24, 32, "yuv420p"
        for pixels in media.as_uint8(frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())
    with pytest.raises(StudyError, match=r"frame 0 of .* has no time stamp. Declare `film.fps`"):
        read(path)
    assert read(path, fps=30.0).times[-1] == (N - 1) / 30.0


def test_a_gif_is_shown_as_long_as_it_says(tmp_path, frames):
    first, *others = (Image.fromarray(pixels) for pixels in media.as_uint8(frames))
    durations = [40, 40, 100, 40, 40, 40]
    first.save(tmp_path / "a.gif", save_all=True, append_images=others, duration=durations)
    data = read(tmp_path / "a.gif")
    np.testing.assert_allclose(data.times, [0.0, 0.04, 0.08, 0.18, 0.22, 0.26], atol=1e-15)
    assert data.fps == pytest.approx(25.0)


def test_films_may_show_one_time_with_a_gap(tmp_path, frames):
    paths = [
        write_stamped(tmp_path / "a.mkv", frames, [0, 20, 40, 100, 120, 140], MS),
        write_stamped(tmp_path / "b.mkv", frames[:4], [0, 40, 80, 120], MS),
    ]
    films = {path: (0.0, read(path).times) for path in paths}
    check_lengths(films)
    with pytest.raises(StudyError, match=r"3 frames at 50 per second are 0.06 s"):
        check_lengths({**films, paths[0]: (0.0, read(paths[0], frames=(0, 3)).times)})
