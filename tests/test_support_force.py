"""The force of a grip or an obstacle: momentum, E A strain, a hanging mass, bad input."""

import numpy as np
import pytest

from adjoint.forces.grip import example
from adjsim.courses import Signal
from adjsim.forces.grip import Grip
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.steps.implicit import ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler
from adjsim.support_force import GripForce, ObstacleForce


STEPS = [SemiImplicitEuler(), ImplicitEuler(tolerance=1e-14)]


@pytest.mark.parametrize("step", STEPS)
def test_grip_forces_and_weight_are_the_change_of_momentum(step):
    # No other force from outside acts, but for the drag, -0.5 m v of each node.
    scene, n = example(12), 12
    model, mass = scene.model, scene.model.mass[:, None]
    run = rollout(model, scene.state, scene.dt, n, frames=range(n + 1), step=step)
    held = np.flatnonzero(model.pinned)
    R = GripForce(model, scene.state, held, scene.dt, n, step).at(run)
    momentum = (mass * run.v).sum(axis=1)
    outside = (mass * (model.gravity - 0.5 * run.v)).sum(axis=1) + R
    change = np.diff(momentum, axis=0) / scene.dt
    feels = outside[1:] if step.FORCES_AT_END else outside[:-1]
    np.testing.assert_allclose(change, feels, atol=1e-11 * np.abs(R).max())


@pytest.mark.parametrize("step", STEPS)
def test_a_bar_pulled_slowly_resists_with_E_A_strain(step):
    E, nu, strain, n_steps = 1e5, 0.3, 1e-4, 60 if step.IS_STABLE else 6000
    mesh = box_tets((4, 2, 2), (0.2, 0.05, 0.05))
    bar = NeoHookeanTets.from_young(mesh.tets, mesh.points, E, nu, density=1000.0, viscosity=40.0)
    x = mesh.points
    ends = np.flatnonzero((x[:, 0] == 0.0) | (x[:, 0] == x[:, 0].max()))
    stretched = x * (1.0 + strain, 1.0 - nu * strain, 1.0 - nu * strain)
    path = Signal([-1.0, 0.5 * n_steps, n_steps], [x[ends], *[stretched[ends]] * 2])
    model = Model(None, {"bar": bar, "grip": Grip(ends, path)}, gravity=(0.0, 0.0, 0.0))
    dt = 5e-2 if step.IS_STABLE else 0.7 * model.stable_dt()
    run = rollout(model, State(x), dt, n_steps, step=step)
    pulled = ends[x[ends, 0] > 0.1]
    R = GripForce(model, State(x), pulled, dt, n_steps, step).at(run)[0]
    np.testing.assert_allclose(R[0], E * 0.05**2 * strain, rtol=5 * strain)
    assert np.abs(R[1:]).max() < 5 * strain * R[0]


def test_a_node_that_is_held_still_or_lifted_evenly_weighs_what_it_weighs():
    model = Model([2.0, 1.0], {"grip": Grip([1], [[0.0, 0, 0]])}, pinned=[True, False])
    lifted = State(np.zeros((2, 3)), [[0.0, 3.0, 0.0], [0.0, 0, 0]])
    run = rollout(model, lifted, 0.5, 3, frames=range(4))
    R = GripForce(model, lifted, [0, 1], 0.5, 3, SemiImplicitEuler()).at(run)
    np.testing.assert_allclose(R, [[0.0, 29.4, 0.0]] * 4, rtol=1e-15)


def test_what_has_no_force_is_refused():
    model = Model([2.0, 1.0], pinned=[True, False])
    with pytest.raises(ValueError, match="but node 1 is free"):
        GripForce(model, State(np.zeros((2, 3))), [0, 1], 0.5, 3, SemiImplicitEuler())
    with pytest.raises(ValueError, match="must name each node once"):
        GripForce(model, State(np.zeros((2, 3))), [0, 0], 0.5, 3, SemiImplicitEuler())
    with pytest.raises(ValueError, match="Unknown contact `flor`"):
        ObstacleForce(*resting_on(), ["flor"], 1e-3, 1, None)


def resting_on(fixed_to=None):
    """A block that falls onto a floor, or a tray that falls too, beside a pinned node on a cord."""
    block = RigidBodies(shape("cube", 0.1), density=500.0)
    tray = RigidBodies(np.eye(4, 3), mass=1.0, inertia=[1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    law = {"stiffness": 2e3, "dissipation": 0.5, "friction": 0.3, "friction_stiffness": 20.0}
    floor = HalfSpaceContact(**law, acts_on=("nodes", "block"), fixed_to=fixed_to)
    cord = Springs([(0, 1)], 50.0, 0.4)
    bodies = {"block": block, "tray": tray}
    model = Model([1.0, 2.0], {"floor": floor, "cord": cord}, pinned=[True, False], bodies=bodies)
    state = {
        "block": BodyState([[1.0, 0.095, 0.0]], velocity=[[0.4, -0.3, 0.0]]),
        "tray": BodyState([[0.0, 0.0, 0.0]]),
    }
    return model, State([[0.0, 0.5, 0.0], [0.0, -0.01, 0.1]], bodies=state)


@pytest.mark.parametrize("carrier", [None, "tray"])
@pytest.mark.parametrize("step", STEPS)
def test_forces_of_grips_and_obstacles_and_weight_are_the_change_of_momentum(step, carrier):
    (model, state), dt, n = resting_on(carrier), 1e-3, 8
    run = rollout(model, state, dt, n, frames=range(n + 1), step=step)
    block, tray = (run.bodies[name].velocity[:, 0] for name in ("block", "tray"))
    m = model.bodies["block"].masses[0]
    momentum = model.mass @ run.v + m * block
    R = ObstacleForce(model, state, ["floor"], dt, n, step).at(run)
    assert R[1:, 1].min() > 1.0
    outside = R + (3.0 + m) * model.gravity
    outside += GripForce(model, state, [0], dt, n, step).at(run)
    feels = outside[1:] if step.FORCES_AT_END else outside[:-1]
    np.testing.assert_allclose(np.diff(momentum, axis=0) / dt, feels, atol=1e-10 * np.abs(R).max())
    if carrier:  # and it feels the opposite
        felt = np.diff(tray, axis=0) / dt - model.gravity
        np.testing.assert_allclose(
            felt, -(R[1:] if step.FORCES_AT_END else R[:-1]), atol=1e-10 * np.abs(R).max()
        )
