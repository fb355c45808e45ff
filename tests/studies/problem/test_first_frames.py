"""What first frames show: cameras only where no free number moves what is in them."""

from dataclasses import replace

import numpy as np
import pytest

from studies.fitting.judging import explained_motion
from studies.problem.first_frames import moves_first_frame
from studies.problem.making import make_problem
from studies.runs import media
from studies.scene.reading import scene_from_dict


SIZE, WALL = (48, 64), (0.2, 0.3, 0.4)


def tables(free, **film):
    """Return the tables of a brick that is thrown past a wall."""
    brick = {
        "kind": "rigid", "mesh": "box", "size": [0.22, 0.16, 0.16], "density": 500.0,
        "position": [-0.25, 0.0, 0.0], "velocity": [0.6, 1.0, 0.0],
        "look": {"color": [0.8, 0.4, 0.2]},
    }  # fmt: skip
    return {
        "bodies": {"brick": brick},
        "cameras": {"front": {"eye": [0.0, 0.0, 1.5], "target": [0.0, 0.0, 0.0], "fov_y": 35.0}},
        "observations": {"film": {"background": {"color": list(WALL)}, **film}},
        "free": {f"brick.{name}": {"bounds": [-4.0, 4.0]} for name in free},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a film of the brick."""
    path = tmp_path_factory.mktemp("thrown")
    simulate = {"height": SIZE[0], "width": SIZE[1], "frames": 10, "duration": 0.5}
    (film,) = make_problem(
        scene_from_dict(tables(["velocity"], simulate=simulate, start=-0.05))
    ).problem.observers
    (path / "film").mkdir()
    for k, frame in enumerate(film.frames):
        media.write_png(path / "film" / f"{k}.png", np.clip(frame, 0.0, 1.0))
    return path


def problem_of(folder, *free):
    given = tables(free, video="film", fps=20.0, downsample=1)
    return make_problem(scene_from_dict(given, folder)).everything


def test_a_camera_is_fitted_to_the_first_frame_unless_a_free_number_moves_it(folder):
    thrown, placed = problem_of(folder, "velocity"), problem_of(folder, "velocity", "position")
    assert not moves_first_frame(thrown)
    assert "cameras.front.rotation" in thrown.fixed
    assert moves_first_frame(placed)
    assert not any(path.startswith("cameras.") for path in placed.fixed)
    assert any(path.startswith("brick.look.") for path in placed.fixed)


def test_a_late_first_frame_is_moved_by_a_velocity(folder):
    problem = problem_of(folder, "velocity")
    (film,) = problem.observers
    assert moves_first_frame(replace(problem, observers=(film.between(film.times > 0.2),)))


def test_where_a_body_rests_moves_the_first_picture(tmp_path):
    media.write_png(tmp_path / "a.png", np.full((*SIZE, 3), 0.5))
    beam = {
        "kind": "soft", "mesh": "box", "size": [0.3, 0.05, 0.05], "cells": [4, 1, 1],
        "E": 1e8, "nu": 0.3, "held": {"plane": {"point": [-0.15, 0, 0], "normal": [1, 0, 0]}},
    }  # fmt: skip
    film = {"video": "a.png", "background": {"color": [0.9, 0.9, 0.9]}}
    given = {**tables([], **film), "bodies": {"beam": beam}, "world": {"motion": "equilibrium"}}
    given["free"] = {"beam.E": {"bounds": [1e6, 1e9]}}  # stiff: its sag at the start is no test
    made = make_problem(scene_from_dict(given, tmp_path), fits_first=False)
    assert moves_first_frame(made.everything)
    fitted = made.refitted(made.everything)
    assert not any(path.startswith("cameras.") for path in fitted.fixed)


def test_a_body_that_is_nowhere_leaves_the_motion_unexplained(folder):
    problem = problem_of(folder, "velocity", "position")
    parameters = problem.parameters

    def left(**moved):
        values = {path: value.copy() for path, value in parameters.values(parameters.start).items()}
        for path, value in moved.items():
            values[f"brick.{path}"] = np.asarray(value)
        theta = parameters.theta(
            np.concatenate([np.ravel(parameter) for parameter in values.values()])
        )
        return explained_motion(problem, theta, looks=[theta])[1].unexplained

    assert left() < 0.02
    away = {"position": [3.0, 0.0, 0.0], "velocity": [0.0, 0.0, 0.0]}
    assert left(**away) > 0.4  # about half of what differs from the first frame in every frame
