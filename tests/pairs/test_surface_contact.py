"""Contact between surfaces in rollouts: gradients, momentum, rigid bodies, balls, bad input."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.shapes import shape
from adjsim.meshes.surfaces import blocks
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.rotations import rotation_matrix
from adjsim.system import RolloutError, RunSettings, make_stepper
from tests.pairs.scenes import nets


DT, N_STEPS = 5e-4, 80


def ended(model, state, adj):
    return float(np.vdot(rollout(model, state, DT, N_STEPS, frames=[N_STEPS]).x, adj))


def test_gradients_of_a_rollout_match_differences_and_the_tangent(rng):
    model, state = nets()
    adj = rng.standard_normal((1, *state.x.shape))
    gradient = record(model, state, DT, N_STEPS, frames=[N_STEPS]).vjp(adj)
    values = {**model.parameters(), **model.state_parameters(state)}
    paths = [path for path in values if path.startswith("touch.")] + ["state.x", "state.v", "mass"]
    tangents = {path: rng.uniform(0.5, 1.0, np.shape(values[path])) for path in paths}
    tangents |= {path: values[path] * tangents[path] for path in paths if path[:5] != "state"}
    pushed = rollout_jvp(model, state, DT, N_STEPS, tangents, frames=[N_STEPS])[1].x
    pulled = sum(np.vdot(gradient[path], tangents[path]) for path in paths)
    assert np.vdot(pushed, adj) == pytest.approx(pulled, rel=1e-10)
    for path in paths:
        expected = np.vdot(gradient[path], tangents[path])
        errors = []
        for h in (1e-5, 1e-6, 1e-7, 1e-8):
            ends = [
                ended(*model.with_values(state, {path: values[path] + s * h * tangents[path]}), adj)
                for s in (1, -1)
            ]
            errors.append(abs((ends[0] - ends[1]) / (2.0 * h) - expected) / abs(expected))
        assert min(errors) < 1e-6, path


def test_momentum_is_what_gravity_adds():
    model, state = nets()
    run = rollout(model, state, DT, N_STEPS, frames=range(N_STEPS + 1))
    momentum = (model.mass[:, None] * run.v).sum(axis=1)
    exchanged = np.abs(model.mass[:, None] * np.diff(run.v, axis=0)).sum()
    gained = model.mass.sum() * model.gravity * DT * N_STEPS
    assert np.abs(momentum[-1] - momentum[0] - gained).max() < 1e-13 * exchanged


def cubes():
    cube = shape("cube")
    points = 0.05 * cube.points / np.abs(cube.points).max()
    mesh, n = TriangleMesh(points, cube.faces), len(points)
    touch = SurfaceContact(
        triangles=cube.faces, other_triangles=cube.faces + n, radius=0.005, other_radius=0.005,
        stiffness=3000.0, dissipation=0.3, friction_stiffness=3.0, friction=0.4, acts_on="cubes",
    )  # fmt: skip
    bodies = RigidBodies([mesh, mesh], density=500.0)
    start = BodyState(
        position=[[0.0, 0.0, 0.0], [0.02, 0.03, 0.125]],
        velocity=[[0.0, 0.0, 0.5], [0.1, 0.0, -0.5]],
        angular_velocity=[[0.0, 0.0, 0.0], [1.0, 2.0, 0.3]],
    )  # fmt: skip
    model = Model(bodies={"cubes": bodies}, forces={"touch": touch}, gravity=(0.0, 0.0, 0.0))
    return model, State(bodies={"cubes": start})


def test_rigid_bodies_touch_each_other(rng):
    model, state = cubes()
    dt, n_steps = 2e-4, 400
    run = record(model, state, dt, n_steps, frames=[n_steps])
    end = run.trajectory.bodies["cubes"]
    masses = model.bodies["cubes"].masses[:, None]
    change = (masses * end.velocity[-1]).sum(axis=0) - (
        masses * state.bodies["cubes"].velocity
    ).sum(0)
    assert np.abs(change).max() < 1e-15
    assert end.velocity[-1, 0, 2] < 0.0 < end.velocity[-1, 1, 2]  # they bounced
    adj = rng.standard_normal((1, 2, 3))
    gradient = run.vjp(bodies={"cubes": {"position": adj}})

    def value(path, tangent, h):
        moved = model.with_values(state, {path: values[path] + h * tangent})
        return np.vdot(rollout(*moved, dt, n_steps, frames=[n_steps]).bodies["cubes"].position, adj)

    values = {**model.parameters(), **model.state_parameters(state)}
    for path in ("touch.friction", "touch.radius", "cubes.velocity", "cubes.density"):
        tangent = rng.standard_normal(np.shape(values[path])) * np.abs(values[path])
        expected = np.vdot(gradient[path], tangent)
        errors = [
            abs((value(path, tangent, h) - value(path, tangent, -h)) / (2.0 * h) - expected)
            for h in (1e-4, 1e-5, 1e-6)
        ]
        assert min(errors) < 1e-6 * abs(expected), path


def test_two_equal_balls_exchange_their_velocities():
    """And what the first loses by its own velocity the other gains: nothing is blown up."""
    ball = ball_tets(4, radius=0.1)
    n, faces = len(ball.points), ball.surface().faces
    turned = ball.points @ rotation_matrix(np.array([0.3, 0.5, 0.2])).T + [0.222, 0.0, 0.0]
    x, v = np.concatenate([ball.points, turned]), np.zeros((2 * n, 3))
    v[:n, 0] = 1.0
    tets = np.concatenate([ball.tets, ball.tets + n])
    touch = SurfaceContact(
        triangles=faces, other_triangles=faces + n, radius=0.01, other_radius=0.01, stiffness=2e3
    )
    soft = NeoHookeanTets(tets, x, mu=3e4, lam=6e4, density=1e3)
    model = Model(gravity=(0.0, 0.0, 0.0), forces={"balls": soft, "touch": touch})
    run = record(model, State(x, v), 5e-5, 1200, frames=[1200])
    share = model.mass[:n] / model.mass[:n].sum()
    gains = []
    for nodes in (slice(0, n), slice(n, None)):
        adj = np.zeros((1, 2 * n, 3))
        adj[0, nodes, 0] = share
        gradient = run.vjp(None, adj, wrt=["state.v"])["state.v"]
        gains.append([gradient[:n, 0].sum(), gradient[n:, 0].sum()])
    np.testing.assert_allclose(gains, [[0.0, 1.0], [1.0, 0.0]], atol=0.2)
    np.testing.assert_allclose(np.sum(gains, axis=0), 1.0, rtol=1e-10)  # momentum


def test_surfaces_that_go_through_each_other_are_an_error():
    model, state = nets()
    weak = replace(model.forces["touch"], stiffness=1.0)
    fast = State(state.x, 4.0 * state.v)
    with pytest.raises(RolloutError, match="`touch` went through each other before step"):
        rollout(replace(model, forces={**model.forces, "touch": weak}), fast, 1e-3, 200)
    half = len(state.x) // 2
    inside = state.x.copy()
    inside[half:, 2] -= 0.05
    inside[-4:, 2] += 0.08
    with pytest.raises(ValueError, match="must have the surfaces of `touch` apart"):
        rollout(model, State(inside, state.v), DT, 10)


CUBE = blocks([(-0.05, 0.05)] * 3, np.ones((1, 1, 1)))
CORNER = blocks(
    [(-0.05, 0.05, 0.15), (-0.15, -0.05, 0.05), (-0.05, 0.05)], [[[1], [0]], [[1], [1]]]
)
SLOT = blocks(
    [(-0.15, -0.05, 0.05, 0.15), (-0.15, -0.05, 0.05), (-0.05, 0.05)],
    [[[1], [1]], [[1], [0]], [[1], [1]]],
)


def aligned_cubes(offset, velocity=0.0, other=CUBE):
    """Return a cube of 0.1 m and another body, at an offset, that touch each other."""
    touch = SurfaceContact(
        triangles=CUBE.faces, other_triangles=other.faces + len(CUBE.points), radius=1e-3,
        other_radius=1e-3, acts_on="cubes",
    )  # fmt: skip
    cubes = RigidBodies([CUBE, other], density=1000.0)
    model = Model(gravity=(0.0, 0.0, 0.0), forces={"touch": touch}, bodies={"cubes": cubes})
    first = [[velocity, 0.0, 0.0], [0.0, 0.0, 0.0]]
    return model, State(bodies={"cubes": BodyState([[0.0, 0.0, 0.0], offset], velocity=first)})


@pytest.mark.parametrize("along", [0.0, 0.04, 0.08])
def test_faces_in_one_plane_do_not_hide_that_bodies_are_in_each_other(along):
    with pytest.raises(ValueError, match="must have the surfaces of `touch` apart"):
        rollout(*aligned_cubes([along, 0.0, 0.0]), 1e-6, 1)


def test_faces_that_only_touch_are_apart():
    rollout(*aligned_cubes([0.1, 0.0, 0.0]), 1e-6, 1)
    rollout(*aligned_cubes(CORNER.centroid, other=CORNER), 1e-6, 1)  # a wall and a floor
    rollout(*aligned_cubes(SLOT.centroid, other=SLOT), 1e-6, 20)  # two walls and a floor


@pytest.mark.parametrize("offset", [[1e-4, 0.0, 0.0], [0.0, -1e-4, 0.0], [0.1, 0.0, 0.0]])
def test_a_cube_that_is_in_the_walls_of_its_slot_is_refused(offset):
    with pytest.raises(ValueError, match="must have the surfaces of `touch` apart"):
        rollout(*aligned_cubes(SLOT.centroid - offset, other=SLOT), 1e-6, 1)


def test_a_leap_over_a_body_is_an_error():
    with pytest.raises(RolloutError, match="`touch` went through each other before step 1"):
        rollout(*aligned_cubes([0.3, 0.013, 0.017], velocity=50.0), 0.01, 2)


@pytest.mark.parametrize("velocity", [1e7, 1e200])
def test_what_blows_up_is_not_followed_along_its_way(velocity):
    rollout(*aligned_cubes([0.3, 0.0, 0.0], velocity=velocity), 0.01, 3)


def test_radii_larger_than_the_edges_are_refused():
    model, state = nets(radius=0.5)
    with pytest.raises(ValueError, match=r"`touch\.radius` must be smaller than the edges"):
        rollout(model, state, DT, 10)


def test_a_replay_does_not_compare_sides_with_a_later_state():
    """A stepper that has pairs of another time may go on from any state."""
    model, state = nets()
    stepper = make_stepper(model, RunSettings(DT, 1))
    fields = stepper.allocate(2)
    below = state.x.copy()
    below[model.forces["touch"].other_triangles.ravel(), 2] = -0.04  # as if come from below
    for positions in (below, state.x):
        stepper.load(State(positions, 0.0 * state.v), fields, 0)
        stepper.advance(5, np.arange(2), fields)


TRIANGLES = np.array([[0, 1, 2]])
BAD = [
    ({"radius": 0.0}, "`radius` must be positive"),
    ({"radius": 0.1, "other_radius": 0.1}, "must both be given"),
    ({"radius": 0.1, "skin": -1.0}, "`skin` must be positive"),
    ({"radius": 0.1, "damping": 1.0, "dissipation": 1.0}, "must not both be given"),
    ({"radius": 0.1, "friction": 0.5}, "`friction_stiffness` must be positive"),
    ({"radius": 0.1, "triangles": [[0, 1]]}, "`triangles` must"),
    ({"radius": 0.1, "stiffness": [1.0, 2.0]}, "stiffness"),
    ({"radius": 0.1, "friction": None}, "`friction` must be .* no number, got None"),
    ({"radius": 0.1, "cubic_dissipation": 1.0}, "`cubic_stiffness` must be given with"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_bad_input_is_told(given, message):
    with pytest.raises(ValueError, match=message):
        SurfaceContact(**{"triangles": TRIANGLES, **given})


def test_triangles_of_other_rows_are_refused():
    with pytest.raises(ValueError, match=r"`touch\.triangles`"):
        Model(np.ones(2), {"touch": SurfaceContact(triangles=TRIANGLES, radius=0.1)})


def test_edges_that_turn_from_parallel_have_not_gone_through_each_other():
    """Their side is the sign of how they are turned, whichever of them is above."""

    def at(height, turn):
        below = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, -1.0, -1.0]])
        above = np.array([[-0.9, -turn, height], [0.9, turn, height], [0.0, -1.0, height + 1.0]])
        return np.concatenate([below, above])

    law = {"radius": 0.05, "other_radius": 0.05, "stiffness": 1.0, "dissipation": 0.0}
    touch = SurfaceContact(triangles=[[0, 1, 2]], other_triangles=[[3, 4, 5]], **law)
    force = Model(np.ones(6), {"touch": touch}).forces["touch"]
    for reach in (0.05, 1.0):
        pairs = force.find(at(0.02, 1e-9), reach)
        assert force.passed(pairs, at(0.02, 1e-9), at(0.02, -1e-9)) is None
        assert "edges cross" in force.passed(pairs, at(0.02, 0.3), at(-0.02, 0.3))
