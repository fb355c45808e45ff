"""How Numba takes an element function: without wrappers on the CPU, without fastmath on CUDA.

To each function that it compiles, Numba adds two more: one to be called through from Python and
one from C. Loops inline an element function and need neither, and where many arguments are arrays
the two are a third of the time of compilation.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
from numba.core.registry import CPUDispatcher


NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Element(CPUDispatcher):
    """An element function; a call from Python goes to a copy that has wrappers."""

    def __init__(self, fn: Callable, locals: Any = None, targetoptions: Any = None) -> None:
        options = {**(targetoptions or {}), "nopython": True, **NO_WRAPPERS}
        super().__init__(fn, locals or {}, TargetOptions(options))  # Numba 0.61 wants a mapping

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the copy, which is compiled in its first call."""
        return self._from_python(*args, **kwargs)

    @cached_property
    def _from_python(self) -> Callable:
        own = {"nopython", *NO_WRAPPERS}
        options = {key: value for key, value in self.targetoptions.items() if key not in own}
        return numba.njit(**options)(self.py_func)


class TargetOptions(dict):
    """Options of an element function whose copy, taken by `numba.cuda`, has no fastmath.

    On CUDA any fastmath flag means approximate division and square root; contraction is
    on there by default.
    """

    def copy(self) -> dict:
        """Return the options that hold on every target."""
        of_the_cpu = {"fastmath", "_nrt", *NO_WRAPPERS}
        return {key: value for key, value in self.items() if key not in of_the_cpu}
