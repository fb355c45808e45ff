"""Checks at the public boundary: the argument, what was expected, what came, the way out."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


FLOAT_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


def float_dtype(dtype: npt.DTypeLike) -> np.dtype:
    """Return `dtype` as a NumPy dtype, float64 or float32."""
    checked = np.dtype(dtype)
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
            wanted = ", ".join(str(s) for s in shape)
            raise ValueError(f"`{name}` must have shape ({wanted}), got {out.shape}.{_tail(hint)}")
    if np.issubdtype(out.dtype, np.floating) and not np.isfinite(out).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
        raise ValueError(
            f"`{name}` must be finite, got {out[where]} at index {where}.{_tail(hint)}"
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


def known_key(what: str, key: str, known: Iterable[str]) -> str:
    """Return `key` if it is known; otherwise name the nearest one that is."""
    names = list(known)
    if key in names:
        return key
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    ask = f" Did you mean `{near[0]}`?" if near else ""
    raise ValueError(f"Unknown {what} `{key}`.{ask} Known: {', '.join(names) or 'none'}.")


def _tail(hint: str) -> str:
    return f" {hint}" if hint else ""
