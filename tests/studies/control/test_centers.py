"""The centre of mass as a picture: its loss is that of states, and so is its gradient."""

import numpy as np
import pytest

from adjoint.verify.dot_test import dot_test
from adjsim.losses import center_of_mass_mse
from studies.control import gear
from studies.control.case import Supervision
from studies.registry import RunOptions
from tests.studies.control.toys import settings


@pytest.fixture(scope="module")
def case():
    return gear.make(settings("control-fem"), RunOptions(), 0)


def test_its_loss_is_the_mean_square_of_the_centres(case):
    problem = case.problem(Supervision.STATES)
    theta = problem.parameters.start
    motion = problem.motion_at(theta)
    run = motion.run()
    mass = motion.system.parameters()["mass"]
    expected = center_of_mass_mse(run.x, mass, case.center[None])
    assert problem.loss_at(theta) == pytest.approx(expected, rel=1e-14)
    away = case.measure(motion, run)["distance"]
    assert problem.loss_at(theta) == pytest.approx(away**2 / 3.0, rel=1e-12)


def test_tangent_and_adjoint_agree(case):
    problem = case.problem(Supervision.STATES)
    theta = problem.parameters.start
    dot = dot_test(
        lambda tangent: problem.residuals_jvp(theta, tangent),
        lambda adj: problem.residuals_vjp(theta, adj),
        theta,
        scale=np.ones_like(theta),
        seed=0,
    )
    assert dot.passed


def test_float32_stays_float32(case):
    problem = case.problem(Supervision.STATES).with_dtype("float32")
    theta = problem.parameters.start
    assert problem.images(theta).dtype == np.float32
    value, gradient = problem.loss_and_gradient(theta)
    exact, precise = problem.with_dtype("float64").loss_and_gradient(theta)
    assert value == pytest.approx(exact, rel=1e-4)
    assert np.linalg.norm(gradient - precise) <= 1e-2 * np.linalg.norm(precise)
