"""The rows of the page on accuracy that take no time, and what a row says."""

from dataclasses import replace

import pytest

from benchmarks.accuracy.__main__ import SCENES, line_of, slope_of
from benchmarks.accuracy.rows import Row


ROW = Row("tip", "m", "FEM", 1.01, 1.0, "E", -2.0, 1e-9, -2.02, 0.5)


@pytest.mark.parametrize("scene", ["drop", "block", "material", "spring"])
def test_numbers_and_derivatives_are_what_closed_forms_say(scene):
    rows = list(SCENES[scene]())
    assert len(rows) >= 2
    for row in rows:
        assert row.passes, row


@pytest.mark.parametrize("wrong", [{"value": 1.03}, {"slope": -2.1}, {"slope_error": 2e-8}])
def test_a_row_that_is_too_far_off_does_not_pass(wrong):
    assert ROW.passes
    assert not replace(ROW, **wrong).passes


def test_a_row_says_what_it_is_compared_with():
    assert line_of("bar", ROW) == ["`bar`", "tip", "1.01 m", "1 m, FEM", "1.0100", "0.5"]
    assert slope_of("bar", ROW) == ["`bar`", "tip", "E", "-2", "1e-09", "0.9901"]
