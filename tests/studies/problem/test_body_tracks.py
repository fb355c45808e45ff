"""Where bodies are in a film, and the start of a search that follows from it."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from studies.api import Problem, fit
from studies.optimizers.minimize import minimize
from studies.problem.body_tracks import relative_errors, tracked_problem
from studies.problem.making import make_problem
from studies.problem.problem import on_one_timeline
from studies.scene import declared
from studies.scene.reading import scene_from_dict


VELOCITY, SPIN = [0.9, 1.2, 0.0], [0.0, 2.0, -1.0]


def tables(**body):
    """Return the tables of a brick that is thrown past a plain wall, towards nothing."""
    return {
        "bodies": {
            "brick": {
                "kind": "rigid",
                "mesh": "box",
                "size": [0.2, 0.1, 0.1],
                "position": [-0.4, 0.0, 0.0],
                "velocity": VELOCITY,
                "spin": SPIN,
                "look": {"color": [0.8, 0.4, 0.2], "smooth": False},
                **body,
            }
        },
        "cameras": {"front": {"eye": [0.0, 0.0, 2.0], "target": [0.0, 0.0, 0.0], "fov_y": 35.0}},
        "observations": {
            "film": {"video": "film", "fps": 20.0, "background": {"color": [0.2, 0.3, 0.4]}}
        },
        "free": {"brick.velocity": {"bounds": [-4.0, 4.0]}},
        "search": {"coarse": 8, "stages": [1.0]},
    }


def write_film(path, scene_tables):
    """Write a film of a scene at its own values, from its start on, into a folder."""
    (path / "film").mkdir()
    simulate = {"frames": 12, "duration": 0.6, "height": 60, "width": 80}
    background = scene_tables["observations"]["film"]["background"]
    scene_tables["observations"]["film"] = {
        "simulate": simulate,
        "background": background,
        "start": -0.05,
    }
    (observer,) = make_problem(scene_from_dict(scene_tables)).problem.observers
    for k, frame in enumerate(observer.frames):
        pixels = np.rint(255.0 * np.clip(frame, 0.0, 1.0)).astype(np.uint8)
        Image.fromarray(pixels).save(path / "film" / f"{k:03d}.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a film of the brick."""
    path = tmp_path_factory.mktemp("thrown")
    write_film(path, tables())
    return path


LENGTH, ANGLE = 0.6, 50.0


def swing(length=LENGTH, angle=ANGLE):
    """Return the tables of a bob on a rod that its film hardly shows."""
    scene_tables = tables()
    scene_tables["bodies"] = {
        "swing": {
            "kind": "pendulum",
            "length": [length],
            "angle": [angle],
            "bob_radius": 0.08,
            "rod_radius": 0.015,
            "rod_color": [0.25, 0.35, 0.45],
            "bob_color": [0.9, 0.5, 0.3],
            "look": {"ambient": 1.0, "diffuse": 0.0, "fit": False},
        }
    }
    camera = {"eye": [0.1, -0.2, 1.8], "target": [0.0, -0.3, 0.0], "fov_y": 40.0}
    bounds = {"swing.length": {"bounds": [0.1, 3.0]}, "swing.angle": {"bounds": [-90.0, 90.0]}}
    return {**scene_tables, "cameras": {"front": camera}, "free": bounds}


def problem_of(folder, free=("velocity",), **body):
    scene_tables = tables(**body)
    scene_tables["free"] = {f"brick.{name}": {"bounds": [-4.0, 4.0]} for name in free}
    return make_problem(scene_from_dict(scene_tables, folder)).problem


def answers_of(problem):
    return problem.at(problem.parameters.start, keep=problem.parameters.first_answers)


def test_the_middle_of_a_body_in_a_film_is_where_the_scene_has_it(folder):
    tracks = tracked_problem(answers_of(problem_of(folder)))
    (observer,) = tracks.observers
    middles = observer.places[:, 0]
    assert np.isfinite(middles).mean() > 0.8
    shown = tracks.predicted_rows(tracks.parameters.start)[:, :2]
    is_there = np.isfinite(middles[:, 0])
    assert np.abs(shown - middles)[is_there] == pytest.approx(0.0, abs=1.0)  # pixels
    assert np.ptp(middles[is_there], axis=0).max() > 20.0


def test_a_fit_to_the_middles_finds_a_velocity_that_shows_nothing_of_the_body(folder):
    problem = answers_of(problem_of(folder, velocity=[-2.0, 3.0, 0.0], spin=SPIN))
    tracks = tracked_problem(problem)
    result = minimize(tracks, tracks.parameters.start, declared.Search(), log=None)
    velocity = problem.parameters.values(result.theta)["brick.velocity"]
    assert velocity[:2] == pytest.approx(VELOCITY[:2], abs=0.03)


def test_what_a_middle_does_not_show_is_undetermined(folder):
    tracks = tracked_problem(answers_of(problem_of(folder, ("velocity", "spin"))))
    errors = relative_errors(tracks, tracks.parameters.start)
    assert (errors < 0.15).tolist() == [True, True, False, False, False, False]  # across the view
    assert (errors[3:] > 0.5).all()  # the spin


def test_the_middle_of_a_pendulum_is_that_of_what_its_film_shows(tmp_path):
    write_film(tmp_path, swing())
    problem = answers_of(make_problem(scene_from_dict(swing(0.55, 40.0), tmp_path)).problem)
    tracks = tracked_problem(problem)
    shown = tracks.predicted_rows(problem.parameters.theta(np.array([LENGTH, ANGLE])))[:, :2]
    (observer,) = tracks.observers
    assert np.abs(shown - observer.places[:, 0]).max() < 0.5  # pixels; of rod and bob it is 5


@pytest.mark.parametrize("size", [[0.6, 0.3, 0.3], [0.05, 0.025, 0.025]])
def test_a_mask_of_another_size_is_something_else(folder, size):
    assert tracked_problem(answers_of(problem_of(folder, size=size))) is None


def test_a_film_that_is_left_out_leaves_no_hole_in_the_time_line(folder):
    problem = answers_of(problem_of(folder))
    (film,) = problem.observers
    plate = np.broadcast_to(film.rasterizer.background, film.frames.shape)
    blank = replace(film, name="blank", frames=plate, start=-0.05)  # it shows no body
    tracks = tracked_problem(on_one_timeline(problem, [blank, film]))
    assert [observer.name for observer in tracks.observers] == ["film"]
    assert tracks.observers[0].index.tolist() == list(range(tracks.n_frames))


def test_a_search_begins_where_the_body_is(folder, tmp_path):
    file = scene_from_dict(tables(velocity=[-2.0, 3.0, 0.0]), folder)
    problem = Problem(file, file.observations, file.free, search=file.search)
    answer = fit(problem, out=tmp_path / "run")
    assert answer.values["brick.velocity"][:2] == pytest.approx(VELOCITY[:2], abs=0.02)
    assert (tmp_path / "run" / "tracks" / "iterations.jsonl").is_file()
