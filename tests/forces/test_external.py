"""Given forces: impulses by hand, windows, signals, the reference, the contract, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjoint.verify.contract import EPS, ForceContract
from adjoint.verify.gradcheck import gradcheck
from adjsim.courses import Signal
from adjsim.forces.external import ExternalForces
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.forces.complex_steps import check_one_step
from tests.reference import external as reference


N_NODES, N_LOADS, N_STEPS = 30, 21, 12  # two tiles
NODES = np.random.default_rng(3).integers(0, N_NODES, N_LOADS)  # some of them twice
AT_REST = State(np.zeros((1, 3)))


class TestExternalForces(ForceContract):
    def make(self, rng):
        return ExternalForces(NODES, rng.standard_normal((N_LOADS, 3)))

    def state(self, rng, force):
        return State(*rng.standard_normal((2, N_NODES, 3)))


class TestOneForceForAll(TestExternalForces):
    def make(self, rng):
        return ExternalForces(NODES, rng.standard_normal(3), window=(0, 5))


def one_mass(force, window=None, gravity=(0.0, 0.0, 0.0)):
    """A mass of 2 kg at rest at the origin, with a force on it."""
    return Model([2.0], {"push": ExternalForces([0], force, window)}, gravity=gravity)


def test_a_known_impulse_changes_the_velocity_by_impulse_over_mass():
    # 6 N in steps 2, 3 and 4 of 1/4 s each: 4.5 N s on 2 kg.
    end = rollout(one_mass((6.0, 0, 0), (2, 5)), AT_REST, 0.25, 8, frames=range(9))
    v = end.v[:, 0, 0]
    np.testing.assert_allclose(v, [0, 0, 0, 0.75, 1.5, 2.25, 2.25, 2.25, 2.25], atol=4 * EPS)
    np.testing.assert_array_equal(end.v[:, 0, 1:], 0.0)


def test_a_window_may_reach_beyond_the_rollout_and_one_that_never_opens_warns():
    assert rollout(one_mass((6.0, 0, 0), (1, 99)), AT_REST, 0.25, 3).v[0, 0, 0] == 1.5
    for first in (3, 50):
        late = one_mass((6.0, 0, 0), (first, 99))
        said = rf"`push\.window` opens in step {first}, but the last of the rollout's 3 steps is"
        with pytest.warns(UserWarning, match=said):
            assert rollout(late, AT_REST, 0.25, 3).v[0, 0, 0] == 0.0


def test_a_force_holds_a_mass_against_gravity():
    held = one_mass((0.0, 19.6, 0.0), gravity=(0.0, -9.8, 0.0))
    assert np.abs(rollout(held, AT_REST, 0.1, 50).x).max() <= 1e-14


def test_forces_on_a_node_named_twice_add_up():
    model = Model([2.0], {"push": ExternalForces([0, 0], (3.0, 0, 0))}, gravity=(0, 0, 0))
    assert rollout(model, AT_REST, 0.5, 1).v[0, 0, 0] == 1.5


def test_a_pinned_node_does_not_feel_it():
    model = Model([2.0], {"push": ExternalForces([0], (3.0, 0, 0))}, pinned=np.array([True]))
    run = record(model, AT_REST, 0.5, 3)
    assert np.abs(run.trajectory.x).max() == 0.0
    assert np.abs(run.vjp(np.ones((1, 1, 3)))["push.force"]).max() == 0.0


def test_forces_and_gradient_equal_the_reference(rng):
    model = Model(rng.uniform(0.5, 2.0, N_NODES), {"push": TestExternalForces().make(rng)})
    state = State(*rng.standard_normal((2, N_NODES, 3)))

    def references(at):
        return [lambda k, x, v: reference.forces(k, N_NODES, NODES, at["push.force"])]

    check_one_step(model, state, 0.1, references, rng)


FORCES = {
    "constant": lambda rng: rng.standard_normal(3),
    "per load": lambda rng: rng.standard_normal((N_LOADS, 3)),
    "series": lambda rng: rng.standard_normal((N_STEPS, N_LOADS, 3)),
    "signal": lambda rng: Signal([0.0, 2.5, 9.0], rng.standard_normal((3, 3))),
    "signal per load": lambda rng: Signal([1.0, 4.0], rng.standard_normal((2, N_LOADS, 3))),
}


@pytest.mark.parametrize("window", [None, (3, 7), (0, 2)])
@pytest.mark.parametrize("given", FORCES)
def test_whatever_the_force_is_given_as_its_gradient_is_right(rng, given, window):
    # The end is linear in the force: the adjoint and the tangent are exact, and so are
    # differences but for rounding.
    force = ExternalForces(NODES, FORCES[given](rng), window)
    model = Model(rng.uniform(0.5, 2.0, N_NODES), {"push": force})
    state, dt = State(*rng.standard_normal((2, N_NODES, 3))), 0.1
    values = model.parameters()["push.force"]
    adj_x, adj_v = rng.standard_normal((2, 1, N_NODES, 3))
    gradient = record(model, state, dt, N_STEPS).vjp(adj_x, adj_v)["push.force"]
    assert gradient.shape == values.shape
    direction = rng.standard_normal(values.shape)
    _, tan = rollout_jvp(model, state, dt, N_STEPS, {"push.force": direction})
    slope = np.vdot(adj_x, tan.x) + np.vdot(adj_v, tan.v)
    assert slope == pytest.approx(np.vdot(gradient, direction), rel=1e-12)

    def loss(at):
        moved, s = model.with_values(state, {"push.force": at["push.force"]})
        end = rollout(moved, s, dt, N_STEPS)
        return float(np.vdot(adj_x, end.x) + np.vdot(adj_v, end.v))

    check = gradcheck(loss, {"push.force": gradient}, {"push.force": values}, n_directions=4)
    assert check.passed, check.table()


def test_rows_are_those_of_the_reference(rng):
    for given in ("constant", "per load", "series"):
        value = FORCES[given](rng)
        rows = ExternalForces(NODES, value, (3, 7)).pack_series(N_STEPS)
        for k in range(N_STEPS):
            np.testing.assert_array_equal(
                rows[k], reference.force_at(k, value, N_LOADS, (3, 7)), err_msg=given
            )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([[0]], (1, 0, 0)), r"`load_nodes` must have shape \(n_loads,\), got \(1, 1\)"),
        (([0.5], (1, 0, 0)), "`load_nodes` must hold integers, got float64"),
        (([0], (1, 0)), r"`force` must have shape .*\(3,\), \(1, 3\), got \(2,\)"),
        (([0, 1], np.zeros((3, 3))), r"`force` must have shape .*\(2, 3\), got \(3, 3\)"),
        (([0], (1, 0, np.inf)), "`force` must be finite, got inf"),
        (([0], (1, 0, 0), (3, 3)), r"`window` must be \(first, last\) .* got \(3, 3\)"),
        (([0], (1, 0, 0), (-1, 3)), r"`window` must be \(first, last\) .* got \(-1, 3\)"),
        (([0], (1, 0, 0), (0.5, 3)), "`window` must hold integers, got float64"),
        (([0], (1, 0, 0), 7), r"`window` must have shape \(2,\), got \(\)"),
    ],
)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        ExternalForces(*given)


def test_what_does_not_fit_the_model_is_named():
    message = r"`push.load_nodes` must index the 4 points, 0 to 3, got 4 at row 1"
    with pytest.raises(ValueError, match=message):
        Model(np.ones(4), {"push": ExternalForces([0, 4], (1.0, 0, 0))})


@pytest.mark.parametrize("window", [None, (0, 2)])
def test_a_series_must_have_a_row_per_step(window):
    model = one_mass(np.zeros((3, 1, 3)), window)
    with pytest.raises(ValueError, match=r"`push.force` has a series of 3 rows, .* 5 steps"):
        rollout(model, AT_REST, 0.1, 5)
