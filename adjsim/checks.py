"""Checks at the public boundary: the argument, what was expected, what came, the way out."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt


T = TypeVar("T")
LENGTHS = (1e-100, 1e100)  # of vectors whose length is squared and divided by
FLOAT_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


# Kinds of NumPy's types that are numbers, with objects that may become some, and what to call
# others: a text would be read as a number, and a truth value taken for 0 or 1.
NUMBERS = "iufO"
KINDS = {"b": "truth values", "U": "text", "S": "bytes", "O": "no number"}


def float_dtype(dtype: npt.DTypeLike) -> np.dtype:
    """Return `dtype` as a NumPy dtype, float64 or float32."""
    try:
        checked = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"`dtype` must be float64 or float32, got {dtype!r}.") from error
    if checked not in FLOAT_DTYPES:
        raise ValueError(f"`dtype` must be float64 or float32, got {checked}.")
    return checked


def array(
    name: str,
    value: Any,
    shape: Sequence[int | str] | None = None,
    *,
    dtype: npt.DTypeLike = np.float64,
    hint: str = "",
) -> np.ndarray:
    """Return `value` as a finite, contiguous array of the given shape.

    `shape` holds sizes, or names of sizes that may be anything: `("n_nodes", 3)`.
    """
    try:
        given = np.asarray(value)
        kind = given.dtype.kind
        if kind == "c" or (isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value)):
            raise ValueError("it has complex numbers or masked entries")
        if (kind not in NUMBERS and given.size) or value is None:
            raise ValueError(f"it has {KINDS.get(kind, given.dtype)}, got {value!r}")
        out = np.asarray(given, dtype=dtype, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`{name}` must be an array of {np.dtype(dtype)}: {error}.") from error
    if shape is not None:
        fits = out.ndim == len(shape) and all(
            isinstance(want, str) or want == got
            for want, got in zip(shape, out.shape, strict=False)
        )
        if not fits:
            wanted = shape_text(shape)
            raise ValueError(f"`{name}` must have shape {wanted}, got {out.shape}.{_tail(hint)}")
    if out.dtype.kind == "f" and not np.isfinite(out).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise ValueError(
            f"`{name}` must be finite, got {out[where]} at index {where}.{_tail(hint)}"
        )
    return out


def colors(
    name: str, value: Any, shape: Sequence[int | str], *, hint: str = "", **options: Any
) -> np.ndarray:
    """Return `value` as `array` does, unless it is whole numbers of 8 bits, 0 to 255."""
    out, kind = array(name, value, shape, hint=hint, **options), np.asarray(value).dtype.kind
    if kind in "iu" and out.size and out.max() > 1.0:
        raise ValueError(
            f"`{name}` must be colours from 0 to 1 where it holds whole numbers, got "
            f"{out.max():g}. Divide 8-bit numbers by 255; for a colour brighter than white, pass "
            "floats."
        )
    return out


def shape_text(shape: Sequence[int | str]) -> str:
    """Return a shape as Python prints it, names of sizes without quotes: (3,), (n_nodes, 3)."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def mapping(name: str, value: Any, example: str) -> dict[Any, Any]:
    """Return a copy of `value` if it is a mapping; otherwise show an example of one."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"`{name}` must be a mapping, such as {example}, got {type(value).__name__}."
        )
    return dict(value)


def whole(name: str, value: Any, least: int) -> int:
    """Return `value` as a Python integer of at least `least`; nothing is rounded."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def number(name: str, value: Any) -> float:
    """Return `value` as a finite Python number."""
    return float(array(name, value, ()))


def flag(name: str, value: Any) -> bool:
    """Return `value` as a Python truth value; a text or a number is none."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)


def instance(name: str, value: Any, kind: type[T] | tuple[type[T], ...]) -> T:
    """Return `value` if it is one of a class or of several."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = [k.__name__ for k in kinds]
        wanted = " or ".join(f"{'an' if k[0] in 'AEIOaeio' else 'a'} {k}" for k in names)
        raise TypeError(f"`{name}` must be {wanted}, got {type(value).__name__}.")
    return value


def one_each(name: str, value: Any, n: int, each: str) -> list[Any]:
    """Return `value` as a list if it is a sequence of `n` things, one for each of something."""
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        raise TypeError(
            f"`{name}` must be a list with one entry per {each}, {n}, got {type(value).__name__}."
        )
    if len(value) != n:
        raise ValueError(f"`{name}` must have one entry per {each}, {n}, got {len(value)}.")
    return list(value)


def paths(name: str, value: Any) -> list[Any]:
    """Return a sequence of paths as a list; one text is none."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        ask = f": pass [{value!r}]" if isinstance(value, str) else ""
        raise TypeError(f"`{name}` must be a sequence of paths, got {value!r}{ask}.")
    return list(value)


def integers(name: str, value: Any, shape: Sequence[int | str]) -> np.ndarray:
    """Return `value` as int64 of the given shape; nothing is rounded."""
    given = np.asarray(value)
    if given.shape == (0,):  # an empty list, of rows of any length
        given = given.reshape(0, *(n for n in shape[1:] if isinstance(n, int)))
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"`{name}` must hold integers, got {given.dtype}.")
    return array(name, given, shape, dtype=np.int64)


def indices(
    name: str, value: Any, shape: Sequence[int | str], n_points: int, *, some: bool = False
) -> np.ndarray:
    """Return `value` as int64 indices into `n_points` points; `some` refuses none."""
    out = integers(name, value, shape)
    if some and out.size == 0:
        raise ValueError(f"`{name}` must not be empty.")
    outside = (out < 0) | (out >= n_points)
    if outside.any():
        row = int(np.argwhere(outside)[0, 0])
        there = (
            f"the {n_points} points, 0 to {n_points - 1}" if n_points else "points: there are none"
        )
        raise ValueError(f"`{name}` must index {there}, got {out[row].tolist()} at row {row}.")
    return out


def scalar_or_array(
    name: str, value: Any, n: int, size_name: str, of: tuple[int, ...] = ()
) -> np.ndarray:
    """Return `value` as a finite array of shape () or (n,), or of such arrays of another shape."""
    out = array(name, value)
    if out.shape not in (of, (n, *of)):
        flat = f" Pass `{name}.ravel()`." if out.size == n and not of else ""
        each = f"{shape_text((size_name, *of))} = {(n, *of)}"
        raise ValueError(
            f"`{name}` must have shape {shape_text(of)} or {each}, got {out.shape}.{flat}"
        )
    return out


def positive(name: str, value: Any, *, hint: str = "") -> Any:
    """Return `value` if every entry is greater than zero."""
    low = float(np.min(value)) if np.size(value) else 1.0
    if not low > 0.0:
        raise ValueError(f"`{name}` must be positive, got {low:g}.{_tail(hint)}")
    return value


def length(name: str, value: np.ndarray, *, hint: str = "") -> np.ndarray:
    """Return a vector if the square of its length neither underflows nor overflows."""
    longest = float(np.abs(value).max())
    if not LENGTHS[0] <= longest <= LENGTHS[1]:
        raise ValueError(
            f"`{name}` must have a length between {LENGTHS[0]:g} and {LENGTHS[1]:g}, got "
            f"{value.tolist()}.{_tail(hint)}"
        )
    return value


def non_negative(name: str, value: Any) -> Any:
    """Return `value` if no entry is below zero."""
    low = float(np.min(value)) if np.size(value) else 0.0
    if not low >= 0.0:
        raise ValueError(f"`{name}` must not be negative, got {low:g}.")
    return value


def freeze(owner: Any, name: str, value: np.ndarray) -> None:
    """Set a field of a frozen dataclass to a read-only copy of an array.

    What the caller does to the original later changes nothing.
    """
    value = value.copy()
    value.setflags(write=False)
    object.__setattr__(owner, name, value)


def known_key(what: str, key: str, known: Iterable[str]) -> str:
    """Return `key` if it is known; otherwise name the nearest one that is, if one is near."""
    names = list(known)
    if key in names:
        return key
    raise ValueError(f"Unknown {what} `{key}`.{known_names(key, names)}")


def known_names(key: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: the nearest one, and all that are known."""
    names = list(known)
    near = difflib.get_close_matches(str(key), names, n=1)
    ask = f" Did you mean `{near[0]}`?" if near else ""
    return f"{ask} Known: {', '.join(names) or 'none'}."


def _tail(hint: str) -> str:
    return f" {hint}" if hint else ""
