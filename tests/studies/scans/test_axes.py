"""Axes of scans: what they read, and where a value lies on them."""

import numpy as np
import pytest

from studies.runs.errors import StudyError
from studies.scans.spec import Axis, parse_axes, parse_axis


def test_an_axis_reads_its_ends_and_its_count():
    axis = parse_axis("beam.mu=1e5:4e5:4")
    assert axis == Axis("beam.mu", 1e5, 4e5, 4)
    assert np.array_equal(axis.values, [1e5, 2e5, 3e5, 4e5])
    assert parse_axis(axis.text) == axis


def test_a_logarithmic_axis_is_even_in_its_logarithm():
    axis = parse_axis("mass=0.01:100:5:log")
    assert np.allclose(axis.values, [0.01, 0.1, 1.0, 10.0, 100.0], rtol=1e-14)
    assert axis.place(1.0) == pytest.approx(2.0)
    assert axis.place(-1.0) == -np.inf
    assert parse_axis(axis.text) == axis


def test_a_value_lies_between_its_neighbours():
    assert parse_axis("mass=1:3:5").place(1.25) == pytest.approx(0.5)
    assert parse_axis("mass=2:2:1").place(7.0) == 0.0


def test_whole_numbers_stay_whole():
    assert parse_axis("film.frames=2:8:3").numbers == [2, 5, 8]
    axis = parse_axis("film.frames=1:64:4:log")
    assert axis.numbers == axis.values.tolist() == [1, 4, 16, 64]
    assert all(isinstance(number, int) for number in axis.numbers)
    assert parse_axis("film.frames=2:8:5").numbers == [2.0, 3.5, 5.0, 6.5, 8.0]
    with pytest.raises(StudyError, match=r"`film.frames` is a whole number.* 3.5.*=2:8:7"):
        parse_axis("film.frames=2:8:5").require_whole()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beam.mu", "`--over` must read KEY=START:STOP:NUM"),
        ("beam.mu=1:2", "`--over` must read"),
        ("beam.mu=1:2:3:lin", "`--over` must read"),
        ("=1:2:3", "`--over` must read"),
        ("beam.mu=1:\N{FULLWIDTH DIGIT TWO}:3", "`--over` must read"),
        ("beam.mu=a:2:3", "START and STOP must be numbers"),
        ("beam.mu=1:2:3.5", "NUM a whole one"),
        ("beam.mu=1:2:0", "NUM must be from 1 to 1000000, got 0"),
        ("beam.mu=2:1:3", "START must be less than STOP"),
        ("beam.mu=2:2:3", "START must be less than STOP"),
        ("beam.mu=1:inf:3", "START must be less than STOP, both finite"),
        ("beam.mu=0:1:3:log", "logarithmic axis must have START > 0, got 0"),
        ("beam.mu=-1:1:3:log", "START > 0, got -1"),
    ],
)
def test_a_bad_range_is_told(text, message):
    with pytest.raises(StudyError, match=message):
        parse_axis(text)


def test_a_key_is_scanned_once():
    with pytest.raises(StudyError, match="each key once, got `mass` twice"):
        parse_axes(["mass=1:2:3", "mass=1:3:3"])


def test_too_many_points_are_refused():
    with pytest.raises(StudyError, match="NUM must be from 1 to 1000000, got 1000000000"):
        parse_axes(["a=0:1:1000000000"])
    with pytest.raises(StudyError, match=r"at most 1000000 points in all, got 4e\+06"):
        parse_axes(["a=0:1:2000", "b=0:1:2000"])
