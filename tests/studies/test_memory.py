"""`--checkpoint`: a budget changes which states are kept, and no number."""

from dataclasses import replace

import numpy as np
import pytest

from studies import config
from studies.certificate import certificate
from studies.control import walker
from studies.control.case import Measured, Supervision
from studies.errors import StudyError
from studies.memory import make_plan, states_within
from studies.registry import STUDIES, RunOptions
from studies.touches import margins, nearest_touch
from tests.studies.control.toys import settings
from tests.studies.toy_beam import toy_fit
from tests.studies.toys import TOYS


def of_study(name):
    """The problem of a toy's first instance."""
    values = config.resolve(name, TOYS[name].overrides).values
    return STUDIES[name].prepare(values, RunOptions()).problem


def walking(supervision):
    """A search of the weights of the walker's policy."""
    case = walker.make(settings("control-walker"), RunOptions(), 0)
    return case.problem(supervision)


PROBLEMS = {
    "beam": lambda: toy_fit().problem,
    "walker by picture": lambda: walking(Supervision.PICTURE),
    "walker by states": lambda: walking(Supervision.STATES),
    "rigid-contact": lambda: of_study("rigid-contact"),
}


def within(problem, n_states):
    """The same problem where no more than so many states fit."""
    budget = f"{n_states * problem.motion.state_bytes}B"
    return replace(problem, motion=replace(problem.motion, checkpoint=budget))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_small_budget_gives_the_bits_of_storing_all(name):
    problem = PROBLEMS[name]()
    assert problem.motion.checkpoint == RunOptions().checkpoint == "1GB"
    every = replace(problem, motion=replace(problem.motion, checkpoint="all"))
    theta = problem.parameters.start
    loss, gradient = every.loss_and_gradient(theta)
    assert np.linalg.norm(gradient) > 0.0
    for some in (problem, within(problem, 7), within(problem, problem.motion.n_steps // 2)):
        small = some.loss_and_gradient(theta)
        assert small[0] == loss
        np.testing.assert_array_equal(small[1], gradient)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_plan_is_that_of_the_sweep(name):
    problem = PROBLEMS[name]()
    for some in (problem, within(problem, 9)):
        plan, recorded = some.motion.plan(), some.motion.record()
        assert plan.cost == recorded.cost
    assert plan.cost.extra_forward_steps > 0
    assert plan.cost.bytes <= 9 * problem.motion.state_bytes


def test_what_measures_a_search_keeps_to_the_budget_too():
    case = walker.make(settings("control-walker"), RunOptions(), 0)
    picture = case.problem(Supervision.PICTURE)
    theta = picture.parameters.start
    loss, gradient = picture.loss_and_gradient(theta)
    measured = Measured(within(picture, 20), case.measure)
    again = measured.loss_and_gradient(theta)
    assert again[0] == loss
    np.testing.assert_array_equal(again[1], gradient)


@pytest.mark.parametrize("name", ["rigid-contact"])
def test_contacts_are_looked_at_within_the_budget(name):
    problem = of_study(name)
    theta = problem.parameters.start
    whole, small = (margins(one.motion_at(theta)) for one in (problem, within(problem, 100)))
    assert len(whole["floor"].steps) == problem.motion.n_steps
    for key, value in vars(whole["floor"]).items():
        np.testing.assert_array_equal(getattr(small["floor"], key), value)
    assert nearest_touch(within(problem, 100), theta) == nearest_touch(problem, theta)


def test_the_certificate_says_what_was_kept():
    problem = of_study("rigid-contact")
    theta, n_steps = problem.parameters.start, problem.motion.n_steps
    told = certificate(problem, theta, RunOptions())["schedule"]
    assert told == f"store all: {n_steps} states, {problem.motion.plan().cost.bytes} B"
    made = certificate(within(problem, 9), theta, RunOptions())
    cost = within(problem, 9).motion.record().cost
    assert made["schedule"] == (
        f"{9 * problem.motion.state_bytes}B for {n_steps} states: {cost.stored_states} to restart "
        f"from and {cost.buffered_states} in a row, {cost.bytes} B, with "
        f"{100 * cost.extra_forward_steps / n_steps:.3g} % more forward steps"
    )


@pytest.mark.parametrize("budget", ["lots", "", "500", "1 parsec", "-1GB", "0MB", "All"])
def test_a_budget_that_is_no_size_is_refused_with_an_example(budget):
    with pytest.raises(StudyError, match=r"`--checkpoint` must be a size.*`--checkpoint 500MB`"):
        RunOptions(checkpoint=budget)


def test_a_budget_too_small_for_a_state_says_what_is_needed():
    size = toy_fit().problem.motion.state_bytes
    message = rf"`--checkpoint` must have room for two states, 2 x {size} = {2 * size} bytes"
    with pytest.raises(StudyError, match=message):
        toy_fit(checkpoint="1kB")
    # Certificates are made in float64, whatever the search is made in.
    with pytest.raises(StudyError, match=message):
        toy_fit(checkpoint=f"{2 * size - 1}B", dtype="float32")
    toy_fit(checkpoint=f"{2 * size}B", dtype="float32")


def test_a_budget_of_thousands_of_steps_costs_less_than_a_sweep_more():
    size, n_steps = 1_000_000, 10_000
    assert make_plan("all", n_steps, size).told() == "store all: 10000 states, 10 GB"
    plan = make_plan("1GB", n_steps, size)
    assert plan.cost.bytes <= 1_000_000_000
    assert plan.told() == (
        "1GB for 10000 states: 10 to restart from and 990 in a row, 1 GB, with 90 % more forward "
        "steps"
    )


def test_things_that_fit_are_counted():
    assert states_within("1kB", 100, 50) == 10
    assert states_within("1kB", 100, 5) == 5
    assert states_within("1kB", 5000, 5) == 1
    assert states_within("all", 5000, 5) == 5
