"""Which twin undoes which force: the file at the mirrored path says so.

`adjoint/forces/springs.py` registers the twin of what is in `adjsim/forces/springs.py`. It is
loaded when the twin is asked for, so there is no list of twins. Forces of the package are the
public names of `FAMILIES`; every list of forces in the project is made from these.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from adjoint.examples import Example
from adjoint.forces.element import ForceTwin
from adjsim import checks
from adjsim.forces.element import Force


FAMILIES = ("adjsim.forces", "adjsim.joints", "adjsim.pairs")
_TWINS: dict[type[Force], ForceTwin[Any]] = {}
_EXAMPLES: dict[str, Callable[[int], Example]] = {}


def register(
    force: type[Force],
    twin: ForceTwin[Any],
    examples: Mapping[str, Callable[[int], Example]] | None = None,
) -> None:
    """Let a class of forces have gradients: `twin` undoes it.

    Call it beside the class, or in the package in its twin: processes that import the class then
    have its twin too.

    Parameters
    ----------
    force : type
        The class, a subclass of `Force`.
    twin : ForceTwin
        Its twin.
    examples : mapping, optional
        By name, what makes a scene of so many steps in which every parameter acts. Those of the
        package's forces are systems of `adjsim verify`, and run on emulated GPUs.

    Raises
    ------
    TypeError
        If `force` is no class of forces, or `twin` no object of a `ForceTwin`.
    """
    if not (isinstance(force, type) and issubclass(force, Force)):
        raise TypeError(f"`force` must be a subclass of Force, got {force!r}.")
    _TWINS[force] = checks.instance("twin", twin, ForceTwin)
    _EXAMPLES.update(examples or {})


def twin_of(force: Force) -> ForceTwin[Any]:
    """Return the twin of a force.

    Raise a TypeError if no adjoint is registered for its class.
    """
    return class_twin(type(force))


def class_twin(kind: type[Force]) -> ForceTwin[Any]:
    """Return the twin of a class of forces, as `twin_of`."""
    package, _, path = kind.__module__.partition(".")
    if kind not in _TWINS and package == "adjsim":
        import_module(f"adjoint.{path}")
    if kind not in _TWINS:
        raise TypeError(
            f"No adjoint is registered for `{kind.__name__}`. Write its twin, and call "
            f"`adjoint.forces.registry.register({kind.__name__}, twin)` beside the class."
        )
    return _TWINS[kind]


def forces() -> tuple[type[Force], ...]:
    """Return the package's forces, by name: the public names that have elements."""
    modules = [import_module(family) for family in FAMILIES]
    public = [getattr(module, name) for module in modules for name in dir(module)]
    kinds = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Force)}
    return tuple(sorted(kinds - {Force}, key=lambda kind: kind.__name__))


def examples() -> dict[str, Callable[[int], Example]]:
    """Return the examples that the package's forces bring with them, by name."""
    for kind in forces():
        class_twin(kind)
    return {name: of for name, of in _EXAMPLES.items() if of.__module__.startswith("adjoint.")}
