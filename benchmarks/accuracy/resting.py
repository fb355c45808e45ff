"""A body at rest whose number is measured again and again while a parameter changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adjoint.equilibrium import equilibrium_vjp
from adjoint.field import pull
from adjsim.equilibrium import Equilibrium, equilibrium
from adjsim.field import Field
from adjsim.model import Model, State


Slopes = Mapping[str, Any]  # derivatives of parameters by the one that changes, by path


@dataclass
class Resting:
    """A model at rest, by the value of one parameter.

    Attributes
    ----------
    build : callable
        Parameter to model, start, and the derivatives of the model's parameters by it.
    measure : callable
        Equilibrium to a number and its gradient by path: of "state.x" that of where nodes rest.
    """

    build: Callable[[float], tuple[Model, State, Slopes]]
    measure: Callable[[Equilibrium], tuple[float, dict[str, np.ndarray]]]
    last: np.ndarray | None = field(default=None)  # where it rested: the next search starts there

    def rest(self, value: float) -> tuple[Equilibrium, Slopes]:
        """Return the equilibrium, and the derivatives of the model's parameters."""
        model, state, slopes = self.build(value)
        start = np.where(model.pinned[:, None] | (self.last is None), state.x, self.last)
        rest = polished(equilibrium(model, State(start.astype(float))))
        self.last = rest.state.x
        return rest, slopes

    def value(self, value: float) -> float:
        """Return the number."""
        return self.measure(self.rest(value)[0])[0]

    def value_and_slope(self, value: float) -> tuple[float, float]:
        """Return the number and its derivative."""
        rest, slopes = self.rest(value)
        number, direct = self.measure(rest)
        through = equilibrium_vjp(rest, direct["state.x"], wrt=tuple(slopes))
        total = 0.0
        for path, slope in slopes.items():
            gradient = through[path] + (direct.get(path, 0.0) if path != "state.x" else 0.0)
            total += float(np.sum(gradient * slope))
        return number, total


def polished(rest: Equilibrium) -> Equilibrium:
    """Return an equilibrium after one more step of Newton's: differences need the last digits."""
    if rest.factor is None:
        return rest
    x, left = rest.state.x.copy(), rest.field.forces(rest.state).ravel()[rest.free]
    x.ravel()[rest.free] += rest.factor.solve(left)
    return replace(rest, state=State(x))


def force_of(rest: Equilibrium, names: tuple[str, ...], weights: np.ndarray) -> tuple[float, Any]:
    """Return the sum of some forces times weights (n_nodes, 3), and its gradient by path."""
    model = rest.field.model
    field = Field(Model(model.mass, {name: model.forces[name] for name in names}))
    gradient = pull(field, rest.state, weights)
    gradient = {path: g for path, g in gradient.items() if path in model.parameters()} | {
        "state.x": gradient["state.x"]
    }
    return float(np.sum(field.forces(rest.state) * weights)), gradient
