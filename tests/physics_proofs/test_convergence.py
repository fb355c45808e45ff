"""Order of convergence 1 in dt, against `scipy.integrate.solve_ivp` on the reference's forces.

Nothing is shared with the solver but the parameters: the forces are those of `tests/reference/`,
which are written from the equations, and the method is Dormand-Prince of order 8.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from adjsim.forces.hinges import Hinges
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.reference import (
    hinges as hinges_reference,
    neo_hookean as neo_hookean_reference,
    springs as springs_reference,
)


def solid(rng):
    """A viscous, actuated box of 40 tetrahedra, two nodes pinned."""
    mesh = box_tets((2, 2, 2), (0.2, 0.1, 0.1))
    tets = NeoHookeanTets(mesh.tets, mesh.points, 2e4, 5e4, viscosity=8.0, actuation=0.05)
    pinned = np.isin(np.arange(len(mesh.points)), (0, 1))
    model = Model(tets.lumped_mass(1000.0), {"solid": tets}, pinned=pinned)
    x = mesh.points + 0.003 * rng.standard_normal(mesh.points.shape)
    state = State(x, np.where(pinned[:, None], 0.0, 0.3 * rng.standard_normal(x.shape)))

    def force(x, v):
        return neo_hookean_reference.forces(
            x, v, mesh.points, mesh.tets, 2e4, 5e4, viscosity=8.0, actuation=0.05
        )

    return model, state, force, 0.02, 200


def cloth(rng):
    """A sheet of damped springs and actuated hinges, hung by two corners."""
    mesh = sheet((3, 3), (0.3, 0.3))
    hinges = mesh_hinges(mesh.faces)
    edges = np.unique(np.sort(mesh.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)), axis=0)
    forces = {
        "net": Springs(edges, 100.0, damping=0.05, rest_positions=mesh.points),
        "bend": Hinges(hinges, mesh.points, 0.02, damping=2e-4, actuation=0.2),
    }
    n = len(mesh.points)
    pinned = np.isin(np.arange(n), (0, 3))
    model = Model(np.full(n, 0.01), forces, pinned=pinned)
    x = mesh.points + 0.01 * rng.standard_normal(mesh.points.shape)
    state = State(x, np.where(pinned[:, None], 0.0, 0.3 * rng.standard_normal(x.shape)))
    rest_length = springs_reference.lengths(mesh.points, edges)

    def force(x, v):
        net = springs_reference.forces(x, v, edges, 100.0, rest_length, 0.05)
        return net + hinges_reference.forces(
            x, v, mesh.points, hinges, 0.02, 0.0, damping=2e-4, actuation=0.2
        )

    return model, state, force, 0.1, 200


def solved(model, state, force, time):
    """Positions and velocities at one time by Dormand-Prince of order 8."""
    shape, free = state.x.shape, ~model.pinned[:, None]

    def rate(t, y):
        x, v = (half.reshape(shape) for half in np.split(y, 2))
        a = free * (force(x, v) / model.mass[:, None] + model.gravity)
        return np.concatenate([v.ravel(), a.ravel()])

    start = np.concatenate([state.x.ravel(), state.v.ravel()])
    end = solve_ivp(rate, (0.0, time), start, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    return np.stack([half.reshape(shape) for half in np.split(end, 2)])


@pytest.mark.parametrize("build", [solid, cloth])
def test_the_scheme_is_of_first_order_against_a_solver_of_order_8(rng, build):
    model, state, force, time, coarsest = build(rng)
    exact = solved(model, state, force, time)
    size = np.linalg.norm(exact - [state.x, state.v], axis=(1, 2))  # how far it moved
    ends = []
    for n_steps in coarsest * 2 ** np.arange(6):
        run = rollout(model, state, time / n_steps, int(n_steps))
        ends.append(np.stack([run.x[0], run.v[0]]))
    errors = np.linalg.norm(np.array(ends) - exact, axis=(2, 3)) / size
    orders = np.log2(errors[:-1] / errors[1:])
    extrapolated = np.linalg.norm(2 * ends[-1] - ends[-2] - exact, axis=(1, 2)) / size
    print(
        f"\n{build.__name__}, {coarsest} to {n_steps} steps: relative error of x and v "
        f"{errors[-1]}, orders {orders[-1]}; extrapolated {extrapolated}"
    )
    assert np.abs(orders[-1] - 1.0).max() < 0.02
    assert (errors[-1] < 1e-3).all()
    assert (extrapolated < 0.02 * errors[-1]).all()  # what is left is of order 2
