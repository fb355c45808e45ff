"""How Numba takes an element function: as LLVM's code on the CPU, without fastmath on CUDA.

To each function that it compiles, Numba adds two more, one to be called through from Python and
one from C; it optimises all three and makes machine code of them. Loops inline an element
function: what they link is LLVM's code, which is optimised where it is inlined, and they need
neither the two others nor any machine code. Without the two compilation takes two thirds of its
time where many arguments are arrays, and without the rest five sixths of that.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, NoReturn

import numba
from llvmlite.ir import IRBuilder
from numba import _dynfunc  # pyright: ignore[reportAttributeAccessIssue]
from numba.core import types
from numba.core.callconv import CPUCallConv
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.errors import UnsupportedError
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

from adjsim.whole_arguments import call_of, convention_of, declare


NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class LinkedLibrary(JITCodeLibrary):
    """The code of an element function, which is linked into loops and never run by itself.

    It has no address, so that no element function can be passed on as a value; and Numba is told
    nothing of its environment, so that none can print what it computed.
    """

    def _optimize_final_module(self) -> None:
        """Leave it to the loops: they do it again in any case."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class ElementLower(Lower):
    """Writes LLVM's code of a function, which takes its arguments whole if it is inlined."""

    @property
    def call_conv(self) -> CPUCallConv:
        """The convention by which the function is called."""
        return convention_of(self.context, self.fndesc)

    def setup_function(self, fndesc: Any) -> None:
        """Begin the function: as Numba does, but for how it is declared."""
        self.function = declare(self.context, self.module, fndesc)
        self.entry_block = self.function.append_basic_block("entry")
        self.builder = IRBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)

    def lower_static_raise(self, inst: Any) -> NoReturn:
        """Refuse to compile what raises: who calls an element function does not ask."""
        raise UnsupportedError(
            "An element function can neither raise nor assert: no loop would notice. Check what "
            "comes in where it is handed over, or return NaN.",
            inst.loc,
        )

    lower_dynamic_raise = lower_static_raise

    def _lower_call_RecursiveCall(self, fnty: Any, expr: Any, signature: Any) -> NoReturn:
        del signature
        raise UnsupportedError(f"An element function cannot call itself, as {fnty} does.", expr.loc)


def refuse(state: Any) -> None:
    """Raise if a function takes or returns what is not passed whole."""
    name = state.func_id.func_qualname
    if isinstance(state.return_type, types.Optional):
        raise UnsupportedError(
            f"The element function {name} returns {state.return_type.type} on one way and None on "
            "another. Return one kind of value."
        )
    if any(isinstance(kind, types.StarArgTuple | types.StarArgUniTuple) for kind in state.args):
        raise UnsupportedError(f"The element function {name} has *args. Take one tuple instead.")


@register_pass(mutates_CFG=True, analysis_only=False)
class ElementLowering(NativeLowering):
    """Numba's lowering, which ends before machine code is made."""

    _name = "element_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What writes LLVM's code."""
        return ElementLower

    def run_pass(self, state: Any) -> Literal[True]:
        """Write LLVM's code of a function, and have others link it."""
        refuse(state)
        state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        found, nowhere = state["cr"], 0
        # What Numba knows a compiled function by; this one has no address.
        entry = _dynfunc.make_function(
            found.fndesc.lookup_module(), found.fndesc.qualname.split(".")[-1], "", nowhere,
            found.env, (state.library,),
        )  # fmt: skip
        call = call_of(found.fndesc, [state.library])
        state.targetctx.insert_func_defn([(call, entry, found.fndesc.argtypes)])
        state["cr"] = _LowerResult(found.fndesc, found.call_helper, cfunc=entry, env=found.env)
        return True


class ElementCompiler(Compiler):
    """Numba's compiler with `ElementLowering`."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's pipeline with one pass exchanged."""
        (usual,) = super().define_pipelines()
        pipeline = PassManager(usual.pipeline_name)
        for each, what in usual.passes:
            pipeline.add_pass(ElementLowering if each is NativeLowering else each, what)
        pipeline.finalize()
        return [pipeline]


class Element(CPUDispatcher):
    """An element function; a call from Python goes to a copy that has wrappers."""

    def __init__(self, fn: Callable, locals: Any = None, targetoptions: Any = None) -> None:
        options = {**(targetoptions or {}), "nopython": True, **NO_WRAPPERS}
        # Numba 0.61 wants a mapping of locals.
        super().__init__(fn, locals or {}, TargetOptions(options), ElementCompiler)

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
