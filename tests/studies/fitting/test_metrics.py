"""The field's metrics of a fit: frames held back, surfaces of a twin, values with a truth."""

from dataclasses import replace

import numpy as np
import pytest

from studies.answer.field_metrics import psnr
from studies.fitting.fit import MEASURED, make_fit
from studies.fitting.metrics import measured_truth, metrics_of
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.runs.options import RunOptions
from studies.runs.progress import EvaluationProgress
from studies.scene.checking import check_scene
from studies.scene.reading import scene_from_dict
from tests.studies.fitting.twins import GRAVITY, LENGTH, tables, twin


POINTS = {"kind": "points", "body": "rod", "at": {"bob": [0.0, -1.0, 0.0]}}


def row_of(rows, name):
    (row,) = [row for row in rows if row["of"] == name]
    return row


def test_metrics_are_those_of_the_frames_held_back():
    """A theta beside the truth is compared with the film and the motion of the last frames."""
    prepared = make_problem(twin())
    problem = prepared.problem
    theta = problem.parameters.theta(np.array([LENGTH, 1.1 * GRAVITY]))
    rows = metrics_of(prepared, problem, theta, n_fitted=6)
    film, rod = row_of(rows, "film"), row_of(rows, "rod")
    assert (film["frames"], film["held_back"]) == (2, True) == (rod["frames"], rod["held_back"])
    (observer,) = problem.observers
    drawn = (
        problem.with_steps_for(theta).predicted_rows(theta)[:, :3].reshape(observer.frames.shape)
    )
    assert film["psnr"] == pytest.approx(psnr(drawn[6:], observer.frames[6:]))
    assert film["psnr"] < 60.0
    assert 0.3 < film["iou"] < 1.0
    assert 0.3 < film["ssim"] < 1.0
    assert 0.0 < rod["chamfer"] <= rod["error"] < 0.3


def test_at_the_truth_nothing_is_off():
    prepared = make_problem(twin())
    theta = prepared.problem.parameters.theta(np.array([LENGTH, GRAVITY]))
    rows = metrics_of(prepared, prepared.problem, theta, n_fitted=8)
    film, rod = row_of(rows, "film"), row_of(rows, "rod")
    assert (film["frames"], film["held_back"]) == (8, False)
    assert film["ssim"] == pytest.approx(1.0)
    assert film["iou"] == 1.0
    assert rod["error"] == rod["chamfer"] == 0.0


def test_points_have_their_mean_distance():
    observed = {"bob": {**POINTS, "simulate": {"frames": 8}}}
    prepared = make_problem(twin(observations=observed))
    problem = prepared.problem
    theta = problem.parameters.theta(np.array([LENGTH, 1.1 * GRAVITY]))
    row = row_of(metrics_of(prepared, problem, theta, n_fitted=5), "bob")
    off = (
        problem.with_steps_for(theta).predicted_rows(theta)[:, :3] - problem.observers[0].targets()
    )
    assert row["frames"] == 3
    assert row["error"] == pytest.approx(np.linalg.norm(off[5:], axis=1).mean())


def test_a_result_has_metrics_and_the_errors_of_its_numbers(tmp_path):
    search = {"coarse": 0, "stages": [1.0], "held_back": 0.25, "tolerance": 1e-4}
    fit = make_fit(twin(search=search), RunOptions(), title="rod")
    with EvaluationProgress(200) as progress:
        result = fit.result(fit.solve(RunFolder(tmp_path), progress))
    assert row_of(result["metrics"], "film")["held_back"]
    length, _ = result["parameters"]
    assert MEASURED not in result["findings"]
    assert length["error"] == abs(length["estimate"] - LENGTH)
    assert length["log10_error"] == pytest.approx(abs(np.log10(length["estimate"] / LENGTH)))


def measured(tmp_path, truth, **more):
    """Return the pendulum's scene with tracked points, and a truth that was measured otherwise."""
    angles = 0.3 * np.cos(3.0 * np.arange(8) / 10)
    places = np.stack([np.sin(angles), -np.cos(angles), 0 * angles], axis=1)
    rows = [f"{k / 10},bob,{x},{y},{z}" for k, (x, y, z) in enumerate(places)]
    (tmp_path / "bob.csv").write_text("\n".join(["time,point,x,y,z", *rows]) + "\n")
    observed = {"bob": {**POINTS, "file": "bob.csv"}}
    file = scene_from_dict(tables(observations=observed, truth=truth, **more), tmp_path)
    check_scene(file)
    return file


def test_footage_may_be_compared_with_what_was_measured(tmp_path):
    file = measured(tmp_path, {"rod.length": 1.0})
    assert measured_truth(file) == {"rod.length": 1.0}
    with_mesh = replace(file, truth={**file.truth, "bodies.rod.mesh": "true.ply"})
    assert measured_truth(with_mesh) == {"rod.length": 1.0}  # a mesh is no number
    assert measured_truth(twin()) == {}
    prepared = make_problem(file)
    assert prepared.truth is None  # neither the search nor the verdict knows it
    fit = make_fit(file, RunOptions(), title="rod")
    with EvaluationProgress(200) as progress:
        result = fit.result(fit.solve(RunFolder(tmp_path), progress))
    assert result["parameters"][0]["truth"] == 1.0
    assert MEASURED in result["findings"]


@pytest.mark.parametrize(
    ("key", "value"), [("bodies.rod.length", 1.0), ("rod.length", {"between": [0.5, 2.0]})]
)
def test_a_truth_that_is_hidden_needs_a_simulation(tmp_path, key, value):
    with pytest.raises(StudyError, match=f'`truth."{key}"` needs an observation that is simulated'):
        measured(tmp_path, {key: value})
