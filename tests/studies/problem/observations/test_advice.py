import dataclasses

import numpy as np
import pytest

from studies.problem.observations.films import FilmData, advice_on_film
from studies.problem.observations.frames import check_lengths
from studies.problem.observations.points import advice_on_fall
from studies.runs.errors import StudyError


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


def test_a_declared_rate_that_is_not_that_of_the_file_is_noticed():
    film = dataclasses.replace(data(moving(), 60.0), own_fps=30.0)
    (advice,) = advice_on_film(film)
    assert "`film.fps` is 60, but the file says 30 frames per second" in advice
    assert advice_on_film(dataclasses.replace(film, own_fps=59.94)) == []
    assert advice_on_film(dataclasses.replace(film, own_fps=None)) == []


@pytest.mark.parametrize("fps", [0.03, 3e4])
def test_time_stamps_in_another_unit_are_noticed(fps):
    film = dataclasses.replace(data(moving(), fps), own_fps=fps)
    (advice,) = advice_on_film(film)
    assert f"by its time stamps the film has {fps:.3g} frames per second" in advice
    assert advice_on_film(dataclasses.replace(film, fps=None)) == [advice]
    assert advice_on_film(dataclasses.replace(film, own_fps=None)) == []  # declared


FALL_TIMES = np.arange(20) / 30.0
GRAVITY = (0.0, -9.81, 0.0)


def falling(acceleration, floor=-np.inf):
    places = np.array([[0.1, 0.0, 0.2], [0.2, 0.1, 0.2]])
    t = FALL_TIMES[:, None, None]
    way = t * [0.5, 1.0, -0.3] + 0.5 * t**2 * np.asarray(acceleration)
    return np.maximum(places + way, floor)


@pytest.mark.parametrize("up", [(0.0, 9.81, 0.0), (0.2, 0.0, -9.5)])
def test_a_fall_in_another_direction_than_gravity_is_noticed(up):
    noisy = falling(up) + 1e-3 * RNG.standard_normal((20, 2, 3))
    (advice,) = advice_on_fall(FALL_TIMES, noisy, GRAVITY, "observations.marks")
    assert "`observations.marks`: the points fall with an acceleration of [" in advice
    assert "`world.gravity` is [0.0, -9.81, 0.0]" in advice


@pytest.mark.parametrize(
    "places",
    [
        falling(GRAVITY),
        falling(GRAVITY, floor=-0.3),
        falling((0.0, 0.0, 0.0)),
        falling((0.0, 3.0, 0.0)),
        falling((0.0, 9.81, 0.0))[:5],
        np.full((20, 2, 3), np.nan),
    ],
    ids=["falls", "lands", "moves evenly", "is lifted", "is short", "is not tracked"],
)
def test_other_motions_are_no_fall_in_another_direction(places):
    assert advice_on_fall(FALL_TIMES[: len(places)], places, GRAVITY, "observations.a") == []


def test_rest_at_the_end_is_no_repetition():
    assert advice_on_film(data(np.concatenate([moving(), moving()[-1:].repeat(9, axis=0)]))) == []


def test_films_must_show_the_same_time():
    short, long = np.arange(6) / 10.0, np.arange(9) / 10.0
    check_lengths({"a": (0.0, long), "b": (0.0, np.arange(9) / 9.5)})
    check_lengths({"a": (0.0, long), "b": (0.3, short)})
    check_lengths({"a": (0.0, long), "b": (0.0, long[:1])})
    with pytest.raises(StudyError, match="`a` and `b` must show the same time: 9 frames"):
        check_lengths({"a": (0.0, long), "b": (0.0, short)})
