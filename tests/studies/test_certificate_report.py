"""A Taylor test shows nothing of a gradient that vanishes, and its report says so."""

import numpy as np
import pytest

from adjoint.verify.taylor_test import taylor_test
from studies.certificate_report import section, vanishes


def point(gradient, *, wrong_by=1.0):
    """Return a point of a certificate of a parabola with this slope."""
    test = taylor_test(
        lambda x: float(gradient * x[0] + x[0] ** 2),
        np.array([wrong_by * gradient]),
        np.zeros(1),
        np.ones(1),
        scale=np.ones(1),
        eps0=1e-3,
        n_halvings=8,
    )
    return {
        "passed": test.passed,
        "verdict": "passed" if test.passed else "failed",
        "beside": 0.0,
        "nearest_touch": None,
        "taylor": test.to_dict(),
        "dot": {"passed": True, "residual": 1e-17, "reason": ""},
        "gradient_norm": abs(gradient),
        "left_out_pixels": 0,
        "pixels": 100,
    }


def told(points):
    return " ".join(section(points, {}, "faces swap").split())


def test_at_an_optimum_the_report_says_that_the_test_shows_no_gradient():
    start, optimum = point(1.0), point(1e-15)
    assert not vanishes(start)
    assert vanishes(optimum)
    text = told({"start": start, "optimum": optimum})
    assert text.count("<td>passed</td>") == 1
    assert text.count("<td>passed, as a gradient of 0 would</td>") == 1
    assert "At the optimum the gradient is so small (norm 1.0e-15)" in text
    assert "the sweep at the start does." in text
    assert "<summary>Gradient certificate</summary>" in text  # folded, at the end of the page


def test_where_the_gradient_is_seen_everywhere_nothing_is_added():
    text = told({"start": point(1.0), "end of the search": point(1e-2)})
    assert text.count("<td>passed</td>") == 2
    assert "so small (norm" not in text


def test_if_no_point_shows_the_gradient_none_is_named():
    text = told({"start": point(1e-14), "optimum": point(1e-15)})
    assert "At the start and at the optimum" in text
    assert "no sweep here does." in text


def test_a_certificate_that_was_not_asked_for_has_no_section():
    assert section({}, {}, "faces swap") == ""


@pytest.mark.parametrize("gradient", [1.0, 0.0])
def test_a_point_that_failed_is_told_with_its_reason(gradient):
    bad = point(gradient, wrong_by=1.1)
    assert not vanishes(bad)
    text = told({"start": bad})
    assert bad["taylor"]["reason"] in text
    assert "as a gradient of 0 would" not in text
    assert "so small (norm" not in text
