"""The figure of a coarse set, for one, two and more axes, drawn from JSON."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from studies.reports.coarse import coarse_figure, coarse_json
from studies.reports.figures import png
from studies.runs.evaluations import Evaluation
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


def evaluation(theta, loss, gradient):
    theta, gradient = np.array(theta), np.array(gradient)
    return Evaluation("gradient", theta, loss, gradient, None, {}, 1, 1, 0.0)


def bowl(count):
    """Return a coarse set over a bowl with its minimum at (10, 0.2), and its slopes at points."""
    unit = np.random.default_rng(2).random((count, 2))

    def loss(u):
        return 0.3 + 2.0 * (u[..., 0] - 0.5) ** 2 + 3.0 * (u[..., 1] - 0.6) ** 2

    def evaluated(u):
        slopes = np.array([4.0 * (u[0] - 0.5), 6.0 * (u[1] - 0.6)])
        return evaluation([np.log(10.0) * 2.0 * u[0], 2.0 * u[1] - 1.0], loss(np.array(u)),
                          slopes / [2.0 * np.log(10.0), 2.0])  # fmt: skip

    data = {
        "labels": ["k", "v"], "units": ["N/m", "m/s"], "scales": ["log", "linear"],
        "ends": [[1.0, -1.0], [100.0, 1.0]], "theta": [[0.0, -1.0], [np.log(100.0), 1.0]],
        "points": np.stack([100.0 ** unit[:, 0], 2.0 * unit[:, 1] - 1.0], axis=1).tolist(),
        "losses": [loss(unit).tolist()], "frames": [4], "n_frames": 4,
        "basins": [{"end": [10.0, 0.2], "starts": [[1.0, 0.0]], "loss": 0.3, "is_searched": True}],
    }  # fmt: skip
    return data, [evaluated(u) for u in ((0.5, 0.6), (0.3, 0.4), (0.7, 0.5))], loss


def test_a_map_goes_through_losses_and_slopes():
    data, searched, loss = bowl(16)
    (image,) = coarse_figure(data, [searched], {"k": 10.0, "v": 0.2}).axes[0].images
    surface = np.ma.filled(image.get_array(), np.nan)
    at = (np.arange(len(surface)) + 0.5) / len(surface)
    exact = loss(np.stack(np.meshgrid(at, at), axis=-1))
    near = np.linalg.norm(np.stack(np.meshgrid(at - 0.5, at - 0.6)), axis=0) < 0.02
    off = np.abs(surface - exact)[near].max()
    without = np.ma.filled(coarse_figure(data).axes[0].images[0].get_array(), np.nan)
    assert off < 1e-3 < 0.2 * np.abs(without - exact)[near].max()
    assert np.isnan(surface).any()  # nothing beyond the points


def test_a_map_of_few_points_has_no_surface_and_the_truth_is_marked():
    data, searched, _ = bowl(15)
    axes = coarse_figure(data, [searched[1:], []], {"k": 10.0, "v": 0.2}).axes[0]
    assert not axes.images
    (truth,) = [line for line in axes.lines if line.get_label() == "truth"]
    assert (truth.get_xdata()[0], truth.get_ydata()[0]) == (10.0, 0.2)
    (way,) = [line for line in axes.lines if line.get_label() == "way of a search"]
    corners = [(1.0, 0.0), (100.0**0.3, -0.2), (100.0**0.7, 0.0), (10.0, 0.2)]
    np.testing.assert_allclose(way.get_xydata(), corners, atol=1e-12)


def test_a_curve_has_the_slopes_of_the_search():
    data, *_ = bowl(9)
    along = {key: [row[:1] for row in data[key]] for key in ("points", "ends", "theta")}
    cut = {**data, **along, "labels": ["k"], "units": ["N/m"], "scales": ["log"]}
    cut["basins"] = [{"end": [10.0], "starts": [[1.0]], "loss": 0.3, "is_searched": True}]
    cut["losses"] = [[0.3 + 2.0 * (np.log(k) / np.log(100.0) - 0.5) ** 2 for (k,) in cut["points"]]]
    bottom = evaluation([np.log(10.0)], 0.3, [0.0])
    axes = coarse_figure(cut, [[bottom]], {"k": 10.0}).axes[0]
    curve = next(line for line in axes.lines if len(line.get_xdata()) > 50)
    assert curve.get_ydata().min() == pytest.approx(0.3, rel=1e-9)
    lowest = curve.get_xdata()[np.argmin(curve.get_ydata())]
    assert lowest == pytest.approx(10.0)


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
