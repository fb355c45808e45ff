"""What may vary in time: a constant, one row per step, or a course, `adjsim/courses.py`.

Row k, from 0, acts in step k, which makes state k + 1. A parameter that may vary has base
shapes, e.g. () or (n_tets,), of which the last is its full shape; a series has one row per
step in front of the full shape, a course is a function of the step to any base shape. So a
shape has one reading: (k, 3) where (n_loads, 3) is the full shape is one row per load, and never
one per step, k = n_steps or not; rows that serve all loads are a course.

Adjoint: `adjoint/series.py`. Tests: `tests/test_series.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.courses import TimeCourse, course_jvp


def check_series(
    name: str, value: Any, shapes: Sequence[tuple[int, ...]]
) -> np.ndarray | TimeCourse:
    """Return a read-only array or a `TimeCourse`, if its shape is one that is allowed.

    `shapes` are base shapes; the last one is the full shape, which a series has behind its steps.
    Raise a ValueError by `name` if the shape is none of these, or a number is not finite.
    """
    way_out = ""
    if isinstance(value, TimeCourse):
        if value.base_shape in shapes:
            return value
        rows, got = f"{value.layout} with ... one of ", value.values.shape
    else:
        out = checks.array(name, value)
        full, shape = tuple(shapes[-1]), out.shape
        if shape in shapes or (len(shape) == len(full) + 1 and shape[1:] == full):
            out = out.copy()
            out.setflags(write=False)
            return out
        rows, got = f"{checks.shape_text(('n_steps', *full))}, or one of ", shape
        if len(shapes) > 1 and len(shape) == len(full) and shape[1:] == full[1:]:
            way_out = _same_for_all(name, len(out), full[0])
    allowed = ", ".join(checks.shape_text(shape) for shape in shapes)
    raise ValueError(f"`{name}` must have shape {rows}{allowed}, got {got}.{way_out}")


def _same_for_all(name: str, n_steps: int, n: int) -> str:
    """Return what to write for rows of so many steps that serve all n elements."""
    return (
        f" If these are the rows of {n_steps} steps, the same for all {n} elements, pass "
        f"`Signal(range({n_steps}), {name})` or `np.repeat({name}[:, None], {n}, axis=1)`."
    )


def freeze_series(owner: Any, name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """Replace a field of a frozen dataclass by what `check_series` makes of it."""
    object.__setattr__(owner, name, check_series(name, getattr(owner, name), shapes))


def series_values(value: np.ndarray | TimeCourse) -> np.ndarray:
    """Return what is differentiated: the array itself, or a course's values."""
    return value.values if isinstance(value, TimeCourse) else value


def series_steps(value: np.ndarray | TimeCourse, full_shape: tuple[int, ...]) -> int | None:
    """Return how many steps a series is for; None for a constant or a course."""
    if isinstance(value, TimeCourse):
        return None
    return len(value) if value.ndim > len(full_shape) else None


def steps_of(owner: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the number of rows of each of an owner's fields, by full shape, that is a series."""
    steps = {name: series_steps(getattr(owner, name), shape) for name, shape in shapes.items()}
    return {name: n for name, n in steps.items() if n is not None}


def series_rows(
    value: np.ndarray | TimeCourse, full_shape: tuple[int, ...], n_steps: int
) -> np.ndarray:
    """Return the rows of every step, (n_steps, *full_shape), or one row if constant."""
    if isinstance(value, TimeCourse):
        rows = value.sample(n_steps)
    else:
        rows = value if series_steps(value, full_shape) is not None else value[None]
    return spread(rows, full_shape)


def series_rows_jvp(
    value: np.ndarray | TimeCourse,
    full_shape: tuple[int, ...],
    tangent: np.ndarray | None,
    n_steps: int,
) -> np.ndarray:
    """Push a tangent, shaped like `series_values(value)`, to rows; None is zero."""
    if tangent is None:
        tangent = np.zeros(series_values(value).shape)
    if isinstance(value, TimeCourse):
        return spread(course_jvp(value, tangent, n_steps), full_shape)
    rows = tangent if series_steps(value, full_shape) is not None else tangent[None]
    return spread(rows, full_shape)


def spread(rows: np.ndarray, full_shape: tuple[int, ...]) -> np.ndarray:
    """Return rows of a base shape as rows of the full shape: () to (n,), (3,) to (n, 3)."""
    missing = len(full_shape) + 1 - rows.ndim
    rows = rows.reshape(len(rows), *[1] * missing, *rows.shape[1:])
    return np.broadcast_to(rows, (len(rows), *full_shape))


def with_array(current: Any, value: Any) -> Any:
    """Return a new value of a parameter: in a course's place, the same with these values."""
    if isinstance(current, TimeCourse) and not isinstance(value, TimeCourse):
        return current.with_values(value)
    return value
