r"""Where the nodes of a model rest along the path of its grips and obstacles: a test in ten loads.

    r(x_k, theta_k) = f(x_k, 0, theta_k) + m g = 0 on the free nodes,   x_k = p_k on the led ones

with p_k the place that a grip gives for state k (`adjsim/forces/grip.py`), and p_0 that of
`state.x`. Of other series, as the centre of an indenter, row k acts in state k: they have a row
more than those of a rollout, or are courses. Every equilibrium is searched from the one before it,
which decides only which of several is found.

Derivatives: `adjoint/equilibria.py`. Tests: `tests/test_equilibria.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adjsim.equilibrium import Equilibrium, require_nodes, rest_in
from adjsim.field import Field
from adjsim.forces.element import Force
from adjsim.model import Model, State


@dataclass(frozen=True, eq=False)
class Equilibria:
    """The equilibria at some states of a path.

    Attributes
    ----------
    model : Model
        The model with its grips.
    by_state : tuple of Equilibrium
        Of each state: of the model without grips, its led nodes pinned at their places. All of them
        share a field.
    rows : tuple of int
        Which row of the places each state has, -1: where `state.x` has them.
    n_steps : int
        How many steps the path has.
    """

    model: Model
    by_state: tuple[Equilibrium, ...]
    rows: tuple[int, ...]
    n_steps: int

    @property
    def x(self) -> np.ndarray:
        """Where the nodes rest, (n_states, n_nodes, 3) [m]."""
        return np.stack([rest.state.x for rest in self.by_state])

    @property
    def grips(self) -> dict[str, Force]:
        """The grips by name."""
        return grips_of(self.model)


def grips_of(model: Model) -> dict[str, Force]:
    """Return the forces of a model that lead nodes, by name."""
    return {name: force for name, force in model.forces.items() if force.leads}


def led_to(x: np.ndarray, model: Model, places: dict[str, np.ndarray], row: int) -> np.ndarray:
    """Return x with led nodes where their rows of `places` have them; row -1: as it is."""
    out = np.array(x)
    for name, force in grips_of(model).items() if row >= 0 else ():
        out[force.nodes[:, 0]] = places[name][min(row, len(places[name]) - 1)]
    return out


def equilibria(model: Model, state: State, states: Sequence[int], n_steps: int) -> Equilibria:
    """Find where the nodes of a model rest in some states of the path of its grips and obstacles.

    Parameters
    ----------
    model : Model
        Of nodes; where nothing varies all states are alike.
    state : State
        Where to start, and where pinned nodes are.
    states : sequence of int
        Numbers of the states, increasing, 0 to n_steps.
    n_steps : int
        Of the path.

    Raises
    ------
    ValueError, EquilibriumError
        As `adjsim.equilibrium.equilibrium`.
    """
    grips = grips_of(model)
    places = {name: force.pack_series(n_steps) for name, force in grips.items()}
    still = model.without(grips) if grips else model
    varies = any(len(force.pack_series(n_steps + 1)) > 1 for force in still.forces.values())
    field = Field(require_nodes(still), with_weight=True, n_steps=n_steps + 1)
    rows = [k - 1 for k in states] if grips else [-1] * len(states)
    by_state: list[Equilibrium] = []
    for k, row in zip(states, rows, strict=True):
        if by_state and not grips and not varies:
            by_state.append(by_state[-1])
            continue
        start = by_state[-1].state if by_state else state
        x = led_to(start.x, model, places, row)
        by_state.append(rest_in(field, State(x), k if varies else 0))
    return Equilibria(model, tuple(by_state), tuple(rows), n_steps)
