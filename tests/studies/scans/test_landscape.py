"""What a grid says: minima, border, truth."""

import numpy as np
import pytest
import xarray as xr

from studies.scans.axes import parse_axes
from studies.scans.landscape import Slice
from studies.scans.progress import PointProgress


def slice_of(loss, *over, truth=None):
    axes = parse_axes(list(over))
    keys = [axis.key for axis in axes]
    data = xr.Dataset({"loss": (keys, np.array(loss))}, {"parameter": keys})
    if truth is not None:
        data["truth"] = ("parameter", list(truth))
    return Slice({}, axes, data)


def test_local_minima_are_below_all_their_neighbours():
    own = slice_of([3.0, 1.0, 2.0, 0.5, 0.5, 4.0, 1.5], "a=0:6:7", truth=[1.2])
    assert own.local_minima() == [(1,), (6,)]  # a flat place has none
    assert own.lowest() == (3,)
    assert own.is_on_border((6,))
    assert not own.is_on_border((1,))
    assert own.coincides((1,))
    assert not own.coincides((3,))


def test_diagonal_neighbours_and_missing_points_count():
    nan = np.nan
    own = slice_of(
        [[5.0, 5.0, 5.0, 5.0], [5.0, 2.0, 5.0, nan], [5.0, 5.0, 1.0, nan], [nan, nan, nan, 0.0]],
        "a=0:3:4", "b=0:3:4",
    )  # fmt: skip
    assert own.local_minima() == [(3, 3)]
    assert own.truth is None
    assert own.coincides((3, 3)) is None


def test_a_truth_outside_the_grid_is_told():
    own = slice_of([1.0, 2.0], "a=1:10:2:log", truth=[100.0])
    assert not own.holds_truth()
    assert not own.coincides((0,))
    assert slice_of([1.0, 2.0], "a=1:10:2:log", truth=[10.0]).holds_truth()


def test_without_any_loss_nothing_is_lowest():
    own = slice_of([np.nan, np.nan], "a=0:1:2")
    assert own.lowest() is None
    assert own.local_minima() == []


def test_progress_tells_points_and_failures(capsys):
    with PointProgress(3, 1) as progress:
        progress([{"reason": None}])
        progress([{"reason": "too fast"}])
    told = capsys.readouterr().err
    assert "point 3/3  1 failed" in told


@pytest.mark.parametrize("over", [("a=0:1:2",), ("a=0:1:2", "b=0:1:2")])
def test_values_of_a_point_go_by_key(over):
    own = slice_of(np.zeros((2,) * len(over)), *over)
    assert own.at((1,) * len(over)) == {text[0]: 1.0 for text in over}
