"""An obstacle that moves at V is one at rest seen from a frame that moves at -V.

Nodes fall on it, stick, slip and leave: positions differ by V t and velocities by V, to rounding,
if row k of a path is where the obstacle is in step k. And a wall that comes at V sends a node
back at 2 V.
"""

import numpy as np
import pytest

from adjsim.contact_margins import contact_margins
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.forces.tracks import path_velocity
from adjsim.model import Model, State
from adjsim.rollout import rollout


N_STEPS, DT, N = 400, 1e-3, 40
V = np.array([0.7, -0.4, 0.5])
TURN = np.array([0.3, -0.5, 0.2])
LAW = {"stiffness": 200.0, "damping": 1.0, "friction_stiffness": 5.0, "friction": 0.4}
SHAPES = {
    "sphere": (SphereContact, {"sphere_radius": 0.4}),
    "box": (BoxContact, {"half_extents": (0.4, 0.3, 0.5), "rotation": TURN}),
    "capsule": (CapsuleContact, {"half_length": 0.3, "capsule_radius": 0.2, "rotation": TURN}),
}


def obstacle(shape, velocity):
    """It begins about the origin and moves on at a velocity."""
    way = DT * np.arange(N_STEPS)[:, None] * velocity
    if shape == "half-space":
        up = np.array([0.2, 1.0, -0.1])
        up /= np.linalg.norm(up)
        return HalfSpaceContact(up, way @ up, velocity, radius=0.02, **LAW)
    cls, sizes = SHAPES[shape]
    spin = np.array([0.5, -1.0, 2.0])  # of its matter, as of a belt: it acts by friction
    return cls(
        center=way, velocity=path_velocity(way, DT), angular_velocity=spin, radius=0.02,
        **sizes, **LAW,
    )  # fmt: skip


@pytest.mark.parametrize("shape", ["half-space", *SHAPES])
def test_a_boost_of_obstacle_and_nodes_changes_nothing(rng, shape):
    x = rng.uniform(-0.6, 0.6, (N, 3)) + np.array([0.0, 0.6, 0.0])
    v = rng.standard_normal((N, 3)) - np.array([0.0, 1.5, 0.0])
    mass, ends = rng.uniform(0.02, 0.1, N), []
    for boost in (np.zeros(3), V):
        model = Model(mass, {"it": obstacle(shape, boost)})
        run = rollout(model, State(x, v + boost), DT, N_STEPS, frames=range(N_STEPS + 1))
        ends.append((run.x - run.times[:, None, None] * boost, run.v - boost))
    touches = contact_margins(model, run)["it"].touch > 0.0
    both = touches.any(axis=0) & ~touches.all(axis=0)
    assert both.sum() >= 5, "too few nodes touch and fly"
    off, off_v = (np.abs(pair[0] - pair[1]).max() for pair in zip(*ends, strict=True))
    print(f"\n{shape} at {V} m/s: {both.sum()} nodes touch; off by {off:.1e} m, {off_v:.1e} m/s")
    # Rounding of each step, which the stiff contacts and normals carry on.
    assert off <= 1e-11
    assert off_v <= 1e-9


def test_a_wall_that_comes_at_a_resting_node_sends_it_off_at_twice_its_speed():
    errors = []
    for dt in (1e-3, 2.5e-4, 6.25e-5):
        n = round(0.5 / dt)
        height = 1.2 * dt * np.arange(n) - 0.1
        wall = HalfSpaceContact(height=height, velocity=(0.0, 1.2, 0.0), stiffness=400.0)
        run = rollout(Model([0.25], {"wall": wall}, gravity=(0, 0, 0)), State([[0, 0, 0]]), dt, n)
        errors.append(float(run.v[0, 0, 1] / 2.4 - 1.0))
    print(f"\nrebound from a wall at 1.2 m/s: off 2 V by {errors}, dt = 1e-3, 2.5e-4, 6.25e-5")
    # A touch is up to a step late: (omega dt)^2 of the speed.
    assert (np.abs(errors) <= 1600 * np.array([1e-3, 2.5e-4, 6.25e-5]) ** 2).all()
