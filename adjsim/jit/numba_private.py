"""All that hangs on private parts of Numba's: it compiles faster with them, and runs without.

`adjsim/jit/backend.py` does without where they are not what they were: where this file
cannot be imported, or Numba is newer than the last version that was tried.

Element functions. To each function that it compiles, Numba adds two more, one to be called
through from Python and one from C; it optimises all three and makes machine code of them. Loops
inline an element function: what they link is LLVM's code, which is optimised where it is inlined,
and they need neither the two others nor any machine code. Without the two compilation takes two
thirds of its time where many arguments are arrays, and without the rest five sixths of that.

Their arguments. Numba's own convention passes each number of tuples and arrays by itself, for
callers that are not LLVM's code: of the packed arrays of a frame there are a thousand. Here every
tuple and every array is one value, and a call looks after nothing that was raised: an element
function that raises is not compiled, and what Numba itself may find wrong in one, such as an index
beyond a tuple, ends it early, and is looked at only where indices are checked
(NUMBA_BOUNDSCHECK=1). Where a loop calls one copy and does not inline it, the convention is
Numba's: what is passed as numbers and addresses is faster to call.

Records. Numba records how long each pass and each call of LLVM takes, and writes all types as text
for it. That takes a tenth of a compilation, and is never read here.

Files of the cache. Each has a checksum behind its pickle; one that is damaged is dropped and
compiled again. A process that finds nothing waits for another one that compiles the same function.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from pickle import loads
from secrets import randbits
from typing import Any, ClassVar, Literal, NoReturn

import numba
from llvmlite.binding import ffi
from llvmlite.ir import IRBuilder
from numba import _dynfunc  # pyright: ignore[reportAttributeAccessIssue]
from numba.core import bytecode, caching, cgutils, config as numba_config, dispatcher, types
from numba.core.callconv import CPUCallConv
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.errors import UnsupportedError
from numba.core.imputils import impl_ret_new_ref
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.serialize import dumps
from numba.core.targetconfig import TargetConfig
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.typing.templates import Signature

from adjsim.jit import kernel_pack
from adjsim.jit.kernel_cache import warn_once
from adjsim.jit.kernel_keys import type_text


LAST_TRIED = (0, 68)  # version of Numba
config: Any = numba_config  # its members are set when it is loaded
LONGEST_WAIT = 600.0  # for another process that compiles [s], which on a busy machine takes long
CHECKSUM = 32  # bytes
LLVM_CALLBACKS: list[Any] = ffi.lib._lock._cblist


class WholeArguments:
    """Packs arguments of some types; in the place of Numba's `ArgPacker`."""

    def __init__(self, models: Any, kinds: Sequence[Any]) -> None:
        self._models = [models.lookup(kind) for kind in kinds]
        self._parts = [model.get_argument_type() for model in self._models]

    @property
    def argument_types(self) -> tuple[Any, ...]:
        """Types of what is passed: of nothing that holds nothing."""
        return tuple(
            model.get_value_type()
            for model, parts in zip(self._models, self._parts, strict=True)
            if not _is_empty(parts)
        )

    def as_arguments(self, builder: Any, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return what is passed of the values."""
        del builder
        return tuple(
            value for value, parts in zip(values, self._parts, strict=True) if not _is_empty(parts)
        )

    def from_arguments(self, builder: Any, args: Sequence[Any]) -> list[Any]:
        """Return the values of what was passed."""
        passed = iter(args)
        return [
            model.from_argument(builder, parts) if _is_empty(parts) else next(passed)
            for model, parts in zip(self._models, self._parts, strict=True)
        ]

    def assign_names(self, args: Sequence[Any], names: Sequence[str]) -> None:
        """Name what is passed."""
        there = (
            name for name, parts in zip(names, self._parts, strict=True) if not _is_empty(parts)
        )
        for arg, name in zip(args, there, strict=True):
            arg.name = name


def _is_empty(parts: Any) -> bool:
    """Whether what Numba would pass of a type, a type or a tuple of such, is nothing."""
    return isinstance(parts, tuple) and all(_is_empty(member) for member in parts)


class ElementCallConv(CPUCallConv):
    """Numba's convention, but for the arguments."""

    def _get_arg_packer(self, argtypes: Sequence[Any]) -> Any:
        return WholeArguments(self.context.data_model_manager, argtypes)


def convention_of(context: Any, described: Any) -> CPUCallConv:
    """Return how a function is called: Numba's own way where it is not inlined."""
    return ElementCallConv(context) if described.inline else CPUCallConv(context)


def declare(context: Any, module: Any, described: Any) -> Any:
    """Return an element function as a module knows it, `described` by Numba."""
    convention = convention_of(context, described)
    kind = convention.get_function_type(described.restype, described.argtypes)
    function = cgutils.get_or_insert_function(module, kind, described.mangled_name)
    convention.decorate_function(function, described.args, described.argtypes)
    function.attributes.add("alwaysinline" if described.inline else "noinline")
    return function


def call_of(described: Any, libraries: Sequence[Any]) -> Callable:
    """Return what writes a call of an element function; in the place of Numba's `user_function`.

    What the function says of its success is looked at only where indices are checked.
    """

    def write(context: Any, builder: Any, _: Any, args: Sequence[Any]) -> Any:
        function = declare(context, builder.module, described)
        result, convention = described.restype, convention_of(context, described)
        if config.BOUNDSCHECK:
            status, value = convention.call_function(
                builder, function, result, described.argtypes, args
            )
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return impl_ret_new_ref(context, builder, result, value)
        value_at, problem_at = (
            cgutils.alloca_once(builder, place.type.pointee) for place in function.args[:2]
        )
        passed = convention._get_arg_packer(described.argtypes)
        builder.call(function, [value_at, problem_at, *passed.as_arguments(builder, args)])
        value = context.get_returned_value(builder, result, builder.load(value_at))
        return impl_ret_new_ref(context, builder, result, value)

    implementation: Any = write
    implementation.signature = described.argtypes
    implementation.libs = tuple(libraries)
    return implementation


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
        lowered, nowhere = state["cr"], 0
        # What Numba knows a compiled function by; this one has no address.
        entry = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), lowered.fndesc.qualname.split(".")[-1], "", nowhere,
            lowered.env, (state.library,),
        )  # fmt: skip
        call = call_of(lowered.fndesc, [state.library])
        state.targetctx.insert_func_defn([(call, entry, lowered.fndesc.argtypes)])
        state["cr"] = _LowerResult(
            lowered.fndesc, lowered.call_helper, cfunc=entry, env=lowered.env
        )
        return True


class Passes(PassManager):
    """Passes that are run without records."""

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        del index
        pss.analysis = self._analysis
        for run in (pss.run_initialization, pss.run_pass, pss.run_finalizer):
            run(internal_state)


class ElementCompiler(Compiler):
    """Numba's compiler with `ElementLowering`."""

    _pipelines: ClassVar[list[Any]] = []  # of all element functions: their options are the same

    def define_pipelines(self) -> list[Any]:
        """Return Numba's pipeline with its last pass exchanged, and none for array expressions."""
        if not self._pipelines:
            (usual,) = super().define_pipelines()
            pipeline = Passes(usual.pipeline_name)
            for each, what in usual.passes:
                if each is not NopythonRewrites:
                    pipeline.add_pass(ElementLowering if each is NativeLowering else each, what)
            pipeline.finalize()
            self._pipelines.append(pipeline)
        return self._pipelines


class Element(CPUDispatcher):
    """An element function; a call from Python goes to a copy that has wrappers."""

    def __init__(self, fn: Callable, locals: Any = None, targetoptions: Any = None) -> None:
        options = {**(targetoptions or {}), "nopython": True, **NO_WRAPPERS}
        # Numba 0.61 wants a mapping of locals.
        super().__init__(fn, locals or {}, options, ElementCompiler)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the copy, which is compiled in its first call."""
        return self._from_python(*args, **kwargs)

    @cached_property
    def _from_python(self) -> Callable:
        ours = {"nopython", *NO_WRAPPERS}
        options = {key: value for key, value in self.targetoptions.items() if key not in ours}
        return numba.njit(**options)(self.py_func)


class CheckedFiles(caching.IndexDataCacheFile):
    """The files of a kernel, one for each signature, read only if they are as they were written.

    There is no index: the name of a file has a hash of the signature, and the checksum in it is of
    the name, too. So a file that is in the place of another is not good.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep a compiled kernel; where it cannot be written, go on without."""
        path, code = self._path(key), dumps(data)
        try:
            with self._open_for_write(path) as file:
                file.write(code + _checksum(path, code))
        except OSError as error:
            warn_once("disk", f"compiled kernels are not kept for the next run: {error}")

    def load(self, key: Any) -> Any:
        """Return a compiled kernel, or None."""
        path = self._path(key)
        try:
            data = Path(path).read_bytes()
        except OSError:
            return None
        if (code := _checked(path, data)) is not None:
            return loads(code)
        with suppress(OSError):
            os.unlink(path)
        warn_once(
            "file", f"the kernel cache has damaged files, such as {path}: they are compiled again"
        )
        return None

    def load_from_pack(self, key: Any) -> Any:
        """Return a kernel of those that the package brings along, or None."""
        path = self._path(key)
        data = kernel_pack.read(os.path.basename(path))
        if data is None:
            return None
        if (code := _checked(path, data)) is not None:
            return loads(code)
        kernel_pack.warn_unused(f"are damaged ({os.path.basename(path)})")
        return None

    def _path(self, key: Any) -> str:
        number = int.from_bytes(sha256(repr(key).encode()).digest()[:8])
        return self._data_path(self._data_name(number))


def _checked(path: str, data: bytes) -> bytes | None:
    """Return what a file holds before its checksum, or None if that is wrong."""
    code, checksum = data[:-CHECKSUM], data[-CHECKSUM:]
    return code if checksum == _checksum(path, code) else None


def _checksum(path: str, code: bytes) -> bytes:
    return sha256(os.path.basename(path).encode() + code).digest()


class SharedCache(caching.FunctionCache):
    """Numba's cache of a function, which one process at a time compiles into.

    The others wait, and find there what they need.
    """

    _lock: Any = None

    def __init__(self, py_func: Callable) -> None:
        super().__init__(py_func)
        self._cache_file = CheckedFiles(self._cache_path, self._impl.filename_base, None)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return what a kernel of one function is known by: the types and the processor.

        Numba's own key knows no names of fields.
        """
        kinds = (sig.return_type, *sig.args) if isinstance(sig, Signature) else sig
        texts = [type_text(kind) for kind in kinds]
        if None in texts:
            self.disable()  # it is not kept
        return texts, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel if it is there, or once another process has compiled it."""
        kernel = super().load_overload(sig, target_context)
        if kernel is None and (kernel := self._load_from_pack(sig, target_context)) is not None:
            kernel_pack.processors_used.add(f"{kernel_pack.CPU} (of the wheel)")
            return kernel
        kernel_pack.processors_used.add(target_context.codegen().magic_tuple()[1])
        if kernel is None:
            self._keep_others_out()
            kernel = super().load_overload(sig, target_context)
        return kernel

    def _load_from_pack(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel that the package brings along, or None."""
        texts, (triple, *_) = self._index_key(sig, target_context.codegen())
        if not self._enabled or kernel_pack.open_pack() is None:
            return None
        data = self._cache_file.load_from_pack((texts, (triple, kernel_pack.CPU, "")))
        return None if data is None else self._impl.rebuild(target_context, data)

    def _keep_others_out(self) -> None:
        """Wait for those that compile; where that is not possible, go on without."""
        from filelock import FileLock, Timeout

        with suppress(OSError, NotImplementedError, Timeout):
            self._impl.locator.ensure_cache_path()
            lock = FileLock(f"{self._cache_file._index_path}.lock", timeout=LONGEST_WAIT)
            lock.acquire()
            self._lock = lock

    def let_others_go_on(self) -> None:
        """Release what `load_overload` may have locked."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def njit(fn: Callable, *, cache: bool, **options: Any) -> Any:
    """Return Numba's dispatcher; one that is cached shares its cache."""
    made: Any = numba.njit(fn, **options)
    if cache:
        made._cache = SharedCache(fn)
    return made


def share_cache() -> None:
    """Have a process wait where another one compiles what it needs."""
    usual = dispatcher.Dispatcher.compile

    def compile_once(self: Any, sig: Any) -> Any:
        try:
            return usual(self, sig)
        finally:
            if isinstance(self._cache, SharedCache):
                self._cache.let_others_go_on()

    dispatcher.Dispatcher.compile = compile_once


def name_code_apart() -> None:
    """Give all compiled functions names that those of other processes do not have.

    Numba counts. Of two that are loaded from the cache and have one name, one would run for both.
    """
    identity: Any = bytecode.FunctionIdentity
    identity._unique_ids = iter(lambda: randbits(48), None)


def compare_options_by_what_is_set() -> None:
    """Compare options of compilations by those that are set, and by all only where these differ."""
    options: Any = TargetConfig
    by_all = options.__eq__

    def is_equal(first: Any, other: Any) -> Any:
        return first._values == getattr(other, "_values", None) or by_all(first, other)

    options.__eq__ = is_equal
    options.__hash__ = lambda flags: hash(type(flags))  # Numba's is the same for all, too


def call_llvm_unrecorded() -> None:
    """Have Numba not record when each call of LLVM begins and ends."""
    LLVM_CALLBACKS.clear()
