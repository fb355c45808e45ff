"""`--checkpoint`: a budget changes which states are kept, and no number."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.schedules import as_schedule
from studies.answer.certificate import certificate
from studies.answer.kinks import margins, nearest_touch
from studies.control.searching import Watched, watched_problem
from studies.fitting.fit import make_fit
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.runs.memory import Plan, states_within
from studies.runs.options import RunOptions
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene
from tests.studies.bundled.test_fields import file_of
from tests.studies.bundled.test_twins import TOYS, made as twin
from tests.studies.control.toys import made


def thrown():
    """A rigid body that is thrown onto a floor."""
    return make_problem(file_of("rigid-contact")).problem


def walking(supervision):
    """A search of the weights of the walker's policy."""
    return watched_problem(made("control-walker")[1], supervision)


PROBLEMS = {
    "beam": lambda: twin("beam", *TOYS["beam"]).problem,
    "walker by picture": lambda: walking("picture").problem,
    "walker by states": lambda: walking("states").problem,
    "rigid-contact": thrown,
}


def kept(problem, checkpoint):
    """The same problem with another budget."""
    if hasattr(problem, "checkpoint"):  # of a scene
        return replace(problem, checkpoint=checkpoint)
    return replace(problem, motion=replace(problem.motion, checkpoint=checkpoint))


def begun(problem):
    """The motion at the start."""
    return problem.motion_at(problem.parameters.start)


def within(problem, n_states):
    """The same problem where no more than so many states fit."""
    return kept(problem, f"{n_states * begun(problem).state_bytes}B")


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_small_budget_gives_the_bits_of_storing_all(name):
    problem = PROBLEMS[name]()
    assert begun(problem).checkpoint == RunOptions().checkpoint == "1GB"
    every = kept(problem, "all")
    theta = problem.parameters.start
    loss, gradient = every.loss_and_gradient(theta)
    assert np.linalg.norm(gradient) > 0.0
    for some in (problem, within(problem, 7), within(problem, begun(problem).n_steps // 2)):
        small = some.loss_and_gradient(theta)
        assert small[0] == loss
        np.testing.assert_array_equal(small[1], gradient)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_plan_is_that_of_the_sweep(name):
    problem = PROBLEMS[name]()
    for some in (problem, within(problem, 9)):
        plan, recorded = begun(some).plan(), begun(some).record()
        assert plan.cost == recorded.cost
    assert plan.cost.extra_forward_steps > 0
    assert plan.cost.bytes <= 9 * begun(problem).state_bytes


def test_what_measures_a_search_keeps_to_the_budget_too():
    watched = walking("picture")
    theta = watched.problem.parameters.start
    loss, gradient = watched.problem.loss_and_gradient(theta)
    again = Watched(within(watched.problem, 20), watched.target).loss_and_gradient(theta)
    assert again[0] == loss
    np.testing.assert_array_equal(again[1], gradient)


def test_contacts_are_looked_at_within_the_budget():
    problem = thrown()
    theta = problem.parameters.start
    whole = margins(problem.motion_at(theta))
    small = margins(within(problem, 100).motion_at(theta))
    assert len(whole["floor_body"].steps) == begun(problem).n_steps
    for key, value in vars(whole["floor_body"]).items():
        np.testing.assert_array_equal(getattr(small["floor_body"], key), value)
    assert nearest_touch(within(problem, 100), theta) == nearest_touch(problem, theta)


def test_the_certificate_says_what_was_kept():
    problem = thrown()
    theta, n_steps = problem.parameters.start, begun(problem).n_steps
    schedule = certificate(problem, theta, RunOptions())["schedule"]
    assert schedule == begun(problem).plan().in_words() == f"store all: {n_steps} states, 52 kB"
    made = certificate(within(problem, 9), theta, RunOptions())
    cost = begun(within(problem, 9)).record().cost
    assert made["schedule"] == (
        f"{9 * begun(problem).state_bytes}B for {n_steps} states: {cost.stored_states} to restart "
        f"from and {cost.buffered_states} in a row, {cost.bytes} B, with "
        f"{100 * cost.extra_forward_steps / n_steps:.3g} % more forward steps"
    )


@pytest.mark.parametrize("budget", ["lots", "", "500", "1 parsec", "-1GB", "0MB", "All"])
def test_a_budget_that_is_no_size_is_refused_with_an_example(budget):
    with pytest.raises(StudyError, match=r"`--checkpoint` must be a size.*`--checkpoint 500MB`"):
        RunOptions(checkpoint=budget)


def test_a_budget_too_small_for_a_state_says_what_is_needed():
    size = begun(twin("beam", *TOYS["beam"]).problem).state_bytes
    message = rf"`--checkpoint` must have room for two states, 2 x {size} = {2 * size} bytes"
    file = instance_of(read_scene(BUNDLED / "beam.toml", TOYS["beam"]), 0)
    with pytest.raises(StudyError, match=message):
        make_fit(file, RunOptions(checkpoint="1kB"), title="")
    # Certificates are made in float64, whatever the search is made in.
    with pytest.raises(StudyError, match=message):
        make_fit(file, RunOptions(checkpoint=f"{2 * size - 1}B", dtype="float32"), title="")
    make_fit(file, RunOptions(checkpoint=f"{2 * size}B", dtype="float32"), title="")


def test_a_budget_of_thousands_of_steps_costs_less_than_a_sweep_more():
    size, n_steps = 1_000_000, 10_000

    def make_plan(budget):
        return Plan(budget, n_steps, as_schedule(budget).cost(n_steps, size))

    assert make_plan("all").in_words() == "store all: 10000 states, 10 GB"
    plan = make_plan("1GB")
    assert plan.cost.bytes <= 1_000_000_000
    assert plan.in_words() == (
        "1GB for 10000 states: 10 to restart from and 990 in a row, 1 GB, with 90 % more forward "
        "steps"
    )


def test_things_that_fit_are_counted():
    assert states_within("1kB", 100, 50) == 10
    assert states_within("1kB", 100, 5) == 5
    assert states_within("1kB", 5000, 5) == 1
    assert states_within("all", 5000, 5) == 5
