"""What a grid says: minima, border, truth; and its arrows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from studies.runs import progress
from studies.runs.progress import PointProgress
from studies.scans import figures, report
from studies.scans.landscape import Slice, cosines, named, per_axis
from studies.scans.spec import parse_axes


def slice_of(loss, *over, truth=None):
    axes = parse_axes(list(over))
    keys = [axis.key for axis in axes]
    data = xr.Dataset({"loss": (keys, np.array(loss))}, {"parameter": keys})
    if truth is not None:
        data["truth"] = ("parameter", list(truth))
    return Slice({}, axes, data)


def test_local_minima_are_below_all_their_neighbours():
    scan_slice = slice_of([3.0, 1.0, 2.0, 0.5, 0.5, 4.0, 1.5], "a=0:6:7", truth=[1.2])
    assert scan_slice.local_minima() == [(1,), (6,)]  # a flat place has none
    assert scan_slice.lowest() == (3,)
    assert scan_slice.is_on_border((6,))
    assert not scan_slice.is_on_border((1,))
    assert scan_slice.is_beside((1,))
    assert not scan_slice.is_beside((4,))


@pytest.mark.parametrize(
    ("truth", "beside"), [(2.0, (1, 2, 3)), (2.2, (1, 2, 3, 4)), (0.5, (0, 1, 2))]
)
def test_a_truth_between_values_has_neighbours_around_it(truth, beside):
    scan_slice = slice_of(np.arange(6.0), "a=0:5:6", truth=[truth])
    assert tuple(i for i in range(6) if scan_slice.is_beside((i,))) == beside
    third = slice_of(np.arange(4.0), "a=0:1:4", truth=[2.0 / 3.0])  # not exact in binary
    assert [third.is_beside((i,)) for i in range(4)] == [False, True, True, True]
    assert slice_of(np.arange(6.0), "a=0:5:6").is_beside((0,)) is None


def test_a_truth_off_the_grid_is_not_held_against_its_neighbours():
    exact = {"steps_from_truth": [0.0, 0.0], "beside": True}
    step = exact | {"steps_from_truth": [0.3, 0.7]}
    beside = exact | {"steps_from_truth": [0.3, 1.7]}
    away = beside | {"beside": False}

    def verdict(*parts):
        return report._verdict({"slices": [{**entry, "truth_inside": True} for entry in parts]})

    verdicts = [verdict(entry) for entry in (exact, step, beside, away)]
    assert [tone for tone, _ in verdicts] == ["good", "good", "plain", "bad"]
    assert verdicts[0][1] == "The lowest point is at the truth"
    assert verdicts[1][1] == verdicts[2][1] == "The lowest point is next to the truth"
    assert verdicts[3][1] == "The lowest point is not at the truth"
    assert verdict(exact, away) == (
        "bad", "Lowest point at the truth or next to it in 1 of 2",
    )  # fmt: skip


@pytest.mark.parametrize("over", [("a=0:3:4", "b=0:5:6"), ("a=1:100:9:log", "b=0:9:40")])
def test_no_arrow_leaves_the_axes(over):
    scan_slice = slice_of(np.zeros([axis.count for axis in parse_axes(list(over))]), *over)
    reach = figures._reach(scan_slice)
    for axis in scan_slice.axes:
        first, second = axis.values[figures._evenly(axis.count)[:2]]
        assert reach < axis.place(second) / (axis.count - 1) - axis.place(first) / (axis.count - 1)
        low, high = (
            axis.place(end) / (axis.count - 1) for end in figures._with_margin(axis, reach)
        )
        assert np.allclose([low, high], [-reach, 1.0 + reach], rtol=1e-12)


def test_diagonal_neighbours_and_missing_points_count():
    nan = np.nan
    scan_slice = slice_of(
        [[5.0, 5.0, 5.0, 5.0], [5.0, 2.0, 5.0, nan], [5.0, 5.0, 1.0, nan], [nan, nan, nan, 0.0]],
        "a=0:3:4", "b=0:3:4",
    )  # fmt: skip
    assert scan_slice.local_minima() == [(3, 3)]
    assert scan_slice.truth is None
    assert scan_slice.is_beside((3, 3)) is None


def test_a_truth_outside_the_grid_is_told():
    scan_slice = slice_of([1.0, 2.0], "a=1:10:2:log", truth=[100.0])
    assert not scan_slice.holds_truth()
    assert not scan_slice.is_beside((0,))
    assert slice_of([1.0, 2.0], "a=1:10:2:log", truth=[10.0]).holds_truth()


def bowl(*over, lowest, holes=()):
    """Return a slice of the loss (u - u0)^2 + 3 (v - v0)^2 + (u - u0) (v - v0), with gradients.

    u and v are the values along two axes, of a logarithmic one its logarithm; with one axis, v is
    v0.
    """
    axes = parse_axes(list(over))
    places = np.stack(np.meshgrid(*(axis.values for axis in axes), indexing="ij"), axis=-1)
    is_log = np.array([axis.is_log for axis in axes])
    off = places - lowest
    off[..., is_log] = np.log(places / lowest)[..., is_log] if is_log.any() else 0.0
    A = np.array([[1.0, 0.5], [0.5, 3.0]])[: len(axes), : len(axes)]
    slopes = 2.0 * off @ A / np.where(is_log, places, 1.0)
    loss = np.einsum("...i,ij,...j->...", off, A, off)
    for hole in holes:
        loss[hole] = np.nan
        slopes[hole] = np.nan
    scan_slice = slice_of(loss, *over)
    data = scan_slice.data.assign_coords({axis.key: axis.values for axis in axes})
    return replace(scan_slice, data=data.assign(gradient=((*scan_slice.keys, "parameter"), slopes)))


@pytest.mark.parametrize(
    ("over", "lowest"),
    [
        (("a=0:6:4",), (3.3,)),
        (("a=1:100:4:log",), (23.0,)),
        (("a=0:6:4", "b=-1:1:3"), (3.3, 0.21)),
        (("a=1:100:5:log", "b=1:5:5", "c=2:2:1"), (23.0, 2.23)),
    ],
)
def test_the_minimum_through_losses_and_slopes_lies_between_the_points(over, lowest):
    scan_slice = bowl(*over[:2], lowest=lowest)
    if len(over) > 2:  # an axis of one value is held
        scan_slice = replace(
            scan_slice, axes=parse_axes(list(over)), data=scan_slice.data.expand_dims("c")
        )
    assert scan_slice.minimum() == pytest.approx(dict(zip("ab", lowest, strict=False)), rel=2e-3)


def test_a_minimum_has_as_many_digits_as_its_axis_needs():
    scan_slice = bowl("a=1000:1006:4", lowest=(1003.3,))
    assert scan_slice.minimum() == pytest.approx({"a": 1003.3}, abs=0.01)


def test_a_point_without_a_loss_leaves_a_hole_in_the_surface():
    scan_slice = bowl("a=0:4:5", "b=0:4:5", lowest=(1.3, 1.2), holes=[(3, 3)])
    assert scan_slice.minimum() == pytest.approx({"a": 1.3, "b": 1.2}, rel=2e-3)
    assert np.isnan(scan_slice.surface(np.array([0.75]), np.array([0.75]))).all()
    edge = bowl("a=0:4:5", lowest=(1.3,), holes=[(1,)])
    assert edge.minimum() == {"a": 2.0}  # no curve where the minimum is


def test_without_slopes_there_is_no_minimum_between_points():
    scan_slice = slice_of([3.0, 1.0, 2.0], "a=0:2:3")
    assert scan_slice.minimum() is None
    x, loss = scan_slice.curve()
    np.testing.assert_array_equal((x, loss), ([0.0, 1.0, 2.0], [3.0, 1.0, 2.0]))


def test_without_any_loss_nothing_is_lowest():
    scan_slice = slice_of([np.nan, np.nan], "a=0:1:2")
    assert scan_slice.lowest() is None
    assert scan_slice.local_minima() == []


def test_progress_tells_points_and_failures(capsys):
    with PointProgress(3, 1) as tell:
        tell([{"reason": None}])
        tell([{"reason": "too fast"}])
    assert "point 3/3  1 failed" in capsys.readouterr().err


def test_the_time_left_is_told_without_the_first_piece_which_compiles(capsys, monkeypatch):
    clock = iter([0.0, 90.0, 96.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    with PointProgress(11, 0) as tell:
        tell([{"reason": None}])
        tell([{"reason": None}] * 2)
    printed = capsys.readouterr().err.splitlines()
    assert printed[0].rstrip() == "point 1/11    90 s"
    assert printed[1].rstrip() == "point 3/11    96 s, about 24 s left"


def gradients(axes, values):
    keys = [axis.key for axis in axes]
    coords = {axis.key: axis.values for axis in axes}
    return xr.DataArray(values, {**coords, "parameter": keys}, (*keys, "parameter"))


def test_derivatives_are_per_length_of_an_axis_as_it_is_drawn():
    axes = parse_axes(["a=1:100:3:log", "b=0:5:2"])
    slopes = per_axis(axes, gradients(axes, np.ones((3, 2, 2))))
    # dL/d(log a / log 100) = a log 100 dL/da
    assert np.allclose(slopes[..., 0], np.array([[1.0], [10.0], [100.0]]) * np.log(100.0))
    assert np.allclose(slopes[..., 1], 5.0)


def test_an_estimate_is_held_against_the_gradient_by_their_angle():
    axes = parse_axes(["a=0:1:2", "b=0:2:2"])
    exact = np.broadcast_to([2.0, 1.0], (2, 2, 2))
    estimate = np.array([[[2.0, 1.0], [-2.0, -1.0]], [[2.0, -1.0], [np.nan, 1.0]]])
    box = gradients(axes, estimate).rename(parameter="axis")
    data = xr.Dataset({"gradient": gradients(axes, exact), "black_box": box})
    assert np.allclose(cosines(axes, data), [[1.0, -1.0], [0.0, np.nan]], equal_nan=True)


def test_values_are_told_with_their_units():
    assert named({"beam.mu": 2e5, "time.frames": 3.0}, {"beam.mu": "Pa"}) == (
        "beam.mu = 200\u202f000 Pa, time.frames = 3"
    )


@pytest.mark.parametrize("over", [("a=0:1:2",), ("a=0:1:2", "b=0:1:2")])
def test_values_of_a_point_go_by_key(over):
    scan_slice = slice_of(np.zeros((2,) * len(over)), *over)
    assert scan_slice.at((1,) * len(over)) == {text[0]: 1.0 for text in over}
