"""A turned world: bodies in contact with every shape move as before, turned.

With Q a rotation about the origin, everything in world axes is turned by it: gravity, poses,
velocities, obstacles, forces. Angular velocities are in body axes and stay as they are.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.rollout import record
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from tests.rigid.scenes import box, lump


DT, N_STEPS = 1e-3, 100
LAW = {
    "stiffness": 500.0,
    "damping": 3.0,
    "friction_stiffness": 4.0,
    "friction": 0.4,
    "acts_on": "pair",
}
TURN = Rotation.from_rotvec([0.7, -1.1, 0.4])
NOT = Rotation.identity()


def turned(Q, theta):
    """The rotation vector of Q exp(theta)."""
    return (Q * Rotation.from_rotvec(theta)).as_rotvec()


OBSTACLES = {
    "plane": lambda Q: HalfSpaceContact(Q.apply([0, 1, 0.1]), 0.02, Q.apply([0.3, 0, 0]), **LAW),
    "sphere": lambda Q: SphereContact(
        Q.apply([0.1, -0.4, 0.2]), 0.5, angular_velocity=Q.apply([0, 0, 1]), **LAW
    ),
    "box": lambda Q: BoxContact(
        Q.apply([0.1, -0.1, 0.2]), turned(Q, [0.1, 0.2, 0]), [0.9, 0.1, 0.8], **LAW
    ),
    "capsule": lambda Q: CapsuleContact(
        Q.apply([0.1, -0.1, 0.1]), turned(Q, [0, 0, 1.4]), 0.6, 0.15, **LAW
    ),
}


def scene(Q, obstacle):
    """Two bodies that fall on an obstacle, pushed at a vertex."""
    rng = np.random.default_rng(9)
    bodies = RigidBodies([box(), lump(rng)], density=[80.0, 120.0])
    r = Rotation.from_quat(rng.standard_normal((2, 4)))
    x = np.array([[0.0, 0.2, 0.1], [0.3, 0.2, 0.2]])
    v = rng.standard_normal((2, 3)) + np.array([0.2, -1.0, 0.0])
    start = BodyState(Q.apply(x), (Q * r).as_quat(), Q.apply(v), 3.0 * rng.standard_normal((2, 3)))
    push = ExternalForces([1, 9], Q.apply([0.5, 1.0, -0.7]), (10, 60), acts_on="pair")
    forces = {"it": obstacle(Q), "push": push}
    model = Model(forces=forces, gravity=Q.apply([0.2, -9.8, 0]), bodies={"pair": bodies})
    return model, State(bodies={"pair": start})


@pytest.mark.parametrize("obstacle", OBSTACLES.values(), ids=OBSTACLES)
def test_a_turned_world_moves_alike_and_its_gradient_turns_with_it(obstacle):
    a_x, a_w = np.random.default_rng(10).standard_normal((2, 1, 2, 3))
    ends, gradients = [], []
    for Q in (NOT, TURN):
        run = record(*scene(Q, obstacle), DT, N_STEPS)
        ends.append(run.trajectory.bodies["pair"])
        adj = {"position": Q.apply(a_x[0])[None], "angular_velocity": a_w}
        gradients.append(run.vjp(bodies={"pair": adj}))
    free, _ = scene(NOT, obstacle)
    free = Model(gravity=free.gravity, bodies=free.bodies)
    alone = record(free, scene(NOT, obstacle)[1], DT, N_STEPS).trajectory.bodies["pair"]
    touched = np.abs(alone.position - ends[0].position).max()
    (before, after), (g, h) = ends, gradients
    off = {
        "position": after.position[0] - TURN.apply(before.position[0]),
        "velocity": after.velocity[0] - TURN.apply(before.velocity[0]),
        "spin": after.angular_velocity - before.angular_velocity,
        "rotation": (Rotation.from_quat(after.orientation[0]).inv() * TURN
                     * Rotation.from_quat(before.orientation[0])).as_rotvec(),
    }  # fmt: skip
    slopes = {
        path: (h[path] - TURN.apply(g[path])) / np.abs(g[path]).max()
        for path in ("gravity", "pair.velocity", "pair.position", "pair.rotation", "push.force")
    }
    same = ("pair.density", "it.stiffness", "it.friction", "pair.angular_velocity")
    slopes |= {path: (h[path] - g[path]) / np.abs(g[path]).max() for path in same}
    worst = {name: float(np.abs(error).max()) for name, error in {**off, **slopes}.items()}
    print(f"\nmoved {touched:.2f} m aside; off by {worst}")
    assert touched > 0.02
    # 100 steps of stiff contact at eps = 1e-16; gradients grow with it.
    assert max(worst[name] for name in off) <= 1e-11
    assert max(worst[name] for name in slopes) <= 1e-9
