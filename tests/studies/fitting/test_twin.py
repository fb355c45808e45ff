"""Observations simulated with a hidden truth: what they show, and what the result says of it."""

from dataclasses import replace

import numpy as np
import pytest

from studies.answer.certificate import BESIDE, check_point
from studies.fitting.solve import solve
from studies.fitting.spread import pixel_covariance
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.reading import scene_from_dict
from tests.studies.fitting.twins import GRAVITY, LENGTH, tables, twin


TRUTH = {"rod.length": np.array(LENGTH), "world.gravity": np.array(GRAVITY)}
CUBE = {
    "kind": "soft",
    "mesh": "box",
    "size": [0.2, 0.2, 0.2],
    "cells": [1, 1, 1],
    "position": [0.0, 0.12, 0.0],
    "velocity": [0.2, -0.5, 0.0],
    "E": 2e4,
    "nu": 0.3,
}
CUBE_SCENE = {
    "bodies": {"cube": CUBE},
    "obstacles": {"floor": {"friction": 0.3}},
    "cameras": {"front": {"eye": [0.3, 0.3, 0.9], "target": [0.0, 0.1, 0.0], "fov_y": 30.0}},
    "world": {"dt": 1e-3, "duration": 0.2},
    "observations": {"film": {"simulate": {"height": 24, "width": 32, "frames": 4}}},
}


def films(problem):
    return {observer.name: observer.frames for observer in problem.observers}


def test_a_simulated_film_is_what_the_problem_draws_at_the_truth():
    problem = make_problem(twin()).problem
    (observer,) = problem.observers
    drawn = problem.predictions(TRUTH)[0][:, :3]
    np.testing.assert_array_equal(observer.targets(), drawn)
    assert np.ptp(drawn) > 0.1
    np.testing.assert_allclose(observer.times, 0.1 * np.arange(1, 9))
    at_truth = problem.parameters.theta(np.array([LENGTH, GRAVITY]))
    scale = problem.loss_at(problem.parameters.start)
    assert problem.loss_at(at_truth) < 1e-24 * scale


def test_nothing_of_a_twin_is_fitted_beside_the_answers_unless_it_is_asked_for():
    assert make_problem(twin()).problem.parameters.paths == ("rod.length", "world.gravity")
    camera = {**tables()["cameras"]["front"], "fit": True}
    paths = make_problem(twin(cameras={"front": camera})).problem.parameters.paths
    assert "cameras.front.fov_y" in paths


def test_the_truth_may_differ_from_what_the_fit_takes_for_known():
    wrong = make_problem(twin(truth={"rod.damping": 2.0})).problem
    right = make_problem(twin(truth={})).problem
    at = np.log([1.0, 10.0])
    assert right.loss_at(at) < 1e-20
    assert wrong.loss_at(at) > 1e-6


def test_noise_follows_from_its_seed_and_bytes_are_whole():
    def film(run_seed, **more):
        simulate = {"height": 24, "width": 32, "frames": 8, **more}
        observation = {**tables()["observations"]["film"], "simulate": simulate}
        file = twin(run_seed, observations={"film": observation})
        return films(make_problem(file).problem)["film"]

    clean, noisy = film(0), film(0, noise=0.05)
    assert np.std(noisy - clean) == pytest.approx(0.05, rel=0.05)
    np.testing.assert_array_equal(noisy, film(0, noise=0.05))
    assert not np.array_equal(noisy, film(1, noise=0.05))
    np.testing.assert_array_equal(film(0, noise=0.05, seed=3), film(1, noise=0.05, seed=3))
    levels = 255.0 * film(0, noise=0.05, eight_bit=True)
    np.testing.assert_allclose(levels, np.rint(levels), atol=1e-10)
    assert levels.min() >= 0.0
    assert levels.max() <= 255.0


def test_points_and_states_are_simulated_too():
    simulate = {"frames": 3}
    observations = {
        "nodes": {"body": "cube", "simulate": simulate},
        "corner": {"body": "cube", "simulate": simulate, "at": {"a": [0.1, 0.02, 0.1]}},
    }
    file = {**CUBE_SCENE, "observations": observations, "free": {"cube.E": {"start": 4e4}}}
    problem = make_problem(scene_from_dict(file)).problem
    nodes, corner = problem.observers
    assert nodes.places.shape == (3, 8, 3)
    assert corner.places.shape == (3, 1, 3)
    assert np.abs(nodes.places - corner.places).sum(axis=-1).min(axis=1).max() < 1e-12
    nodes_only = replace(problem, observers=(nodes,))
    assert nodes_only.loss_at(np.log([2e4])) < 1e-12 * nodes_only.loss_at(
        nodes_only.parameters.start
    )


def test_components_of_a_value_are_free_with_a_right_gradient():
    free = {
        "cube.velocity[0]": {"start": 0.4},
        "world.gravity[1]": {"start": -9.0},
        "world.gravity[0]": {"tied_to": "cube.velocity[0]", "factor": 2.0},
    }
    truth = {"cube.velocity[0]": 0.5, "world.gravity[0]": 0.3}
    file = scene_from_dict({**CUBE_SCENE, "obstacles": {}, "free": free, "truth": truth})
    made = make_problem(file)
    problem, theta = made.problem, made.problem.parameters.start
    values = problem.parameters.scene_values(theta)
    np.testing.assert_allclose(values["cube.velocity"], [0.4, -0.5, 0.0])
    np.testing.assert_allclose(values["world.gravity"], [0.8, -9.0, 0.0])
    _, gradient = problem.loss_and_gradient(theta)
    for k, direction in enumerate(1e-5 * np.eye(2)):
        change = problem.loss_at(theta + direction) - problem.loss_at(theta - direction)
        assert gradient[k] == pytest.approx(change / 2e-5, rel=1e-5)
    held = problem.at(theta + 0.1, keep=(1,))
    assert held.parameters.paths == ("world.gravity[1]",)
    assert held.loss_at(held.parameters.start) == problem.loss_at(theta + 0.1)
    assert made.truth.flat(problem.parameters.paths).tolist() == [0.5, -9.81]


@pytest.mark.parametrize(
    ("free", "said"),
    [
        ({"cube.velocity[3]": {}}, "must name a component of 3 numbers"),
        ({"cube.velocity": {}, "cube.velocity[0]": {}}, "is free already"),
        ({"cube.vel[0]": {}}, "Unknown"),
    ],
)
def test_a_wrong_component_is_an_error(free, said):
    with pytest.raises(StudyError, match=said):
        make_problem(scene_from_dict({**CUBE_SCENE, "free": free}))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"truth": {"rod.lenght": 1.0}}, "Did you mean|Known"),
        ({"truth": {"rod.length": [1.0, 2.0]}}, "must have the shape"),
        ({"truth": {"bar.length": 1.0}}, "bar"),
        ({"world": {"gravity": [0.0, -10.0, 0.0]}}, "world.duration"),
        ({"observations": {"film": {"kind": "film"}}}, "`video` or a table `simulate`"),
    ],
)
def test_what_does_not_fit_is_said(more, said):
    with pytest.raises(StudyError, match=said):
        make_problem(twin(**more))


def test_a_film_that_shows_nothing_is_refused():
    camera = {"eye": [0.0, -0.5, 4.0], "target": [0.0, -0.5, 8.0], "fov_y": 45.0}
    with pytest.raises(StudyError, match="sees nothing of the motion"):
        make_problem(twin(cameras={"front": camera}))


@pytest.mark.parametrize("method", ["gauss-newton", "l-bfgs-b", "adam", "polyak"])
def test_every_method_goes_towards_the_truth(tmp_path, method):
    made = make_problem(twin())
    how = replace(twin().search, method=method, learning_rate=0.05, max_evaluations=60)
    with EvaluationProgress(60) as progress:
        solved = solve(made, how, RunFolder(tmp_path), progress)
    errors = made.truth.errors(made.problem.parameters.paths, np.exp(solved.result.theta))
    assert solved.result.loss < 0.05 * made.problem.loss_at(made.problem.parameters.start)
    if method == "gauss-newton":
        assert errors.max() < 1e-13
        assert solved.verdict.kind.value == "found"
        low, high = solved.intervals.pixel
        assert (high - low < 1e-10).all()


def test_a_certificate_at_the_exact_truth_is_made_beside_it():
    problem = make_problem(twin()).problem
    theta, (observer,) = problem.parameters.start, problem.observers
    exact = replace(problem, observers=(observer.simulated(problem.predicted_rows(theta)),))
    assert exact.loss_and_gradient(theta)[0] == 0.0
    point = check_point(exact, theta, seed=0)
    assert point["passed"]
    assert point["beside"] == BESIDE
    np.testing.assert_allclose(np.linalg.norm(np.array(point["theta"]) - theta), BESIDE)
    assert check_point(exact, theta + 0.03, seed=0)["beside"] == 0.0


def test_intervals_of_pixel_noise_know_that_blurred_levels_share_their_noise(rng):
    observation = tables()["observations"]["film"]
    observation["simulate"]["noise"] = 0.05
    problem = make_problem(twin(observations={"film": observation})).problem
    theta = problem.parameters.theta(np.array([LENGTH, GRAVITY]))
    r, J = problem.residuals_and_jacobian(theta)
    covariance = pixel_covariance(problem, theta, r, J)
    (observer,) = problem.observers
    noise = 0.05 * rng.standard_normal((300, len(observer.targets()), 3))
    blank = np.zeros((noise.shape[1], 4))
    pulled = np.stack(
        [
            J[:-2].T @ observer.residuals_jvp(np.column_stack([sample, blank[:, 3]]))
            for sample in noise
        ]
    )
    drawn = np.cov(np.linalg.solve(J.T @ J, pulled.T))
    np.testing.assert_allclose(np.diag(covariance), np.diag(drawn), rtol=0.2)
    plain = np.diag(np.linalg.inv(J.T @ J)) * (r @ r) / (len(r) - 2)
    assert (plain < 0.8 * np.diag(drawn)).all()
