"""Contact gradients: closed forms, the orders with which errors fall, and the exact derivative."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from benchmarks.contact_gradients import __main__ as contact_gradients
from benchmarks.contact_gradients.__main__ import compare
from benchmarks.contact_gradients.measuring import (
    Errors,
    copies_of,
    derivative_error,
    fit,
    over_steps,
    run,
    to_limit,
    wide_slope,
)
from benchmarks.contact_gradients.peers import BALLS
from benchmarks.contact_gradients.problems import CUBIC, DAMPED, PROBLEMS
from benchmarks.contact_gradients.two_bodies import TWO_BODIES, rate_at


WIDEST = 0.5  # the interval of an order that says which whole number it is

LONGEST = {"cloth", "rod", "pendulum"}
each_problem = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.nightly) if n in LONGEST else n for n in PROBLEMS]
)
each_pair = pytest.mark.parametrize("name", TWO_BODIES)
ALL = PROBLEMS | {"damped": DAMPED, "cubic": CUBIC}
each_with_all_laws = pytest.mark.parametrize("name", ALL)


@each_with_all_laws
def test_closed_slopes_are_the_derivatives_of_the_closed_form(name):
    problem = ALL[name]
    p = problem.start
    slopes = problem.slopes(p)
    assert list(slopes) == list(p)
    for key, value in p.items():
        if name == "pendulum":  # elliptic functions take real numbers only
            h = 1e-6
            up, down = (problem.limit(p | {key: value + d}) for d in (h, -h))
            assert (up - down) / (2 * h) == pytest.approx(slopes[key], rel=1e-8)
        else:
            slope = np.imag(problem.limit(p | {key: value + 1e-30j})) / 1e-30
            assert slope == pytest.approx(slopes[key], rel=1e-13, abs=1e-15)


@each_with_all_laws
def test_the_adjoint_is_the_derivative_of_the_program(name):
    # Central differences of 1e-6, of values of 1 rounded some thousand times; a touch that
    # moves to another step within the difference bends the value by rate^2 dt 1e-6.
    problem = ALL[name]
    assert derivative_error(problem, problem.rate, problem.dt) < 1e-6


def assert_orders(errors, value, gradient):
    """Orders lie within what their fits leave open, which is narrow enough to tell."""
    for name, derived in (("value", value), ("gradient", gradient)):
        line = fit(errors.over, getattr(errors, name))
        assert line.width < WIDEST
        assert abs(line.slope - derived) <= line.width, name


@each_problem
def test_errors_fall_with_the_derived_orders_of_the_step(name):
    orders = PROBLEMS[name].orders
    assert_orders(over_steps(PROBLEMS[name]), orders.value, orders.gradient)


@each_problem
def test_errors_fall_with_the_derived_orders_on_the_way_to_the_limit(name):
    order = -PROBLEMS[name].orders.limit
    assert_orders(to_limit(PROBLEMS[name], growth=1.35), order, order)


def test_the_error_of_a_gradient_through_a_touch_has_the_derived_size():
    # d(speed)/d(height) is off by rate sin(N theta - pi), whose root mean square over touches is
    # rate^2 dt/sqrt(6); the place of the second ball is off by half of that times the time left,
    # for both x, and by the time before the touch of that for both v.
    problem = PROBLEMS["balls"]
    copies = copies_of(problem, problem.rate, problem.dt)
    n = round(problem.end / problem.dt)
    off = run(problem, copies, n)[1] - run(problem, copies, 64 * n)[1]
    left = problem.end - 0.32 - np.pi / problem.rate
    derived = problem.rate**2 * problem.dt / np.sqrt(6) * left / 2
    rms = np.sqrt(np.square(off).mean(axis=0))
    assert rms[:2] == pytest.approx(derived, rel=0.1)  # of 89 samples
    assert rms[2:] == pytest.approx(0.32 * derived, rel=0.1)


def test_the_gradient_of_a_bounce_is_the_slope_but_with_damping():
    # Without a jump what is left is the ripple of a touch within its step: rate^2 dt/sqrt(6) times
    # the time left, of which the mean over 89 copies is smaller, and hardly any where the pressure
    # begins as c^3. The jump k_d s makes the gradient wrong by e k_d times the time left.
    rate, dt = 200.0, 5e-5
    for problem in (PROBLEMS["lossy"], CUBIC, DAMPED):
        p, n = problem.start, round(problem.end / dt)
        values, gradients = run(problem, copies_of(problem, rate, dt), n)
        slope, by_height = wide_slope(problem, rate, dt, "height"), gradients[:, 0]
        s = np.sqrt(p["speed"] ** 2 + 2 * p["gravity"] * p["height"])
        rest = problem.end - (s - p["speed"]) / p["gravity"]
        ripple = rate**2 * dt / np.sqrt(6) * rest
        assert values.mean() == pytest.approx(problem.limit(p), abs=s / rate)  # a touch takes time
        assert slope == pytest.approx(problem.slopes(p)["height"], abs=0.1)
        assert by_height.std() < (ripple if problem is not CUBIC else 0.1 * ripple)
        if problem is DAMPED:
            wrong = DAMPED.rebound(p, s) / s * 2 * p["ratio"] * rate * rest
            assert slope - by_height.mean() == pytest.approx(wrong, rel=0.2)  # `rest` has the touch
        else:
            assert by_height.mean() == pytest.approx(slope, abs=ripple / 5)


def test_at_the_stick_limit_the_slope_from_the_side_of_stick_is_returned():
    sticks, slides = PROBLEMS["stick"], PROBLEMS["slope"]
    rate, dt = 400.0, 5e-4
    (_, by_stick), (_, by_slide) = (
        run(each, [(each.start, rate)], round(each.end / dt)) for each in (sticks, slides)
    )
    one_sided = slides.slopes(sticks.start)["angle"]
    assert by_stick[0, 0] == pytest.approx(0.0, abs=0.02)
    assert by_slide[0, 0] == pytest.approx(one_sided, rel=0.1)


@each_pair
def test_closed_slopes_of_two_bodies_are_the_derivatives_of_the_closed_form(name):
    problem = TWO_BODIES[name]
    slopes = problem.slopes(problem.start)
    assert list(slopes) == list(problem.start)
    for key, value in problem.start.items():
        slope = np.imag(problem.limit(problem.start | {key: value + 1e-30j})) / 1e-30
        assert slope == pytest.approx(slopes[key], rel=1e-13, abs=1e-15)


@each_pair
def test_two_bodies_come_near_the_closed_form_and_the_adjoint_is_exact(name):
    # On the path of the problem, five times shorter steps have errors smaller by 5^(limit/path):
    # 5 or, of impacts that are not linear, 1.7; where a touch or a stop is within its step may hide
    # a part of that, more of it in a gradient.
    problem = TWO_BODIES[name]
    slopes = np.array([*problem.slopes(problem.start).values()])
    off = []
    for finer in (1, 5):
        dt = problem.dt / finer
        copies = [(problem.start, rate_at(problem, dt))]
        value, gradient = run(problem, copies, round(problem.end / dt))
        off.append([abs(value[0] - problem.limit(problem.start)), abs(gradient[0] - slopes).max()])
    least = 5 ** (problem.orders.limit / problem.orders.path)
    assert off[0][0] / off[1][0] > 0.85 * least
    assert off[0][1] / off[1][1] > 0.65 * least
    # Differences of 1e-8 of values of 1, rounded some thousand times.
    assert derivative_error(problem, problem.rate, problem.dt, 1e-8) < 1e-6


def test_two_balls_have_the_gradient_1_0_1_0_to_1e_4():
    # 25 000 steps, of which a touch takes 4: by v_1 the derivative is off by half of that time.
    problem, dt = TWO_BODIES["pair"], 4e-5
    _, gradient = run(problem, [(problem.start, rate_at(problem, dt))], 25_000)
    assert np.abs(gradient[0] - [1, 0, 1, 0]).max() < 1e-4
    assert gradient[0, :2] == pytest.approx([1, 0], abs=1e-6)


def test_two_bodies_are_the_reduced_problem_step_by_step():
    # Sums of a thousand steps, in another order.
    reduced, pair = PROBLEMS["balls"], TWO_BODIES["pair"]
    (value, gradient), (pair_value, pair_gradient) = (
        run(each, [(pair.start, 100.0)], 500) for each in (reduced, pair)
    )
    assert pair_value == pytest.approx(value, rel=1e-12)
    assert pair_gradient == pytest.approx(gradient, rel=1e-9)


@pytest.mark.parametrize("name", ["pair", "glancing"])
@pytest.mark.parametrize("package", ["jax", "taichi"])
def test_balls_elsewhere_have_our_value_and_gradient_to_rounding(package, name):
    pytest.importorskip(package)
    problem = TWO_BODIES[name]
    value, gradient = run(problem, [(problem.start, 100.0)], 500)
    their_value, their_gradient = BALLS[package](problem, problem.start, 100.0, 500)
    assert their_value == pytest.approx(value[0], rel=1e-12)
    assert their_gradient == pytest.approx(gradient[0], rel=1e-9)


def test_orders_are_those_of_a_line_through_logarithms():
    over = np.array([1.0, 2.0, 4.0, 8.0])
    line = fit(over, 3 * over**1.5)
    assert line.slope == pytest.approx(1.5)
    assert line.width == pytest.approx(0.0, abs=1e-12)


def test_a_run_prints_the_table_and_writes_picture_and_numbers(tmp_path):
    app = typer.Typer()
    app.command()(compare)
    done = CliRunner().invoke(app, ["stick", "--no-peers", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "(-1)" in done.output
    numbers = json.loads((tmp_path / "errors.json").read_text())["stick"]
    errors = Errors(**numbers["to_limit"])
    assert errors.gradient[-1] < errors.gradient[0] / 4
    assert (tmp_path / "errors.png").stat().st_size > 10_000


def test_a_run_of_the_ball_that_loses_energy_compares_the_laws(tmp_path, monkeypatch):
    monkeypatch.setattr(contact_gradients, "LAW_STEPS", (2e-4,))
    app = typer.Typer()
    app.command()(compare)
    done = CliRunner().invoke(app, ["lossy", "--no-peers", "--no-pictures", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows = [line.split("│") for line in done.output.splitlines() if "0.0002" in line]
    slopes = {cells[1].strip(): [float(c.split("±")[0]) for c in cells[5:7]] for cells in rows}
    assert slopes["dissipation"][1] == pytest.approx(slopes["dissipation"][0], abs=0.2)
    assert slopes["cubic law"][1] == pytest.approx(slopes["cubic law"][0], abs=0.05)
    assert slopes["damping"][1] < -20.0 < slopes["damping"][0]


def test_a_run_of_two_bodies_prints_their_table(tmp_path, monkeypatch):
    monkeypatch.setattr(contact_gradients, "FINER", (1,))
    app = typer.Typer()
    app.command()(compare)
    done = CliRunner().invoke(app, ["blocks", "--no-peers", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (row,) = [line.split("│") for line in done.output.splitlines() if "adjsim" in line]
    assert float(row[5]) < 1e-3
    assert float(row[6]) < 1e-6


def test_a_problem_that_does_not_exist_is_named(tmp_path):
    app = typer.Typer()
    app.command()(compare)
    done = CliRunner().invoke(app, ["bell", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "`bell` is none of ball, lossy" in done.output
