"""Measured numbers: data files, the pages that show them, and what is said to have moved."""

import json
import subprocess
import sys

import pytest

from benchmarks import publish


PAGES = {str(page.relative_to(publish.ROOT)): page.read_text("utf-8") for page in publish.PAGES}
TABLE = [["film", "number", "answer", "error"], ["ball", "E", "[4.9e4, 5.1e4]", "2 %"]]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_the_data_files_have(name):
    assert publish.rendered(PAGES[name]) == PAGES[name], "run python -m benchmarks.publish"


@pytest.mark.parametrize("name", PAGES)
def test_the_comments_of_a_page_are_in_pairs_and_hide_nothing(name):
    text = PAGES[name]
    comments = list(publish.SHOWN.finditer(text))
    assert text.count("<!-- data ") == text.count("<!-- end -->") == len(comments)
    for comment in comments:  # a line that begins with one is HTML, whose Markdown is not read
        begins_line = text[: comment.start()].rpartition("\n")[2].strip() == ""
        assert begins_line == ("\n" in comment.group(3))


@pytest.mark.parametrize("file", sorted(publish.DATA.glob("*.json")), ids=lambda file: file.stem)
def test_a_data_file_says_where_its_numbers_are_from_and_is_shown(file):
    data = json.loads(file.read_text("utf-8"))
    assert {"command", "commit", "date", "machine", "values"} == {*data}
    assert data["command"].startswith(("python -m ", "adjsim "))
    assert len(data["commit"].rstrip("+")) >= 8
    assert any(f"<!-- data {file.stem}." in text for text in PAGES.values())
    for value in data["values"].values():
        if not isinstance(value, str):
            assert {len(row) for row in value} == {len(value[0])}
            assert all(isinstance(cell, str) for row in value for cell in row)


def test_a_changed_number_of_a_page_is_noticed_and_rendered_again(tmp_path):
    publish.record(tmp_path, "films", {"length": "1.055 m", "table": TABLE}, "python -m films")
    page = (
        "A length of <!-- data films.length -->1.2 m<!-- end -->.\n"
        "<!-- data films.table --><!-- end -->"
    )
    text = publish.rendered(page, tmp_path)
    assert "-->1.055 m<!--" in text
    assert "| ball | E | [4.9e4, 5.1e4] | 2 % |" in text
    assert publish.rendered(text, tmp_path) == text
    assert publish.rendered(text.replace("5.1e4", "5.2e4"), tmp_path) == text


def test_a_force_that_a_page_lacks_gets_its_table_and_its_class():
    row = "| `damping` | $c$, of all | m | `()` | none |"
    text = publish.rendered(f"Names\n\n### `Pins`\n\n{row}\n\nPins.\n\n{publish.NAMES}")
    damping = "| `damping` | $c$, of all | N s/m | `()` or `(n_pins,)` | log |"
    assert f"| `stiffness` | $k$ | N/m | `()` or `(n_pins,)` | log |\n{damping}\n\nPins." in text
    assert "### `LinearDrag`\n\n| name |" in text
    assert "| `cubic_stiffness` | $k$ | N/m³ |" in text
    assert publish.rendered(text) == text
    reference = publish.rendered(f".. py:module:: adjsim.joints.pins\n\n{publish.CLASSES}")
    assert ".. py:currentmodule:: adjsim.joints.pins\n.. autoclass:: Pins\n" in reference
    assert ".. py:module:: adjsim.forces.linear_drag\n.. autoclass:: LinearDrag\n" in reference
    assert publish.rendered(reference) == reference


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ("[4.91e4, 5.09e4]", []),
        ("[4.5e4, 5.1e4]", ["ball E, answer: [4.9e4, 5.1e4] is now [4.5e4, 5.1e4]"]),
        ("not found", ["ball E, answer: [4.9e4, 5.1e4] is now not found"]),
    ],
)
def test_a_number_beyond_its_tolerance_has_moved(now, said):
    again = [TABLE[0], ["ball", "E", now, "7 %"]]  # an error follows from its answer
    assert list(publish.moved(TABLE, again, 0.02)) == said
    assert list(publish.moved(TABLE, [TABLE[0], ["cube", "E", now, ""]], 0.02)) == ["cube E is new"]


@pytest.mark.nightly
def test_a_sample_that_is_measured_again_agrees_with_the_data_files():
    command = [sys.executable, "-m", "benchmarks.publish", "--again"]
    ended = subprocess.run(command, cwd=publish.ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_what_is_measured_again_is_in_the_data_files():
    for name in publish.AGAIN:
        assert publish.read(publish.DATA, name)["table"]
