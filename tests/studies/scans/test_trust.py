"""Gradient beside differences: agreement, corrupted gradients, kinks, jumps, a black box."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from studies.answer.kinks import margins
from studies.problem.steps import TimeSteps
from studies.problem.worlds import Sample
from studies.scans import trust
from studies.scans.spec import BlackBox
from studies.scans.trust import events, touch_set
from tests.studies.scans.toy import BEAM, CONTACT, CUBE, MASS, PASSING, grid_of, run, written


STEP = [TimeSteps(1.0, 1)]


def compared(grid, factor=1.0):
    terrain = grid.first
    points = [grid.natural(terrain, index) for index in grid.order()]
    samples = [
        replace(sample, gradient=factor * sample.gradient) for sample in terrain.samples(points)
    ]
    steps = [terrain.problem.with_rounded_steps(point).steps for point in points]
    return points, trust.compare(grid, terrain, points, samples, steps=steps)


def test_a_right_gradient_agrees_with_differences(tmp_path):
    path = written(tmp_path, BEAM)
    _, comparisons = compared(grid_of(path, (), "beam.mu=1e5:3e5:2", "beam.lam=1e5:3.2e5:2"))
    for comparison in comparisons:
        # Truncation h^2 and rounding eps L/h are both about 1e-10 of the slope.
        assert comparison.relative.shape == (2,)
        assert (comparison.relative < 1e-6).all()
        assert (comparison.difference != 0.0).all()
        assert not comparison.crosses.any()
        assert (comparison.kink == np.inf).all()


def test_a_wrong_gradient_is_found():
    _, comparisons = compared(grid_of("pushed-cube", CUBE, f"{MASS}=0.5:0.7:2"), factor=1.01)
    for comparison in comparisons:
        assert comparison.relative[0] == pytest.approx(0.01 / 1.01, rel=1e-3)
        assert not comparison.shorter[0]


def test_at_the_truth_where_both_are_zero_they_agree():
    _, (comparison,) = compared(grid_of("pushed-cube", CUBE, f"{MASS}=1:1:1"))
    assert comparison.relative[0] < trust.AGREES["float64"]


def test_float32_is_held_against_differences_in_float64():
    _, comparisons = compared(grid_of("pushed-cube", CUBE, f"{MASS}=0.5:1:2", dtype="float32"))
    assert all(comparison.relative[0] < trust.AGREES["float32"] for comparison in comparisons)


@pytest.fixture
def contact(tmp_path):
    return written(tmp_path, CONTACT)


def test_the_nearest_kink_is_where_a_touch_moves(contact):
    grid = grid_of(contact, (), "body.mass=1.5:2.5:3")
    (_, point, _), (_, comparison, _) = compared(grid)
    assert 0.0 < comparison.kink[0] < 1.0
    problem = grid.first.problem

    def touches(share):
        moved = point.copy()
        moved[grid.scanned[0]] += share * comparison.kink[0]
        return touch_set(margins(problem.motion_at(moved)))

    # To first order: nothing moves well before it, something does a little behind it.
    assert touches(0.0) == touches(0.5) == touches(-0.5)
    assert touches(1.5) != touches(0.0) or touches(-1.5) != touches(0.0)


def test_a_touch_that_moves_within_the_step_is_told(contact, monkeypatch):
    grid = grid_of(contact, (), "body.mass=2.1:2.1:1")
    points, (comparison,) = compared(grid)
    assert not comparison.crosses[0]
    step = 2.0 * comparison.kink[0] / points[0][grid.scanned[0]]
    monkeypatch.setattr(trust, "STEP", {"float64": step})
    assert compared(grid)[1][0].crosses[0]


def test_where_bodies_begin_to_miss_each_other_a_kink_is_marked(tmp_path):
    path, axis = written(tmp_path, PASSING), "right.position[1]"
    grid = grid_of(path, (), f"{axis}=0.15:0.15:1")
    ((point,), (comparison,)) = compared(grid)
    assert comparison.relative[0] < trust.AGREES["float64"]

    def touches(y):
        moved = point.copy()
        moved[grid.scanned[0]] = y
        return events(grid.first.problem, moved)["touches"]

    # They pass each other; to first order they touch where the nearest kink is.
    assert touches(0.15) == 0
    assert comparison.kink[0] == pytest.approx(0.0093, rel=0.02)
    assert (
        touches(0.15 - 0.95 * comparison.kink[0]) == 0 < touches(0.15 - 1.05 * comparison.kink[0])
    )
    folder, _ = run(tmp_path / "scan", path, (), f"{axis}=0.14:0.15:2")
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert data.touches.values[0] > data.touches.values[1] == 0
        assert data.touch_event.sel(along=axis).values.tolist() == [True, False]
        assert data.contact_event.sel(along=axis).values.tolist() == [True, False]
        assert data.kink.sel(axis=axis).values[0] < 1e-4
        assert not data.crosses.any()


def stubbed(monkeypatch, loss):
    """A grid of one axis, from 1 to 2, whose loss is a function of the value."""
    monkeypatch.setattr(
        trust, "_losses", lambda terrain, points, steps: np.array([loss(p[0]) for p in points])
    )
    monkeypatch.setattr(trust, "_kinks", lambda *_: (np.zeros(1, bool), np.full(1, np.inf)))
    grid = grid_of("pushed-cube", CUBE, f"{MASS}=1:2:2")
    return grid, grid.first


@pytest.mark.parametrize("share", [0.3, 0.03, 0.004])
def test_a_jump_within_the_step_is_told_from_a_wrong_gradient(monkeypatch, share):
    jump = 1.0 + share * trust.STEP["float64"]
    grid, terrain = stubbed(monkeypatch, lambda p: p * p + 1e-6 * (p > jump))
    sample = Sample(1.0, np.array([2.0]), np.ones(1))
    (comparison,) = trust.compare(grid, terrain, [np.array([1.0])], [sample], steps=STEP)
    assert comparison.relative[0] > trust.AGREES["float64"]
    assert comparison.shorter[0]


def test_a_step_at_which_rounding_hides_the_difference_excuses_no_gradient(monkeypatch):
    # Of a loss of 1e8 rounding leaves 64 eps 1e8/h = 0.014, 0.11, ... of a slope of 1, which is
    # less than the error of this gradient, 0.03, for the first step alone.
    grid, terrain = stubbed(monkeypatch, lambda p: 1e8 + (p - 1.0))
    monkeypatch.setattr(trust, "STEP", {"float64": 1e-4})
    sample = Sample(1e8, np.array([1.03]), np.ones(1))
    (comparison,) = trust.compare(grid, terrain, [np.array([1.0])], [sample], steps=STEP)
    assert comparison.relative[0] > trust.AGREES["float64"]
    assert not comparison.shorter[0]


def test_a_loss_that_does_not_move_agrees_with_a_gradient_of_zero(monkeypatch):
    eps = np.finfo(float).eps
    grid, terrain = stubbed(monkeypatch, lambda p: 1.0 + eps * (p > 1.0))
    sample = Sample(1.0, np.zeros(1), np.ones(1))
    (comparison,) = trust.compare(grid, terrain, [np.array([1.0])], [sample], steps=STEP)
    assert comparison.relative[0] < trust.AGREES["float64"]


def test_a_black_box_finds_the_gradient_on_average(monkeypatch):
    grid, terrain = stubbed(monkeypatch, lambda p: 3.0 * p)
    box = BlackBox(samples=400, sigma=0.05)
    grid = replace(grid, scan=replace(grid.scan, black_box=box))
    estimates = [
        trust.estimates(grid, terrain, [np.array([1.5])], [number], steps=STEP)[0][0]
        for number in (0, 0, 1)
    ]
    # The variance of e^2 is 2: 3 (1 +- 5 sqrt(2/400)).
    assert estimates[0] == pytest.approx(3.0, rel=5.0 * np.sqrt(2.0 / 400))
    assert estimates[0] == estimates[1] != estimates[2]


def test_events_tell_what_touches_and_what_is_seen(contact):
    grid = grid_of(contact, (), "body.mass=1:3:2")
    light, heavy = (
        events(grid.first.problem, grid.natural(grid.first, index)) for index in grid.order()
    )
    assert light["touches"] > 0
    assert light["touch_set"] != heavy["touch_set"]
    # Of a cube seen from outside one to three of six sides, with two triangles each, are seen.
    assert 2 * 2 <= light["faces"] <= 2 * 6
    assert events(grid.first.problem, grid.first.base) == events(
        grid.first.problem, grid.first.base
    )
    still = grid_of("pushed-cube", CUBE, f"{MASS}=1:2:2")
    assert events(still.first.problem, still.first.base)["touches"] is None
