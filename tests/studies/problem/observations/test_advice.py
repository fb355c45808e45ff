import dataclasses

import numpy as np
import pytest

from studies.problem.observations.films import FilmData, advice_on_film, check_lengths
from studies.runs.errors import StudyError
from studies.scene.declared import Film


RNG = np.random.default_rng(0)


def data(frames, fps=10.0):
    frames = np.asarray(frames, float)
    times = np.arange(len(frames)) / fps
    return FilmData(frames, None, times, fps, 1, frames.shape[1:3], None)


def moving(n=8):
    frames = np.full((n, 24, 32, 3), 0.5)
    for k in range(n):
        frames[k, 8:12, 2 + 2 * k : 6 + 2 * k] = 0.9
    return frames


def test_a_film_that_moves_gives_no_advice():
    noisy = moving() + 0.01 * RNG.standard_normal(moving().shape)
    assert advice_on_film(data(noisy)) == []


def test_a_still_may_stand_still():
    assert advice_on_film(data(moving(1))) == []


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_film_in_which_nothing_moves_is_refused(noise):
    frames = moving(1).repeat(6, axis=0) + noise * RNG.standard_normal((6, 24, 32, 3))
    with pytest.raises(StudyError, match=r"`observations\.a\.video`: nothing moves"):
        advice_on_film(data(frames), "observations.a")


def test_a_camera_that_moves_is_noticed():
    gradient = np.linspace(0.0, 1.0, 60)
    frames = [np.tile(gradient[k : k + 32, None], (24, 1, 3)) for k in range(0, 16, 4)]
    (advice,) = advice_on_film(data(frames))
    assert "camera must stand still" in advice


def test_repeated_frames_are_noticed():
    (advice,) = advice_on_film(data(moving().repeat(2, axis=0)))
    assert "repeat the one before" in advice
    assert "`film.fps`" in advice


def test_rest_at_the_end_is_no_repetition():
    assert advice_on_film(data(np.concatenate([moving(), moving()[-1:].repeat(9, axis=0)]))) == []


def test_films_must_show_the_same_time():
    film = Film(video="a.mp4")
    short, long = data(moving(6)), data(moving(9))
    check_lengths({"a": (film, long), "b": (film, data(moving(9), 9.5))})
    check_lengths({"a": (film, long), "b": (dataclasses.replace(film, start=0.3), short)})
    check_lengths({"a": (film, long), "b": (film, data(moving(1)))})
    with pytest.raises(StudyError, match="`a` and `b` must show the same time: 9 frames"):
        check_lengths({"a": (film, long), "b": (film, short)})
