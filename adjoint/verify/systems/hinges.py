"""Hinges: a crumpled sheet with every parameter of its own, and one that is driven to roll up.

The kink of a hinge is a full fold, phi = pi, where its angle jumps to -pi: the margin is sin phi
of the hinges beyond a right angle, which changes its sign there.
"""

import numpy as np

from adjoint.examples import Example
from adjoint.verify.problem import systems
from adjoint.verify.systems.solids import rollout_problem
from adjsim.courses import Signal
from adjsim.forces.hinges import Hinges, dihedral_angle
from adjsim.forces.springs import Springs
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rollout import rollout


CLOTH = sheet((3, 3), (0.3, 0.3))
HINGES = mesh_hinges(CLOTH.faces)  # 21
EDGES = np.unique(np.sort(CLOTH.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)), axis=0)
MASS = 0.01  # kg, of a node


def crumpled(n_steps: int) -> Example:
    """Hinges with damping and rest angle of their own, bent by up to 2.4 rad either way."""
    rng = np.random.default_rng(21)
    n_hinges = len(HINGES)
    bend = Hinges(
        HINGES,
        CLOTH.points + 0.02 * rng.standard_normal(CLOTH.points.shape),
        stiffness=0.02 * rng.uniform(0.8, 1.2, n_hinges),
        damping=1e-3 * rng.uniform(0.5, 1.5, n_hinges),
        actuation=0.3 * rng.standard_normal((n_steps, n_hinges)),
    )
    x = CLOTH.points + 0.05 * rng.standard_normal(CLOTH.points.shape)
    n = len(x)
    model = Model(rng.uniform(0.8, 1.2, n) * MASS, {"bend": bend}, pinned=np.arange(n) == 5)
    return Example(model, State(x, 0.5 * rng.standard_normal(x.shape)), 5e-4, n_steps)


def rolling(n_steps: int) -> Example:
    """A sheet on taut springs, flat to begin with, rolled up by a signal; no damping of hinges."""
    rng = np.random.default_rng(22)
    bend = Hinges(
        HINGES, CLOTH.points, 0.05, rest_angle=0.1, actuation=Signal([0.0, 20.0], [0.0, -0.8])
    )
    springs = Springs(EDGES, 100.0, damping=0.1, rest_positions=0.98 * CLOTH.points)
    model = Model(np.full(len(CLOTH.points), MASS), {"bend": bend, "cloth": springs})
    v = 0.1 * rng.standard_normal(CLOTH.points.shape)
    return Example(model, State(CLOTH.points, v), 2e-3, n_steps)


def folds(scene: Example) -> np.ndarray:
    """Return sin phi of all hinges beyond a right angle and all steps; NaN of the others."""
    run = rollout(scene.model, scene.state, scene.dt, scene.n_steps, frames=range(scene.n_steps))
    angles = np.stack([dihedral_angle(x, HINGES) for x in run.x])
    return np.where(np.cos(angles) < 0.0, np.sin(angles), np.nan).ravel()


SYSTEMS = systems(
    "shells",
    rollout_problem,
    {"hinges/crumpled": crumpled, "hinges/rolling": rolling},
    margins=folds,
)
