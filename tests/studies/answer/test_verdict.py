"""Each kind of verdict, and what takes precedence."""

import re
from dataclasses import replace

import numpy as np
import pytest

from studies.answer.evidence import Evidence, Rival, how_much_worse
from studies.answer.held_back import Explained, explained
from studies.answer.intervals import intervals, no_intervals, widened
from studies.answer.trial import Trial
from studies.answer.verdict import Kind, judge, judge_each
from studies.optimizers.problem import Status
from studies.problem.parameters import Identity, Parameters, Scaled
from tests.studies.answer.films import FRAMES, TIMES, fit, jacobian, predict
from tests.studies.problem.free import block, positive_block


TRUTH = np.log([6.0, 0.4])


def parameters(low=1.0, high=50.0):
    return Parameters(
        [
            positive_block("bar.k", 0.5 * (low + high), {"bar.k": (low, high)}),
            positive_block("bar.c", 0.5, {"bar.c": (0.01, 5.0)}),
        ]
    )


def moved(theta, step):
    return theta + np.array(step)


def by_frame(squares):
    return squares.reshape(len(TIMES), -1).sum(axis=1)


def evidence(theta, film, free=None, **more):
    """Return the evidence that a fit of the bar would collect."""
    r, J = predict(theta) - film, jacobian(theta)
    free = free or parameters()
    still = by_frame((film.reshape(len(TIMES), -1) - film[: len(film) // len(TIMES)]) ** 2)
    return Evidence(
        free,
        theta,
        more.pop("status", Status.CONVERGED),
        float(r @ r),
        intervals=intervals(free, theta, r, J, frames=FRAMES),
        explained=explained(by_frame(r**2), still),
        residual_squares=by_frame(r**2),
        still_squares=still,
        **more,
    )


@pytest.fixture
def film(rng):
    clean = predict(TRUTH)
    return clean + 0.02 * rng.standard_normal(clean.shape)


def test_a_good_answer_is_found(film):
    verdict = judge(evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film))
    assert verdict.kind is Kind.FOUND
    assert verdict.is_found
    assert "95 % interval with model error" in verdict.reason
    assert verdict.numbers["unexplained"] < 0.01
    assert verdict.to_dict()["kind"] == "found"


def test_an_exact_answer_has_no_interval_to_cite(film):
    noisy = judge(evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film))
    exact = judge(evidence(TRUTH, predict(TRUTH)))
    assert "Cite the interval" in noisy.reason
    assert exact.kind is Kind.FOUND
    assert "Cite the interval" not in exact.reason


def test_a_wrong_basin_does_not_explain_the_footage(film):
    wrong = TRUTH + np.log([2.2, 1.0])
    verdict = judge(evidence(wrong, film))
    assert verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert verdict.numbers["unexplained"] > 0.15
    assert "of the motion unexplained" in verdict.reason


def test_frames_that_are_not_predicted_or_look_wrong_are_not_explained(film):
    good = evidence(TRUTH, film)
    assert good.explained is not None
    verdict = judge(replace(good, explained=replace(good.explained, predicted_unexplained=0.6)))
    assert verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert "60 %" in verdict.reason
    verdict = judge(replace(good, explained=replace(good.explained, first=2.0)))
    assert verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert "The first frame differs by 2 times the motion" in verdict.reason


def test_pictures_are_held_against_their_variance(film):
    good = replace(evidence(TRUTH, film), explained=None)
    assert judge(replace(good, unexplained_pictures=0.01)).is_found
    assert judge(replace(good, unexplained_pictures=0.5)).kind is Kind.DOES_NOT_EXPLAIN


def test_an_answer_at_a_bound_is_said_to_be_there(film):
    bounded = parameters(low=6.6)  # the truth is below
    theta = np.array([bounded.lower[0] + 1e-4, TRUTH[1]])
    theta[1] = fit(film.reshape(len(TIMES), -1), theta)[1]
    verdict = judge(evidence(theta, film, bounded))
    assert verdict.kind is Kind.AT_A_BOUND
    assert verdict.numbers["parameter"] == "bar.k"
    assert verdict.numbers["bound"] == "lower"
    assert verdict.numbers["slope"] > 0.0
    assert "The lower bound of bar.k stops the search at 6.6" in verdict.reason


@pytest.mark.parametrize(("path", "kind"), [("look.texels", "found"), ("heights", "at a bound")])
def test_black_and_white_are_no_bounds_that_stop_a_search(path, kind):
    theta = np.array([0.0, 0.3, 1.0])
    key = f"ball.{path}"
    bounds = {key: (0.0, 1.0)}
    free = Parameters([block(key, Identity(), np.full(3, 0.5), bounds)])
    slope = np.array([1.0, 0.0, -1.0])  # the loss falls beyond both
    answer = Evidence(
        free, theta, Status.CONVERGED, 1e-3, gradient=slope, unexplained_pictures=0.01
    )
    assert str(judge(answer).kind) == kind


def test_a_wide_interval_is_not_determined_and_names_the_combination(rng, film):
    noisy = film + 1.5 * rng.standard_normal(film.shape)
    theta = fit(noisy.reshape(len(TIMES), -1), TRUTH)
    answer = replace(evidence(theta, noisy), explained=None)
    verdict = judge(answer)
    assert verdict.kind is Kind.NOT_DETERMINED
    assert verdict.numbers["relative_half_width"] > 0.2
    assert "The combination determined worst is" in verdict.reason
    assert judge(replace(answer, answers=(0,))).numbers["parameter"] == "bar.k"
    assert "film a motion that shows it better" in verdict.reason
    of_pictures = judge(replace(answer, unexplained_pictures=0.01))
    assert "take a picture that shows it better" in of_pictures.reason
    of_forces = judge(replace(answer, is_of_forces=True))
    assert "measure the force of a load that shows it better" in of_forces.reason


def test_an_answer_that_changes_on_a_finer_mesh_is_not_determined(film):
    good = evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film)
    assert judge(replace(good, refinements={"mesh": np.log([1.04, 0.97])})).is_found
    answer = replace(good, refinements={"mesh": np.log([1.18, 0.97])})
    verdict = judge(answer)
    assert verdict.kind is Kind.NOT_DETERMINED
    assert verdict.reason.startswith("On a mesh twice as fine bar.k would be 18 % larger (at most ")
    assert verdict.numbers["relative_change"] == pytest.approx(0.18)
    assert judge_each(answer) == {"bar.k": "not determined", "bar.c": "found"}
    steps = judge(replace(good, refinements={"step": np.log([1.0, 0.9])}))
    assert steps.reason.startswith("At a shorter time step bar.c would be 10 % smaller")
    contact = judge(replace(good, refinements={"contact": np.log([0.9, 1.0])}))
    assert contact.reason.startswith("With contacts 4 times as hard bar.k would be 10 % smaller")
    loss = judge(replace(good, refinements={"loss": np.log([0.9, 1.0])}))
    assert loss.reason.startswith("With contacts that lose 4 times as much bar.k would be 10 %")
    with_law = replace(good, refinements={"law": np.log([1.02, 0.6])})
    assert judge(with_law).reason.startswith(
        "With the other law of solids, the same at small strains, bar.c would be 40 % smaller"
    )
    assert judge_each(with_law) == {"bar.k": "found", "bar.c": "not determined"}


def test_a_direction_without_a_trace_is_not_determined(film):
    none = no_intervals(2, "a direction of theta leaves no trace in the images")
    none = replace(none, directions=np.sqrt(0.5) * np.array([[1.0, 1.0], [1.0, -1.0]]))
    verdict = judge(replace(evidence(TRUTH, film), intervals=none))
    assert verdict.kind is Kind.NOT_DETERMINED
    assert "0.71 log bar.k - 0.71 log bar.c" in verdict.reason
    many = replace(evidence(TRUTH, film), intervals=no_intervals(2, "more than 256 parameters"))
    assert judge(many).is_found  # nothing is known against it
    verdict = judge(replace(many, needs_intervals=True))
    assert verdict.kind is Kind.NOT_DETERMINED
    assert "more than 256 parameters. Leave fewer parameters free" in verdict.reason


def test_several_answers_are_basins_that_explain_as_much(film):
    good = evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film)
    assert good.residual_squares is not None
    other = moved(good.theta, [0.5, 0.0])
    close = Rival(other, 1.05 * good.loss, 1.0001 * good.residual_squares)
    verdict = judge(replace(good, basins=[Rival(good.theta, good.loss), close]))
    assert verdict.kind is Kind.SEVERAL_ANSWERS
    assert f"bar.k = {np.exp(other[0]):.4g} instead of" in verdict.reason
    left = by_frame((predict(other) - film) ** 2)
    assert judge(replace(good, basins=[Rival(other, float(left.sum()), left)])).is_found
    same = Rival(moved(good.theta, [0.01, 0.0]), good.loss)  # the same basin, a little off
    assert judge(replace(good, basins=[same, Rival(other, np.inf)])).is_found
    assert judge(replace(good, basins=[Rival(other, 1.2 * good.loss)])).kind is Kind.SEVERAL_ANSWERS
    nuisance = Rival(moved(good.theta, [0.0, 0.9]), good.loss)
    assert judge(replace(good, basins=[nuisance], answers=(0,))).is_found


def test_what_is_wrong_in_few_frames_is_not_by_chance_where_the_answer_leaves_nothing(film):
    exact = predict(TRUTH)
    clean = evidence(TRUTH, exact)
    late = np.where(np.arange(len(TIMES)) >= len(TIMES) - 2, 0.1 * clean.still_squares.max(), 0.0)
    late = Rival(moved(TRUTH, [0.5, 0.0]), float(late.sum()), late)
    assert how_much_worse(clean, late) > 5.0
    good = evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film)
    noisy = good.residual_squares.copy()
    noisy[-2:] *= 1.5
    assert how_much_worse(good, replace(late, residual_squares=noisy)) < 1.3


def test_basins_along_a_valley_are_not_determined_rather_than_several_answers(rng, film):
    noisy = film + 1.5 * rng.standard_normal(film.shape)
    theta = fit(noisy.reshape(len(TIMES), -1), TRUTH)
    answer = replace(evidence(theta, noisy), explained=None)
    other = Rival(moved(theta, [3.0, 3.0]), answer.loss)
    assert judge(replace(answer, basins=[other])).kind is Kind.NOT_DETERMINED


@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_search_that_is_not_finished_says_how_much_it_explains(film, is_wrong):
    theta = fit(film.reshape(len(TIMES), -1), TRUTH) + is_wrong * np.log([2.2, 1.0])
    verdict = judge(evidence(theta, film, status=Status.MAX_EVALUATIONS))
    assert verdict.kind is Kind.NOT_FINISHED
    assert (verdict.numbers["unexplained"] > 0.15) == is_wrong
    assert "of the motion is unexplained" in verdict.reason
    assert verdict.reason.startswith("The fit is bad: ") == is_wrong


def test_a_search_that_spent_its_evaluations_before_its_loss_settled_is_not_finished(film):
    theta = fit(film.reshape(len(TIMES), -1), TRUTH)
    spent = evidence(theta, film, status=Status.MAX_EVALUATIONS)
    verdict = judge(spent)
    assert verdict.kind is Kind.NOT_FINISHED
    assert "`search.max_evaluations`" in verdict.reason
    assert judge(replace(spent, status=Status.SETTLED)).is_found


def test_a_camera_that_makes_up_for_a_wrong_motion_does_not_explain_the_footage(film):
    good = evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film)
    assert judge(replace(good, bent=("cameras.front.fov_y", 2.0))).is_found
    verdict = judge(replace(good, bent=("cameras.front.fov_y", 11.0)))
    assert verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert "moves cameras.front.fov_y by 11 of its standard deviations" in verdict.reason


def test_a_second_film_must_be_predicted(film):
    good = evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film)
    assert judge(replace(good, predictions={"side": 0.1})).is_found
    verdict = judge(replace(good, predictions={"side": 0.8}))
    assert verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert "`side` was kept from the search, and the answer leaves 80 %" in verdict.reason


def test_what_looks_wrong_from_the_first_frame_does_not_hide_a_worse_basin(film):
    """A loss is dominated by appearance, and only a little of it is motion."""
    good = evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film)
    assert good.residual_squares is not None
    other = moved(good.theta, [0.5, 0.0])
    left = by_frame((predict(other) - film) ** 2)
    look = 20.0 * left.max()
    same_look = replace(
        good, residual_squares=good.residual_squares + look, loss=good.loss + 31 * look
    )
    worse = Rival(other, float(left.sum()) + 31 * look, left + look)
    assert worse.loss < 1.1 * same_look.loss
    assert judge(replace(same_look, basins=[worse])).is_found


def test_a_search_is_finished_if_no_step_that_matters_is_left(film):
    at_optimum = fit(film.reshape(len(TIMES), -1), TRUTH)
    assert judge(evidence(at_optimum, film, status=Status.STALLED)).is_found
    verdict = judge(evidence(moved(at_optimum, [0.1, 0.3]), film, status=Status.STALLED))
    assert verdict.kind is Kind.NOT_FINISHED
    assert "left in log bar" in verdict.reason


def test_a_search_without_intervals_is_finished_by_its_status_or_at_rounding(film):
    blind = replace(evidence(TRUTH, film), intervals=no_intervals(2, "more than 256 parameters"))
    spent = replace(blind, status=Status.MAX_EVALUATIONS)
    assert judge(spent).kind is Kind.NOT_FINISHED
    assert judge(replace(spent, loss=1e-20, loss_at_start=1.0)).is_found
    assert judge(replace(blind, status=Status.NOT_FINITE)).kind is Kind.NOT_FINISHED


def test_the_truth_of_a_synthetic_study_is_used_against_a_wrong_answer(film):
    answer = replace(evidence(fit(film.reshape(len(TIMES), -1), TRUTH), film), truth=np.exp(TRUTH))
    assert judge(answer).is_found
    verdict = judge(replace(answer, truth=np.array([9.0, 0.4])))
    assert verdict.kind is Kind.NOT_DETERMINED
    assert "bar.k is 33 % off" in verdict.reason


def test_precedence(film):
    """A wrong basin at a bound, with a search that is not finished, is never green."""
    wrong = evidence(moved(TRUTH, [1.0, 0.5]), film, status=Status.MAX_EVALUATIONS)
    assert judge(wrong).kind is Kind.NOT_FINISHED
    assert judge(replace(wrong, status=Status.CONVERGED)).kind is Kind.DOES_NOT_EXPLAIN
    bounded = parameters(low=15.0)
    held = judge(evidence(np.array([bounded.lower[0], TRUTH[1]]), film, bounded))
    assert held.kind is Kind.AT_A_BOUND
    assert held.reason.startswith("The fit is bad: ")
    assert "The lower bound of bar.k stops the search" in held.reason


def test_a_vector_is_held_against_its_length_not_against_a_component_near_zero(rng):
    free = Parameters([block("v", Identity(), np.array([1.0, 0.0, 0.0]))])
    J, r = rng.standard_normal((310, 3)), 0.05 * rng.standard_normal(310)
    theta = np.array([2.0, 1e-4, 0.0])
    r -= J @ np.linalg.lstsq(J, r, rcond=None)[0]
    answer = Evidence(
        free,
        theta,
        Status.CONVERGED,
        float(r @ r),
        intervals=intervals(free, theta, r, J, frames=np.repeat(np.arange(31), 10)),
        explained=Explained(0.0, None, 0.1, 1.0, 31, 0),
    )
    assert judge(answer).is_found
    # 1e-4 with an interval hundreds of times as wide: its width is in units, not in percent
    assert re.search(r"that of v\[1\], ± 0\.0\d+;", judge(replace(answer, answers=(1,))).reason)


def test_a_step_that_is_left_is_held_against_the_value_whatever_the_unit_of_theta(rng):
    free = Parameters([block("k", Scaled(1e6), 1e5, {"k": (1e4, 1e7)})])
    J = rng.standard_normal((310, 1))
    r = J @ [0.1]  # a step of -1e5 is left, all of the value
    answer = Evidence(
        free,
        np.array([0.1]),
        Status.SETTLED,
        float(r @ r),
        intervals=intervals(free, np.array([0.1]), r, J, frames=np.repeat(np.arange(31), 10)),
    )
    assert judge(answer).kind is Kind.NOT_FINISHED


def tried(widening=1.0, lower=None, gain=0.0):
    return Trial(np.array([[0.1, 0.0]]), np.array([widening]), lower, gain, 9)


def test_an_answer_about_which_the_loss_hardly_rises_is_not_finished(film):
    good = evidence(TRUTH, film)
    assert judge(replace(good, trial=tried(1.5))).is_found
    verdict = judge(replace(good, trial=tried(3e4)))
    assert verdict.kind is Kind.NOT_FINISHED
    assert "3e+04 times as wide" in verdict.reason
    assert "dissipation" in verdict.reason
    assert verdict.numbers["widening"] == 3e4
    verdict = judge(replace(good, trial=tried(lower=TRUTH, gain=0.3)))
    assert verdict.kind is Kind.NOT_FINISHED
    assert "30 % lower" in verdict.reason
    answer = replace(good, trial=tried(lower=TRUTH, gain=0.3), film_without_seams="front")
    assert "`observations.front.seams` = true" in judge(answer).reason
    assert "damping" not in judge(answer).reason


def test_an_answer_found_without_gradients_says_so(film):
    verdict = judge(evidence(TRUTH, film, trial=tried(), is_without_gradients=True))
    assert verdict.is_found
    assert "without gradients" in verdict.reason


def test_an_answer_found_without_gradients_may_leave_half_as_much(film):
    good = evidence(TRUTH, film)
    assert good.explained is not None
    left = replace(good.explained, unexplained=0.06, predicted_unexplained=0.15)
    good = replace(good, explained=left)
    assert judge(good).is_found
    without = replace(good, is_without_gradients=True)
    assert judge(without).kind is Kind.DOES_NOT_EXPLAIN
    little = replace(left, unexplained=0.03, predicted_unexplained=0.09)
    assert judge(replace(without, explained=little)).is_found


def test_an_answer_that_equals_its_start_is_not_finished(film):
    good = evidence(TRUTH, film)
    assert judge(replace(good, start=TRUTH + 1e-9)).is_found
    verdict = judge(replace(good, start=TRUTH))
    assert verdict.kind is Kind.NOT_FINISHED
    assert "where the search began" in verdict.reason
    assert judge(replace(good, start=TRUTH, loss_at_start=1e30)).is_found  # it began at the truth


def test_a_simulated_film_must_be_explained_as_well_as_by_its_truth(film):
    good = evidence(TRUTH, film)
    left = good.explained.unexplained
    assert judge(replace(good, unexplained_by_truth=left)).is_found
    worse = replace(good.explained, unexplained=left + 1e-3)
    verdict = judge(replace(good, explained=worse, unexplained_by_truth=left))
    assert verdict.kind is Kind.NOT_FINISHED
    assert "of the simulated motion" in verdict.reason


def test_what_ends_far_from_where_it_is_declared_does_not_explain_the_footage(film):
    good = evidence(TRUTH, film)
    assert judge(replace(good, strayed=("cameras.front.translation[2]", 2.8))).is_found
    verdict = judge(replace(good, strayed=("cameras.front.translation[2]", 6.3)))
    assert verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert "6.3 standard deviations" in verdict.reason
    assert verdict.numbers["parameter"] == "cameras.front.translation[2]"
    verdict = judge(replace(good, size_warning="The scene is drawn 1.3 times larger."))
    assert verdict.kind is Kind.DOES_NOT_EXPLAIN
    assert verdict.reason == "The scene is drawn 1.3 times larger."


def test_every_number_has_a_verdict_of_its_own(film):
    good = evidence(TRUTH, film)
    wide = np.diag([0.0, 0.5**2])
    wider = widened(good.intervals, good.parameters, TRUTH, wide, source="mesh")
    answer = replace(good, intervals=wider)
    assert judge(answer).kind is Kind.NOT_DETERMINED
    assert judge_each(answer) == {"bar.k": "found", "bar.c": "not determined"}
    assert "mesh" in wider.parts
