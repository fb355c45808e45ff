"""How numbers of an outcome are told."""

from types import SimpleNamespace

import numpy as np
import pytest

from studies import image_fit
from studies.optimizers.problem import Status
from studies.outcome import interval_text, rows
from studies.report_parts import largest_difference


@pytest.mark.parametrize(
    ("half", "told"),
    [
        (1e-10, "within rounding"),
        (2e-3, "± 1e-08 relative"),
        (50.0, "199950 to 200050"),
    ],
)
def test_an_interval_is_told_by_its_width(half, told):
    row = {"estimate": 2e5, "interval": [2e5 - half, 2e5 + half]}
    assert interval_text(row) == told


def test_an_estimate_of_zero_has_an_interval_in_full():
    assert interval_text({"estimate": 0.0, "interval": [-1e-9, 1e-9]}) == "-1e-09 to 1e-09"
    assert interval_text({"estimate": 0.0, "interval": None}) == "none"


def test_a_difference_that_32_bits_do_not_hold_is_not_called_0():
    assert largest_difference(1.23e-4) == "at most 1.2e-04"
    assert largest_difference(0.0) == "none in the 32 bits that pictures are kept in"


def test_many_values_whose_mean_stays_are_told_by_their_root_mean_square():
    parameters = SimpleNamespace(
        natural=lambda theta: theta,
        start=np.tile([1.0, -1.0], 50),
        values=lambda theta: {"weights": theta},
    )
    fit = SimpleNamespace(problem=SimpleNamespace(parameters=parameters), truth=None, units={})
    (row,) = rows(fit, 3.0 * parameters.start, SimpleNamespace(interval=None))
    assert (row["count"], row["start"], row["estimate"]) == (100, 0.0, 0.0)
    assert (row["start_rms"], row["estimate_rms"]) == (1.0, 3.0)


def test_what_may_compile_for_minutes_is_told_before_it_begins(monkeypatch):
    best = SimpleNamespace(status=Status.CONVERGED, theta=None)
    happened = []
    monkeypatch.setattr(image_fit, "search", lambda *_, **__: SimpleNamespace(best=best))
    monkeypatch.setattr(image_fit, "uncertainty", lambda *_: happened.append("tangents"))
    fit = SimpleNamespace(options=SimpleNamespace(seed=0), instance=0, problem=None, search=None)
    image_fit.ImageFit.solve(fit, None, None, say=happened.append)
    assert happened[0].startswith("search ended; looking how well its end is determined")
    assert happened[1:] == ["tangents"]
