"""Checks at the public boundary: the argument, what was expected, what came, the way out."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt


FLOAT_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


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
        if np.iscomplexobj(value) or np.ma.is_masked(value):
            raise ValueError("it has complex numbers or masked entries")
        out = np.ascontiguousarray(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be an array of {np.dtype(dtype)}: {error}.") from error
    if np.ndim(value) == 0:
        out = out.reshape(())
    if shape is not None:
        fits = out.ndim == len(shape) and all(
            isinstance(want, str) or want == got
            for want, got in zip(shape, out.shape, strict=False)
        )
        if not fits:
            wanted = shape_text(shape)
            raise ValueError(f"`{name}` must have shape {wanted}, got {out.shape}.{_tail(hint)}")
    if np.issubdtype(out.dtype, np.floating) and not np.isfinite(out).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise ValueError(
            f"`{name}` must be finite, got {out[where]} at index {where}.{_tail(hint)}"
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


def integers(name: str, value: Any, shape: Sequence[int | str]) -> np.ndarray:
    """Return `value` as int64 of the given shape; nothing is rounded."""
    given = np.asarray(value)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"`{name}` must hold integers, got {given.dtype}.")
    return array(name, given, shape, dtype=np.int64)


def indices(name: str, value: Any, shape: Sequence[int | str], n_points: int) -> np.ndarray:
    """Return `value` as int64 indices into `n_points` points, checked and not empty."""
    out = integers(name, value, shape)
    if out.size == 0:
        raise ValueError(f"`{name}` must not be empty.")
    outside = (out < 0) | (out >= n_points)
    if outside.any():
        row = int(np.argwhere(outside)[0, 0])
        raise ValueError(
            f"`{name}` must index the {n_points} points, 0 to {n_points - 1}, got "
            f"{out[row].tolist()} at row {row}."
        )
    return out


def scalar_or_array(name: str, value: Any, n: int, size_name: str) -> np.ndarray:
    """Return `value` as a finite array of shape () or (n,)."""
    out = array(name, value)
    if out.shape not in ((), (n,)):
        flat = f" Pass `{name}.ravel()`." if out.size == n else ""
        raise ValueError(
            f"`{name}` must have shape () or ({size_name},) = ({n},), got {out.shape}.{flat}"
        )
    return out


def positive(name: str, value: Any, *, hint: str = "") -> Any:
    """Return `value` if every entry is greater than zero."""
    low = float(np.min(value)) if np.size(value) else 1.0
    if not low > 0.0:
        raise ValueError(f"`{name}` must be positive, got {low:g}.{_tail(hint)}")
    return value


def non_negative(name: str, value: Any, *, hint: str = "") -> Any:
    """Return `value` if no entry is below zero."""
    low = float(np.min(value)) if np.size(value) else 0.0
    if not low >= 0.0:
        raise ValueError(f"`{name}` must not be negative, got {low:g}.{_tail(hint)}")
    return value


def freeze(owner: Any, name: str, value: np.ndarray) -> None:
    """Set a field of a frozen dataclass to a read-only copy of an array.

    What the caller does to the original later changes nothing.
    """
    value = value.copy()
    value.setflags(write=False)
    object.__setattr__(owner, name, value)


def known_key(what: str, key: str, known: Iterable[str]) -> str:
    """Return `key` if it is known; otherwise name the nearest one that is."""
    names = list(known)
    if key in names:
        return key
    near = difflib.get_close_matches(str(key), names, n=1, cutoff=0.5)
    ask = f" Did you mean `{near[0]}`?" if near else ""
    raise ValueError(f"Unknown {what} `{key}`.{ask} Known: {', '.join(names) or 'none'}.")


def _tail(hint: str) -> str:
    return f" {hint}" if hint else ""
