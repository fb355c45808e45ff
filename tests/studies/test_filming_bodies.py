"""Rigid bodies on film: from the images back to what they weigh, through the rollout."""

import numpy as np
import pytest

from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from render.scene import Mesh
from studies.filming import Hulls, make_filming
from studies.motion import Motion, pull_frames, trajectory_fields
from tests.rigid.scenes import box
from tests.studies.test_filming import SETTINGS


def thrown(**nodes):
    """A box that is pushed and lands on a floor, and how it is filmed."""
    bodies = RigidBodies(box((0.5, 0.4, 0.6)), mass=0.3, points={"at": BodyPoint([0.5, 0.4, 0])})
    forces = {
        "push": ExternalForces("at", [4.0, 1.0, -2.0], (0, 8), body="block"),
        "floor": HalfSpaceContact(height=0.45, stiffness=300.0, damping=0.5, body="block"),
    }
    start = BodyState([0.4, 0.7, 0.4], [0.1, 0.2, 0.0, 1.0], [0.2, -1.0, 0.0], [0.5, 1.0, -0.5])
    model = Model(forces=forces, bodies={"block": bodies}, **nodes)
    x = [[0.0, 5.0, 0.0]] if nodes else None
    motion = Motion(model, State(x, bodies={"block": start}), 2e-3, np.array([0, 15, 30]))
    return motion, make_filming(SETTINGS, {"block": (Mesh(bodies.faces), Hulls("block"))})


@pytest.mark.parametrize("nodes", [{}, {"mass": [1.0]}], ids=["alone", "beside a node"])
def test_the_adjoint_of_a_film_is_the_transpose_of_its_tangent(rng, nodes):
    motion, filming = thrown(**nodes)
    paths = ("block.mass", "block.velocity", "block.rotation", "floor.stiffness", "push.force")
    own = {**motion.system.parameters(), **motion.system.state_parameters(motion.state)}
    tangents = {path: rng.standard_normal(own[path].shape) for path in paths}
    recorded = motion.record()
    run, tan_run = motion.jvp(tangents)
    images, tan_images = filming.jvp(motion, run, tan_run, tangents)
    assert images[..., 3].max() > 0.9
    adj = rng.standard_normal(images.shape)
    gradient = pull_frames(recorded, filming.vjp(motion, run, adj).frames, paths)
    left = np.vdot(adj, tan_images)
    right = [np.vdot(gradient[path], tangents[path]) for path in paths]
    assert abs(left - sum(right)) <= 1e-11 * np.abs(right).sum()
    assert all(right)


def test_the_fields_of_a_trajectory_have_names():
    motion, filming = thrown()
    run = motion.run()
    assert list(trajectory_fields(run)) == [
        "x", "v", "block.position", "block.rotation", "block.velocity", "block.angular_velocity",
    ]  # fmt: skip
    faces, vertices = filming.meshes(motion, run)["block"]
    assert vertices.shape == (3, 8, 3)
    assert faces.max() == 7
