"""Bodies whose shape has an error: markers, error budgets, and the shape fitted beside E."""

from dataclasses import replace

import numpy as np
import pytest

from studies.answer.budget import QUANTILE, budget_at, declared_changes
from studies.answer.evidence import Evidence
from studies.answer.intervals import intervals
from studies.answer.verdict import Kind
from studies.fitting.judging import judge_answer
from studies.optimizers.problem import Status
from studies.problem.clusters import clusters_of_rows
from studies.problem.first_frames import moves_first_frame
from studies.problem.losses import EVIDENCE
from studies.problem.making import make_problem
from studies.scene.reading import scene_from_dict


ERROR = 5e-4
RNG = np.random.default_rng(6)
AT = {"above": [0.1, 0.02, 0.0], "beside": [0.15, 0.0, 0.02], "tip": [0.2, 0.0, 0.0]}


BAR = {
    "kind": "soft", "mesh": "box", "size": [0.2, 0.04, 0.04], "cells": [5, 1, 1],
    "position": [0.1, 0.0, 0.0], "E": 2e4, "shape_error": ERROR, "shape_cells": 1,
}  # fmt: skip


def made(free=("bar.E",), *, marks=None):
    held = {"plane": {"point": [0.001, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}}
    points = {"body": "bar", "at": AT, "error": 1e-4,
              "simulate": {"frames": 6, "duration": 0.2, "noise": 1e-4}}  # fmt: skip
    tables = {
        "bodies": {"bar": BAR | {"held": held}},
        "observations": {"marks": points | (marks or {})},
        "free": {path: {} for path in free},
    }
    if marks:
        tables["cameras"] = {"side": {"eye": [0.1, 0.0, 0.8], "target": [0.1, 0.0, 0.0],
                                      "fov_y": 30.0, "size": [240, 320], "fit": False}}  # fmt: skip
    return make_problem(scene_from_dict(tables))


def with_shape(problem):
    """Return theta with a shape that is not the mesh's."""
    theta = problem.parameters.start.copy()
    theta[1:] += 0.5 * RNG.standard_normal(len(theta) - 1)
    return theta


def test_shapes_are_searched_by_jacobians_unless_another_method_is_declared():
    tables = {"bodies": {"bar": BAR}, "free": {"bar.E": {}}}
    assert scene_from_dict(tables).search.method is None
    tables["free"]["bar.shape"] = {}
    assert scene_from_dict(tables).search.method == "gauss-newton"
    tables["search"] = {"method": "adam"}
    assert scene_from_dict(tables).search.method == "adam"


@pytest.mark.parametrize("marks", [None, {"camera": "side", "error": 0.3}])
def test_markers_stay_where_they_were_measured_and_have_exact_slopes(marks):
    problem = made(("bar.E", "bar.shape"), marks=marks).everything
    theta = with_shape(problem)
    problem = problem.with_steps_for(theta)
    (observer,) = problem.observers
    x = problem.motion_at(theta).state.x
    matrix, _ = observer.reshaped.at(problem.parameters.scene_values(theta), x[None])
    np.testing.assert_allclose(matrix @ x, list(AT.values()), atol=1e-14)
    assert np.abs(observer.matrix @ x - list(AT.values())).max() > 0.1 * ERROR
    tangent = RNG.standard_normal(len(theta))
    pushed = problem.residuals_jvp(theta, tangent)
    adj = RNG.standard_normal(len(pushed))
    h = 1e-4
    ends = [problem.residuals(theta + k * h * tangent) for k in (-2, -1, 1, 2)]
    slope = (8.0 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12.0 * h)
    np.testing.assert_allclose(pushed, slope, atol=1e-8 * np.abs(slope).max())
    pulled = problem.residuals_vjp(theta, adj)
    assert pulled @ tangent == pytest.approx(float(adj @ pushed), rel=1e-10)


def test_a_shape_counts_in_full_and_says_what_its_thickness_does():
    prepared = made()
    problem, theta = prepared.everything, prepared.everything.parameters.start
    r, J = problem.residuals_and_jacobian(theta)
    noise_intervals = intervals(problem.parameters, theta, r, J, frames=clusters_of_rows(problem))
    budget, wider, notes = budget_at(
        problem, theta, noise_intervals, J, numbers=prepared.declared, residuals=r
    )
    C = declared_changes(problem, theta, prepared.declared).residuals
    D = (J.T @ C)[0] / (J.T @ J)[0, 0]
    half = budget.parts["the shape of `bar`"][0]
    assert half == pytest.approx(QUANTILE * np.linalg.norm(D), rel=1e-6)
    assert wider.half_width[0] > noise_intervals.half_width[0]
    (row,) = [row for row in budget.to_dict()["bar.E"]["parts"] if "shape" in row["name"]]
    assert (row["key"], row["error"], row["unit"]) == ("bodies.bar.shape_error", ERROR, "m")
    # what the sentence says is what another shape of the mesh does
    thicker = replace(problem, fixed={"bar.shape": problem.built.shapes["bar"].thicker})
    moved = (
        -float((J.T @ (thicker.residuals(theta) - problem.residuals(theta)))[0]) / (J.T @ J)[0, 0]
    )
    (note,) = notes
    assert note.startswith("If `bar` were 1 % thicker along its shortest side (0.04 m")
    assert note.endswith(f"would come out {100.0 * abs(moved):.2g} % lower.")


def test_a_free_shape_is_no_answer_comes_last_and_counts_by_its_prior():
    prepared = made(("bar.E", "bar.shape"))
    problem = prepared.everything
    theta, parameters = problem.parameters.start, problem.parameters
    assert problem.answers == problem.staged == (0,)
    np.testing.assert_array_equal(parameters.prior_error[1:], 1.0)
    r, J = problem.residuals_and_jacobian(theta)
    noise_intervals = intervals(parameters, theta, r, J, frames=clusters_of_rows(problem))
    budget, _, notes = budget_at(
        problem, theta, noise_intervals, J, numbers=prepared.declared, residuals=r
    )
    # what a prior's mean that is off by its error does to E
    by_mean = np.linalg.solve(J.T @ J, np.eye(len(theta))[1:].T / EVIDENCE)[0]
    half = budget.parts["the shape of `bar`"][0]
    assert half == pytest.approx(QUANTILE * np.linalg.norm(by_mean), rel=1e-6)
    assert "thicker" in notes[0]


def test_a_free_shape_leaves_cameras_to_the_first_frame():
    film = {"simulate": {"height": 24, "width": 32, "frames": 2, "duration": 0.1}}
    tables = {
        "bodies": {"bar": dict(BAR)},
        "cameras": {"side": {"eye": [0.1, 0.0, 0.8], "target": [0.1, 0.0, 0.0], "fov_y": 30.0}},
        "observations": {"film": film},
    }
    for paths, moves in ((["bar.E", "bar.shape"], False), (["bar.E", "bar.position"], True)):
        free = {path: {} for path in paths}
        prepared = make_problem(scene_from_dict(tables | {"free": free}), fits_first=False)
        assert moves_first_frame(prepared.everything) == moves


def test_takes_share_the_shape_of_a_body():
    marks = {"body": "bar", "at": AT, "simulate": {"frames": 2, "duration": 0.1}}
    takes = {name: {"observations": {"marks": marks}} for name in ("first", "second")}
    tables = {"bodies": {"bar": dict(BAR)}, "free": {"bar.E": {}}, "takes": takes}
    prepared = make_problem(scene_from_dict(tables))
    numbers = [number for number in prepared.declared if number.key == "bodies.bar.shape_error"]
    problem = numbers[1].moved(prepared.everything, 1e-4)
    n = prepared.everything.built.values["bar.shape"].value.size
    assert len(numbers) == n
    for path in ("bar.shape", "bar_second.shape"):
        np.testing.assert_array_equal(problem.fixed[path], 1e-4 * np.eye(n)[1])


def test_a_shape_that_ends_far_from_the_mesh_makes_up_for_something():
    prepared = replace(made(("bar.E", "bar.shape")), truth=None)
    problem = prepared.everything
    start = problem.parameters.start
    verdicts = []
    for deviations in (2.0, 4.0):
        theta = start + 0.1 * np.eye(len(start))[0] + deviations * np.eye(len(start))[1]
        loss = problem.loss_and_gradient(theta)[0]
        evidence = Evidence(problem.parameters, theta, Status.CONVERGED, loss)
        verdict, _ = judge_answer(evidence, problem, prepared, looks=[start], predicted=None)
        verdicts.append(verdict)
    assert verdicts[0].kind is not Kind.DOES_NOT_EXPLAIN
    assert verdicts[1].kind is Kind.DOES_NOT_EXPLAIN
    assert verdicts[1].reason.startswith("bar.shape[0] ends 4 standard deviations from what")
