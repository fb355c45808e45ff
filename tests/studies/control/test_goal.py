"""What a control is measured by: covers, centres of mass, and targets of one's own."""

import numpy as np
import pytest
from PIL import Image

from studies.control.goal import CENTER, make_target
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.reading import plain, scene_from_dict
from tests.studies.control.toys import made, toy


def measured(supervision="picture", *overrides):
    _, prepared = made("control-walker", *overrides)
    problem, target = make_target(prepared, supervision)
    rows = problem.predicted_rows(0.0 * problem.parameters.start)
    return problem, target, target.measure(problem, rows)


def test_at_rest_the_goal_is_as_far_away_as_it_was_moved():
    _, target, measures = measured()
    assert measures["distance"] == pytest.approx(0.1, rel=1e-9)
    assert measures["gain"] == pytest.approx(0.0, abs=3e-3)  # it sags under its weight
    assert 0.3 < measures["cover"] < 0.95
    assert target.size == pytest.approx(2.0, rel=0.02)


def test_a_motion_that_ends_at_the_goal_covers_it():
    _, _, measures = measured("picture", "truth.walker.position=[0.0, -0.00931, 0.0]")
    assert measures["cover"] == pytest.approx(1.0, abs=1e-12)
    assert measures["distance"] < 1e-12


def test_a_search_is_told_the_picture_or_the_center_alone():
    picture, target, _ = measured("picture")
    states, _, _ = measured("states")
    theta = picture.parameters.start
    weights = {observer.name: observer.weight for observer in picture.observers}
    assert weights == {"target": 1.0, CENTER: 0.0}
    weights = {observer.name: observer.weight for observer in states.observers}
    assert weights == {"target": 0.0, CENTER: 1.0}
    off = np.linalg.norm(states.predicted_rows(theta)[-1, :3] - target.center)
    assert states.loss_at(theta) == pytest.approx(off**2, rel=1e-12)
    assert picture.loss_at(theta) != pytest.approx(off**2, rel=0.1)


def test_a_picture_of_ones_own_is_a_target_without_a_center(tmp_path):
    large = "observations.target.simulate={ height = 96, width = 128, frames = 1 }"
    _, simulated = made("control-walker", large)
    (film,) = simulated.everything.observers
    levels = np.rint(255.0 * film.frames[0]).astype(np.uint8)
    Image.fromarray(levels).save(tmp_path / "target.png")
    tables = plain(toy("control-walker"))
    tables["free"] = {"walker.policy": {"start": 0.01}}
    background = {"color": [0.45, 0.47, 0.5]}
    film = {"video": "target.png", "start": 0.25, "downsample": 1, "softness": 1.0}
    tables["observations"] = {"target": {**film, "background": background}}
    del tables["truth"]
    again = make_problem(scene_from_dict(tables, tmp_path))
    assert not any(path.startswith("cameras.") for path in again.everything.parameters.paths)
    problem, target = make_target(again, "picture")
    assert target.center is None
    drawn = make_target(simulated, "picture")[1].silhouette > 0.5
    both = np.minimum(target.silhouette, drawn).sum()
    assert both / np.maximum(target.silhouette, drawn).sum() > 0.85
    measures = target.measure(problem, problem.predicted_rows(0.0 * problem.parameters.start))
    assert list(measures) == ["cover"]
    with pytest.raises(StudyError, match=r'`goal.supervision` = "states" needs a goal'):
        make_target(again, "states")
