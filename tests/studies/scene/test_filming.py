"""Where the vertices of nodes, rigid bodies and things at rest are, with tangent and adjoint."""

from types import SimpleNamespace

import numpy as np
import pytest

from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from studies.scene.filming import Hulls, Skin, Still
from studies.scene.mesh_source import Source, skin_of
from studies.scene.motion import Motion, pull_frames, trajectory_fields
from tests.rigid.scenes import box


MESH = box_tets((1, 1, 1))
SURFACE = MESH.surface()
MOTION = SimpleNamespace(frames=np.arange(2), dtype="float64", system=None)


def run(rng):
    return SimpleNamespace(x=MESH.points + 0.05 * rng.normal(size=(2, MESH.n_points, 3)))


def test_a_skin_follows_its_nodes(rng):
    skin, here = Skin(skin_of(Source(MESH), MESH)[0], offset=(-0.2, 0.1, 0.0)), run(rng)
    vertices = skin.vertices(MOTION, here)
    np.testing.assert_array_equal(vertices, here.x[:, SURFACE.nodes] + [-0.2, 0.1, 0.0])
    tan = SimpleNamespace(x=rng.normal(size=here.x.shape))
    tan_vertices = skin.vertices_jvp(MOTION, here, tan, {})
    adj = rng.normal(size=vertices.shape)
    pulled = skin.vertices_vjp(MOTION, here, adj)
    assert np.vdot(adj, tan_vertices) == pytest.approx(
        np.vdot(pulled.frames["x"], tan.x), rel=1e-12
    )


def test_what_is_at_rest_is_at_every_frame_and_moves_with_nothing(rng):
    wall, here = (
        Still(np.array([[-1.0, -1.0, -0.5], [2.0, -1.0, -0.5], [0.0, 2.0, -0.5]])),
        run(rng),
    )
    vertices = wall.vertices(MOTION, here)
    assert vertices.shape == (2, 3, 3)
    assert not wall.vertices_jvp(MOTION, here, here, {}).any()
    assert wall.vertices_vjp(MOTION, here, vertices).frames == {}


def test_float32_positions_stay_float32(rng):
    here = SimpleNamespace(x=run(rng).x.astype(np.float32))
    skin = Skin(skin_of(Source(MESH), MESH)[0], offset=0.1)
    assert skin.vertices(MOTION, here).dtype == np.float32
    single = SimpleNamespace(frames=np.arange(2), dtype="float32", system=None)
    assert Still(np.zeros((3, 3))).vertices(single, here).dtype == np.float32


def thrown(**nodes):
    """A box that is pushed and lands on a floor."""
    bodies = RigidBodies(box((0.5, 0.4, 0.6)), mass=0.3, points={"at": BodyPoint([0.5, 0.4, 0])})
    forces = {
        "push": ExternalForces("at", [4.0, 1.0, -2.0], (0, 8), acts_on="block"),
        "floor": HalfSpaceContact(height=0.45, stiffness=300.0, damping=0.5, acts_on="block"),
    }
    start = BodyState([0.4, 0.7, 0.4], [0.1, 0.2, 0.0, 1.0], [0.2, -1.0, 0.0], [0.5, 1.0, -0.5])
    model = Model(forces=forces, bodies={"block": bodies}, **nodes)
    x = [[0.0, 5.0, 0.0]] if nodes else None
    return Motion(model, State(x, bodies={"block": start}), 2e-3, np.array([0, 15, 30]))


@pytest.mark.parametrize("nodes", [{}, {"mass": [1.0]}], ids=["alone", "beside a node"])
def test_the_adjoint_of_hulls_is_the_transpose_of_their_tangent(rng, nodes):
    motion, hulls = thrown(**nodes), Hulls("block")
    paths = ("block.mass", "block.velocity", "block.rotation", "floor.stiffness", "push.force")
    parameters = {**motion.system.parameters(), **motion.system.state_parameters(motion.state)}
    tangents = {path: rng.standard_normal(parameters[path].shape) for path in paths}
    recorded = motion.record()
    here, tan_run = motion.jvp(tangents)
    assert hulls.vertices(motion, here).shape == (3, 8, 3)
    tan_vertices = hulls.vertices_jvp(motion, here, tan_run, tangents)
    adj = rng.standard_normal(tan_vertices.shape)
    gradient = pull_frames(recorded, hulls.vertices_vjp(motion, here, adj).frames, paths)
    right = [np.vdot(gradient[path], tangents[path]) for path in paths]
    assert abs(np.vdot(adj, tan_vertices) - sum(right)) <= 1e-11 * np.abs(right).sum()
    assert all(right)


def test_the_fields_of_a_trajectory_have_names():
    assert list(trajectory_fields(thrown().run())) == [
        "x", "v", "block.position", "block.orientation", "block.velocity",
        "block.angular_velocity",
    ]  # fmt: skip
