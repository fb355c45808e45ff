"""Bodies that the tests share: a box, a lump and a heavy one, on a tilted, rough floor."""

import numpy as np

from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from tests.reference import half_space, rigid


CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
BOX_FACES = np.array([t for a, b, c, d in QUADS for t in ((a, b, c), (a, c, d))])
FLOOR = {
    "normal": np.array([0.2, 2.0, -0.1]),
    "height": np.array(0.01),
    "radius": np.array(0.002),
    "stiffness": np.array(900.0),
    "damping": np.array(2.0),
    "friction_stiffness": np.array(4.0),
    "friction": np.array(0.4),
}
GRAVITY = np.array([0.1, -9.8, 0.2])


def box(size=(0.2, 0.3, 0.4), origin=(0.0, 0.0, 0.0)):
    """A box with a corner at the origin given."""
    return TriangleMesh(CORNERS * np.array(size) + np.array(origin), BOX_FACES)


def lump(rng, size=0.2):
    """A box whose corners were pushed about: no symmetry."""
    points = CORNERS + 0.25 * rng.uniform(-1.0, 1.0, CORNERS.shape)
    return TriangleMesh(size * points, BOX_FACES)


def spread(rng, n):
    """Rotations of n bodies: quaternions of any length."""
    return rng.standard_normal((n, 4))


def tumbling(rng, *, soft=False):
    """Three bodies in two sets that land on the floor, and if asked a soft box beside them."""
    light = {"density": np.array([80.0, 120.0]), "drag_rate": np.array([0.5, 1.5])}
    blocks = RigidBodies([box(), lump(rng)], **light)
    inertia = np.array([2e-3, 3e-3, 2.5e-3, 2e-4, -3e-4, 1e-4])
    stone = RigidBodies(
        lump(rng, 0.15), mass=0.4, inertia=inertia, points={"tip": BodyPoint([0.1, 0.2, 0.3])}
    )
    forces = {
        "floor": HalfSpaceContact(**FLOOR, acts_on="blocks"),
        "ground": HalfSpaceContact(**FLOOR, acts_on="stone", contact_nodes=[0, 1, 2, 4, 5, 7]),
        "push": ExternalForces("tip", (0.3, -0.2, 0.1), acts_on="stone"),
    }
    states = {
        "blocks": BodyState(
            [[0.0, 0.2, 0.0], [1.0, 0.12, 0.0]],
            spread(rng, 2),
            0.4 * rng.standard_normal((2, 3)) + [0.5, -1.0, 0.1],
            3.0 * rng.standard_normal((2, 3)),
            0.3 * rng.standard_normal((2, 3)),
        ),
        "stone": BodyState([-1.0, 0.1, 0.0], spread(rng, 1)[0], [0.3, -1.0, 0.0], [1.0, 2.0, -4.0]),
    }
    sets = {"blocks": blocks, "stone": stone}
    if not soft:
        return Model((), forces, GRAVITY, bodies=sets), State(bodies=states)
    mesh = box_tets((2, 2, 2), (0.2, 0.1, 0.1))
    tets = NeoHookeanTets(mesh.tets, mesh.points, mu=2e4, lam=5e4, viscosity=5.0)
    forces = {
        "solid": tets,
        "floor": forces["floor"],
        "under": HalfSpaceContact(**FLOOR),
        "ground": forces["ground"],
        "push": forces["push"],
    }
    x = mesh.points + np.array([0.0, 0.01, 1.0])
    nodes = State(x, np.broadcast_to([0.4, -0.6, 0.0], x.shape), states)
    return Model(tets.lumped_mass(1000.0), forces, GRAVITY, bodies=sets), nodes


def values_of(model, state):
    """Every differentiable parameter by its path."""
    return {**model.parameters(), **model.state_parameters(state)}


def referenced(model, state, dt, n_steps, frames, values=None):
    """Packed states (n_frames, n_bodies, 13) of `tumbling` by the reference; may be complex."""
    by_path = {**values_of(model, state), **(values or {})}
    states, arms, weights, owners = [], [], [], []
    for name, bodies in model.bodies.items():
        start = state.bodies[name]
        for b in range(bodies.n_bodies):
            turn = rigid.exponential(by_path[f"{name}.rotation"][b] / 2)
            states.append(
                (
                    by_path[f"{name}.position"][b],
                    rigid.product(turn, start.orientation[b]),
                    by_path[f"{name}.velocity"][b],
                    by_path[f"{name}.angular_velocity"][b],
                )
            )
            x = np.split(by_path[f"{name}.vertices"], bodies.n_bodies)[b]
            volume, center, unit = rigid.mass_properties(x, bodies.meshes[b].faces)
            named = by_path.get(f"{name}.point_positions", np.zeros((0, 3)))
            arms.append(np.concatenate([x, named]) - center)
            owners.append(name)
            if f"{name}.density" in by_path:
                rho = np.broadcast_to(by_path[f"{name}.density"], bodies.n_bodies)[b]
                weights.append((rho * volume, rho * unit, by_path[f"{name}.drag_rate"][b]))
            else:
                weights.append((by_path[f"{name}.mass"], by_path[f"{name}.inertia"], 0.0))

    def contact(k, b, x, v):
        name = {"blocks": "floor", "stone": "ground"}[owners[b]]
        nodes = None if name == "floor" else [0, 1, 2, 4, 5, 7]
        law = {key: by_path[f"{name}.{key}"] for key in model.forces[name].parameters()}
        forces = half_space.forces(x, v, nodes=nodes, **law)
        tip = np.arange(len(x)) == 8  # of the stone: its named point
        return forces + tip[:, None] * by_path["push.force"]

    frames = rigid.rollout(
        states, arms, weights, contact, by_path["gravity"], dt, n_steps, list(frames)
    )
    return np.array([[np.concatenate(body[:4]) for body in frame] for frame in frames])
