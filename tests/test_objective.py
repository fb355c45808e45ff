"""`value_and_grad`: a loss of parameters, flat or by path, as SciPy minimizes it."""

import re

import numpy as np
import pytest
from scipy.optimize import minimize

from adjoint import gradcheck, value_and_grad
from adjsim import Model, State, rollout, stack
from adjsim.forces import Springs


X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
NET = Springs([(0, 1), (1, 2)], 40.0, 0.8, damping=0.2)
MODEL = Model([1.0, 1.0, 2.0], {"net": NET}, pinned=[True, False, False])
WRT = ["net.stiffness", "state.v"]
RUN = (State(X), 5e-3, 100)


def loss_of(aim):
    def loss(trajectory):
        miss = trajectory.x - aim
        return 0.5 * np.sum(miss**2), miss

    return loss


@pytest.fixture(scope="module")
def objective():
    return value_and_grad(loss_of(X), MODEL, *RUN, wrt=WRT, frames=[50, 100])


def test_the_gradient_is_that_of_the_loss_flat_and_by_path(objective):
    values = objective.values(objective.start)
    assert values["net.stiffness"] == 40.0
    assert values["state.v"].shape == (3, 3)
    start = {**values, "state.v": values["state.v"] + 0.1}
    check = gradcheck(lambda v: objective(v)[0], lambda c: {k: c * g for k, g in
                      objective(start)[1].items()}, start)  # fmt: skip
    assert check.passed, check.table()
    value, gradient = objective(objective.flat(start))
    assert value == objective(start)[0]
    np.testing.assert_array_equal(gradient, objective.flat(objective(start)[1]))


def test_scipy_finds_what_the_frames_were_made_with():
    moved, state = MODEL.with_values(RUN[0], {"net.stiffness": 55.0, "state.v": 0.3 * X})
    aim = rollout(moved, state, *RUN[1:], frames=range(5, 101, 5)).x
    objective = value_and_grad(loss_of(aim), MODEL, *RUN, wrt=WRT, frames=range(5, 101, 5))
    optimum = minimize(objective, objective.start, jac=True, method="BFGS", options={"gtol": 1e-9})
    values = objective.values(optimum.x)
    assert values["net.stiffness"] == pytest.approx(55.0, rel=1e-5)
    np.testing.assert_allclose(values["state.v"][1:], 0.3 * X[1:], atol=1e-6)


def test_a_loss_of_velocities_names_its_cotangents():
    def loss(trajectory):
        return 0.5 * np.sum(trajectory.v**2), {"adj_v": trajectory.v}

    objective = value_and_grad(loss, MODEL, *RUN, wrt=["gravity"])
    step = np.array([1e-4, 0.0, 0.0])
    ends = [objective(objective.start + s * step)[0] for s in (1.0, -1.0)]
    _, gradient = objective(objective.start)
    assert gradient[0] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"wrt": ["net.stifness"]}, ValueError, "Did you mean `net.stiffness`?"),
        ({"model": None}, TypeError, "`model` must be something that rollouts can advance"),
        ({"model": stack([MODEL, MODEL])}, TypeError, "`model` must be of one world, got a batch"),
    ],
)
def test_what_does_not_fit_is_refused_at_once(change, error, message):
    given = {"model": MODEL, "wrt": WRT, **change}
    with pytest.raises(error, match=re.escape(message)):
        value_and_grad(loss_of(X), given["model"], *RUN, wrt=given["wrt"])


def test_a_vector_of_another_size_and_a_loss_without_cotangents_are_refused(objective):
    with pytest.raises(ValueError, match=r"`theta` must have shape \(10,\)"):
        objective(np.zeros(3))
    with pytest.raises(ValueError, match="`values` must have the entries"):
        objective({"net.stiffness": 1.0})
    alone = value_and_grad(lambda trajectory: 1.0, MODEL, *RUN, wrt=WRT)
    with pytest.raises(TypeError, match="`loss` must return a number and the cotangents"):
        alone(alone.start)
