"""Time steps. `STEPS` lists the package's steps by the names that scene files use."""

from adjsim.steps.implicit import ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler


STEPS = {"semi-implicit": SemiImplicitEuler, "implicit": ImplicitEuler}
