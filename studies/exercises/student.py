"""Run a student's code: `python -m studies.exercises.student NUMBER FILE OUT`.

OUT gets JSON: what the student's function returned for each call of the exercise, and what its
`adj_...` held at the end; or one message that says what is wrong with the file.
"""

import copy
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from studies.exercises.catalogue import Call, Exercise, exercises
from studies.runs.errors import StudyError


ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 10.0  # seconds


class Answers(NamedTuple):
    """What a function returned and held, call by call."""

    returned: list[list[np.ndarray]]  # one array per input that has a cotangent
    values: list[dict[str, np.ndarray]]  # the variables `adj_...` at the end, parameters aside


def run_student(exercise: Exercise, path: Path, time_limit: float = TIME_LIMIT) -> Answers:
    """Return the answers of a file, from a process of its own."""
    if not path.is_file():
        raise StudyError(f"There is no file {path}. Write it: adjsim exercise {exercise.number}")
    path = path.resolve()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "answers.json")
        number = str(exercise.number)
        command = [sys.executable, "-P", "-m", __name__, number, str(path), str(out)]
        try:
            done = subprocess.run(
                command,
                timeout=time_limit,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        except subprocess.TimeoutExpired:
            raise StudyError(
                f"{path.name} has not ended after {time_limit:g} s. Does a loop never end?"
            ) from None
        if not out.is_file():
            raise StudyError(f"{path.name} ended Python with exit code {done.returncode}.")
        result = json.loads(out.read_text(encoding="utf-8"))
    if isinstance(result, str):
        raise StudyError(result)
    returned = [[np.array(value) for value in one] for one in result["returned"]]
    values = [{name: np.array(value) for name, value in one.items()} for one in result["values"]]
    return Answers(returned, values)


def answers_of(exercise: Exercise, source: bytes, file: str) -> Answers:
    """Run `source` in this process and return its answers."""
    defined: dict[str, Any] = {"__name__": exercise.slug}
    with _explained(file):
        exec(compile(source, file, "exec"), defined)
        vjp = defined.get(f"{exercise.name}_vjp")
    if not hasattr(vjp, "__code__"):
        raise StudyError(f"{file} defines no function `{exercise.name}_vjp`.")
    returned, values = [], []
    for k, call in enumerate(exercise.calls):
        with nullcontext() if k == 0 else redirect_stdout(io.StringIO()):  # print once is enough
            result, held = _call(vjp, call, file)
        returned.append(_checked(exercise, call, result))
        values.append(held)
    return Answers(returned, values)


def _call(vjp: Any, call: Call, file: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Return what the function returns, and its variables `adj_...` as it returns."""
    given = {**call.inputs, **call.cotangents}
    arguments = copy.deepcopy(given)
    held: dict[str, Any] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is vjp.__code__:
            held.update(frame.f_locals)

    with _explained(file):
        sys.setprofile(watch)
        try:
            result = vjp(**arguments)
        finally:
            sys.setprofile(None)
    for name, value in given.items():
        if not np.array_equal(value, arguments[name]):
            raise StudyError(
                f"{file} changes its argument `{name}` in place. The caller still needs it: "
                f"write `{name} = {name} + ...` instead of `{name} += ...`, or copy it first."
            )
    names = [name for name in held if name.startswith("adj_") and name not in given]
    return result, {name: array for name in names if (array := _numbers(held[name])) is not None}


def _checked(exercise: Exercise, call: Call, result: Any) -> list[np.ndarray]:
    """Return the cotangents as arrays of the shapes of their inputs, or raise what is wrong."""
    names = [f"adj_{name}" for name in exercise.inputs]
    function = f"`{exercise.name}_vjp`"
    if len(names) == 1 and not isinstance(result, tuple):
        result = (result,)
    if not isinstance(result, tuple) or len(result) != len(names):
        got = f"{len(result)} values" if isinstance(result, tuple) else type(result).__name__
        kind = "a tuple of " * (len(names) > 1)
        raise StudyError(f"{function} must return {kind}{', '.join(names)}, got {got}.")
    arrays = []
    for name, value in zip(names, result, strict=True):
        array, shape = _numbers(value), np.shape(call.inputs[name[4:]])
        if array is None:
            kind = type(value).__name__
            raise StudyError(f"{function}: `{name}` must be made of real numbers, got a {kind}.")
        if array.shape != shape:
            raise StudyError(
                f"{function}: `{name}` must have the shape of `{name[4:]}`, {shape}, "
                f"got {array.shape}."
            )
        if not np.isfinite(array).all():
            raise StudyError(f"{function}: `{name}` holds NaN or infinity: {value}.")
        arrays.append(array)
    return arrays


def _numbers(value: Any) -> np.ndarray | None:
    """Return an array of float64; None of what is none."""
    try:
        array = np.asarray(value)
        return array.astype(float) if array.dtype.kind in "biuf" else None
    except Exception:  # an object of the student's own may raise anything
        return None


@contextmanager
def _explained(file: str) -> Iterator[None]:
    """Turn what the student's code raises into one message, with the line where it happened."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        raise StudyError(f"{file} does not parse: line {error.lineno}: {error.msg}.") from None
    except BaseException as error:  # SystemExit, too
        lines = [
            at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == file
        ]
        where = f"{file}, line {lines[-1]}" if lines else file
        if isinstance(error, NotImplementedError):
            raise StudyError(f"{where}: the gap is still there: {error}") from None
        message = f"{where} raises {type(error).__name__}: {error}"
        raise StudyError(message.rstrip(": ") + ".") from None


def main(number: str, path: str, out: str) -> None:
    """Write the answers of a file, or what is wrong with it."""
    try:
        answers = answers_of(exercises()[int(number)], Path(path).read_bytes(), Path(path).name)
    except StudyError as error:
        result: Any = str(error)
    else:
        result = {
            "returned": [[value.tolist() for value in one] for one in answers.returned],
            "values": [
                {name: value.tolist() for name, value in one.items()} for one in answers.values
            ],
        }
    Path(out).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
