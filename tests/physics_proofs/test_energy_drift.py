"""Energy over 1e5 steps without damping: it swings with dt about a mean that does not drift.

Semi-implicit Euler is symplectic, so it keeps, up to terms of higher order and for times that
grow exponentially with 1/dt, the energy of a nearby system (Hairer, Lubich & Wanner, Geometric
Numerical Integration, IX.3 and IX.8). It is leapfrog with velocities half a step late, v_k for
v(t_k - dt/2), so

    H = T(v_k) + U(x_k) swings with dt,   T(v_k + dt/2 w f(x_k)) + U(x_k) with dt^2

and neither drifts. An explicit Euler step would gain energy exponentially.
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
from tests.reference import (
    hinges as hinges_reference,
    neo_hookean as tets_reference,
    neo_hookean_triangles as triangles_reference,
    springs as springs_reference,
)


N_STEPS, N_FRAMES = 100_000, 800


def net(rng):
    """A net of springs."""
    x = rng.uniform(0.0, 0.3, (9, 3))
    edges = np.array([(i, j) for i in range(9) for j in range(i) if (i + j) % 2])
    springs = Springs(edges, 300.0, rest_positions=x)
    l0 = springs_reference.lengths(x, edges)
    return (
        Model(np.full(9, 0.03), {"net": springs}, gravity=(0, 0, 0)),
        x,
        lambda x: springs_reference.energy(x, edges, 300.0, l0),
        lambda x: springs_reference.forces(x, 0 * x, edges, 300.0, l0),
    )


def box(rng):
    """A box of tetrahedra."""
    mesh = box_tets((2, 1, 1), (0.2, 0.1, 0.1))
    tets = NeoHookeanTets(mesh.tets, mesh.points, 2e4, 5e4)
    solid = (mesh.points, mesh.tets, 2e4, 5e4)
    return (
        Model(tets.lumped_mass(1000.0), {"box": tets}, gravity=(0, 0, 0)),
        mesh.points,
        lambda x: tets_reference.energy(x, *solid),
        lambda x: tets_reference.forces(x, 0 * x, *solid),
    )


def cloth(rng):
    """A sheet of triangles with hinges."""
    mesh = sheet((3, 2), (0.3, 0.2))
    hinges = mesh_hinges(mesh.faces)
    triangles = NeoHookeanTriangles(mesh.faces, mesh.points, 60.0, 90.0)
    forces = {"cloth": triangles, "bend": Hinges(hinges, mesh.points, 0.5)}
    membrane, bend = (mesh.points, mesh.faces, 60.0, 90.0), (mesh.points, hinges, 0.5, 0.0)
    return (
        Model(triangles.lumped_mass(0.3), forces, gravity=(0, 0, 0)),
        mesh.points,
        lambda x: triangles_reference.energy(x, *membrane) + hinges_reference.energy(x, *bend),
        lambda x: (
            triangles_reference.forces(x, 0 * x, *membrane)
            + hinges_reference.forces(x, 0 * x, *bend)
        ),
    )


def energies(build, fraction):
    """H and its correction at the frames, over their mean, at a fraction of the stable dt."""
    rng = np.random.default_rng(9)
    model, rest, potential, force = build(rng)
    x = rest + 0.01 * rng.standard_normal(rest.shape)
    v = 0.3 * rng.standard_normal(rest.shape)
    v -= model.mass @ v / model.mass.sum()
    dt = fraction * model.stable_dt()
    frames = np.linspace(0, N_STEPS, N_FRAMES + 1).astype(int)
    run = rollout(model, State(x, v), dt, N_STEPS, frames=frames)
    out = np.empty((2, len(frames)))
    for k, (x, v) in enumerate(zip(run.x, run.v, strict=True)):
        middle = v + dt / 2 * force(x) / model.mass[:, None]
        kinetic = [0.5 * (model.mass @ (u * u).sum(axis=1)) for u in (v, middle)]
        out[:, k] = kinetic + np.array(potential(x))
    return out / out.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("build", [net, box, cloth])
def test_energy_swings_about_a_mean_that_stays(build):
    swings, drifts = [], []
    for fraction in (0.1, 0.05):
        E = energies(build, fraction)
        tenths = E.reshape(2, -1)[:, 1:].reshape(2, 10, -1).mean(axis=2)
        swings.append(E.std(axis=1))
        drifts.append(np.abs(tenths - tenths.mean(axis=1, keepdims=True)).max(axis=1))
        assert np.abs(E - 1.0).max() < 8 * E.std(axis=1).max()
    ratio = swings[0] / swings[1]
    print(
        f"\n{build.__name__}, {N_STEPS} steps: H swings by {swings[1][0]:.1e}, corrected by "
        f"{swings[1][1]:.1e} (halving dt divides them by {ratio[0]:.2f}, {ratio[1]:.2f}); means "
        f"over tenths of the time stay within {drifts[1][0]:.1e} and {drifts[1][1]:.1e}"
    )
    assert 1.8 < ratio[0] < 2.3
    assert 3.5 < ratio[1] < 4.7
    # What drifts would drift the same way in every tenth; what swings is averaged out.
    assert (drifts[1] < 0.4 * swings[1]).all()
    assert drifts[1][1] < 3e-5
