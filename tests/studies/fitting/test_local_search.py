"""When local searches end: where a rival cannot win."""

import numpy as np

from studies.fitting.judging import loss_where_finite
from studies.fitting.solve import _needed
from studies.optimizers.problem import Result, Status
from studies.problem.making import make_problem
from tests.studies.fitting.twins import GRAVITY, LENGTH, twin


def test_a_rival_must_come_near_the_loss_of_the_answer():
    problem = make_problem(twin()).everything
    theta, other = (problem.parameters.theta([part * LENGTH, GRAVITY]) for part in (1.01, 1.2))
    losses = [loss_where_finite(problem, at) for at in (theta, other)]
    answer = Result(theta, losses[0], Status.CONVERGED, 1)
    assert _needed(problem, answer, theta) == np.inf  # it may win as it is
    assert losses[0] < _needed(problem, answer, other) < 0.5 * losses[1]
