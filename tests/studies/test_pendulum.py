"""What a video of a pendulum shows of it, and what it does not."""

import numpy as np
import pytest

from adjsim.reduced.pendulum import PendulumTrajectory
from render.pendulum import RodsAndBobs
from studies import config
from studies.certificate import BESIDE, check_point
from studies.registry import STUDIES, RunOptions
from studies.rods import HangingRods
from tests.studies.toys import TOYS


def problem(study, *overrides):
    """The problem of a toy's first instance, and its truth."""
    settings = config.resolve(study, (*TOYS[study].overrides, *overrides)).values
    fit = STUDIES[study].prepare(settings, RunOptions())
    return fit.problem, fit.truth


def truth_of(problem, truth):
    """The hidden values in the search's own coordinates."""
    return np.concatenate(
        [np.ravel(b.transform.theta(np.stack([truth.values[p] for p in b.paths])))
         for b in problem.parameters.blocks]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("study", "free", "together"),
    [
        # b/(m l^2) and g/l are all that the equation of motion has, and the drawing shows l
        ("pendulum", '["damping", "mass"]', [1.0, 1.0]),
        # M and tau are linear in the masses
        ("double-pendulum", '["mass"]', [1.0, 1.0]),
    ],
)
def test_a_ratio_is_all_that_shows(study, free, together):
    shown, truth = problem(study, f"free={free}")
    _, jacobian = shown.residuals_and_jacobian(truth_of(shown, truth))
    _, values, directions = np.linalg.svd(jacobian, full_matrices=False)
    # tangents of 60 steps and of an image: rounding, some hundred eps
    assert values[-1] < 1e-12 * values[0]
    expected = np.array(together) / np.linalg.norm(together)
    np.testing.assert_allclose(np.abs(directions[-1] @ expected), 1.0, rtol=1e-9)


def test_length_and_gravity_are_both_seen():
    # the swing alone shows their ratio, the drawing the length itself
    shown, truth = problem("pendulum", 'free=["length", "gravity"]')
    _, jacobian = shown.residuals_and_jacobian(truth_of(shown, truth))
    values = np.linalg.svd(jacobian, compute_uv=False)
    assert values[-1] > 1e-2 * values[0]


@pytest.mark.parametrize("study", ["pendulum", "double-pendulum"])
def test_the_gradient_counts_what_is_drawn_and_what_swings(study):
    free = '["length", "gravity", "mass", "angle", "rate"]'
    shown, truth = problem(study, f"free={free}")
    theta = truth_of(shown, truth) + 0.05
    assert check_point(shown, theta, seed=0)["passed"]


def test_a_certificate_at_the_exact_truth_is_made_beside_it():
    shown, truth = problem("double-pendulum", 'free=["angle"]')
    theta = truth_of(shown, truth)
    assert shown.loss_and_gradient(theta)[0] == 0.0
    point = check_point(shown, theta, seed=0)
    assert point["passed"]
    assert point["beside"] == BESIDE
    np.testing.assert_allclose(np.linalg.norm(np.array(point["theta"]) - theta), BESIDE)
    assert check_point(shown, theta + 0.03, seed=0)["beside"] == 0.0


def test_rods_hang_where_the_system_has_them(rng):
    subject = HangingRods(RodsAndBobs([0.2, 0.2], 0.05))
    shown, _ = problem("double-pendulum")
    motion, angle = shown.motion, rng.normal(size=(3, 2))
    run = PendulumTrajectory(np.arange(3), 0.1, angle, np.zeros_like(angle))
    tangent = PendulumTrajectory(np.arange(3), 0.1, rng.normal(size=(3, 2)), run.rate)
    tangents = {"length": rng.normal(size=2), "gravity": 1.0}
    tan = subject.vertices_jvp(motion, run, tangent, tangents)
    adj = rng.normal(size=tan.shape)
    pulled = subject.vertices_vjp(motion, run, adj)
    back = np.vdot(pulled.frames["angle"], tangent.angle)
    back += np.vdot(pulled.values["length"], tangents["length"])
    np.testing.assert_allclose(np.vdot(adj, tan), back, rtol=1e-12)
    still = subject.vertices_jvp(motion, run, tangent, {"gravity": 1.0})
    assert not np.array_equal(still, tan)
