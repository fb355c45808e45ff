"""Searches for controls: gradients of all weights, and logs of measures."""

import numpy as np
import pytest

from studies.control.searching import solve_control, watched_problem
from studies.problem.making import make_problem
from studies.runs.evaluations import read_log
from studies.runs.folder import RunFolder
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene
from tests.studies.control.toys import TOYS, made


@pytest.mark.parametrize("name", TOYS)
def test_the_gradient_is_that_of_central_differences(name, rng):
    file, prepared = made(name)
    problem = watched_problem(prepared, file.goal.supervision).problem
    theta = problem.parameters.start
    _, gradient = problem.loss_and_gradient(theta)
    along = rng.standard_normal(theta.shape)
    step = 1e-6
    ends = [problem.loss_at(theta + sign * step * along) for sign in (1.0, -1.0)]
    assert gradient @ along == pytest.approx((ends[0] - ends[1]) / (2.0 * step), rel=2e-5)
    assert np.linalg.norm(gradient) > 0.0


def solved(path, *overrides, name="control-walker"):
    file, prepared = made(name, *overrides)
    return solve_control(prepared, file, RunFolder(path), lambda _: None)


def test_a_few_steps_lead_to_the_goal_and_the_log_tells_how_near(tmp_path):
    solution = solved(tmp_path, name="control-cloth")
    assert solution.verdict.kind == "reached"
    assert solution.control["distance"] < 1e-3
    log = read_log(tmp_path / "iterations.jsonl")
    assert min(log, key=lambda entry: entry.loss).values == pytest.approx(solution.control)
    assert list(log[0].values) == ["cover", "distance", "gain"]
    assert solution.search.coarse is None
    assert solution.intervals.reason


@pytest.mark.nightly
def test_an_arm_pushes_its_block_to_the_goal(tmp_path):
    file = instance_of(read_scene(BUNDLED / "control-arm.toml", ()), 0)
    solution = solve_control(make_problem(file), file, RunFolder(tmp_path), lambda _: None)
    assert solution.verdict.kind == "reached"
    assert solution.control["distance"] < 3e-3
    assert solution.control["gain"] > 0.05


def test_a_search_that_is_stopped_goes_on_with_the_same_bits(tmp_path):
    small = "search.max_evaluations=4"
    whole = solved(tmp_path / "a", small)
    log = (tmp_path / "a/iterations.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/iterations.jsonl").write_text("".join(log[:2]))
    again = solved(tmp_path / "b", small)
    np.testing.assert_array_equal(again.result.theta, whole.result.theta)
    assert again.verdict == whole.verdict
