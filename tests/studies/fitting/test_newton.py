"""Newton-CG on the problem of a scene."""

import numpy as np

from studies.fitting.solve import solve
from studies.problem.making import make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from tests.studies.fitting.twins import GRAVITY, LENGTH, tables, twin


def test_newton_cg_finds_the_answer_of_a_scene(tmp_path):
    file = twin(search={**tables()["search"], "method": "newton-cg"})
    with EvaluationProgress(400) as progress:
        solved = solve(make_problem(file), file.search, RunFolder(tmp_path), progress)
    values = solved.problem.parameters.natural(solved.result.theta)
    np.testing.assert_allclose(values, [LENGTH, GRAVITY], rtol=1e-4)
