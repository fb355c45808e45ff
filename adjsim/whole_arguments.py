"""How a loop calls an element function: with every tuple and every array as one value.

Numba's own convention passes each number in them by itself, for callers that are not LLVM's code:
of the packed arrays of a frame there are a thousand. To take them apart and to put them together
again, at each call and in each function, and to look after each call for what it raised, was most
of the code that LLVM was given. A call that is inlined needs none of it. An element function that
raises is not compiled; what Numba itself may find wrong in one, such as an index beyond a tuple,
ends it early, and is looked at only where indices are checked (NUMBA_BOUNDSCHECK=1).
Where a loop calls one copy and does not inline it, the convention is Numba's: what is passed as
numbers and addresses is faster to call.
"""

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import cgutils, config as numba_config
from numba.core.callconv import CPUCallConv
from numba.core.imputils import impl_ret_new_ref


config: Any = numba_config  # its members are set when it is loaded


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
    return isinstance(parts, tuple) and all(_is_empty(part) for part in parts)


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
        found, problem = (
            cgutils.alloca_once(builder, place.type.pointee) for place in function.args[:2]
        )
        passed = convention._get_arg_packer(described.argtypes)
        builder.call(function, [found, problem, *passed.as_arguments(builder, args)])
        value = context.get_returned_value(builder, result, builder.load(found))
        return impl_ret_new_ref(context, builder, result, value)

    implementation: Any = write
    implementation.signature = described.argtypes
    implementation.libs = tuple(libraries)
    return implementation
