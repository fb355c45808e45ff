"""Small bodies that the tests of the physics share, and the same run by the references."""

import numpy as np

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from tests.reference import (
    half_space as half_space_reference,
    neo_hookean as neo_hookean_reference,
    rollout as rollout_reference,
)


DENSITY = 1000.0
FLOOR = (
    "normal",
    "height",
    "velocity",
    "radius",
    "stiffness",
    "damping",
    "friction_stiffness",
    "friction",
)


def values_of(model, state):
    """Every differentiable parameter by its path."""
    return {**model.parameters(), **model.state_parameters(state)}


def rebuilt(model, state, values):
    """Model and state with other values of some parameters."""
    return model.with_values(state, values)


def sliding_box(rng, n_steps, *, viscosity=8.0, height=0.012, pinned=(11,)):
    """A soft box on a tilted floor: some nodes stick, some slip, some are in the air.

    40 tetrahedra, three tiles of which the last is half full; moduli per tetrahedron, and
    an actuation for every step.
    """
    mesh = box_tets((2, 2, 2), (0.2, 0.1, 0.1))
    n_tets, n = len(mesh.tets), len(mesh.points)
    tets = NeoHookeanTets(
        mesh.tets,
        mesh.points,
        mu=2e4 * rng.uniform(0.8, 1.2, n_tets),
        lam=5e4 * rng.uniform(0.8, 1.2, n_tets),
        viscosity=viscosity,
        actuation=0.05 * rng.standard_normal((n_steps, n_tets)),
    )
    floor = HalfSpaceContact(
        normal=(0.2, 2.0, -0.1),
        height=height,
        radius=0.002,
        stiffness=400.0,
        damping=1.5,
        friction_stiffness=3.0,
        friction=0.4,
    )
    x = mesh.points + 0.003 * rng.standard_normal((n, 3))
    v = 0.4 * rng.standard_normal((n, 3)) + np.array([0.5, -0.3, 0.1])
    model = Model(
        tets.lumped_mass(DENSITY),
        {"solid": tets, "floor": floor},
        pinned=np.isin(np.arange(n), pinned),
    )
    return model, State(x, v)


def referenced(model, state, dt, n_steps, values=None, frames=None):
    """Positions and velocities of the same run by the references; values may be complex."""
    parameters = {**values_of(model, state), **(values or {})}
    forces = []
    if "solid" in model.forces:
        solid = model.forces["solid"]
        series = parameters["solid.actuation"]

        def elastic(k, x, v):
            return neo_hookean_reference.forces(
                x,
                v,
                parameters["solid.rest_positions"],
                solid.tets,
                parameters["solid.mu"],
                parameters["solid.lam"],
                parameters.get("solid.viscosity", 0.0),
                series[k] if np.ndim(series) == 2 else series,
            )

        forces.append(elastic)
    if "floor" in model.forces:
        floor = {key: parameters[f"floor.{key}"] for key in FLOOR}

        def contact(k, x, v):
            nodes = model.forces["floor"].contact_nodes
            return half_space_reference.forces(x, v, nodes=nodes, **floor)

        forces.append(contact)
    if "solid.density" in parameters:
        rest, rho = parameters["solid.rest_positions"], parameters["solid.density"]
        rho = np.broadcast_to(rho, len(model.forces["solid"].tets))
        parameters["mass"] = neo_hookean_reference.density_mass(
            rest, model.forces["solid"].tets, rho
        )
    return rollout_reference.rollout(
        parameters["state.x"],
        parameters["state.v"],
        parameters["mass"],
        forces,
        dt,
        n_steps,
        gravity=parameters["gravity"],
        pinned=model.pinned,
        frames=[n_steps] if frames is None else frames,
    )
