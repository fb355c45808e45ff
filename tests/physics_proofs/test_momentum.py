"""Momentum and angular momentum of free bodies over a thousand steps, for every internal force.

A step keeps L = sum m x x v as exactly as the torques of its forces sum to zero: x' x v' =
(x + dt v') x v' = x x v'. That the forces do not change under rotation, translation and boost
stands in the contract of internal forces, `adjoint/verify/contract.py`.
"""

import numpy as np
import pytest

from adjsim.forces.hinges import Hinges
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rollout import rollout


N_STEPS = 1000
BOX = box_tets((2, 2, 2), (0.2, 0.1, 0.1))
CLOTH = sheet((4, 3), (0.2, 0.2))


def driven(rng, n):
    """An actuation that changes in every step."""
    return 0.1 * rng.standard_normal((N_STEPS, n))


def tets(rng):
    points, n = BOX.points, len(BOX.tets)
    return NeoHookeanTets(BOX.tets, points, 2e4, 5e4, viscosity=10.0, actuation=driven(rng, n))


def triangles(rng):
    rest, n = CLOTH.points, len(CLOTH.faces)
    actuation = driven(rng, n)
    return NeoHookeanTriangles(CLOTH.faces, rest, 60.0, 90.0, viscosity=0.05, actuation=actuation)


def springs(rng):
    return Springs(CLOTH.edges, 200.0, damping=0.1, rest_positions=CLOTH.points)


def hinges(rng):
    folds = mesh_hinges(CLOTH.faces)
    actuation = driven(rng, len(folds))
    return Hinges(folds, CLOTH.points, 0.02, damping=1e-5, actuation=actuation)


@pytest.mark.parametrize("build", [tets, triangles, springs, hinges])
def test_a_free_body_keeps_its_momentum_to_rounding(build, rng):
    force = build(rng)
    x = (BOX if build is tets else CLOTH).points
    mass = rng.uniform(0.5, 1.5, len(x)) * (2.0 / len(x) if build is tets else 0.02 / len(x))
    start = State(x + 0.003 * rng.standard_normal(x.shape), rng.standard_normal(x.shape))
    model = Model(mass, {"it": force}, gravity=(0, 0, 0))
    run = rollout(model, start, 2e-4, N_STEPS, frames=range(N_STEPS + 1))
    p = np.einsum("n,knc->kc", mass, run.v)
    L = np.einsum("n,knc->kc", mass, np.cross(run.x, run.v))
    strained = np.abs(np.diff(run.v, axis=0)).max()
    size = np.einsum("n,kn->k", mass, np.linalg.norm(run.v, axis=2)).max()
    reach = np.abs(run.x).max()
    drift = np.abs(p - p[0]).max() / size, np.abs(L - L[0]).max() / (size * reach)
    print(
        f"\n{build.__name__}: {N_STEPS} steps, momentum within {drift[0]:.1e} of its parts' sizes, "
        f"angular momentum within {drift[1]:.1e}"
    )
    assert strained > 1e-3  # the forces did act
    # A random walk of 1000 steps, each of which rounds the momentum of every node by eps.
    assert max(drift) < 1e-14
