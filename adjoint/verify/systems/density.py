"""Masses from densities: rest positions act through B, V and the masses at once."""

import numpy as np

from adjoint.examples import Example
from adjoint.verify.problem import systems
from adjoint.verify.systems import shells
from adjoint.verify.systems.solids import DENSITY, beam, rollout_problem
from adjsim.forces.linear_drag import LinearDrag
from adjsim.model import Model, State


def tets(n_steps: int) -> Example:
    """A density per tetrahedron, viscosity, actuation, drag per mass, a pinned node."""
    rng = np.random.default_rng(5)
    rho = DENSITY * rng.uniform(0.5, 1.5, 10)
    body, x = beam(rng, mu=2e4, lam=5e4, viscosity=20.0, actuation=0.03, density=rho)
    forces = {"solid": body, "drag": LinearDrag(5.0)}
    model = Model(None, forces, pinned=np.arange(len(x)) == 0)
    return Example(model, State(x, rng.standard_normal(x.shape)), 5e-4, n_steps)


def triangles(n_steps: int) -> Example:
    """One areal density, viscosity per triangle, two pinned nodes."""
    rng = np.random.default_rng(6)
    eta = 0.1 * rng.uniform(0.5, 1.5, shells.N_TRIANGLES)
    cloth = shells.sheet_of(rng, mu=60.0, lam=90.0, viscosity=eta, density=shells.DENSITY)
    pinned = np.arange(len(cloth.rest_positions)) < 2
    model = Model(None, {"cloth": cloth}, pinned=pinned)
    return Example(model, shells.moving(rng, cloth, 1.0), 5e-4, n_steps)


SYSTEMS = systems("solids", rollout_problem, {"density/tets": tets, "density/triangles": triangles})
