import sys

import numpy as np
import pytest

from studies.api import OwnResiduals, Problem, fit, simulate
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.scene.declared import Free, PlaneObstacle, Points, Scene, Simulated, Soft
from studies.scene.reading import plain, scene_from_dict


TIMES = np.arange(8) / 24.0
SCENE = Scene(
    bodies={
        "cube": Soft(
            mesh="box",
            size=(0.2, 0.2, 0.2),
            cells=(2, 2, 2),
            position=(0.0, 0.13, 0.0),
            E=2e4,
            nu=0.3,
        )
    },
    obstacles={"floor": PlaneObstacle()},
)


def heights(surfaces):
    y = surfaces["cube"][:, :, 1]
    return np.stack([y.mean(axis=1), np.square(y).mean(axis=1)], axis=1)


def heights_vjp(surfaces, adj_r):
    y = surfaces["cube"][:, :, 1]
    adj = np.zeros_like(surfaces["cube"])
    adj[:, :, 1] = (adj_r[:, :1] + 2.0 * y * adj_r[:, 1:]) / y.shape[1]
    return {"cube": adj}


def problem(target, **more):
    observation = OwnResiduals(TIMES, lambda s: heights(s) - target, heights_vjp, **more)
    return Problem(SCENE, {"height": observation}, {"cube.E": Free(bounds=(2e3, 2e5))})


@pytest.fixture(scope="module")
def target():
    return heights(simulate(SCENE, TIMES, {"cube.E": 9e3}).surfaces)


def test_a_value_is_found_from_residuals_of_ones_own(target):
    answer = fit(problem(target))
    assert answer.values["cube.E"] == pytest.approx(9e3, rel=1e-4)
    (row,) = answer.rows()
    low, high = answer.intervals["cube.E"]
    expected = {"name": "cube.E", "unit": "Pa", "value": float(answer.values["cube.E"])}
    assert row == {**expected, "lower": low, "upper": high, "verdict": "found"}
    first, second = answer.table().splitlines()
    assert first.startswith("found: ")
    assert second.split()[:3] == ["cube.E", f"{row['value']:.6g}", "Pa"]
    assert answer.verdict.is_found
    assert answer.verdict.numbers["unexplained"] < 1e-6


def test_residuals_are_predicted_to_judge_the_answer(target):
    fitted = problem(target).observations["height"]
    off = problem(1.01 * target, validate=True).observations["height"]
    free = {"cube.E": Free(bounds=(2e3, 2e5))}
    answer = fit(Problem(SCENE, {"height": fitted, "other": off}, free))
    r, still = np.square(0.01 * target), np.square(1.01 * (target - target[0]))
    expected = (r[1:] - r[0]).sum() / still.sum()
    assert answer.solved.validation == {"other": pytest.approx(max(expected, 0.0), abs=1e-6)}


def test_what_was_predicted_is_fitted_in_the_end(target):
    """The final fit is that of both, though only one was searched."""
    fitted = problem(target).observations["height"]
    other = heights(simulate(SCENE, TIMES, {"cube.E": 9.5e3}).surfaces)
    kept = problem(other, validate=True).observations["height"]
    free = {"cube.E": Free(bounds=(2e3, 2e5))}
    answer = fit(Problem(SCENE, {"height": fitted, "other": kept}, free))
    both = answer.solved.problem
    assert {observer.name for observer in both.observers} == {"height", "other"}
    _, gradient = both.loss_and_gradient(answer.solved.result.theta)
    _, before = both.loss_and_gradient(np.log([9e3]))
    assert np.abs(gradient).max() < 1e-3 * np.abs(before).max()
    assert 9.1e3 < answer.values["cube.E"] < 9.4e3
    low, high = answer.intervals["cube.E"]
    assert low < answer.values["cube.E"] < high
    left = answer.solved.validation["other"]
    assert left is not None
    assert 1e-6 < left < 0.05


def test_a_value_that_leaves_no_trace_is_not_determined():
    before_contact = np.arange(6) / 120.0
    target = heights(simulate(SCENE, before_contact, {"cube.E": 9e3}).surfaces)
    observation = OwnResiduals(before_contact, lambda s: heights(s) - target, heights_vjp)
    free = {"floor.friction": Free(start=0.3, bounds=(0.01, 1.0))}
    verdict = fit(Problem(SCENE, {"height": observation}, free)).verdict
    assert str(verdict.kind) == "not determined"
    assert "leaves no trace" in verdict.reason
    assert "floor.friction" in verdict.reason


@pytest.mark.parametrize("n", [3, len(TIMES)])
def test_gradient_and_jacobian_agree_on_the_first_frames(target, n):
    free = {
        "cube.E": Free(),
        "cube.velocity": Free(),
        "observations.height.start": Free(start=0.005),
    }
    declared_problem = problem(target, start=0.005)
    made = Problem(SCENE, declared_problem.observations, free).make().problem.first_frames(n)
    theta = made.parameters.start
    r, jacobian = made.residuals_and_jacobian(theta)
    loss, gradient = made.loss_and_gradient(theta)
    assert loss == pytest.approx(r @ r)
    assert np.abs(2.0 * (jacobian.T @ r) - gradient).max() <= 1e-6 * np.abs(gradient).max()
    assert np.linalg.norm(jacobian, axis=0)[[0, 2, -1]].min() > 0.0


def test_residuals_of_another_shape_are_refused():
    observation = OwnResiduals(TIMES, lambda s: heights(s)[1:], heights_vjp)
    with pytest.raises(ValueError, match="one row for each of the 8 frames"):
        Problem(SCENE, {"height": observation}, {"cube.E": Free()}).make()


def half_of_one_term(surfaces, adj_r):
    return heights_vjp(surfaces, adj_r * [1.0, 0.5])


def of_an_unknown_body(surfaces, adj_r):
    return {"duck": heights_vjp(surfaces, adj_r)["cube"]}


def of_another_shape(surfaces, adj_r):
    return {"cube": heights_vjp(surfaces, adj_r)["cube"][:, 1:]}


def of_no_body(surfaces, adj_r):
    return heights_vjp(surfaces, adj_r)["cube"]


def not_a_number(surfaces, adj_r):
    return {"cube": np.nan * heights_vjp(surfaces, adj_r)["cube"]}


@pytest.mark.parametrize(
    ("vjp", "message"),
    [
        (
            half_of_one_term,
            r"`observations.height.vjp` must be the transposed derivative of `residuals`, but .* "
            r"gives 0\.75 times",
        ),
        (of_an_unknown_body, r"`observations.height.vjp`: Unknown body `duck`. Known: cube"),
        (of_another_shape, r"shape of the vertices for 'cube', \(8, 26, 3\), got \(8, 25, 3\)"),
        (of_no_body, "must return arrays by body, such as {'cube': adj_vertices}, got ndarray"),
        (not_a_number, "`observations.height.vjp` must return finite numbers, got NaN"),
    ],
)
def test_a_wrong_vjp_is_refused_before_the_search(target, vjp, message):
    observation = OwnResiduals(TIMES, lambda s: heights(s) - target, vjp)
    with pytest.raises(ValueError, match=message):
        fit(Problem(SCENE, {"height": observation}, {"cube.E": Free(bounds=(2e3, 2e5))}))


def test_a_wrong_jvp_is_refused_and_a_right_one_is_not(target):
    def pushed(surfaces, tan):
        y, tan_y = surfaces["cube"][:, :, 1], tan["cube"][:, :, 1]
        return np.stack([tan_y.mean(axis=1), 2.0 * (y * tan_y).mean(axis=1)], axis=1)

    problem(target, jvp=pushed).make()
    with pytest.raises(
        ValueError, match=r"height.jvp` must be the derivative of .* gives -1 times"
    ):
        problem(target, jvp=lambda surfaces, tan: -pushed(surfaces, tan)).make()


@pytest.mark.parametrize("begins", [True, False])
def test_residuals_that_are_no_numbers_are_refused(target, begins):
    def residuals(surfaces):
        r = heights(surfaces) - target
        falls = surfaces["cube"][-1, :, 1].mean() < surfaces["cube"][0, :, 1].mean() - 1e-6
        r[3] = np.nan if falls or begins else r[3]
        return r

    observation = OwnResiduals(TIMES, residuals, heights_vjp)
    where = "bodies that stay where they begin" if begins else r"in frame 3 \(counted from 0\)"
    with pytest.raises(ValueError, match=f"height.residuals` must return finite numbers.*{where}"):
        Problem(SCENE, {"height": observation}, {"cube.E": Free(bounds=(2e3, 2e5))}).make()


def test_kinks_of_residuals_are_no_mistake_of_their_vjp(target):
    def residuals(surfaces):
        steps = np.floor(1e7 * heights(surfaces))
        return np.concatenate([heights(surfaces) - target, steps], axis=1)

    def vjp(surfaces, adj_r):
        return heights_vjp(surfaces, adj_r[:, :2])

    observation = OwnResiduals(TIMES, residuals, vjp)
    Problem(SCENE, {"height": observation}, {"cube.E": Free(bounds=(2e3, 2e5))}).make()


MODULE = """
from studies.api import OwnResiduals
from tests.studies.problem.test_own import TIMES, heights, heights_vjp

def of_cube(target, scale=1.0):
    return OwnResiduals(TIMES, lambda s: scale * (heights(s) - target),
                        lambda s, adj_r: heights_vjp(s, scale * adj_r))

def nothing():
    return 1.0
"""


@pytest.fixture
def declared(tmp_path, monkeypatch):
    """Return a function that makes the problem of a scene file, with a module beside it."""
    (tmp_path / "own_heights.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ADJSIM_MODULES", "own_heights")

    def make(**table):
        tables = {
            **plain(SCENE),
            "observations": {"height": table},
            "free": {"cube.E": {"bounds": [2e3, 2e5]}},
        }
        return make_problem(scene_from_dict(tables, tmp_path))

    yield make
    sys.modules.pop("own_heights", None)


def test_a_scene_file_names_residuals_of_ones_own(declared, target):
    values = {"target": target.tolist()}
    problem = declared(type="own_heights:of_cube", values=values, weight=4.0).problem
    (observer,) = problem.observers
    assert (observer.name, observer.weight) == ("height", 4.0)
    theta = problem.parameters.start
    true = problem.parameters.theta(np.array([9e3]))
    assert problem.loss_at(true) < 1e-4 * problem.loss_at(theta)  # steps of other sizes
    twice = declared(type="own_heights:of_cube", values={**values, "scale": 2.0}, weight=1.0)
    assert twice.problem.loss_at(theta) == pytest.approx(problem.loss_at(theta), rel=1e-12)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"type": "own_height:of_cube"}, "runs no code that you have not allowed"),
        ({"type": "os:putenv", "values": {"name": "A", "value": "1"}}, "that you have not allowed"),
        ({"type": "__main__:print"}, "runs no code that you have not allowed"),
        ({"type": "own_heights:heights"}, "must be module:function, a function of that module"),
        ({"type": "own_heights:__init__"}, "must be module:function, a function of that module"),
        ({"type": "own_heights:__reduce__"}, "must be module:function, a function of that module"),
        ({"type": "own_heights:of_cubes"}, "`observations.height.type` must be module:function"),
        ({"type": "own_heights:of_cube"}, "`observations.height.values` must be arguments of .*"),
        ({"type": "own_heights:nothing"}, "must return a `studies.api.OwnResiduals`, got float"),
    ],
)
def test_a_function_that_does_not_serve_is_refused(declared, table, message):
    with pytest.raises(StudyError, match=message):
        declared(**table)


def test_points_that_are_simulated_stand_beside_residuals_of_ones_own(target):
    observation = OwnResiduals(TIMES, lambda s: heights(s) - target, heights_vjp)
    corner = Points(
        body="cube", at={"a": (0.1, 0.23, 0.1)}, simulate=Simulated(frames=4, duration=0.2)
    )
    both = {"height": observation, "corner": corner}
    problem = Problem(SCENE, both, {"cube.E": Free(bounds=(2e3, 2e5))}).make().problem
    assert {observer.name for observer in problem.observers} == set(both)
