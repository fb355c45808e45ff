"""Which twin undoes which system. Adding a system adds one line here, as does a step."""

from typing import Any

from adjoint.engine.sweep import ModelTwin
from adjoint.reduced import double_pendulum, simple_pendulum
from adjoint.reduced.pendulum import PendulumTwin
from adjoint.reduced.smoke import SmokeTwin
from adjoint.steps.implicit import ImplicitTwin
from adjoint.system import SystemTwin
from adjoint.worlds import BatchTwin
from adjsim.model import Model
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.reduced.smoke import Smoke
from adjsim.steps.implicit import ImplicitStepper
from adjsim.system import Stepper, System
from adjsim.worlds import Batch


SYSTEM_TWINS: dict[type[System[Any, Any]], SystemTwin[Any, Any]] = {
    Model: ModelTwin(),
    Batch: BatchTwin(),
    SimplePendulum: PendulumTwin(simple_pendulum.TWIN),
    DoublePendulum: PendulumTwin(double_pendulum.TWIN),
    Smoke: SmokeTwin(),
}


# Of steppers that do not take the step that is a system's own.
STEPPER_TWINS: dict[type[Stepper[Any, Any]], SystemTwin[Any, Any]] = {
    ImplicitStepper: ImplicitTwin(),
}


def system_twin_of(system: System[Any, Any], stepper: Stepper[Any, Any]) -> SystemTwin[Any, Any]:
    """Return the twin of a system as its stepper advances it.

    Raises
    ------
    TypeError
        If no adjoint is registered for its class.
    """
    if type(stepper) in STEPPER_TWINS:
        return STEPPER_TWINS[type(stepper)]
    try:
        return SYSTEM_TWINS[type(system)]
    except KeyError:
        raise TypeError(
            f"No adjoint is registered for `{type(system).__name__}`. Add one line to "
            "`adjoint/system_registry.py`."
        ) from None
