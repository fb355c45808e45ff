"""What `adjsim exercise` does: list, write and grade."""

import shlex
from pathlib import Path

from studies.exercises.catalogue import Exercise, exercises
from studies.exercises.grading import grade
from studies.exercises.student import run_student
from studies.runs.errors import StudyError


def listing() -> str:
    """Return the exercises, one line each, and how to begin."""
    lines = [f"{number:3}  {exercise.title}" for number, exercise in exercises().items()]
    return "\n".join([*lines, "", "Begin with: adjsim exercise 1"])


def write(number: int, path: Path | None) -> str:
    """Write the student's file, and return what to do with it."""
    exercise = _find(number)
    path = path or _default(exercise)
    check = f"adjsim exercise {number} --check"
    if path != _default(exercise):
        check += f" {shlex.quote(str(path))}"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(exercise.student_file(check))
    except FileExistsError:
        raise StudyError(f"{path} is there already. Grade it, {check}, or remove it.") from None
    return f"{path}: {exercise.title}. Fill the gap at its end, then: {check}"


def check(number: int, path: Path | None) -> tuple[bool, str]:
    """Grade a file; return whether it is right, and the report."""
    exercise = _find(number)
    path = path or _default(exercise)
    answers = run_student(exercise, path)
    result = grade(exercise, answers, path.read_text(encoding="utf-8", errors="replace"))
    lines = result.lines
    if result.passed and number + 1 in exercises():
        lines = [*lines, f"Next: adjsim exercise {number + 1}"]
    return result.passed, "\n".join(lines)


def _find(number: int) -> Exercise:
    if number not in exercises():
        raise StudyError(f"There are exercises 1 to {max(exercises())}, got {number}.")
    return exercises()[number]


def _default(exercise: Exercise) -> Path:
    return Path(f"exercise_{exercise.number:02}_{exercise.slug}.py")
