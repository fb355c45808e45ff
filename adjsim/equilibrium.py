r"""Where the nodes of a model rest.

    r(x, theta) = f(x, 0, theta) + m g = 0 on the nodes that are not pinned

Newton's method with a sparse factorisation of K = -df/dx. Far from the answer K may have negative
eigenvalues (a sheet under pressure, a body that floats above its floor): then a multiple of the
masses is added to it, which makes a step one of implicit Euler from rest, and taken away again as
the steps succeed (`adjsim/descent.py`). A step is halved while the force at its end pushes back as
hard as the force at its start pushed on, and while surfaces go through each other on its way.

It has converged when no component of r is above `TOLERANCE` times the sum of what the elements push
and pull the busiest node with, or above the rounding error of positions: `ROUNDINGS` times K's
largest entry and the size, for stiff bodies that hardly deform. Velocities are 0, so damping does
not act, and friction and dissipation only against an obstacle that moves. The start decides only
which of several equilibria is found. K must be positive definite at the answer: otherwise it is a
saddle from which the body buckles, and that is an error.

Derivatives: `adjoint/equilibrium.py`. Tests: `tests/test_equilibrium.py`.
"""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import SuperLU

from adjsim import checks
from adjsim.descent import MOST_HALVES, OVERSHOOT, Descent, positive_factors
from adjsim.field import Field
from adjsim.model import Model, State


TOLERANCE = 1e-12  # of what acts at the busiest node
ROUNDINGS = 16 * float(np.finfo(float).eps)  # of the size
MOST_STEPS = 300


class Cause(enum.Enum):
    """Why a model has no equilibrium."""

    LOOSE = enum.auto()  # nothing holds some nodes
    SLIDES = enum.auto()  # nothing but contact does
    FAR = enum.auto()  # the search went astray, or ended where a body buckles


class EquilibriumError(RuntimeError):
    """No equilibrium was found; the message says what was seen and what to try.

    `seen` is what was seen alone, `cause` why.
    """

    def __init__(self, seen: str, cause: Cause, way_out: str) -> None:
        super().__init__(f"{seen} {way_out}")
        self.seen, self.cause = seen, cause


@dataclass(frozen=True, eq=False, repr=False)
class Equilibrium:
    """An equilibrium, with the factors of its stiffness.

    Attributes
    ----------
    state : State
        Where the nodes rest; velocities are 0.
    residual : float
        The largest component of r [N].
    steps : int
        Steps of Newton's method.
    row : int
        Of the series of the model, at which it rests.
    """

    state: State
    residual: float
    steps: int
    field: Field
    factor: SuperLU | None  # of K at the free components, None if all nodes are pinned
    free: np.ndarray  # numbers of the components of x that are not pinned
    row: int = 0

    def __repr__(self) -> str:
        """Return how well it is at rest, in a line."""
        n = len(self.state.x)
        return f"Equilibrium({n} nodes, residual={self.residual:.1e} N, steps={self.steps})"


def equilibrium(model: Model, state: State) -> Equilibrium:
    """Find where the nodes of a model rest.

    Parameters
    ----------
    model : Model
        Of nodes; it may have no rigid bodies.
    state : State
        Where to start, and where the pinned nodes are; velocities do not count. Of a series of the
        model only the first row is used.

    Returns
    -------
    Equilibrium
        Its `.state`; `adjoint.equilibrium` has the derivatives.

    Raises
    ------
    ValueError
        If the model has rigid bodies, the state does not fit it, or surfaces go through each other.
    EquilibriumError
        If nothing holds a body, if it buckles, or if the search does not converge.
    """
    return rest_in(Field(require_nodes(model), with_weight=True), state, 0)


def require_nodes(model: Model) -> Model:
    """Return a model if it has no rigid bodies, else raise a ValueError."""
    if checks.instance("model", model, Model).n_bodies:
        raise ValueError(
            "`model` must have nodes alone for an equilibrium, got the rigid bodies "
            f"{', '.join(model.bodies)}. Model what they hold by pinned nodes, or roll out."
        )
    return model


def rest_in(field: Field, state: State, row: int) -> Equilibrium:
    """Find where the nodes rest in a field, with a row of its series; else as `equilibrium`."""
    model = field.model
    model.check_state(state)
    field.check_start(np.array(state.x, float))
    free = np.flatnonzero(np.repeat(~model.pinned, 3))
    if not len(free):
        return Equilibrium(State(state.x), 0.0, 0, field, None, free, row)
    search = _Search(field, free, np.array(state.x, float), row)
    n_steps = search.run()
    factor = positive_factors(search.stiffness())
    if factor is None:
        raise search.unstable()
    end = State(search.x)
    return Equilibrium(end, search.largest, n_steps, field, factor, free, row)


class _Search:
    """Newton's method on its way."""

    def __init__(self, field: Field, free: np.ndarray, x: np.ndarray, row: int) -> None:
        self.field, self.free, self.x, self.row = field, free, x, row
        self.descent = Descent(np.repeat(field.model.mass, 3)[free])
        self.size = float(np.ptp(x, axis=0).max()) or 1.0
        self.r, self.largest, self.K = self.residual(x), np.inf, None
        self.rounding = 0.0  # of r [N]

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Return r at the free components of x."""
        with np.errstate(all="ignore"):
            return self.field.forces(State(x), self.row).ravel()[self.free]

    def stiffness(self) -> scipy.sparse.csc_array:
        """Return K at the free components, where the search is."""
        if self.K is None:
            K = self.field.stiffness(State(self.x), self.row)
            self.K = K[self.free][:, self.free].tocsc()
            self.rounding = ROUNDINGS * float(np.abs(self.K.diagonal()).max()) * self.size
        return self.K

    def run(self) -> int:
        """Step until it rests; return how many steps that took."""
        for n in range(MOST_STEPS):
            self.largest = float(np.abs(self.r).max(initial=0.0))
            bound = max(TOLERANCE * self.field.magnitude(State(self.x), self.row), self.rounding)
            if self.largest <= bound:
                return n
            factor = self.descent.factors(self.stiffness())
            if factor is None:
                raise self.lost(n)
            self.descent.took(self.step(factor.solve(self.r)))
        raise self.lost(MOST_STEPS)

    def step(self, d: np.ndarray) -> float:
        """Go a part of d, at most all, and return which; 0 if it leads nowhere."""
        slope = float(self.r @ d)
        if not np.isfinite(slope) or slope <= 0.0:
            return 0.0
        fraction = min(1.0, 0.5 * self.size / float(np.abs(d).max(initial=1e-300)))
        for _ in range(MOST_HALVES):
            x = self.x.copy()
            x.ravel()[self.free] += fraction * d
            r = self.residual(x)
            is_down = np.isfinite(r).all() and float(r @ d) >= -OVERSHOOT * slope
            if is_down and not self.field.crossing(x, self.x):
                self.x, self.r, self.K = x, r, None
                return fraction
            fraction *= 0.5
        return 0.0

    def lost(self, n: int) -> EquilibriumError:
        """Return the error of a search that did not converge."""
        return self.error(
            f"No equilibrium was found in {n} steps: the largest force left is {self.largest:.3g} "
            "N."
        )

    def unstable(self) -> EquilibriumError:
        """Return the error of a place from which the body buckles."""
        return self.error(
            "The nodes are at rest, but not stable: the body buckles or drifts at the least push, "
            "since K is not positive definite there."
        )

    def error(self, seen: str) -> EquilibriumError:
        """Return an error with what may be wrong: what hangs on nothing, or else what to try."""
        model = self.field.model
        K = self.field.lasting_matrix_at(self.field.row(State(self.x)), -1.0, 0.0, self.row)
        near = _by_nodes(K)
        n, owner = connected_components(near)
        held, touched = np.zeros(n, bool), np.zeros(n, bool)
        held[owner[model.pinned]] = True
        for force in model.forces.values():
            if force.touches or force.changes:
                touched[owner[force.nodes.ravel()]] = True
        loose = np.flatnonzero(~held[owner])
        if not len(loose):
            way_out = (
                "Start from a state nearer to it, e.g. the end of a damped rollout, hold more "
                "nodes, or take a smaller load first."
            )
            return EquilibriumError(seen, Cause.FAR, way_out)
        which = f"node {loose[0]}" + (f" and {len(loose) - 1} others" if len(loose) > 1 else "")
        if touched[owner[loose[0]]]:
            way_out = (
                f"Nothing but contact holds {which}, and friction does not act on what is at "
                "rest: pin nodes, so that the body cannot slide."
            )
            return EquilibriumError(seen, Cause.SLIDES, way_out)
        return EquilibriumError(seen, Cause.LOOSE, f"Nothing holds {which}: pin nodes.")


def _by_nodes(K: scipy.sparse.csc_array) -> scipy.sparse.coo_array:
    """Return which nodes feel each other."""
    entries: Any = K.tocoo()
    n = entries.shape[0] // 3
    pairs = (entries.row // 3, entries.col // 3)
    return scipy.sparse.coo_array((np.ones(len(pairs[0])), pairs), shape=(n, n))
