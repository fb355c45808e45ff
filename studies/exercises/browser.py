"""What the page of exercises asks Python, in the reader's browser.

Here are neither processes nor Numba: nothing of this project may be imported but `FILES`.
"""

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from studies.exercises.answers import answers_of
from studies.exercises.catalogue import exercises
from studies.exercises.grading import grade
from studies.runs.errors import StudyError


ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "studies/__init__.py",
    "studies/runs/__init__.py",
    "studies/runs/errors.py",
    "studies/exercises/*.py",
    "studies/exercises/tasks/*.py",
)
SHOWN = 4000  # characters of what is printed


def sources() -> dict[str, str]:
    """Return the text of all files that a browser needs, by path."""
    paths = [path for pattern in FILES for path in sorted(ROOT.glob(pattern))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def texts() -> list[dict[str, str | int]]:
    """Return what the page shows of each exercise."""
    return [
        {
            "number": number,
            "title": exercise.title,
            "chapter": exercise.chapter,
            "file": exercise.file_name,
            "text": exercise.student_file(f"Check below, or adjsim exercise {number} --check"),
        }
        for number, exercise in exercises().items()
    ]


def check(number: int, source: str, has_run: Callable[[], None] = lambda: None) -> tuple[bool, str]:
    """Grade a program; return whether it is right, and what it prints with the report below.

    `has_run` is called when the program has ended: what follows takes its time, too.
    """
    exercise, printed = exercises()[number], StringIO()
    try:
        with redirect_stdout(printed):
            answers = answers_of(exercise, source.encode(), exercise.file_name)
        has_run()
        result = grade(exercise, answers, source)
        passed, report = result.passed, "\n".join(result.lines)
    except StudyError as error:
        passed, report = False, str(error)
    text = printed.getvalue()
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]}\n... and {len(text) - SHOWN} characters more"
    return passed, f"{text.rstrip()}\n\n{report}".lstrip()
