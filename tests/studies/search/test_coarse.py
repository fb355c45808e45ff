"""Points of the coarse set, and the local minima among them."""

import numpy as np
import pytest

from studies.problem.parameters import Identity, Parameters
from studies.runs.errors import StudyError
from studies.search.coarse import axis_range, coarse_set, local_minima
from tests.studies.problem.free import block, positive_block


def parameters(n_log=1, bounds=(1e3, 1e6)):
    blocks = [positive_block(f"duck.{k}", 2e4, {f"duck.{k}": bounds}) for k in range(n_log)]
    speed = block("duck.velocity", Identity(), np.zeros(3), {"duck.velocity": (-2.0, 4.0)})
    return Parameters([*blocks, speed])


def test_one_positive_scalar_has_an_even_grid_in_its_logarithm():
    free = parameters()
    points = coarse_set(free, [0], 13).points
    assert points.shape == (14, 4)
    assert np.array_equal(points[0], free.start)
    steps = np.diff(points[1:, 0])
    np.testing.assert_allclose(steps, np.log(1e3) / 13)
    np.testing.assert_allclose(points[1, 0] - np.log(1e3), 0.5 * steps[0])
    np.testing.assert_allclose(np.log(1e6) - points[-1, 0], 0.5 * steps[0])
    assert not points[:, 1:].any()


def test_more_axes_have_a_sample_with_many_values_of_each():
    for axes in ([0, 1], [0, 1, 2]):
        points = coarse_set(parameters(), axes).points
        counts = [len(np.unique(column)) for column in points[1:].T]
        assert counts == [64 if i in axes else 1 for i in range(4)]


def test_many_axes_have_a_sample_that_fills_their_ranges():
    free = parameters(3)
    points = coarse_set(free, range(6), 64, (5, 1)).points
    assert points.shape == (65, 6)
    assert np.array_equal(points, coarse_set(free, range(6), 64, (5, 1)).points)
    assert not np.array_equal(points, coarse_set(free, range(6), 64, (6, 1)).points)
    unit = (points[1:] - free.lower) / (free.upper - free.lower)
    counts = [np.histogram(column, 8, (0.0, 1.0))[0] for column in unit.T]
    assert np.array_equal(counts, np.full((6, 8), 8))  # every eighth of every axis alike


def test_an_axis_without_bounds_has_a_range_about_its_start():
    free = Parameters(
        [
            positive_block("E", 50.0),
            block("v", Identity(), np.array([3.0, 0.0]), {"v": (-np.inf, 9.0)}),
            block("w", Identity(), 0.0),
        ]
    )
    np.testing.assert_allclose(np.exp(axis_range(free, 0)), [0.5, 5000.0])
    assert axis_range(free, 1) == (-3.0, 9.0)
    assert axis_range(free, 2) == (0.0, 9.0)
    assert axis_range(free, 3) is None
    coarse = coarse_set(free, [3], 13)
    assert coarse.axes == ()
    assert np.array_equal(coarse.points, [free.start])


def test_no_coarse_set_is_the_start_alone():
    coarse = coarse_set(parameters(), [0], 0)
    assert len(coarse.points) == 1
    assert local_minima(coarse, np.array([3.0])).tolist() == [0]
    with pytest.raises(StudyError, match=r"`search.coarse` must not be negative, got -1"):
        coarse_set(parameters(), [0], -1)


def test_minima_of_a_line_are_those_of_the_curve():
    coarse = coarse_set(parameters(), [0], 30)
    along = (coarse.points[:, 0] - coarse.lower) / (coarse.upper - coarse.lower)
    values = np.cos(6.0 * np.pi * along) + 0.3 * along  # minima at 1/6, 1/2 and 5/6
    minima = local_minima(coarse, values)
    np.testing.assert_allclose(along[minima], [1 / 6, 1 / 2, 5 / 6], atol=0.03)
    assert local_minima(coarse, along).tolist() == [1]  # an end is one too


@pytest.mark.parametrize("n_axes", [2, 3, 5])
def test_the_wells_of_a_sample_are_among_its_minima(n_axes):
    coarse = coarse_set(parameters(2), range(n_axes), 256, (1,))
    unit = (coarse.points[:, :n_axes] - coarse.lower) / (coarse.upper - coarse.lower)
    wells = np.array([np.full(n_axes, 0.25), np.full(n_axes, 0.75)])
    values = np.linalg.norm(unit[:, None] - wells, axis=2).min(axis=1)
    near = [int(np.argmin(np.linalg.norm(unit - well, axis=1))) for well in wells]
    assert set(near) <= set(local_minima(coarse, values).tolist())


def test_points_without_a_loss_are_no_minima_and_hide_none():
    coarse = coarse_set(parameters(), [0], 6)
    values = np.array([2.0, np.inf, 3.0, np.inf, 1.0, 1.0, np.inf])
    assert local_minima(coarse, values).tolist() == [4, 2]  # 4 is next to the start
    assert local_minima(coarse, np.full(7, np.inf)).tolist() == []
