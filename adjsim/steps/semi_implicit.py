r"""Semi-implicit (symplectic) Euler: explicit, stable below a step that stiffness bounds.

    v' = v + dt (w f(x, v) + [w > 0] g),   x' = x + dt v',   w = 1/m, 0 where pinned

Of systems that are not made of nodes it means their own step. It runs in compiled code: the phases
are in `adjsim/engine/timeloop.py`, their adjoints in `adjoint/engine/timeloop.py`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from adjsim.engine.stepper import make_stepper
from adjsim.system import RunSettings, Stepper, TimeStep


@dataclass(frozen=True)
class SemiImplicitEuler(TimeStep):
    """The default step, of every system and on every device."""

    IS_STABLE: ClassVar[bool] = False

    def stepper(self, system: Any, run: RunSettings) -> Stepper[Any, Any]:
        """Make a system ready to be advanced, as `make_stepper` does."""
        return make_stepper(system, run)


SEMI_IMPLICIT = SemiImplicitEuler()
