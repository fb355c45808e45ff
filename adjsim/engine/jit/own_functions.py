"""The key of compiled functions that are not the package's: by it their kernels are found on disk.

The folder of the cache has a hash of the package's sources in its name. A function outside the
package, or one of the package that was made around such a function, has a key of its own: a hash
of its bytecode and of all that Numba reads where it compiles it, which are constants, closures,
globals, and the functions that it calls. Of NumPy and Python's `math` names and NumPy's version
are enough. A function that reads anything else has no key, and its kernels are not kept.

Tests: `tests/engine/jit/test_own_functions.py`.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any

import numpy as np


KERNEL_PACKAGES = ("adjsim", "render", "adjoint")
TRUSTED = ("builtins", "math", "numpy")
PLAIN = (type(None), bool, int, float, complex, str, bytes)
# The hash that each function had first, when Numba compiled it: a global may change later.
_first: dict[Callable, str] = {}


def own_key(function: Callable, *beside: Any) -> str | None:
    """Return the key of a function: "" if it is the package's alone, None if it has none.

    `beside` are numbers that its kernel is made of too.
    """
    reader = _Reader()
    found = reader.function(function)
    if not reader.is_own:
        return ""
    return _hash(f"{found} {beside}") if reader.is_complete else None


class _Reader:
    """Hashes functions. `is_own`: one of them is not the package's; `is_complete`: all was read."""

    def __init__(self) -> None:
        self.is_own, self.is_complete = False, True
        self._found: dict[Any, str] = {}

    def function(self, function: Any) -> str:
        """Return the hash of a compiled function."""
        if function not in self._found:
            self._found[function] = "itself"  # to one that it calls
            self._found[function] = found = _hash(self._text(function))
            self.is_complete &= _first.setdefault(function, found) == found
        return self._found[function]

    def _text(self, function: Any) -> str:
        plain = getattr(function, "py_func", function)
        codes = list(_codes(plain.__code__))
        names = sorted({name for code in codes for name in code.co_names})
        cells = [cell.cell_contents for cell in plain.__closure__ or ()]
        read = {k: plain.__globals__[k] for k in names if k in plain.__globals__}
        if _top(plain) in KERNEL_PACKAGES:  # code and constants are in the hash of the sources
            read = {k: one for k, one in read.items() if hasattr(one, "py_func")}
            return repr((plain.__qualname__, self._values([cells, read], ())))
        self.is_own = True
        self.is_complete &= not getattr(function, "locals", None)
        options = getattr(function, "targetoptions", None)
        defaults = plain.__defaults__, plain.__kwdefaults__
        consts = [[k for k in code.co_consts if not isinstance(k, CodeType)] for code in codes]
        exact = [(c.co_code, c.co_exceptiontable, c.co_flags, c.co_argcount) for c in codes]
        named = [(c.co_names, c.co_varnames, c.co_cellvars, c.co_freevars) for c in codes]
        version = sys.version, np.__version__
        values = self._values([options, defaults, consts, cells, read], names)
        return repr((version, exact, named, values))

    def _values(self, values: Iterable[Any], names: Iterable[str]) -> list[str]:
        return [self._value(one, names) for one in values]

    def _value(self, value: Any, names: Iterable[str]) -> str:
        """Return what a value is; of a module, what has one of these names."""
        if isinstance(value, ModuleType) and _top(value) not in TRUSTED:
            read = {k: vars(value)[k] for k in names if k in vars(value)}
            return self._value(read, names)
        match value:
            case _ if type(value) in PLAIN:
                found = repr(value)
            case np.ndarray() | np.generic() if not value.dtype.hasobject:
                shape = value.shape, getattr(value, "strides", ())
                found = f"{value.dtype.descr} {shape} {value.tobytes().hex()}"
            case dict():
                found = repr([(k, self._value(value[k], names)) for k in sorted(value, key=str)])
            case list() | tuple() if not hasattr(value, "_fields"):
                found = repr(self._values(value, names))
            case set() | frozenset():
                found = repr(sorted(self._values(value, names)))
            case _ if hasattr(value, "py_func"):
                found = self.function(value)
            case _:
                found = getattr(value, "__qualname__", getattr(value, "__name__", None))
                is_known = found is not None and _top(value) in (*TRUSTED, *KERNEL_PACKAGES)
                self.is_complete &= is_known
        return f"{type(value).__name__} {found}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of those defined in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _top(value: Any) -> str:
    """Return the package that something is of."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home).partition(".")[0]
