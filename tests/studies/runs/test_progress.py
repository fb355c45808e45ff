import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from studies.runs.evaluations import Evaluation
from studies.runs.progress import EvaluationProgress, clock


FIRST = Evaluation("gradient", np.zeros(1), 1.0, np.ones(1), None, {}, 1, 1, 60.0)


def test_the_time_left_does_not_count_the_compilation_of_the_first_evaluation():
    out = io.StringIO()
    progress = EvaluationProgress(11, Console(file=out, width=200))
    for evaluation in (FIRST, replace(FIRST, spent=2, seconds=61.0)):
        progress(evaluation)
    first, second = out.getvalue().splitlines()
    assert first.endswith("60.0 s")
    assert second.endswith("61.0 s, at most 9 more of this search: 9 s")
    progress(replace(FIRST, spent=11, seconds=70.0))
    assert out.getvalue().splitlines()[-1].endswith("70.0 s")  # nothing is left
    # The next start counts anew.
    progress.begin("start 2/2")
    progress(replace(FIRST, seconds=70.0))
    assert out.getvalue().splitlines()[-1].endswith("70.0 s")


def test_the_time_left_counts_no_kind_of_evaluation_before_its_second():
    out = io.StringIO()
    progress = EvaluationProgress(50, Console(file=out, width=200))
    kinds = [("residual", 1, 3.0), ("jacobian", 4, 25.0), ("residual", 5, 25.5)]
    kinds += [("jacobian", 8, 27.3), ("residual", 9, 47.3), ("jacobian", 12, 49.1)]
    for kind, spent, seconds in kinds:
        progress(replace(FIRST, kind=kind, spent=spent, seconds=seconds))
    lines = out.getvalue().splitlines()
    assert "at most" not in lines[0] + lines[1]  # both have compiled, 22 s in the second
    said = r"at most (\d+) more of this search: (.*) s"
    assert [re.findall(said, line) for line in lines[2:]] == [
        [("45", "22")], [("42", "21 to 25")], [("41", "20 to 820")], [("38", "19 to 760")]
    ]  # fmt: skip
    # A new search compiles nothing; its first evaluation only starts the clock.
    progress.begin("start 2/2")
    for spent, seconds in ((1, 60.0), (4, 61.5)):
        progress(replace(FIRST, kind="jacobian", spent=spent, seconds=seconds))
    assert "at most" not in out.getvalue().splitlines()[-2]
    assert out.getvalue().splitlines()[-1].endswith("at most 46 more of this search: 23 s")


def shown(width, prefix="", label=""):
    """What a terminal of so many columns shows after two evaluations, line by line."""
    console = Console(file=io.StringIO(), force_terminal=True, width=width)
    progress = EvaluationProgress(150, console)
    progress.prefix = prefix
    progress.begin(label)
    for evaluation in (FIRST, replace(FIRST, spent=12, seconds=65.0, loss=0.5185)):
        progress(evaluation)
    picture = Console(file=io.StringIO(), width=width)
    picture.print(progress._bar.get_renderable())
    return picture.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 111, 112, 200])
def test_a_terminal_of_usual_width_shows_every_number_whole(width):
    (line,) = shown(width)
    for text in (
        "evaluation 12/150",
        "loss 5.185e-01",
        "|g| 1.0e+00",
        "0:00:00",
        "at most 0:01:03",
    ):
        assert text in line
    assert ("at most 0:01:03 if it takes all" in line) is (width >= 112)
    assert "…" not in line


def test_more_than_a_day_is_told_in_hours():
    assert [clock(s) for s in (1, 61, 3661, 9 * 86_400 + 37_102)] == [
        "0:00:01", "0:01:01", "1:01:01", "226:18:22",
    ]  # fmt: skip


def test_what_is_searched_has_a_line_of_its_own_that_is_cut_where_the_terminal_ends():
    title, line = shown(80, "instance 0 (1 of 1)", "states, start 2/4")
    assert title.strip() == "instance 0 (1 of 1), states, start 2/4"
    assert "evaluation 12/150" in line
    title, line = shown(45, "instance 0 (1 of 1)", "states, after 150 of the other evaluations")
    assert title.strip().endswith("…")
    assert line.split() == ["evaluation", "12/150", "loss", "5.185e-01", "0:00:00"]


def test_the_compilation_of_the_first_evaluation_is_not_in_the_time_left_of_the_bar():
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    progress = EvaluationProgress(11, console)
    progress(FIRST)
    (task,) = progress._bar.tasks
    assert task.fields["left"] == ""
    progress(replace(FIRST, spent=2, seconds=61.0))
    assert task.fields["left"] == "at most 0:00:09"
    progress(replace(FIRST, spent=11, seconds=70.0))
    assert task.fields["left"] == ""
