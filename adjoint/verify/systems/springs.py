"""Springs: a net with every parameter of its own, and a hanging chain of equal springs."""

import numpy as np

from adjoint.examples import Example
from adjoint.verify.problem import systems
from adjoint.verify.systems.solids import rollout_problem
from adjsim.forces.springs import Springs
from adjsim.model import Model, State


def net(n_steps: int) -> Example:
    """A random net, one node pinned: damping and rest length per spring, everything moving."""
    rng = np.random.default_rng(11)
    n = 9
    edges = [(i, j) for i in range(n) for j in range(i) if (i + j) % 2]
    x = rng.uniform(0.0, 0.3, (n, 3))
    springs = Springs(
        edges,
        stiffness=300.0 * rng.uniform(0.8, 1.2, len(edges)),
        damping=2.0 * rng.uniform(0.5, 1.5, len(edges)),
        rest_positions=x,
    )
    model = Model(rng.uniform(0.02, 0.05, n), {"net": springs}, pinned=np.arange(n) == 3)
    moved = x + 0.02 * rng.standard_normal(x.shape)
    return Example(model, State(moved, rng.standard_normal(x.shape)), 1e-3, n_steps)


def chain(n_steps: int) -> Example:
    """Equal springs in a row, taut, hung by one end: one number for all of them."""
    rng = np.random.default_rng(12)
    n = 6
    x = np.outer(np.arange(n), (0.08, -0.06, 0.0))
    links = np.stack([np.arange(n - 1), np.arange(1, n)], axis=-1)
    springs = Springs(links, stiffness=200.0, rest_length=0.09, damping=0.5)
    model = Model(np.full(n, 0.03), {"chain": springs}, pinned=np.arange(n) == 0)
    return Example(model, State(x, 0.3 * rng.standard_normal(x.shape)), 1e-3, n_steps)


SYSTEMS = systems("solids", rollout_problem, {"springs/net": net, "springs/chain": chain})
