"""When local searches end: where theta hardly moves, and where a rival cannot win."""

import numpy as np

from studies.fitting.judging import loss_where_finite
from studies.fitting.local_search import LocalSearch
from studies.fitting.solve import _needed
from studies.optimizers.problem import Result, Status
from studies.problem.making import make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from tests.studies.fitting.twins import GRAVITY, LENGTH, twin


def test_a_search_ends_where_it_moves_by_little_of_the_intervals(tmp_path):
    problem = make_problem(twin()).everything
    start = problem.parameters.theta([1.01 * LENGTH, 0.99 * GRAVITY])
    how = Search(tolerance=1e-15, max_evaluations=10)  # three steps, of which the last are small

    def end(floor, how=how):
        folder = RunFolder(tmp_path / f"{floor}-{how.max_evaluations}")
        with EvaluationProgress(how.max_evaluations) as progress:
            search = LocalSearch(how, folder, progress, floor=floor)
            return search.run(problem, start, log="a.jsonl", stage="a")

    assert end(0.0).status is Status.MAX_EVALUATIONS  # the film has no noise, nor have intervals
    assert end(0.015).status is Status.SETTLED
    assert (end(0.015).theta == end(0.0).theta).all()
    far = Search(tolerance=1e-15, max_evaluations=4)
    assert end(0.015, far).status is Status.MAX_EVALUATIONS  # its steps are long still


def test_a_rival_must_come_near_the_loss_of_the_answer():
    problem = make_problem(twin()).everything
    theta, other = (problem.parameters.theta([factor * LENGTH, GRAVITY]) for factor in (1.01, 1.2))
    losses = [loss_where_finite(problem, at) for at in (theta, other)]
    answer = Result(theta, losses[0], Status.CONVERGED, 1)
    assert _needed(problem, answer, theta) == np.inf  # it may win as it is
    assert losses[0] < _needed(problem, answer, other) < 0.5 * losses[1]
