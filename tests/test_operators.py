"""Jacobian, Gauss-Newton matrix and Hessian of a record as operators of SciPy."""

import numpy as np
import pytest
from scipy.sparse.linalg import lsqr

from adjoint import hessian_operator, jacobian_fd, jacobian_operator, record
from adjsim import Model, State, rollout, stack
from adjsim.forces import ExternalForces, Springs
from adjsim.meshes import shape
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rigid import BodyState, RigidBodies


X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
WRT = ["net.stiffness", "state.v", "mass"]
DT, N = 5e-3, 60


@pytest.fixture(scope="module")
def run():
    model = Model([1.0, 1.0, 2.0], {"net": Springs([(0, 1), (1, 2)], 40.0, 0.8)})
    return record(model, State(X), DT, N, frames=[30, 60])


def test_the_jacobian_is_that_of_differences_forward_and_reverse(run):
    J = jacobian_operator(run, WRT, fields=("x", "v"))
    assert J.shape == (36, 13)
    values = {**run.model.parameters(), **run.model.state_parameters(run.state)}

    def frames(at):
        end = rollout(*run.model.with_values(run.state, at), DT, N, frames=[30, 60])
        return np.concatenate([end.x.ravel(), end.v.ravel()])

    forward, reverse = J @ np.eye(13), J.T @ np.eye(36)
    blocks = jacobian_fd(frames, {path: values[path] for path in WRT})
    differences = np.concatenate([np.reshape(blocks[path], (36, -1)) for path in WRT], axis=1)
    size = np.abs(forward).max()
    np.testing.assert_allclose(forward, reverse.T, rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(forward, differences, rtol=0, atol=1e-6 * size)


def test_solvers_of_scipy_take_a_step_of_gauss_newton(run):
    J = jacobian_operator(run, ["state.v"])
    d = np.linspace(-1.0, 1.0, 9)
    np.testing.assert_allclose(lsqr(J, J @ d, atol=1e-12, btol=1e-12)[0], d, atol=1e-8)
    dense = J @ np.eye(9)
    np.testing.assert_allclose((J.T @ J) @ d, dense.T @ (dense @ d), rtol=1e-10, atol=1e-12)


def test_fields_of_bodies_have_rows_too():
    push = ExternalForces(["tip"], (0.0, 0.0, 1.0), acts_on="cube")
    cube = RigidBodies(shape("cube", radius=0.1), mass=2.0, points={"tip": (0.1, 0.0, 0.0)})
    model = Model(forces={"push": push}, bodies={"cube": cube})
    state = State(bodies={"cube": BodyState(position=[[0.0, 0.0, 0.0]])})
    cube_run = record(model, state, DT, 20)
    J = jacobian_operator(
        cube_run, ["push.force"], fields=["cube.position", "cube.angular_velocity"]
    )
    dense = J @ np.eye(3)
    assert np.abs(dense).max() > 0.0
    np.testing.assert_allclose((J.T @ np.eye(J.shape[0])).T, dense, rtol=0, atol=1e-15)


def test_the_hessian_is_symmetric_and_that_of_hvp(run):
    def cotangents(trajectory):
        return 4.0 * trajectory.x**3

    dense = hessian_operator(run, cotangents, ["net.stiffness", "mass"]) @ np.eye(4)
    np.testing.assert_allclose(dense, dense.T, rtol=0, atol=1e-9 * np.abs(dense).max())
    product = run.hvp({"net.stiffness": 1.0, "mass": np.zeros(3)}, cotangents)
    assert dense[0, 0] == product["net.stiffness"]


def test_a_pendulum_has_fields_of_its_own():
    swing = record(SimplePendulum(1.3), PendulumState(0.5), 5e-3, 100)
    J = jacobian_operator(swing, ["length"], fields=["angle"])
    assert J.shape == (1, 1)
    assert (J @ [1.0])[0] == swing.jvp({"length": 1.0}).angle.item()


def test_what_does_not_fit_is_refused(run):
    with pytest.raises(ValueError, match="Unknown field `X`"):
        jacobian_operator(run, WRT, fields=["X"])
    with pytest.raises(ValueError, match="Unknown parameter"):
        jacobian_operator(run, ["net.k"])
    with pytest.raises(ValueError, match=r"`a vector` must .* it has complex numbers"):
        jacobian_operator(run, WRT) @ (1j * np.ones(13))
    with pytest.raises(TypeError, match="`run` must be a Record, got NoneType"):
        jacobian_operator(None, WRT)
    both = record(stack([run.model] * 2), [run.state] * 2, DT, 1)
    with pytest.raises(TypeError, match="`run` must be of one world, got a batch of 2"):
        jacobian_operator(both, WRT)
