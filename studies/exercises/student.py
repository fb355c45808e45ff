"""Run a student's code: `python -m studies.exercises.student NUMBER FILE OUT`.

OUT gets JSON: what the student's function returned for each call of the exercise, and what its
`adj_...` held at the end; or one message that says what is wrong with the file.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from studies.exercises.answers import FILE_LIMIT, MEMORY_LIMIT, Answers, answers_of
from studies.exercises.catalogue import Exercise, exercises
from studies.runs.errors import StudyError


ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 10.0  # seconds
SHOWN = 4000  # characters of what is printed


def run_student(
    exercise: Exercise, path: Path, time_limit: float = TIME_LIMIT, *, prints: bool = True
) -> Answers:
    """Return the answers of a file, from a process of its own; pass on what it `prints`."""
    if not path.is_file():
        raise StudyError(f"There is no file {path}. Write it: adjsim exercise {exercise.number}")
    path = path.resolve()
    with tempfile.TemporaryDirectory() as folder:
        out, printed = Path(folder, "answers.json"), Path(folder, "printed.txt")
        number = str(exercise.number)
        command = [sys.executable, "-P", "-m", __name__, number, str(path), str(out)]
        try:
            with printed.open("wb") as file:
                done = subprocess.run(
                    command,
                    timeout=time_limit,
                    check=False,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
                )
        except subprocess.TimeoutExpired:
            raise StudyError(
                f"{path.name} has not ended after {time_limit:g} s. Does a loop never end?"
            ) from None
        finally:
            if prints:
                _show(printed)
        if not out.is_file():
            raise StudyError(f"{path.name} ended Python with exit code {done.returncode}.")
        return _read_answers(exercise, out.read_bytes(), path.name)


def _read_answers(exercise: Exercise, written: bytes, name: str) -> Answers:
    """Return the answers that a process wrote, which a student's program may have replaced."""
    try:
        result = json.loads(written)
        if isinstance(result, str):
            raise StudyError(result)
        returned = [[np.array(value, float) for value in call] for call in result["returned"]]
        values = [
            {name: np.array(value, float) for name, value in call.items()}
            for call in result["values"]
        ]
    except StudyError:
        raise
    except Exception as error:  # of many kinds, where it is not what `main` writes
        raise StudyError(f"{name} wrote over its answers: they cannot be read.") from error
    shapes = [[np.shape(call.inputs[key]) for key in exercise.inputs] for call in exercise.calls]
    returned_shapes = [[value.shape for value in call] for call in returned]
    if returned_shapes != shapes or len(values) != len(shapes):
        raise StudyError(f"{name} wrote over its answers: they are not those of the exercise.")
    return Answers(returned, values)


def _show(printed: Path) -> None:
    """Print the beginning of what a student's program printed."""
    with printed.open("rb") as file:
        text = file.read(SHOWN).decode(errors="replace")
    if text:
        print(text, end="" if text.endswith("\n") else "\n")
    if (more := printed.stat().st_size - SHOWN) > 0:
        print(f"... and {more} bytes more")


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


def main(number: str, path: str, out: str) -> None:
    """Write the answers of a file, or what is wrong with it."""
    exercise = exercises()[int(number)]
    _limit(resource.RLIMIT_DATA, MEMORY_LIMIT)
    _limit(resource.RLIMIT_FSIZE, FILE_LIMIT)
    _limit(resource.RLIMIT_CORE, 0)
    try:
        answers = answers_of(exercise, Path(path).read_bytes(), Path(path).name)
    except StudyError as error:
        result: Any = str(error)
    else:
        result = {
            "returned": [[value.tolist() for value in call] for call in answers.returned],
            "values": [
                {name: value.tolist() for name, value in call.items()} for call in answers.values
            ],
        }
    Path(out).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
