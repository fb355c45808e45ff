"""Implicit steps of rigid bodies: closed forms, an independent solver, order, stability, bits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import root
from scipy.spatial.transform import Rotation

from adjoint.examples import Example
from adjoint.rollout import record
from adjoint.schedules import Binomial, EveryK, StoreAll
from adjoint.verify.dot_test import dot_test
from adjoint.verify.systems import joints
from adjoint.verify.systems.solids import rollout_problem
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.joints.pins import Pins
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.steps.implicit import ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler
from adjsim.system import RolloutError
from benchmarks.implicit_steps import bars
from tests.reference.rigid import tensor
from tests.rigid.scenes import box


STEP = ImplicitEuler()
G = np.array([0.3, -9.8, 0.5])


def test_a_fall_and_a_spin_with_drag_have_their_closed_forms():
    kappa, dt, n = 3.0, 0.05, 12
    lump = RigidBodies(box(), mass=0.4, drag_rate=kappa)
    start = BodyState([0.0, 0, 0], velocity=[1.0, 2.0, 0.0], angular_velocity=[0.0, 0.0, 5.0])
    model = Model(gravity=G, bodies={"lump": lump})
    run = rollout(model, State(bodies={"lump": start}), dt, n, step=STEP, frames=range(n + 1))
    motion, v, omega, x = run.bodies["lump"], start.velocity[0], 5.0, np.zeros(3)
    for k in range(1, n + 1):
        v, omega = (v + dt * G) / (1.0 + dt * kappa), omega / (1.0 + dt * kappa)
        x = x + dt * v
        np.testing.assert_allclose(motion.velocity[k, 0], v, rtol=0, atol=1e-14)
        np.testing.assert_allclose(motion.position[k, 0], x, rtol=0, atol=1e-14)
        np.testing.assert_allclose(motion.angular_velocity[k, 0], [0, 0, omega], rtol=0, atol=1e-13)


def test_a_body_that_only_tumbles_takes_steps():
    """No force acts on it, so that nothing is allowed of the forces that are out of balance."""
    bat = RigidBodies(box((0.02, 0.1, 0.3)), mass=0.3)
    start = BodyState([0.0, 0, 0], angular_velocity=[0.1, 6.0, 0.1])
    model = Model(gravity=(0.0, 0.0, 0.0), bodies={"bat": bat})
    run = rollout(model, State(bodies={"bat": start}), 0.01, 100, step=STEP)
    assert np.abs(run.bodies["bat"].velocity).max() == 0.0
    assert np.linalg.norm(run.bodies["bat"].angular_velocity) > 3.0


def test_a_step_solves_the_equations_as_another_solver_does(rng):
    """A tumbling body on a spring between a point of it and the origin, by SciPy's `root`."""
    dt, m, k, at = 0.04, 0.7, 30.0, np.array([0.2, -0.1, 0.05])
    inertia = np.array([0.3, 0.5, 0.4, 0.03, -0.05, 0.02]) * 0.1
    lump = RigidBodies(np.array([at]), mass=m, inertia=inertia, drag_rate=0.5)
    start = BodyState(
        rng.normal(size=3), rng.normal(size=4), rng.normal(size=3), 3.0 * rng.normal(size=3)
    )
    pin = Pins([(0, 1)], stiffness=k, acts_on=("nodes", "lump"))
    model = Model([1.0], {"pin": pin}, G, pinned=[True], bodies={"lump": lump})
    state = State([[0.0, 0, 0]], bodies={"lump": start})
    motion = rollout(model, state, dt, 1, step=ImplicitEuler(tolerance=1e-15)).bodies["lump"]
    R0, inertia = Rotation.from_quat(start.orientation[0]), tensor(inertia)

    def rest(u):
        v, omega = u[:3], u[3:]
        R = (R0 * Rotation.from_rotvec(dt * omega)).as_matrix()
        f = -k * (start.position[0] + dt * v + R @ at)
        e_v = m * (v - start.velocity[0]) - dt * (f + m * G - 0.5 * m * v)
        torque = np.cross(at, R.T @ f) - np.cross(omega, inertia @ omega) - 0.5 * inertia @ omega
        return np.concatenate([e_v, inertia @ (omega - start.angular_velocity[0]) - dt * torque])

    u = root(rest, np.zeros(6), tol=1e-15).x
    np.testing.assert_allclose(motion.velocity[-1, 0], u[:3], rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion.angular_velocity[-1, 0], u[3:], rtol=0, atol=1e-12)
    end = (R0 * Rotation.from_rotvec(dt * u[3:])).as_quat()
    assert abs(end @ motion.orientation[-1, 0]) == pytest.approx(1.0, abs=1e-14)


def test_it_is_of_first_order_against_fine_steps():
    model, state = bars(2e4)
    time = 0.05
    fine = rollout(model, state, time / 20_000, 20_000).bodies["bars"]
    errors = []
    for n in (64, 128, 256):
        run = rollout(model, state, time / n, n, step=STEP).bodies["bars"]
        errors.append(np.abs(run.position[-1] - fine.position[-1]).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (np.abs(orders - 1.0) < 0.15).all(), orders


def test_steps_of_a_hundred_times_the_stable_one_come_to_rest():
    model, state = bars(2e6)
    dt = 100.0 * model.stable_dt()
    with pytest.raises(RolloutError):
        rollout(model, state, dt, 200, step=SemiImplicitEuler())
    run = rollout(model, state, dt, 600, step=STEP)
    assert np.abs(run.bodies["bars"].velocity).max() < 1e-3
    sag = run.bodies["bars"].position[-1, :, 1]
    assert (sag < 0.0).all()
    assert (sag > -0.01).all()


def test_a_box_that_lands_on_a_slope_stays_there():
    floor = HalfSpaceContact(
        normal=(0.1, 1.0, 0.0), radius=0.005, stiffness=2e4, dissipation=0.5, friction=0.5,
        friction_stiffness=50.0, acts_on="box",
    )  # fmt: skip
    model = Model(
        forces={"floor": floor}, bodies={"box": RigidBodies(box((0.1,) * 3), density=500.0)}
    )
    start = BodyState([0.0, 0.08, 0.0], rotation=[0.1, 0.0, 0.2])
    run = rollout(model, State(bodies={"box": start}), 0.01, 200, step=STEP, frames=[150, 200])
    motion = run.bodies["box"]
    assert np.abs(motion.velocity[-1]).max() < 0.02
    assert np.abs(motion.angular_velocity[-1]).max() < 1e-3
    up = Rotation.from_quat(motion.orientation[-1, 0]).apply(np.eye(3)) @ [0.1, 1.0, 0.0]
    assert np.abs(up).max() == pytest.approx(np.hypot(0.1, 1.0), rel=1e-3)  # a face lies on it


def hit(n_steps):
    """A rigid brick that lands on a soft block, surface on surface."""
    mesh = box_tets((2, 1, 2), (0.2, 0.06, 0.2))
    rng = np.random.default_rng(3)
    soft = NeoHookeanTets(mesh.tets, mesh.points, 4e4, 6e4, viscosity=5.0, density=900.0)
    brick = RigidBodies(box((0.1, 0.04, 0.1)), density=900.0)
    touch = SurfaceContact(
        triangles=mesh.surface().faces, other_triangles=brick.faces + len(mesh.points),
        radius=0.005, other_radius=0.005, stiffness=400.0, dissipation=0.4, friction=0.5,
        friction_stiffness=5.0, acts_on=("nodes", "brick"),
    )  # fmt: skip
    start = BodyState([0.11, 0.089, 0.1], velocity=[0.2, -0.5, 0.1], rotation=[0.02, 0.3, 0.01])
    model = Model(None, {"soft": soft, "touch": touch}, bodies={"brick": brick})
    v = 0.1 * rng.standard_normal(mesh.points.shape)
    return Example(model, State(mesh.points, v, {"brick": start}), 2e-3, n_steps, step=STEP)


def test_a_brick_that_hits_a_soft_block_has_the_tangent_of_its_adjoint():
    problem = rollout_problem(hit, 3)
    paths = list(problem.point)
    check = dot_test(problem.jvp, lambda c: problem.vjp(c, paths), problem.point, tolerance=1e-10)
    assert check.passed, check
    adj = np.ones(len(problem.forward(problem.point)))
    assert np.abs(problem.vjp(adj, ["touch.friction"])["touch.friction"]).max() > 1e-6


@pytest.mark.parametrize("schedule", [EveryK(3), Binomial(2)], ids=str)
def test_every_schedule_has_the_bits_of_all_states(schedule):
    scene = replace(joints.loose(5), step=STEP, dt=3e-3)

    def gradient(checkpoint):
        run = record(
            scene.model, scene.state, scene.dt, 5, step=STEP, frames=[0, 2, 5],
            checkpoint=checkpoint,
        )  # fmt: skip
        trajectory = run.trajectory
        adj_x = np.ones(trajectory.x.shape)
        adj = {"links": {k: np.ones_like(v) for k, v in vars(trajectory.bodies["links"]).items()}}
        return run.vjp(adj_x, bodies=adj)

    expected, checkpointed = gradient(StoreAll()), gradient(schedule)
    for path, value in expected.items():
        np.testing.assert_array_equal(checkpointed[path], value, err_msg=path)
