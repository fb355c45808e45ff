"""What `adjsim exercise` does: list, write and grade, one file or those of a class."""

import csv
import os
import re
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from studies.exercises.answers import Answers
from studies.exercises.catalogue import Exercise, exercises
from studies.exercises.grading import grade
from studies.exercises.student import run_student
from studies.runs.errors import StudyError
from studies.runs.files import replacing


NAMED = re.compile(r"(.*?)[ _.-]*exercise_(\d+)_\w*.*\.py", re.IGNORECASE)
COLUMNS = ("student", "exercise", "result", "right", "of", "what", "file")


def listing() -> str:
    """Return the exercises, one line each with its chapter of the course, and how to begin."""
    width = max(len(exercise.title) for exercise in exercises().values())
    lines = [
        f"{number:3}  {exercise.title:{width}}  chapter {exercise.chapter}"
        for number, exercise in exercises().items()
    ]
    return "\n".join([*lines, "", "Begin with: adjsim exercise 1"])


def write(number: int, path: Path | None) -> str:
    """Write the student's file, and return what to do with it."""
    exercise = _find(number)
    path = path or Path(exercise.file_name)
    check = f"adjsim exercise {number} --check"
    if path != Path(exercise.file_name):
        check += f" {shlex.quote(str(path))}"
    if path.exists():
        raise StudyError(f"{path} is there already. Grade it, {check}, or remove it.")
    with replacing(path) as temporary:
        temporary.write_text(exercise.student_file(check), encoding="utf-8")
    return f"{path}: {exercise.title}. Fill the gap at its end, then: {check}"


def check(number: int, path: Path | None) -> tuple[bool, str]:
    """Grade a file; return whether it is right, and the report."""
    exercise = _find(number)
    path = path or Path(exercise.file_name)
    answers = run_student(exercise, path)
    result = grade(exercise, answers, path.read_text(encoding="utf-8", errors="replace"))
    lines = result.lines
    if result.passed and number + 1 in exercises():
        lines = [*lines, f"Next: adjsim exercise {number + 1}"]
    return result.passed, "\n".join(lines)


def grade_class(folder: Path, number: int | None = None) -> None:
    """Print the grades of all files below a folder as CSV, each line as soon as it is known.

    With a number, of this exercise alone.
    """
    files = [
        (match, path)
        for path in sorted(folder.rglob("*.py"))
        if (match := NAMED.fullmatch(path.name)) and number in (None, int(match[2]))
    ]
    if not files:
        name = "NUMBER" if number is None else f"{number:02}"
        raise StudyError(
            f"{folder} must have files exercise_{name}_NAME.py, in it or in a folder for each "
            "student; there are none."
        )
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(COLUMNS)
    grades = _grades([(int(match[2]), path) for match, path in files])
    for (match, path), row in zip(files, grades, strict=True):
        place = path.relative_to(folder)
        student = " ".join([*place.parent.parts, *filter(None, [match[1]])])
        table.writerow(map(_harmless, [student, int(match[2]), *row, place]))
        sys.stdout.flush()


def _grades(files: list[tuple[int, Path]]) -> Iterator[tuple]:
    """Yield for each file the result, how many cotangents are right, of how many, and why."""

    def run(file: tuple[int, Path]) -> Answers | Exception:
        try:
            return run_student(_find(file[0]), file[1], prints=False)
        except Exception as error:  # whatever a program does: the others are graded
            return error

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (number, path), answers in zip(files, pool.map(run, files), strict=True):
            if isinstance(answers, Exception):
                count = len(exercises()[number].inputs) if number in exercises() else ""
                yield "does not run", 0, count, str(answers)
                continue
            exercise = exercises()[number]
            result = grade(exercise, answers, path.read_text(encoding="utf-8", errors="replace"))
            n_right = int(result.right.all(axis=1).sum())
            what = [f"({mistake.line}) {mistake.kind}" for mistake in result.mistakes]
            word = "right" if result.passed else "wrong"
            yield word, n_right, len(result.right), ", ".join(what)


def _harmless(cell: object) -> object:
    """Return a cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if str(cell).startswith(("=", "+", "-", "@")) else cell


def _find(number: int) -> Exercise:
    if number not in exercises():
        raise StudyError(f"There are exercises 1 to {max(exercises())}, got {number}.")
    return exercises()[number]
