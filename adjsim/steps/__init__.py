"""How systems get from one state to the next. `STEPS` has those of the package by name."""

from adjsim.steps.implicit import ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler


STEPS = {"semi-implicit": SemiImplicitEuler, "implicit": ImplicitEuler}
