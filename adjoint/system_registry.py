"""Which twin undoes which system. Adding a system adds one line here, as does a step."""

from typing import Any

from adjoint.engine.sweep import ModelTwin
from adjoint.reduced import double_pendulum, simple_pendulum
from adjoint.reduced.pendulum import PendulumTwin
from adjoint.reduced.smoke import SmokeTwin
from adjoint.steps.field_step import FieldTwin
from adjoint.steps.implicit import ImplicitSweep, ImplicitTangent
from adjoint.system import SystemTwin
from adjoint.worlds import BatchTwin
from adjsim import checks
from adjsim.model import Model
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.reduced.smoke import Smoke
from adjsim.steps.implicit import ImplicitEuler
from adjsim.system import Stepper, System, TimeStep
from adjsim.worlds import Batch


SYSTEM_TWINS: dict[type[System[Any, Any]], SystemTwin[Any, Any]] = {
    Model: ModelTwin(),
    Batch: BatchTwin(),
    SimplePendulum: PendulumTwin(simple_pendulum.TWIN),
    DoublePendulum: PendulumTwin(double_pendulum.TWIN),
    Smoke: SmokeTwin(),
}


# Of steps that are not a system's own.
STEP_TWINS: dict[type[TimeStep], SystemTwin[Any, Any]] = {
    ImplicitEuler: FieldTwin(ImplicitSweep, ImplicitTangent)
}


def register_step(step: type[TimeStep], twin: SystemTwin[Any, Any]) -> None:
    """Let a step of one's own have gradients: `twin` undoes it. Call it beside the class.

    Raises
    ------
    TypeError
        If `step` is no class of steps, or `twin` no object of a `SystemTwin`.
    """
    if not (isinstance(step, type) and issubclass(step, TimeStep)):
        raise TypeError(f"`step` must be a subclass of TimeStep, got {step!r}.")
    STEP_TWINS[step] = checks.instance("twin", twin, SystemTwin)


def system_twin_of(system: System[Any, Any], stepper: Stepper[Any, Any]) -> SystemTwin[Any, Any]:
    """Return the twin of a system as its stepper advances it.

    Raise a TypeError if no adjoint is registered for its class.
    """
    if stepper.step is not None:
        step = type(stepper.step)
        if step not in STEP_TWINS:
            raise TypeError(
                f"No adjoint is registered for `step` {step.__name__}. Write its twin, and call "
                f"`adjoint.system_registry.register_step({step.__name__}, twin)` beside the class."
            )
        return STEP_TWINS[step]
    try:
        return SYSTEM_TWINS[type(system)]
    except KeyError:
        raise TypeError(
            f"No adjoint is registered for `{type(system).__name__}`. Add one line to "
            "`adjoint/system_registry.py`."
        ) from None
