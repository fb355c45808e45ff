"""Which twin undoes which system. Adding a system adds one line here."""

from typing import Any

from adjoint.sweep import ModelTwin
from adjoint.system import SystemTwin
from adjsim.model import Model
from adjsim.system import System


SYSTEM_TWINS: dict[type[System[Any, Any]], SystemTwin[Any, Any]] = {
    Model: ModelTwin(),
}


def system_twin_of(system: System[Any, Any]) -> SystemTwin[Any, Any]:
    """Return the twin of a system.

    Raises
    ------
    TypeError
        If no adjoint is registered for its class.
    """
    try:
        return SYSTEM_TWINS[type(system)]
    except KeyError:
        raise TypeError(
            f"No adjoint is registered for `{type(system).__name__}`. Add one line to "
            "`adjoint/system_registry.py`."
        ) from None
