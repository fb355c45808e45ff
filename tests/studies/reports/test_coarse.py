"""The figure of a coarse set, for one, two and more axes, drawn from JSON."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from studies.reports.coarse import coarse_figure, coarse_json
from studies.reports.figures import png
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from studies.search.robust import robust_search
from tests.studies.search.toys import Swing, four_free, one_free, two_free, with_offset


def found(path, problem, **how):
    progress = EvaluationProgress(200, Console(file=io.StringIO()))
    return robust_search(problem, Search(**how), RunFolder.create(path), progress)


@pytest.mark.parametrize(
    ("free", "answers"),
    [(one_free, (0,)), (two_free, (0, 1)), (with_offset, (0, 1)), (four_free, (0, 1, 2, 3))],
)
def test_a_coarse_set_is_drawn_from_json(tmp_path, free, answers):
    problem = Swing(free(60.0), noise=0.1, answers=answers)
    result = found(tmp_path / "run", problem)
    data = json.loads(json.dumps(coarse_json(result, problem.parameters, {"w": "rad/s"})))
    assert len(png(coarse_figure(data))) > 10_000
    answer = problem.parameters.natural(result.best.theta)
    assert data["basins"][0]["end"] == answer[list(result.coarse.points.axes)].tolist()


@pytest.mark.parametrize("free", [one_free, two_free])
def test_points_that_blew_up_are_drawn(tmp_path, free):
    problem = Swing(free(60.0), longest_step=1.0)
    result = found(tmp_path / "run", problem)
    result.coarse.by_frame[[3, 9]] = np.inf
    data = coarse_json(result, problem.parameters, {})
    assert [k for k, loss in enumerate(data["losses"][-1]) if loss is None] == [3, 9]
    assert "blew up" in [line.get_label() for line in coarse_figure(data).axes[0].lines]


def test_a_search_without_a_coarse_set_has_nothing_to_draw(tmp_path):
    problem = Swing(one_free(20.5))
    result = found(tmp_path / "run", problem, coarse=0)
    assert coarse_json(result, problem.parameters, {}) is None
