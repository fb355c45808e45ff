import pytest

from studies.reports.bars import answer_bars


def row(**other):
    common = {"name": "beam.E", "unit": "Pa", "count": 1, "start": 1e3, "estimate": 1e4}
    return {**common, "interval": [8e3, 1.25e4], "bounds": [1e2, 1e6], "truth": 1e4, **other}


def test_a_positive_number_lies_on_the_log_scale_of_its_bounds():
    (bar,) = answer_bars([row()]).rows
    assert (bar.start, bar.answer, bar.truth) == (25.0, 50.0, 50.0)
    first, width = bar.interval
    assert first + 0.5 * width == pytest.approx(50.0)
    assert bar.ends == ("100", "1\u202f000\u202f000")
    assert bar.label == "beam.E [Pa]"
    assert "12\u202f500" in bar.alt


@pytest.mark.parametrize(
    ("bounds", "ends"),
    [
        ([0.0, 1e6], ("0", "1 × 10⁶")),
        ([1e-9, 1e-6], ("1 × 10⁻⁹", "1 × 10⁻⁶")),
        ([1e-9, 1e4], ("1 × 10⁻⁹", "1 × 10⁴")),
        ([0.5, 20.0], ("0.5", "20")),
    ],
)
def test_both_ends_are_in_the_same_notation(bounds, ends):
    (bar,) = answer_bars([row(bounds=bounds)]).rows
    assert bar.ends == ends


def test_a_number_without_bounds_lies_between_what_is_marked():
    free = row(unit="-", bounds=None, start=-1.0, estimate=1.0, interval=[0.8, 1.2], truth=None)
    (bar,) = answer_bars([free]).rows
    assert bar.truth is None
    assert bar.label == "beam.E"
    assert 0.0 < bar.start < bar.interval[0] < bar.answer < 100.0


def test_what_is_beyond_the_bounds_ends_at_them_and_a_thin_interval_is_seen():
    (bar,) = answer_bars([row(interval=[1e4, 1e4], truth=1e9)]).rows
    assert bar.truth == 100.0
    assert bar.interval[1] > 0.0


def test_fields_have_no_bar():
    assert answer_bars([row(count=12)]) is None
