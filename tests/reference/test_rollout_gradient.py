"""A whole rollout and its gradient against the reference, differentiated by complex steps.

The second opinion on the adjoint that shares no line with it, and no step size either:
elastic, viscous and actuated tetrahedra that land on a tilted, rough plane, a node pinned.
"""

import numpy as np
import pytest

from adjoint import record
from adjsim import Model, State
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from tests.reference import half_space, neo_hookean
from tests.reference.rollout import rollout


DT, N_STEPS, FRAMES = 1e-3, 40, [10, 40]
STEP = 1e-30
MESH = box_tets((2, 1, 1), size=(0.4, 0.2, 0.2), origin=(0.0, 0.02, 0.0))
PINNED = np.arange(MESH.n_points) == 3


def parameters():
    """Every parameter of the rollout by its path, from a seed."""
    rng = np.random.default_rng(11)
    n, nt = MESH.n_points, MESH.n_tets
    return {
        "gravity": np.array([0.1, -9.8, 0.2]),
        "state.x": MESH.points,
        "state.v": 0.3 * rng.normal(size=(n, 3)) - np.array([0.0, 1.0, 0.0]),
        "block.mu": rng.uniform(2e3, 3e3, nt),
        "block.lam": rng.uniform(6e3, 9e3, nt),
        "block.viscosity": np.array(3.0),
        "block.actuation": rng.uniform(0.0, 0.1, (N_STEPS, nt)),
        "block.rest_positions": MESH.points + 0.005 * rng.normal(size=(n, 3)),
        "block.density": rng.uniform(150.0, 300.0, nt),
        "floor.normal": np.array([0.1, 2.0, 0.05]),
        "floor.height": np.array(0.015),
        "floor.radius": np.array(0.02),
        "floor.stiffness": np.array(3e3),
        "floor.damping": np.array(4.0),
        "floor.friction_stiffness": np.array(12.0),
        "floor.friction": np.array(0.1),
    }


def part(values, name):
    """The parameters of one force, without its name."""
    return {
        path.removeprefix(f"{name}."): value
        for path, value in values.items()
        if path.startswith(f"{name}.")
    }


def reference_positions(p):
    block, floor = part(p, "block"), part(p, "floor")
    actuation, rest = block.pop("actuation"), block.pop("rest_positions")
    mass = neo_hookean.density_mass(rest, MESH.tets, block.pop("density"))
    forces = [
        lambda k, x, v: neo_hookean.forces(x, v, rest, MESH.tets, **block, actuation=actuation[k]),
        lambda k, x, v: half_space.forces(x, v, **floor),
    ]
    x, _ = rollout(
        p["state.x"],
        p["state.v"],
        mass,
        forces,
        DT,
        N_STEPS,
        gravity=p["gravity"],
        pinned=PINNED,
        frames=FRAMES,
    )
    return x


@pytest.fixture(scope="module")
def run():
    p = parameters()
    forces = {
        "block": NeoHookeanTets(MESH.tets, **part(p, "block")),
        "floor": HalfSpaceContact(**part(p, "floor")),
    }
    model = Model(None, forces, gravity=p["gravity"], pinned=PINNED)
    return record(model, State(p["state.x"], p["state.v"]), DT, N_STEPS, frames=FRAMES)


@pytest.fixture(scope="module")
def adj_x():
    return np.random.default_rng(12).normal(size=(len(FRAMES), MESH.n_points, 3))


@pytest.fixture(scope="module")
def gradient(run, adj_x):
    return run.vjp(adj_x)


def test_positions_agree_with_the_reference_to_rounding(run):
    # 40 steps of about 500 operations each on positions below 1 m, with errors of either
    # sign; forces of 100 N enter with dt^2/m = 2e-6.
    np.testing.assert_allclose(run.trajectory.x, reference_positions(parameters()), atol=1e-14)


def test_some_nodes_are_apart_some_stick_and_some_slip(run):
    floor = part(parameters(), "floor")
    n = floor["normal"] / np.linalg.norm(floor["normal"])
    x, v = run.trajectory.x[0], run.trajectory.v[0]
    touches = x @ n < floor["height"] + floor["radius"]
    assert 0 < touches.sum() < len(x)
    force = half_space.forces(x, v, **floor)[touches]
    pressure = force @ n
    friction = np.linalg.norm(force - pressure[:, None] * n, axis=1)
    slips = friction > (1 - 1e-9) * floor["friction"] * pressure
    assert 0 < slips.sum() < len(slips)


@pytest.mark.parametrize("path", list(parameters()))
def test_the_gradient_agrees_with_the_complex_step(path, gradient, adj_x):
    p = parameters()
    direction = np.random.default_rng(13).normal(size=p[path].shape)
    moved = reference_positions({**p, path: p[path] + 1j * STEP * direction})
    exact = np.vdot(adj_x, moved.imag / STEP)
    terms = gradient[path] * direction
    # Rounding of either side, relative to the terms of the product that is compared.
    assert np.abs(terms).sum() > 0
    assert abs(terms.sum() - exact) <= 1e-12 * np.abs(terms).sum()
