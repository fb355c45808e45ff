"""The key of a kernel: a hash of all that its machine code is made of. By it, it is found on disk.

That is the bytecode of its function with all that Numba reads where it compiles it, which are
constants, closures, globals, and the functions that it calls, those that write LLVM's code
included; the options; the versions of Python, NumPy, Numba and llvmlite, and what is set in Numba.
Comments, docstrings, lines and paths are no part of it. Numba itself adds the types of the
arguments and the processor. A function that reads what cannot be hashed has no key, and its kernels
are not kept.

Tests: `tests/jit/test_kernel_keys.py`.
"""

import dis
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config as numba_config, types as numba_types
from numba.core.typing.templates import Signature

from adjsim.jit.kernel_cache import KEY_DIGITS


types: Any = numba_types
TRUSTED = ("builtins", "math", "numpy", "numba", "llvmlite")  # what they do follows from versions
PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes, slice)
VALUES = type({}.values())
# Of what is set in Numba, what begins so changes no code, or chooses a processor.
NO_CODE = ("_", "CACHE_", "COLOR_", "CPU_", "DEBUG_CACHE", "ENABLE_AVX", "NUMBA_", "THREADING_")
# The files that change what Numba does, as they were when they were loaded.
FILES = [f"adjsim.jit.{name}" for name in ("backend", "devices", "numba_private")]
_specs: list[Any] = [importlib.util.find_spec(name) for name in FILES]
CODES = [spec.loader.get_code(spec.name) for spec in _specs]
STORE_NAME, LOAD_GLOBAL = dis.opmap["STORE_NAME"], dis.opmap["LOAD_GLOBAL"]
# The hash that each function had first, when Numba compiled it: a global may change later.
_first: dict[Any, str] = {}


def kernel_key(function: Callable, *beside: Any) -> tuple[str | None, str]:
    """Return the key of a kernel, None if it has none, and then what it reads that is unknown.

    `beside` are options and versions that its code depends on too.
    """
    reader = _Reader()
    values = beside, settings(), _compilers()
    text = f"{reader.function(function)} {reader.value(values)}"
    return None if reader.unknown else _hash(text), reader.unknown


def type_text(kind: Any) -> str | None:
    """Return what Numba's type is, with the names of the fields of tuples; None: not known."""
    match kind:
        case types.BaseTuple():
            inner = [type_text(each) for each in kind]
            named = layout(kind.instance_class) if isinstance(kind, types.BaseNamedTuple) else ""
            return None if None in inner else f"({named}: {', '.join(map(str, inner))})"
        case types.Number() | types.Boolean() | types.Array() | types.NoneType() | types.Omitted():
            return f"{type(kind).__name__} {kind}"
    return None  # the names of others may have an address


def layout(kind: Any) -> str:
    """Return what a class of named tuples is: kernels have its fields by number."""
    return f"{kind.__module__}.{kind.__qualname__}{kind._fields}"


class _Reader:
    """Hashes functions. `unknown` says what could not be hashed, if anything."""

    def __init__(self) -> None:
        self.unknown = ""
        self._hashes: dict[Any, str] = {}

    def function(self, function: Any) -> str:
        """Return the hash of a function, compiled or not."""
        if function not in self._hashes:
            self._hashes[function] = "itself"  # to one that it calls
            self._hashes[function] = text = _hash(self._text(function))
            if _first.setdefault(function, text) != text:
                self.unknown = f"what {function.__qualname__} reads was changed after it was used"
        return self._hashes[function]

    def _text(self, function: Any) -> str:
        plain = function
        if not isinstance(function, FunctionType):
            plain = getattr(function, "py_func", None) or function.__wrapped__
        code, name = plain.__code__, f"{plain.__module__}.{plain.__qualname__}"
        names = sorted({name for each in _codes(code) for name in each.co_names})
        cells = [cell.cell_contents for cell in plain.__closure__ or ()]
        loaded = sorted({name for each in _codes(code) for name in _globals_of(each)})
        read = {k: plain.__globals__[k] for k in loaded if k in plain.__globals__}
        how = [getattr(function, k, None) for k in ("targetoptions", "locals", "_prefer_literal")]
        values = [how, plain.__defaults__, plain.__kwdefaults__, cells, read]
        return f"{type(function)} {name} {_code_text(code)} {self.value(values, names, name)}"

    def value(self, value: Any, names: Sequence[str] = (), where: str = "") -> str:
        """Return what a value is that is read somewhere; of a module, what has these names."""
        kind = type(value)
        if kind in PLAIN:
            text = repr(value)
        elif hasattr(value, "py_func") or hasattr(value, "__wrapped__") or kind is FunctionType:
            text = self.function(value)
        elif isinstance(value, dict):
            text = [f"{k}: {self.value(value[k], names, where)}" for k in sorted(value, key=str)]
        elif isinstance(value, tuple | list | set | frozenset | VALUES):
            text = [self.value(each, names, where) for each in value]
            text = text if isinstance(value, tuple | list) else sorted(text)
            text = (layout(kind), text) if hasattr(value, "_fields") else text
        else:
            text = self._object(value, names, where)
        if text is None:
            self.unknown = f"{where} reads {value!r:.80}, which has no hash"
        return f"{kind.__name__} {text}"

    def _object(self, value: Any, names: Sequence[str], where: str) -> str | None:
        text: str | None = None
        match value:
            case ModuleType():
                read = {} if _top(value) in TRUSTED else vars(value)
                read = {k: read[k] for k in names if k in read}
                text = f"{value.__name__} {self.value(read, names, where)}"
            case Signature():
                text = self.value((value.return_type, *value.args), names, where)
            case partial():
                text = self.value((value.func, value.args, value.keywords), names, where)
            case types.Type():
                text = type_text(value)
            case np.ndarray() | np.generic() if not value.dtype.hasobject:
                shape = value.shape, getattr(value, "strides", ())
                text = f"{value.dtype.descr} {shape} {value.tobytes().hex()}"
            case type() if hasattr(value, "_fields"):
                text = f"{layout(value)} {self.value(value._field_defaults, names, where)}"
            case _ if _top(value) in TRUSTED:
                text = getattr(value, "__qualname__", getattr(value, "__name__", None))
        return text


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of those defined in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the names that are read as globals; others in `co_names` are those of attributes."""
    done, high = code.co_code, 0
    for at in range(0, len(done), 2):
        number = high | done[at + 1]
        high = number << 8 if done[at] == dis.EXTENDED_ARG else 0
        if done[at] == LOAD_GLOBAL:
            yield code.co_names[number >> 1]


@cache
def _code_text(code: CodeType) -> str:
    """Return the hash of all that is done, without docstrings and where it is written."""
    texts = []
    for each in _codes(code):
        named = each.co_name, each.co_names, each.co_varnames, each.co_cellvars, each.co_freevars
        counts = each.co_flags, each.co_argcount, each.co_posonlyargcount, each.co_kwonlyargcount
        texts.append((*_instructions(each), each.co_exceptiontable, named, counts))
    return _hash(repr(texts))


def _instructions(code: CodeType) -> tuple[bytes, str]:
    """Return bytecode without the numbers of constants, and beside it the constants it reads.

    No function reads its docstring; a class and a module store theirs.
    """
    done, consts, high = bytearray(code.co_code), [], 0
    for at in range(0, len(done), 2):
        number = high | done[at + 1]
        high = number << 8 if done[at] == dis.EXTENDED_ARG else 0
        if done[at] in dis.hasconst:
            const = code.co_consts[number]
            consts.append(None if isinstance(const, CodeType) else const)
            done[at + 1] = 0
        elif done[at] == STORE_NAME and code.co_names[number] == "__doc__":
            consts[-1] = None
    return bytes(done), _Reader().value(consts)


def settings(*, cuda: bool = False) -> list[str]:
    """Return what is set in Numba, for the CPU or for CUDA: it may change while the process runs.

    llvmlite can write other text, of which LLVM makes the same code.
    """
    texts = [f"{k}={v}" for k, v in os.environ.items() if cuda and k.startswith("LLVMLITE_")]
    for name, value in vars(numba_config).items():
        if name.isupper() and name.startswith("CUDA_") == cuda and not name.startswith(NO_CODE):
            texts.append(f"{name}={value!r}")
    return sorted(texts)


def versions() -> dict[str, str]:
    """Return the versions of what compiles kernels: of Python and NumPy what others depend on."""
    numpy = ".".join(np.__version__.split(".")[:2])
    python = (
        sysconfig.get_config_var("SOABI") or sys.version
    )  # such as cpython-311-x86_64-linux-gnu
    packages = {package.__name__: package.__version__ for package in (numba, llvmlite)}
    return {"Python": python, "NumPy": numpy, **packages}


@cache
def _compilers() -> str:
    """Return the versions of compilers, and the hashes of the files that change what they do."""
    return f"{versions()} {[_code_text(code) for code in CODES]}"


@cache
def sources_hash() -> str:
    """Return the hash of all sources that kernels are in.

    It is part of all keys where Numba's index is its own, which has fields of tuples by number.
    """
    root, packages = Path(__file__).resolve().parents[2], ("adjsim", "render", "adjoint")
    paths = (path for package in packages for path in sorted((root / package).rglob("*.py")))
    return _hash("\n".join(path.read_text("utf-8") for path in paths))


def _top(value: Any) -> str:
    """Return the package that something is of."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home).partition(".")[0]
