"""Tables 1 to 3: what methods that look at nothing err by, REINFORCE by hand, and small tables."""

from types import SimpleNamespace

import numpy as np
import pytest

from studies.paper import tables
from studies.paper.tables import Method, TableCase, estimate, expected, score_gradient, with_places
from studies.problem.making import make_problem
from studies.runs.errors import NotFiniteError
from studies.runs.folder import RunFolder
from tests.studies.bundled.test_fields import TOYS


# Intervals of the gradSim paper, and what its set-up makes of them: derived by hand, 3 digits.
KNOWN = [
    ((0.2, 0.3), 0.102, 0.136),
    ((1.0, 500.0), 2.43, 2.62),
    ((0.2, 1.0), 0.441, 0.558),
    ((2.0, 12.0), 0.500, 0.626),
]


def case_of(scene="rigid-mass", k=0):
    return TableCase(scene, TOYS[scene], 0, k)


@pytest.mark.parametrize(("ends", "average", "random"), KNOWN)
def test_the_expectations_are_the_known_ones(ends, average, random):
    assert expected(Method.AVERAGE, *ends) == pytest.approx(average, rel=5e-3)
    assert expected(Method.RANDOM, *ends) == pytest.approx(random, rel=5e-3)


@pytest.mark.parametrize("ends", [ends for ends, *_ in KNOWN])
def test_the_expectations_are_the_integrals(ends):
    low, high = ends
    n = 2000
    p = low + (high - low) * (np.arange(n) + 0.5) / n
    # the midpoint rule errs by (width/n)^2 f''/24, f'' up to 2 width/low^3, and at the kink
    bar = 1e-4 * (high / low) ** 2 / n + 1e-6
    average = np.mean(np.abs(0.5 * (low + high) - p) / p)
    assert expected(Method.AVERAGE, low, high) == pytest.approx(average, abs=bar + 1e-3 / n)
    random = np.mean(np.abs(p[:, None] - p) / p)
    assert expected(Method.RANDOM, low, high) == pytest.approx(random, abs=bar + 1.0 / n)


def test_an_error_relative_to_a_scale_is_expected_too(rng):
    p, q = rng.uniform(-0.5, 1.5, (2, 100_000))
    for method, answer in ((Method.AVERAGE, 0.5), (Method.RANDOM, q)):
        mean = np.abs(answer - p).mean() / 3.0
        assert expected(method, -0.5, 1.5, 3.0) == pytest.approx(mean, rel=0.02)
    assert expected(Method.RANDOM, 0.7, 0.7) == 0.0


def test_the_estimate_of_reinforce_by_hand():
    drawn = np.array([[1.0, 0.5], [-1.0, 0.5]])
    # advantages 1 and -1, so g = ((1, .5) - (-1, .5)) / (2 sigma)
    gradient = score_gradient(np.array([3.0, 1.0]), drawn, 0.25)
    np.testing.assert_allclose(gradient, [4.0, 0.0], rtol=1e-15)
    assert not score_gradient(np.array([2.0, 2.0]), drawn, 0.25).any()


def test_its_mean_points_along_the_gradient(rng):
    slope = np.array([0.3, -0.7, 0.1])
    gradients = [
        score_gradient(drawn @ slope, drawn, 0.05) for drawn in rng.standard_normal((4000, 5, 3))
    ]
    mean = np.mean(gradients, axis=0)
    cosine = mean @ slope / np.linalg.norm(mean) / np.linalg.norm(slope)
    assert cosine > 0.999  # 4000 estimates of 3 components: each off by a few hundredths


def test_a_motion_that_blew_up_is_the_worst_of_its_step():
    drawn = np.array([[1.0], [-1.0], [0.5]])
    with_nan = score_gradient(np.array([2.0, np.nan, 1.0]), drawn, 0.1)
    assert np.array_equal(with_nan, score_gradient(np.array([2.0, 1.0, 1.0]), drawn, 0.1))
    with pytest.raises(NotFiniteError, match="No motion of a step"):
        score_gradient(np.array([np.nan, np.nan]), drawn[:2], 0.1)


def test_reinforce_ends_lower_than_it_begins(monkeypatch):
    monkeypatch.setattr(tables, "STEPS", 12)
    monkeypatch.setattr(tables, "RATE", 1e-2)
    case = case_of()
    theta, loss = estimate(case, Method.REINFORCE)
    assert loss == case.problem.loss_at(theta)
    assert loss < case.problem.loss_at(case.problem.parameters.start)
    again, _ = estimate(case_of(), Method.REINFORCE)
    assert np.array_equal(again, theta)


@pytest.mark.parametrize("scene", ["rigid-mass", "ball-stiffness"])
def test_places_tell_as_much_as_the_film(scene):
    case = case_of(scene)
    problem = make_problem(with_places(case.file)).problem
    (observer,) = problem.observers
    (film,) = case.problem.observers
    np.testing.assert_allclose(observer.times, film.times)
    truth = case.made.truth.flat(problem.parameters.paths)
    assert problem.loss_at(problem.parameters.theta(truth)) < 1e-18
    theta, _ = estimate(case, Method.STATES)
    assert max(case.errors(theta).values()) < 1e-9


def test_guesses_are_within_the_ranges():
    case = case_of("ball-stiffness", 2)
    middle = case.problem.parameters.natural(estimate(case, Method.AVERAGE)[0])
    np.testing.assert_allclose(middle, [750.0, 375.0])
    mu, lam = case.problem.parameters.natural(estimate(case, Method.RANDOM)[0])
    assert 675.0 < mu < 825.0
    assert 300.0 < lam < 450.0
    assert max(case.errors(estimate(case, Method.RANDOM)[0]).values()) > 0.0


def test_a_table_is_written_and_gone_on_with(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "TABLES", {1: {"rigid-mass": TOYS["rigid-mass"]}})
    methods = [Method.FILM, Method.AVERAGE]
    tables.main(1, count=2, method=methods, out=tmp_path / "t", scheduler="serial")
    rows = RunFolder(tmp_path / "t").read_json("result.json")["rows"]
    assert [row["method"] for row in rows] == ["film", "average"]
    assert rows[0]["mean"] < 1e-9
    assert rows[0]["published"] == 9.01e-5
    assert rows[1]["expected"] == pytest.approx(0.102, rel=5e-3)
    assert "| rigid-mass | body.mass | film | 2 |" in capsys.readouterr().out
    tables.main(1, count=3, method=methods, out=tmp_path / "t", resume=True, scheduler="serial")
    assert "1 of 2: rigid-mass 2, film" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "scene", "size"),
    [(1, "rigid-mass", 162), (2, "rigid-contact", 5), (3, "ball-material", 163),
     (3, "cloth-velocity", 3 * 229)],
)  # fmt: skip
def test_scenes_may_have_the_sizes_of_the_paper(number, scene, size):
    case = TableCase(scene, tables.scenes_of(number, paper_sizes=True)[scene], 0, 1)
    assert case.problem.parameters.size == size
    errors = case.errors(
        case.problem.parameters.theta(case.truth.flat(case.problem.parameters.paths))
    )
    assert max(errors.values()) < 1e-14
    if scene == "rigid-mass":
        start = case.errors(case.problem.parameters.start)
        assert start[tables.SUM] == pytest.approx(start[tables.MASSES])  # all start alike


def test_a_search_that_ends_wrong_is_made_again(monkeypatch):
    seeds = []

    def ended(problem, how, folder, progress, *, seed):
        seeds.append(seed)
        loss = 1e-3 if len(seeds) < 3 else 0.0
        return SimpleNamespace(best=SimpleNamespace(loss=loss, theta=np.array([loss]), message=""))

    monkeypatch.setattr(tables, "robust_search", ended)
    theta, loss = estimate(case_of(), Method.FILM)
    assert seeds == [(0, 0), (0, 0, 1), (0, 0, 2)]
    assert theta == loss == 0.0


def test_a_search_that_fails_is_told(monkeypatch):
    def fail(case, made):
        raise NotFiniteError("it blew up")

    monkeypatch.setattr(tables, "_searched", fail)
    assert tables.run_task((case_of(), Method.FILM)) == {"failed": "it blew up"}
