"""The problem of states: its derivatives, its stages, and that the truth is its root."""

import numpy as np
import pytest

from studies import config
from studies.paper.tables.states import state_problem
from studies.paper.tables.table import Case
from studies.paper.tables.tasks import find_table
from studies.registry import RunOptions
from tests.studies.paper.tables.toy import TABLES


SCENES = [("table1", "mass"), ("table2", "contact"), ("table3", "ball"), ("table3", "cloth")]
scenes = pytest.mark.parametrize(("table", "scene"), SCENES)


def make(table, scene):
    settings = config.resolve(table, TABLES[table]).values
    case = Case(settings, find_table(table).scene(scene), RunOptions(), 0)
    return state_problem(case), case


@scenes
def test_gradient_jacobian_and_differences_agree(table, scene, rng):
    problem, _ = make(table, scene)
    theta = problem.parameters.start
    r, jacobian = problem.residuals_and_jacobian(theta)
    loss, gradient = problem.loss_and_gradient(theta)
    assert loss == pytest.approx(r @ r, rel=1e-12)
    # one adjoint and n tangents of the same rollout: rounding of a few hundred steps
    np.testing.assert_allclose(
        gradient, 2.0 * jacobian.T @ r, rtol=1e-9, atol=1e-11 * np.abs(gradient).max()
    )
    direction, h = rng.standard_normal(len(theta)), 1e-6
    ahead, behind = (problem.residuals(theta + step * direction) for step in (h, -h))
    slope = jacobian @ direction
    # the third derivative times h^2/6, and eps/h of the positions
    np.testing.assert_allclose((ahead - behind) / (2.0 * h), slope, atol=1e-6 * np.abs(slope).max())


@scenes
def test_the_truth_is_the_root(table, scene):
    problem, case = make(table, scene)
    theta = problem.parameters.theta(case.truth)
    assert problem.loss_and_gradient(theta)[0] <= 1e-28
    assert problem.loss_and_gradient(problem.parameters.start)[0] > 1e-9


def test_a_body_is_its_centre_and_a_ball_its_nodes():
    problem, case = make("table1", "mass")
    assert problem.targets.shape == (len(case.problem.motion.frames), 1, 3)
    problem, case = make("table3", "ball")
    nodes = case.problem.motion.state.x.shape[0]
    assert problem.targets.shape == (len(case.problem.motion.frames), nodes, 3)


def test_a_stage_is_a_part_of_the_frames():
    problem, _ = make("table2", "contact")
    part = problem.at_stage(0.5)
    count = round(0.5 * len(problem.targets))
    assert np.array_equal(part.targets, problem.targets[:count])
    assert part.motion.n_steps == problem.motion.frames[count - 1]
    assert problem.at_stage(1.0) is problem
    assert problem.name_of_stage(0.5) == f"{count} of {len(problem.targets)} frames"
