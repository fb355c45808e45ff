"""Formulas of the manual as MathML: what browsers do not do by themselves."""

import sys
from pathlib import Path

import pytest


pytest.importorskip("latex2mathml")
sys.path.append(str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))
from mathml import mathml


def test_a_bar_is_as_wide_as_its_letter_and_no_dot():
    assert '<mi>x</mi><mo stretchy="true">\u203e</mo></mover>' in mathml(r"\bar x", "inline")
    assert "<mi>x</mi><mo>\u02d9</mo></mover>" in mathml(r"\dot x", "inline")


@pytest.mark.parametrize(
    ("tex", "spaces"),
    [
        (r"\omega \sin\delta", 2),
        (r"\sin(\delta)", 0),
        (r"\cos\alpha + \mu\sin\alpha", 3),
        (r"k \max(0, u)", 1),
        (r"a \sin^2 x", 2),
    ],
)
def test_functions_have_thin_spaces_but_not_before_a_bracket(tex, spaces):
    assert mathml(tex, "block").count("<mspace") == spaces


def test_a_minus_behind_an_equals_sign_is_a_sign():
    assert mathml(r"v = -p", "inline").count('<mo form="prefix">') == 1
    assert "prefix" not in mathml(r"v = (a) - p", "inline")


def test_a_relation_has_its_space():
    assert "<mo>\u223c</mo>" in mathml(r"R_0 \sim \varepsilon", "inline")


def test_a_prime_that_the_font_has_raised_is_not_raised_again():
    text = mathml(r"\varphi'", "inline")
    assert "msup" not in text
    assert "\u2032" in text


def test_the_box_of_a_result_is_one_that_the_style_sheet_draws():
    assert '<menclose notation="box">' in mathml(r"\boxed{x = y}", "block")
    style = Path(__file__).resolve().parents[1] / "docs" / "_static" / "course.css"
    assert 'menclose[notation~="box"]' in style.read_text()
