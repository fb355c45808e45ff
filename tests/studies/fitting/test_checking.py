"""`adjsim check`: what can be determined, before any search."""

import json
import re

import numpy as np
import pytest

from studies.fitting import checking
from studies.fitting.checking import determined, expected_intervals
from studies.fitting.spread import expected_covariance
from studies.optimizers.jacobian import Jacobian
from studies.problem.losses import EVIDENCE
from studies.problem.making import make_problem
from studies.scene.reading import scene_from_dict
from tests.studies.command import adjsim


MASS = "free.rod.mass={bounds=[0.1,10]}"  # the motion shows damping over mass alone


def test_a_scene_that_shows_what_is_asked_for_is_fine():
    out = adjsim.done("check", "pendulum")
    assert "rank: 4 of 4 directions determined" in out
    assert "time: 20 frames, 300 steps of 0.01 s" in out
    for name in ("rod.length", "world.gravity", "rod.damping", "rod.angle"):
        assert name in out
    for line in ("growth of the gradient", "one evaluation"):
        assert line in out
    assert re.search(r"largest part of the interval of rod\.length: .* %, for ", out)
    assert "not determined" not in out
    assert "advice" not in out


def test_numbers_that_act_alike_are_not_determined():
    out = adjsim.done("check", "pendulum", MASS, "--json")
    result = json.loads(out)
    assert (result["rank"], result["asked"]) == (4, 5)
    determined_names = {name for name, row in result["numbers"].items() if row["is_determined"]}
    assert determined_names == {"rod.length", "world.gravity", "rod.angle"}
    worst = result["worst_direction"]
    assert set(worst) == {"log rod.mass", "log rod.damping"}
    np.testing.assert_allclose(list(worst.values()), np.sqrt(0.5), rtol=1e-3)
    (advice,) = result["advice"]
    assert advice.startswith("rod.damping and rod.mass cannot be determined to ± 20 %")
    out = adjsim("check", "pendulum", MASS)[1]
    assert "any value" in out
    assert "advice: rod.damping and rod.mass" in out


def test_a_simulation_that_blows_up_at_the_start_is_said_to():
    out = adjsim.done("check", "pendulum", "free.rod.damping={start=1e9,bounds=[0.1,1e12]}")
    assert "advice: At the start values the simulation blows up." in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere"),
        (["pendulum", "free.rod.lenght={}"], "lenght"),
        (["smoke"], '`purpose` must be "identify", got "control"'),
    ],
)
def test_bad_input_is_one_message(arguments, message):
    code, out, err = adjsim("check", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_no_mistake_of_many_is_left_out():
    err = adjsim.refused("check", "pendulum", *(f"free.rod{k}.length={{}}" for k in range(30)))
    assert err.startswith("adjsim: 30 mistakes in ")
    assert all(f"`rod{k}`" in err for k in range(30))


@pytest.fixture(scope="module")
def tracks():
    """Return the problem of a cube that flies freely, whose velocity two tracked points show."""
    mesh = {"kind": "rigid", "mesh": "box", "size": [0.2, 0.2, 0.2], "velocity": [1.0, 2.0, 0.5]}
    at = {"a": [0.1, 0.0, 0.0], "b": [0.0, 0.1, 0.0]}
    marks = {"body": "cube", "at": at, "error": 0.02, "simulate": {"frames": 6, "duration": 0.5}}
    tables = {"bodies": {"cube": mesh}, "observations": {"marks": marks}}
    tables["free"] = {"cube.velocity": {"start": [0.9, 1.9, 0.4]}}
    problem = make_problem(scene_from_dict(tables)).problem
    return problem, problem.residuals_and_jacobian(problem.parameters.start)[1]


def test_the_expected_noise_of_points_is_their_error(tracks):
    problem, J = tracks
    (observer,) = problem.observers
    D = problem.parameters.natural_rates(problem.parameters.start)
    covariance = expected_covariance(problem, problem.parameters.start, J)
    assert covariance is not None
    deviation = D * np.sqrt(np.diag(covariance))
    times = observer.times  # x = x0 + v t of two points with an error of 0.02 m each
    expected = 0.02 / np.sqrt(2.0 * np.sum(times**2))
    np.testing.assert_allclose(deviation, expected, rtol=1e-3)


def test_what_nothing_shows_is_known_as_well_as_its_prior(tracks):
    problem, J = tracks
    p, error = problem.parameters.size, 0.3
    blind = np.zeros(J.shape)
    blind[-p:] = np.eye(p) / (error * np.sqrt(EVIDENCE))
    covariance = expected_covariance(problem, problem.parameters.start, Jacobian.of(blind))
    assert covariance is not None
    np.testing.assert_allclose(covariance, error**2 * np.eye(p), rtol=1e-9, atol=1e-12)


def test_what_starts_at_zero_is_measured_in_its_unit(tracks):
    problem, _ = tracks
    theta = np.zeros(problem.parameters.size)
    outcome = determined(problem, theta, expected_intervals(problem, theta, 0.0)[0])
    assert outcome.rank == 3
    for row in outcome.numbers.values():
        assert row["start"] == 0.0
        assert 0.0 < row["relative_half_width"] < 0.2
        assert row["is_determined"]


def test_many_numbers_have_no_intervals(tracks, monkeypatch):
    problem, _ = tracks
    monkeypatch.setattr(checking, "MOST_TANGENTS", 2)
    reason = expected_intervals(problem, problem.parameters.start, 0.0)[0].reason
    assert reason == "more than 2 numbers are free"


def test_a_picture_of_what_rests_asks_for_pictures_and_names_held_nodes():
    out = adjsim.done("check", "sagging-beam", "free.beam.density={start=1000}")
    assert "or take a picture that shows it better" in out
    assert "film" not in out
    assert "(16 of 208 nodes held)" in out
