"""The course as one PDF: anchors of its chapters are told apart."""

import sys
from pathlib import Path

import pytest


pytest.importorskip("pygments")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs" / "_ext"))
from course_pdf import chapter, exercise_texts


@pytest.mark.parametrize(
    ("link", "printed"),
    [
        ('<a href="#bits">', '<a class="internal" href="#03-time--bits">'),
        ('<a href="02-soft.html">', '<a class="internal" href="#02-soft">'),
        ('<a class="x" href="02-soft.html#a">', '<a class="internal" href="#02-soft--a">'),
        ('<a href="../quickstart.html">', "<a>"),
        ('<a href="https://doi.org/1">', '<a href="https://doi.org/1">'),
        (
            '<h1 id="bits">Bits<a class="headerlink" href="#bits">¶</a>',
            '<h1 id="03-time--bits">Bits',
        ),
    ],
)
def test_links_lead_to_the_printed_chapters(link, printed):
    page = f"<body><article role='main'>{link}</article></body>"
    assert chapter(page, "03-time", ["02-soft", "03-time"]) == (
        f'<section id="03-time">{printed}</section>'
    )


def test_the_texts_of_all_exercises_are_printed_without_solutions():
    text = exercise_texts()
    assert text.count('<div class="exercise">') == 34
    assert "adj_" in text
    assert "_vjp" not in text
