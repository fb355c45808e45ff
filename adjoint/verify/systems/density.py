"""Masses from densities: rest positions act through B, V and the masses at once."""

import numpy as np

from adjoint.verify.systems.solids import DENSITY, Scene, beam, system
from adjsim.model import Model, State


def tets(n_steps: int) -> Scene:
    """A density per tetrahedron, viscosity, actuation, a pinned node."""
    rng = np.random.default_rng(5)
    rho = DENSITY * rng.uniform(0.5, 1.5, 10)
    body, x = beam(rng, mu=2e4, lam=5e4, viscosity=20.0, actuation=0.03, density=rho)
    model = Model(None, {"solid": body}, pinned=np.arange(len(x)) == 0)
    return Scene(model, State(x, rng.standard_normal(x.shape)), 5e-4, n_steps)


SYSTEMS = (system("density/tets", "Masses from a density per tetrahedron", tets),)
