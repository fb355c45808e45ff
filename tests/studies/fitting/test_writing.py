"""What the page of a run shows: large films with obstacles, fitted cameras, fields in colours."""

from types import SimpleNamespace

import numpy as np
import pytest

from studies.fitting.writing import cameras_json, fields_shown
from studies.problem.film_pages import ROWS
from studies.problem.making import make_problem
from studies.scene.drawing import instance_of
from studies.scene.files import scene_file
from studies.scene.reading import read_scene


@pytest.fixture(scope="module")
def ball():
    """A soft ball on a floor that is not drawn, whose film is simulated."""
    overrides = ["observations.film.simulate.frames=3", "instances=1"]
    file = read_scene(scene_file("ball-material"), overrides)
    file = instance_of(file, 0, 0)
    return file, make_problem(file)


def values_of(made):
    problem = made.everything
    return problem.all_values(problem.parameters.start)


def page_of(made, film, file):
    truth = made.hidden, {**made.hidden.fixed, **made.true_values}
    return film.page(made.everything, file, values_of(made), truth)


def test_films_are_drawn_large_over_a_floor(ball):
    file, made = ball
    (film,) = made.everything.observers
    page = page_of(made, film, file)
    assert page.is_simulated
    assert page.footage.shape == page.answer.shape
    n, height, width, channels = page.answer.shape
    assert (n, channels) == (3, 3)
    assert height >= ROWS
    assert height / width == pytest.approx(film.size[0] / film.size[1])
    plain = np.rint(255.0 * np.asarray(film.rasterizer.background)[0, 0]).astype(int)
    far = np.abs(page.answer[0].astype(int) - plain).max(axis=-1)
    low, high = far[3 * height // 4 :], far[: height // 8]
    assert (low > 5).mean() > 0.5  # the floor
    assert not high.any()  # the sky
    assert np.abs(page.footage[1].astype(int) - page.answer[1]).max() > 20  # another mass


def test_a_wide_film_is_drawn_within_what_encoders_take():
    size = "observations.film.simulate={height=10,width=200,frames=1,duration=0.01}"
    file = instance_of(read_scene(scene_file("ball-material"), [size, "instances=1"]), 0, 0)
    made = make_problem(file)
    (film,) = made.everything.observers
    assert page_of(made, film, file).footage.shape == (1, 200, 4000, 3)


def test_no_second_floor_is_drawn_over_a_picture_that_shows_one(ball):
    file, made = ball
    problem = made.everything
    (film,) = problem.observers
    given = {"values": values_of(made), "instants": film.times[:1]}
    wall = np.full((48, 64, 3), 0.5)
    wall[30:] = 0.2
    bare = SimpleNamespace(obstacles={})
    for plate, is_drawn in ((np.full_like(wall, 0.5), True), (wall, False)):
        pictures = [film.drawn_over(plate, problem, scene, **given) for scene in (file, bare)]
        assert (np.abs(pictures[0].astype(int) - pictures[1]).max() > 5) == is_drawn


def test_bodies_are_drawn_over_each_frame_of_a_film(ball):
    file, made = ball
    (film,) = made.everything.observers
    frames = np.full((3, 48, 64, 3), np.array([0, 100, 200], np.uint8)[:, None, None, None])
    given = {"values": values_of(made), "instants": film.times, "film": frames}
    drawn = film.drawn_over(np.ones((48, 64, 3)), made.everything, file, **given)
    assert (drawn[:, :6] == frames[:, :6] // 2).all()  # the sky
    assert (np.ptp(drawn, axis=(1, 2, 3)) > 20).all()


def test_what_is_drawn_large_is_the_film_that_is_compared(ball):
    file, made = ball
    (film,) = made.everything.observers
    page = page_of(made, film, file.__class__(**{**vars(file), "obstacles": {}}))
    factor = page.footage.shape[1] // film.size[0]
    blocks = page.footage.reshape(3, film.size[0], factor, film.size[1], factor, 3)
    small = blocks.mean(axis=(2, 4)) / 255.0
    assert np.abs(small - film.frames).mean() < 0.01


def test_a_field_of_masses_is_shown_beside_its_truth(ball):
    _, made = ball
    problem = made.everything
    solved = SimpleNamespace(
        problem=problem, result=SimpleNamespace(theta=problem.parameters.start)
    )
    shown = fields_shown(made, solved, has_truth=True)
    (field,) = shown.values()
    assert list(shown) == ["ball.mass_factors"]
    truth = made.truth.flat(("ball.mass_factors",))
    assert truth.min() <= field["low"] < 1.0 < field["high"] <= truth.max()
    assert np.ptp(field["images"]["truth"], axis=(0, 1)).max() > 0.5
    inside = field["images"]["answer"].min(axis=-1) < 0.9
    colors = field["images"]["answer"][inside & (np.roll(inside, 4, 0)) & (np.roll(inside, -4, 0))]
    assert np.median(np.abs(colors - np.median(colors, axis=0))) < 1e-6  # start: all alike
    assert list(fields_shown(made, solved, has_truth=False)["ball.mass_factors"]["images"]) == [
        "answer"
    ]


def test_a_camera_is_shown_as_declared_and_as_it_moved():
    file = read_scene(scene_file("identify"), [])
    problem = make_problem(file, fits_first=False).everything
    parameters = problem.parameters
    theta = parameters.start.copy()
    k = list(parameters.labels).index("cameras.front.translation[2]")
    theta[k] -= 2.0 * parameters.prior_error[k]
    (camera,) = cameras_json(problem, file, theta)
    assert camera["name"] == "front"
    assert camera["most"] == "translation[2]"
    assert camera["moved"] == pytest.approx(2.0)
    declared = file.cameras["front"]
    np.testing.assert_allclose(camera["declared"]["eye"], declared.eye, atol=1e-12)
    np.testing.assert_allclose(camera["declared"]["target"], declared.target, atol=1e-12)
    assert camera["declared"]["fov_y"] == declared.fov_y
    away = np.subtract(camera["fitted"]["eye"], declared.eye)
    view = np.subtract(declared.eye, declared.target)
    expected = (
        2.0 * declared.position_error * np.linalg.norm(problem.observers[0].camera.translation)
    )
    assert float(away @ view / np.linalg.norm(view)) == pytest.approx(expected)
