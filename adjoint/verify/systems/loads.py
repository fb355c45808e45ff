"""A chain of springs with given forces, a series, a constant or a signal, and with drag."""

import numpy as np

from adjoint.examples import Example
from adjoint.verify.problem import systems
from adjoint.verify.systems.solids import rollout_problem
from adjoint.verify.systems.springs import chain
from adjsim.courses import Signal
from adjsim.forces.element import Force
from adjsim.forces.external import ExternalForces
from adjsim.forces.linear_drag import LinearDrag
from adjsim.model import Model


def _loaded(n_steps: int, force: Force, name: str = "push") -> Example:
    """Return the hanging chain with forces on some of its nodes."""
    hung = chain(n_steps)
    model = Model(hung.model.mass, {**hung.model.forces, name: force}, pinned=hung.model.pinned)
    return Example(model, hung.state, hung.dt, n_steps)


def series(n_steps: int) -> Example:
    """Return a chain with forces of their own on three nodes, one of which is named twice."""
    rng = np.random.default_rng(41)
    force = 0.5 * rng.standard_normal((n_steps, 4, 3))
    return _loaded(n_steps, ExternalForces([1, 3, 5, 3], force))


def held(n_steps: int) -> Example:
    """Return a chain with one constant force on two nodes, in the middle of the time."""
    force = 0.5 * np.random.default_rng(43).standard_normal(3)
    return _loaded(n_steps, ExternalForces([2, 4], force, middle(n_steps)))


def middle(n_steps: int) -> tuple[int, int]:
    """Return the first step of a window in the middle, and the first after it."""
    return n_steps // 5, n_steps - n_steps // 5


def window(n_steps: int) -> Example:
    """Return a chain with one force on three nodes, a signal, in the middle of the time."""
    rng = np.random.default_rng(42)
    force = Signal([-1.0, 7.5, 21.0], 0.5 * rng.standard_normal((3, 3)))
    return _loaded(n_steps, ExternalForces([1, 2, 4], force, middle(n_steps)))


def drag(n_steps: int) -> Example:
    """Return a chain with drag on four nodes, one of which is named twice."""
    return _loaded(n_steps, LinearDrag([3.0, 1.0, 2.0, 4.0, 1.5], [1, 3, 5, 3, 4]), "drag")


SYSTEMS = systems(
    "solids",
    rollout_problem,
    {f"loads/{build.__name__}": build for build in (series, held, window, drag)},
)
