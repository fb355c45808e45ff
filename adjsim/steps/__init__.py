"""Time steps. `STEPS` are those of the package by the names that scene files use."""

from adjsim.steps.implicit import ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler


STEPS = {"semi-implicit": SemiImplicitEuler, "implicit": ImplicitEuler}
