"""The figure of a coarse set, for one, two and more axes."""

import io

import numpy as np
import pytest
from rich.console import Console

from studies.progress import EvaluationProgress
from studies.run_folder import RunFolder
from studies.search.figure import coarse_figure
from studies.search.robust import robust_search
from studies.search.robust_settings import RobustSearch
from tests.studies.search.toys import Swing, four_free, one_free, two_free, with_offset


def found(path, problem, **how):
    progress = EvaluationProgress(200, Console(file=io.StringIO()))
    return robust_search(problem, RobustSearch(**how), RunFolder.create(path), progress)


@pytest.mark.parametrize(
    ("free", "answers"),
    [(one_free, (0,)), (two_free, (0, 1)), (with_offset, (0, 1)), (four_free, (0, 1, 2, 3))],
)
def test_a_coarse_set_is_drawn(tmp_path, free, answers):
    problem = Swing(free(60.0), noise=0.1, answers=answers)
    data = coarse_figure(found(tmp_path / "run", problem), problem.parameters, {"w": "rad/s"})
    assert data.startswith(b"\x89PNG")
    assert len(data) > 10_000


def test_points_that_blew_up_are_drawn(tmp_path):
    problem = Swing(one_free(60.0), longest_step=1.0)
    result = found(tmp_path / "run", problem)
    result.coarse.by_frame[[3, 9]] = np.inf
    assert coarse_figure(result, problem.parameters).startswith(b"\x89PNG")


def test_a_search_without_a_coarse_set_has_no_figure(tmp_path):
    problem = Swing(one_free(20.5))
    with pytest.raises(ValueError, match="no coarse set to draw"):
        coarse_figure(found(tmp_path / "run", problem, coarse=0), problem.parameters)
