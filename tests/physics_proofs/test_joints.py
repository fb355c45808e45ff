"""Joints over many steps: periods, momentum, an independent engine, gradients and equal bits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import ellipk

from adjoint import record, rollout_jvp
from adjoint.schedules import EveryK
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.taylor_test import taylor_test
from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import BallJoint, frames_at
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.mass_properties import from_six
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.worlds import stack
from tests.rigid.scenes import box


LENGTH = 0.3
LINK = box((0.04, LENGTH, 0.06), (-0.02, -LENGTH / 2, -0.03))
FIELDS = ("position", "velocity", "angular_velocity")
Z = (0.0, 0.0, 1.0)


def chain(n, *, stiff=1.0, velocity=None, hang=True, axes=Z, **values):
    """A row of links along x in hinges, from the world if it hangs, at rest unless told."""
    x = np.outer((np.arange(n) + 0.5) * LENGTH, (1.0, 0.0, 0.0))
    flat = np.tile([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)], (n, 1))  # y of the mesh along x
    states = {"links": BodyState(x, flat, velocity, None if velocity is None else 3 * velocity)}
    law = {
        "stiffness": 2e4 * stiff, "damping": 3.0 * np.sqrt(stiff),
        "angular_stiffness": 200.0 * stiff, "angular_damping": 0.03 * np.sqrt(stiff),
    }  # fmt: skip
    forces = {}
    if hang:
        root = (None, "links.0")
        frames = frames_at(root, states, (0.0, 0.0, 0.0), Z)
        forces["root"] = HingeJoint(root, **law, **values, **frames)
    if n > 1:
        pairs = [(f"links.{k}", f"links.{k + 1}") for k in range(n - 1)]
        at = np.outer(np.arange(1, n) * LENGTH, (1.0, 0.0, 0.0))
        forces["joints"] = HingeJoint(pairs, **law, **values, **frames_at(pairs, states, at, axes))
    links = RigidBodies([LINK] * n, density=700.0)
    gravity = (0.0, -9.81, 0.0) if hang else (0.0, 0.0, 0.0)
    return Model(forces=forces, gravity=gravity, bodies={"links": links}), State(bodies=states)


def test_a_compound_pendulum_has_the_period_of_its_inertia():
    # From rest at 90 degrees: T/4 = K(m = sin^2 45) sqrt(I/(m g d)), with I about the axis.
    model, state = chain(1, stiff=25.0)
    links = model.bodies["links"]
    m, inertia = links.masses[0], links.inertias[0, 2]
    d = LENGTH / 2
    quarter = ellipk(0.5) * np.sqrt((inertia + m * d * d) / (m * 9.81 * d))
    dt = 2e-5
    run = rollout(
        model, state, dt, round(1.1 * quarter / dt), frames=range(round(1.1 * quarter / dt))
    )
    x = run.bodies["links"].position[:, 0, 0]
    k = int(np.argmax(x < 0.0))
    crossing = (k - 1 + x[k - 1] / (x[k - 1] - x[k])) * dt
    assert crossing == pytest.approx(quarter, rel=2e-4)


def momenta(model, run):
    """Momentum and angular momentum about the origin at every frame, (n_frames, 6)."""
    links, states = model.bodies["links"], run.bodies["links"]
    I = from_six(links.inertias)
    p = links.masses[:, None] * states.velocity
    R = Rotation.from_quat(states.orientation.reshape(-1, 4)).as_matrix()
    R = R.reshape(*states.orientation.shape[:2], 3, 3)
    spin = np.einsum("fbij,bjk,fbk->fbi", R, I, states.angular_velocity)
    return np.concatenate([p.sum(axis=1), (np.cross(states.position, p) + spin).sum(axis=1)], 1)


def test_free_links_keep_momentum_to_rounding_and_angular_momentum_to_the_step(rng):
    model, state = chain(4, hang=False, velocity=rng.standard_normal((4, 3)))
    changes = []
    for dt, n in ((2e-4, 1000), (1e-4, 2000)):
        start, end = momenta(model, rollout(model, state, dt, n, frames=[0, n]))
        exchanged = 2e4 * 0.01 * n * dt  # [N s]: k times a typical stretch
        assert np.abs(end - start)[:3].max() < 1e-13 * exchanged
        changes.append(np.abs(end - start)[3:].max())
    # The joints exchange it exactly; the explicit gyroscopic term drifts with the step.
    assert changes[1] == pytest.approx(0.5 * changes[0], rel=0.1)


def test_links_that_swing_in_a_plane_keep_angular_momentum_to_rounding(rng):
    velocity = np.zeros((4, 3))
    velocity[:, :2] = rng.standard_normal((4, 2))
    model, state = chain(4, hang=False, velocity=velocity)
    states = state.bodies["links"].with_values({"angular_velocity": [[0.0, 0.0, 4.0]] * 4})
    run = rollout(model, State(bodies={"links": states}), 2e-4, 1000, frames=[0, 1000])
    start, end = momenta(model, run)
    assert np.abs(end - start).max() < 1e-13 * 2e4 * 0.01 * 0.2


PATHS = (
    "root.stiffness", "root.viscous_friction", "joints.anchor_a", "joints.rotation_b",
    "joints.viscous_friction", "joints.dry_friction", "joints.motor", "links.density",
    "links.position", "links.angular_velocity", "gravity",
)  # fmt: skip


def driven(n_steps):
    """Three links that swing under a motor, with friction."""
    friction = {"viscous_friction": 0.01, "dry_friction": 0.02, "friction_width": 0.5}
    model, state = chain(3, **friction, axes=[Z, (0.0, 1.0, 1.0)])
    wave = 0.3 * np.sin(np.arange(n_steps)[:, None] / 50.0 + np.arange(2))
    forces = {**model.forces, "joints": replace(model.forces["joints"], motor=wave)}
    return replace(model, forces=forces), state


def cotangents(rng, run):
    return {key: rng.standard_normal(getattr(run, key).shape) for key in FIELDS}


def product(adj, states):
    return float(sum(np.vdot(values, getattr(states, key)) for key, values in adj.items()))


DT, N = 2e-4, 1000


def test_tangent_and_adjoint_of_a_thousand_steps_are_transposes(rng):
    model, state = driven(N)
    run = record(model, state, DT, N)
    adj = cotangents(rng, run.trajectory.bodies["links"])
    gradient = run.vjp(bodies={"links": adj}, wrt=PATHS)
    at = {**model.parameters(), **model.state_parameters(state)}
    for path in PATHS:
        tangent = rng.standard_normal(at[path].shape)
        tan = rollout_jvp(model, state, DT, N, {path: tangent})[1]
        pushed, pulled = product(adj, tan.bodies["links"]), np.vdot(gradient[path], tangent)
        assert abs(pushed - pulled) <= 1e-10 * max(abs(pushed), 1e-3), path


def test_the_gradient_of_a_swing_is_the_slope_also_along_itself(rng):
    model, state = driven(300)
    run = record(model, state, DT, 300)
    adj = cotangents(rng, run.trajectory.bodies["links"])
    gradient = run.vjp(bodies={"links": adj}, wrt=PATHS)
    at = {**model.parameters(), **model.state_parameters(state)}
    at = {path: np.array(at[path]) for path in PATHS}

    def loss(values):
        end = rollout(*model.with_values(state, values), DT, 300)
        return product(adj, end.bodies["links"])

    check = gradcheck(loss, gradient, at, n_directions=6)
    assert check.passed, check.table()
    along = taylor_test(loss, gradient, at, eps0=1e-2)
    assert along.passed, along.reason


def test_checkpoints_threads_and_worlds_have_the_same_bits(rng):
    model, state = driven(200)
    run = record(model, state, DT, 200)
    adj = {"links": cotangents(rng, run.trajectory.bodies["links"])}
    expected = run.vjp(bodies=adj)
    other = chain(2, viscous_friction=0.05)
    others = {
        "every 7": record(model, state, DT, 200, checkpoint=EveryK(7)).vjp(bodies=adj),
        "memory": record(model, state, DT, 200, checkpoint="20kB").vjp(bodies=adj),
        "two threads": record(model, state, DT, 200, threads=2).vjp(bodies=adj),
    }
    batch = record(stack([model, other[0], model]), [state, other[1], state], DT, 200)
    zero = {"links": {key: np.zeros((1, 2, 3)) for key in FIELDS}}
    gradients = batch.vjp([None] * 3, bodies=[adj, zero, adj])
    others |= {"world 0": gradients[0], "world 2": gradients[2]}
    for name, gradient in others.items():
        for path, value in expected.items():
            np.testing.assert_array_equal(gradient[path], value, err_msg=f"{name}: {path}")


def mujoco_chain(n, dt, n_steps):
    """Places of links that swing from the side, by MuJoCo's constraints."""
    mujoco = pytest.importorskip("mujoco")
    m, half = 700.0 * 0.04 * LENGTH * 0.06, LENGTH / 2
    I = m / 12 * np.array([LENGTH**2 + 0.06**2, 0.04**2 + 0.06**2, 0.04**2 + LENGTH**2])
    # Its x is along the link, which is the y of our mesh.
    inner = ""
    for k in reversed(range(n)):
        at = 0.0 if k == 0 else LENGTH
        inner = (
            f'<body pos="{at} 0 0"><joint type="hinge" axis="0 0 1" damping="0.01"/>'
            f'<inertial pos="{half} 0 0" mass="{m}" diaginertia="{I[1]} {I[0]} {I[2]}"/>'
            f"{inner}</body>"
        )
    xml = (
        f'<mujoco><option timestep="{dt}" gravity="0 -9.81 0" integrator="RK4"/>'
        f"<worldbody>{inner}</worldbody></mujoco>"
    )
    chain_model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(chain_model)
    for _ in range(n_steps):
        mujoco.mj_step(chain_model, data)
    mujoco.mj_forward(chain_model, data)
    return data.xipos[1:].copy()


def test_stiffer_joints_come_closer_to_the_constraints_of_mujoco():
    n, seconds = 3, 0.5
    exact = mujoco_chain(n, 1e-3, round(seconds / 1e-3))
    errors = []
    for stiff in (1.0, 4.0, 16.0):
        model, state = chain(n, stiff=stiff, viscous_friction=0.01)
        dt = 4e-5 / stiff  # the error of the step falls with that of the stiffness
        end = rollout(model, state, dt, round(seconds / dt))
        errors.append(np.abs(end.bodies["links"].position[-1] - exact).max())
    assert errors[-1] < 5e-4  # of links that weigh m g/k longer
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4.0, rtol=0.2)


def test_a_cart_and_its_pole_swing_as_lagrange_says():
    # Small swings of a pole on a free cart: omega^2 = m g d (M+m)/((M+m)(I+m d^2) - (m d)^2).
    states = {
        "cart": BodyState([0.0, 0.0, 0.0]),
        "pole": BodyState([0.5 * LENGTH * 0.01, -0.5 * LENGTH, 0.0], rotation=[0.0, 0.0, 0.01]),
    }
    bodies = {
        "cart": RigidBodies(box((0.2, 0.1, 0.1), (-0.1, -0.05, -0.05)), mass=1.0),
        "pole": RigidBodies(LINK, mass=0.4),
    }
    law = {"stiffness": 2e5, "damping": 40.0, "angular_stiffness": 2e3, "angular_damping": 0.4}
    origin = (0.0, 0.0, 0.0)
    rail, pair = (None, "cart"), ("cart", "pole")
    forces = {
        "rail": SliderJoint(rail, **law, **frames_at(rail, states, origin, (1.0, 0.0, 0.0))),
        "pivot": HingeJoint(pair, **law, **frames_at(pair, states, origin, Z)),
    }
    model = Model(forces=forces, gravity=(0.0, -9.81, 0.0), bodies=bodies)
    M, m, d, inertia = 1.0, 0.4, LENGTH / 2, bodies["pole"].inertias[0, 2]
    rate = np.sqrt(m * 9.81 * d * (M + m) / ((M + m) * (inertia + m * d * d) - (m * d) ** 2))
    dt = 2e-5
    n = round(0.6 * np.pi / rate / dt)
    run = rollout(model, State(bodies=states), dt, n, frames=range(n))
    swing = run.bodies["pole"].position[:, 0, 0] - run.bodies["cart"].position[:, 0, 0]
    k = int(np.argmax(swing < 0.0))
    crossing = (k - 1 + swing[k - 1] / (swing[k - 1] - swing[k])) * dt
    assert crossing == pytest.approx(np.pi / 2 / rate, rel=5e-4)


def test_a_ball_joint_swings_in_every_direction():
    states = {"links": BodyState([0.0, -LENGTH / 2, 0.0], angular_velocity=[2.0, 0.0, 1.0])}
    root = (None, "links")
    joint = BallJoint(root, stiffness=1e5, damping=20.0, **frames_at(root, states, (0.0, 0.0, 0.0)))
    model = Model(forces={"root": joint}, bodies={"links": RigidBodies(LINK, density=700.0)})
    end = rollout(model, State(bodies=states), 1e-4, 5000)
    assert np.linalg.norm(end.bodies["links"].position[-1, 0]) == pytest.approx(
        LENGTH / 2, abs=1e-3
    )
    assert np.abs(end.bodies["links"].position[-1, 0, [0, 2]]).min() > 1e-3
