"""Call a student's function, in this process, and return what it computes.

Needs NumPy alone: browsers run it, too.
"""

import ast
import copy
import errno
import io
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from studies.exercises.catalogue import Call, Exercise
from studies.runs.errors import StudyError


MEMORY_LIMIT = 2**30  # bytes
FILE_LIMIT = 10**7  # bytes, of what is printed and of each file that is written
OURS = {"adjsim", "render", "adjoint", "studies", "baselines", "benchmarks"}


class Answers(NamedTuple):
    """What a function returned and held, call by call."""

    returned: list[list[np.ndarray]]  # one array per input that has a cotangent
    values: list[dict[str, np.ndarray]]  # the variables `adj_...` at the end, parameters aside


def answers_of(exercise: Exercise, source: bytes, file: str) -> Answers:
    """Run `source` in this process and return its answers."""
    defined: dict[str, Any] = {"__name__": exercise.slug}
    with _explained(file):
        tree = ast.parse(source, file)
        _refuse_imports(tree, file)
        exec(compile(tree, file, "exec"), defined)
        vjp = defined.get(f"{exercise.name}_vjp")
    if not hasattr(vjp, "__code__"):
        raise StudyError(f"{file} defines no function `{exercise.name}_vjp`.")
    returned, values = [], []
    for k, call in enumerate(exercise.calls):
        with nullcontext() if k == 0 else redirect_stdout(io.StringIO()):  # print once is enough
            result, held = _call(exercise, vjp, call, file)
        returned.append(_checked(exercise, call, result))
        values.append(held)
    return Answers(returned, values)


def _refuse_imports(tree: ast.Module, file: str) -> None:
    """Raise if a program imports this project: its adjoints are the answers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if name.split(".")[0] in OURS:
                raise StudyError(
                    f"{file}, line {node.lineno}, imports `{name}`. Write the adjoint with NumPy."
                )


def _call(exercise: Exercise, vjp: Any, call: Call, file: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Return what the function returns, and its variables `adj_...` as it returns."""
    given = {**call.inputs, **call.cotangents}
    arguments = copy.deepcopy(given)
    held: dict[str, Any] = {}
    forward = exercise.forward.__code__
    inputs = [call.inputs[name] for name in forward.co_varnames if name in call.inputs]
    elsewhere: list[int] = []  # lines that call the forward function with other inputs

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is vjp.__code__:
            held.update(frame.f_locals)
        elif event == "call" and frame.f_code.co_code == forward.co_code:
            names = frame.f_code.co_varnames[: len(inputs)]  # of a copy, other ones
            if not all(map(_equal, map(frame.f_locals.get, names), inputs)):
                elsewhere.append(frame.f_back.f_lineno if frame.f_back else 0)

    with _explained(file):
        sys.setprofile(watch)
        try:
            result = vjp(**arguments)
        finally:
            sys.setprofile(None)
    if elsewhere:
        raise StudyError(
            f"{file}, line {elsewhere[0]}, calls `{exercise.name}` with other inputs than it was "
            "given. Differences are no adjoint: undo the lines of the function."
        )
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


def _equal(a: Any, b: Any) -> bool:
    first, second = _numbers(a), _numbers(b)
    return first is not None and second is not None and np.array_equal(first, second)


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
    except (KeyboardInterrupt, StudyError):
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
        if isinstance(error, MemoryError):
            size = f"{MEMORY_LIMIT / 2**30:g} GiB"
            raise StudyError(f"{where} needs more than {size} of memory.") from None
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            size = f"{FILE_LIMIT / 1e6:g} MB"
            raise StudyError(f"{where} prints or writes more than {size}.") from None
        message = f"{where} raises {type(error).__name__}: {error}"
        raise StudyError(message.rstrip(": ") + ".") from None
