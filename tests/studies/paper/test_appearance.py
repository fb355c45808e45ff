"""The comparison of looks: same body and motion, other pictures; what its numbers mean."""

import csv

import numpy as np
import pytest

from studies.optimizers.problem import Method
from studies.paper import appearance
from studies.paper.appearance import KINDS, Curve, compare, curve, looked_at, make_case
from studies.runs.folder import RunFolder
from tests.studies.undrawn import undrawn


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return make_case("sphere", 0, tmp_path_factory.mktemp("case"))


def at_truth(case, kind):
    problem = case.problems[kind]
    return problem, problem.parameters.theta(np.array([case.mass]))


def test_the_kinds_differ_in_looks_alone(case):
    motions = [case.problems[kind].motion_at(at_truth(case, kind)[1]).run() for kind in KINDS]
    films = [case.problems[kind].observers[0].frames for kind in KINDS]
    for run, frames in zip(motions[1:], films[1:], strict=True):
        assert np.array_equal(run.bodies["body"].position, motions[0].bodies["body"].position)
        assert np.abs(frames - films[0]).max() > 0.05
    starts = {case.problems[kind].parameters.start.item() for kind in KINDS}
    assert len(starts) == 1
    assert starts.pop() > at_truth(case, "color")[1].item()
    assert all(at_truth(case, kind)[0].loss_at(at_truth(case, kind)[1]) < 1e-25 for kind in KINDS)


def test_the_loss_is_the_mean_square_over_rgba(case):
    problem, theta = at_truth(case, "texture")
    film = problem.observers[0]
    n = film.rows_per_frame() * len(film.times)
    off = problem.predicted_rows(problem.parameters.start)[:n] - problem.predicted_rows(theta)[:n]
    expected = np.square(off).mean()
    assert problem.loss_at(problem.parameters.start) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_curvature_is_that_of_the_loss(case, kind):
    problem, theta = at_truth(case, kind)
    step = np.array([1e-6])  # a longer one meets pixels that jump
    quotient = (problem.loss_at(theta + step) + problem.loss_at(theta - step)) / step**2
    assert looked_at(case, kind)["curvature"] == pytest.approx(quotient.item(), rel=1e-3)


def test_one_colour_feels_the_mass_at_the_outline_alone(case):
    inside = {kind: looked_at(case, kind)["inside"] for kind in KINDS}
    assert inside["color"] < 1e-3
    assert inside["shading"] > 0.01
    assert inside["texture"] > inside["shading"]


def test_gauss_newton_finds_the_mass_with_every_look(case):
    for kind in KINDS:
        descent = curve("sphere", case, kind, Method.GAUSS_NEWTON, budget=60)
        assert descent.error[-1] < 1e-10, kind
        assert descent.error[0] > 0.1
        assert descent.spent[-1] <= 60


def test_an_error_is_reached_where_it_is_not_exceeded_any_more():
    zigzag = Curve("b", "k", "m", np.array([1, 3, 4, 7]), np.array([1.0, 1e-3, 0.5, 1e-5]))
    assert (zigzag.settled(1e-2), zigzag.settled(1e-9)) == (7.0, np.inf)
    assert zigzag.held(8).tolist() == [1.0, 1.0, 1e-3, 0.5, 0.5, 0.5, 1e-5, 1e-5]
    falling = Curve("c", "k", "m", np.array([1, 2]), np.array([1.0, 0.5]))
    (row,) = appearance.medians([zigzag, falling], 8)
    assert row == {
        "method": "m", "kind": "k", "1e-02": None, "1e-04": None, "worst": 0.5,
        "median": pytest.approx(0.5 * (0.5 + 1e-5)),
    }  # fmt: skip


def test_a_comparison_leaves_numbers_curves_and_a_figure(tmp_path):
    folder = RunFolder.create(tmp_path / "out")
    small = tuple(
        f"observations.{name}.simulate.{key}"
        for name in ("film", "mask")
        for key in ("height=14", "width=9", "frames=2")
    )
    with undrawn():
        result = compare(folder, ("sphere",), 0, budget=3, overrides=small, say=lambda line: None)
    assert [row["kind"] for row in result["searches"]] == 3 * list(KINDS)
    assert folder.read_json("result.json") == result
    assert folder.has("figures/convergence.svg")
    lines = list(csv.DictReader(folder.file("curves.csv").read_text().splitlines()))
    assert {line["method"] for line in lines} == {str(method) for method in appearance.METHODS}
