"""A Taylor test shows nothing of a gradient that vanishes, and its report says so."""

import re

import numpy as np
import pytest

from adjoint.verify.taylor_test import taylor_test
from studies.reports.certificate import folded, line, vanishes
from studies.reports.content import Headline, Report, section
from studies.reports.figures import FigureFiles
from studies.reports.page import write_report
from studies.runs.folder import RunFolder


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


@pytest.fixture
def page_text(tmp_path):
    """Return what a page says of a certificate; of a search that converged, or not."""

    def page(optimum, status="CONVERGED"):
        folder = RunFolder(tmp_path)
        blocks = folded({"points": {"optimum": optimum}}, status, FigureFiles(folder))
        report = Report("A", Headline("found", "good"), sections=(section("B", blocks),))
        return " ".join(write_report(folder, report).read_text().split())

    return page


def test_at_an_optimum_the_page_says_that_the_test_shows_no_gradient(page_text):
    optimum = point(1e-15)
    assert vanishes(optimum)
    text = page_text(optimum)
    assert text.count("<td>passed, as a gradient of 0 would</td>") == 1
    assert "At the optimum the gradient is so small that a gradient of 0 would pass" in text
    assert "<summary>Gradient certificate</summary>" in text
    assert text.count("data:image/svg") == 1


def test_where_the_gradient_is_seen_nothing_is_added(page_text):
    seen = point(1e-2)
    assert not vanishes(seen)
    text = page_text(seen, "MAX_EVALUATIONS")
    assert text.count("<td>passed</td>") == 1
    assert "at the end of the search" in text
    assert "so small that" not in text


def test_a_certificate_that_was_not_asked_for_is_not_shown(tmp_path):
    assert folded({"points": {}}, "CONVERGED", FigureFiles(RunFolder(tmp_path))) is None


@pytest.mark.parametrize("gradient", [1.0, 0.0])
def test_a_point_that_failed_is_shown_with_its_reason(page_text, gradient):
    bad = point(gradient, wrong_by=1.1)
    assert not vanishes(bad)
    text = page_text(bad)
    assert bad["taylor"]["reason"].replace("`", "") in re.sub("</?code>", "", text)
    assert "as a gradient of 0 would" not in text
    assert "so small that" not in text


def test_the_line_of_a_certificate_has_the_numbers_behind_it():
    good = {"verdict": "passed", "points": {"optimum": point(1.0)}}
    assert line(good) == "passed (slope 2.00 of 2, dot test 1e-17)"
    blind = {"verdict": "passed", "points": {"optimum": point(1e-15)}}
    assert line(blind) == "passed (dot test 1e-17)"
    assert line({"verdict": "not made (--no-certificate)", "points": {}}).startswith("not made")
