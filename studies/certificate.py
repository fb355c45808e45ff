"""The gradient certificate of a run: Taylor and dot tests of its own loss, as JSON.

The loss of a video is smooth but for small jumps where two faces swap their depth order at
a pixel. A Taylor sweep that crosses one has slope 0 there, whatever the gradient. So sweeps
are made in several directions and from several largest steps, all are kept, and one whose
remainder falls at the full rate over four halvings proves the gradient: a wrong one has no
such sweep, in any direction.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from adjoint.verify.dot_test import dot_test
from adjoint.verify.taylor_test import TaylorTest, taylor_test
from studies.manifest import machine, now, versions
from studies.registry import RunOptions
from studies.video_problem import VideoProblem


SWEEPS = ((1e-4, 8), (1e-5, 6), (1e-3, 8))  # largest step in theta, halvings
DIRECTIONS = 4  # each taken forwards and backwards: a jump lies on one side
LARGEST_JUMP = 10.0  # slope1 above this is a jump out of the sweep, not a rate


def certificate(problem: VideoProblem, theta: np.ndarray, options: RunOptions) -> dict[str, Any]:
    """Return the certificate at the start and at the optimum `theta`, in float64."""
    exact = problem.with_dtype("float64")
    points = {
        "start": check_point(exact, problem.parameters.start, options.seed),
        "optimum": check_point(exact, theta, options.seed),
    }
    return {
        "passed": all(point["passed"] for point in points.values()),
        "loss": repr(problem.loss),
        "points": points,
        "schedule": "store all",
        "dtype": "float64",
        "seed": options.seed,
        "versions": versions(),
        "machine": machine(),
        "made": now(),
    }


def check_point(problem: VideoProblem, theta: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the outcome of both tests at theta."""
    loss, gradient = problem.loss_and_gradient(theta)
    sweeps = taylor_sweeps(problem, theta, gradient, seed)
    best = next((sweep for sweep in sweeps if sweep.passed), sweeps[0])
    dot = dot_test(
        lambda tangent: problem.residuals_jvp(theta, tangent),
        lambda adj: problem.residuals_vjp(theta, adj),
        theta,
        scale=np.ones_like(theta),
        seed=seed,
    )
    images = problem.images(theta)
    shown = float(np.mean(images[..., 3] > 0.5))
    return {
        "passed": best.passed and dot.passed and shown > 0.0,
        "theta": theta.tolist(),
        "loss": loss,
        "gradient": gradient.tolist(),
        "gradient_norm": float(np.linalg.norm(gradient)),
        "covered_pixels": shown,
        "taylor": best.to_dict(),
        "sweeps": [
            {"eps0": float(s.eps[0]), "passed": s.passed, "slope1": s.to_dict()["slope1"]}
            for s in sweeps
        ],
        "dot": dot.to_dict(),
    }


def taylor_sweeps(
    problem: VideoProblem, theta: np.ndarray, gradient: np.ndarray, seed: int
) -> list[TaylorTest]:
    """Return the sweeps up to and including the first that passes."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((DIRECTIONS, theta.size))
    units = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    sweeps = []
    for direction in np.stack([units, -units], axis=1).reshape(-1, theta.size):
        for eps0, halvings in SWEEPS:
            test = taylor_test(
                problem.loss_at,
                gradient,
                theta,
                direction,
                eps0=eps0,
                n_halvings=halvings,
                scale=np.ones_like(theta),
            )
            if test.slope1 > LARGEST_JUMP and not test.is_linear:
                test = replace(test, reason="the sweep crosses a jump")
            sweeps.append(test)
            if test.passed:
                return sweeps
    return sweeps
