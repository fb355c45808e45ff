"""The pushed cube: its inertia, its mistakes, and a search that finds its mass."""

import numpy as np
import pytest

from studies import config, pushed_cube
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method
from studies.registry import RunOptions


CUBE = ("time.dt=0.1", "time.steps=6", "time.frames=3", "image.height=16", "image.width=16")


def fit(*overrides):
    settings = config.resolve("pushed-cube", (*CUBE, *overrides)).values
    return pushed_cube.prepare(settings, RunOptions())


def test_the_inertia_is_that_of_point_masses(rng):
    points = rng.standard_normal((5, 3))
    tensor = sum(point @ point * np.eye(3) - np.outer(point, point) for point in points)
    found = pushed_cube.corner_inertia(points)
    rows, columns = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
    assert np.allclose(found, tensor[rows, columns], rtol=1e-14)


def test_mass_and_inertia_scale_with_the_corners():
    problem = fit().problem
    values = problem.parameters.rollout_values(np.log([0.5]))
    # Eight corners at distance 1: 2/3 of each squared distance counts about an axis.
    assert values["cube.mass"] == pytest.approx(4.0)
    assert np.allclose(values["cube.inertia"], 0.5 * 8 * np.array([2, 2, 2, 0, 0, 0]) / 3)


def test_the_centre_falls_as_newton_says():
    problem = fit().problem
    motion = problem.motion
    run = problem.trajectory(np.log([1.0]))
    n = motion.frames  # after n semi-implicit steps from rest: a dt^2 n (n + 1)/2
    fall = -20.0 / 8.0 * motion.dt**2 * n * (n + 1) / 2.0
    assert np.allclose(run.bodies["cube"].position[:, 0, 1], fall, rtol=1e-13)


def test_the_mass_is_found():
    problem = fit().problem
    found = minimize(
        problem, problem.parameters.start, Method.GAUSS_NEWTON, max_evaluations=40, tolerance=1e-10
    )
    assert np.exp(found.theta[0]) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cube.mass=0.0", "`cube.mass` must be positive"),
        ("cube.radius=-1.0", "`cube.radius` must be positive"),
        ("start.mass=0.0", "`start.mass` must be positive"),
        ("cube.color=[1.0]", r"`cube.color` must have shape \(3,\)"),
        ("push.force=[1.0]", r"`push.force` must have shape \(3,\)"),
        ("push.corners=[8]", r"`push.corners` must name corners, 0 to 7, got \[8\]"),
        ("push.corners=[]", "`push.corners` must name corners"),
        (
            "bounds.mass=[2.0, 1.0]",
            r"`bounds.mass` must be \[low, high\] with low < high, got \[2, 1\]",
        ),
    ],
)
def test_mistakes_are_told_by_their_key(override, message):
    with pytest.raises(ValueError, match=message):
        fit(override)
