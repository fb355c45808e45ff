"""Springs: closed forms, the reference, the contract, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.schedules import Binomial
from adjoint.verify.contract import (
    EPS,
    InternalForceContract,
    element_input,
    nodal_forces,
    on_nodes,
    relative,
    vectors,
)
from adjsim.engine.stepper import RolloutError
from adjsim.forces.springs import Springs, spring_energy, spring_jvp
from adjsim.model import Model, State
from adjsim.rollout import rollout
from adjsim.worlds import stack
from tests.forces.complex_steps import check_one_step
from tests.reference import springs as reference


N_NODES = 9
REST = np.random.default_rng(5).uniform(0.0, 0.3, (N_NODES, 3))
EDGES = np.array([(i, j) for i in range(N_NODES) for j in range(i) if (i + j) % 2])  # 20


def random_springs(rng, **parameters):
    n = len(EDGES)
    fields = {
        "stiffness": 300.0 * rng.uniform(0.8, 1.2, n),
        "damping": 2.0 * rng.uniform(0.5, 1.5, n),
        "rest_positions": REST,
        **parameters,
    }
    return Springs(EDGES, **fields)


def random_state(rng):
    return State(REST + 0.02 * rng.standard_normal(REST.shape), rng.standard_normal(REST.shape))


class TestSprings(InternalForceContract):
    def make(self, rng):
        return random_springs(rng)

    def state(self, rng, force):
        return random_state(rng)

    def energy(self, force, x):
        inputs = (element_input(force, e, x, x) for e in range(len(EDGES)))
        return sum(spring_energy(x, c, p, s) for x, _, c, p, s in inputs)

    def at_rest(self, force):
        return force.with_values({"rest_length": reference.lengths(REST, EDGES)})

    def test_damping_takes_energy_from_every_motion(self, case):
        force, x, v = case
        bare = force.with_values({"damping": 0.0})
        drag = nodal_forces(force, x, v) - nodal_forces(bare, x, v)
        assert np.vdot(drag, v) < 0.0


def test_a_test_class_that_pytest_would_leave_out_is_refused():
    with pytest.raises(TypeError, match="TestFoo must define at_rest, energy, make, state"):
        type("TestFoo", (InternalForceContract,), {})


class TestEqualSprings(TestSprings):
    """One number for all: its cotangent is a sum over the springs."""

    def make(self, rng):
        return random_springs(rng, stiffness=300.0, damping=2.0, rest_length=0.15)


def test_a_stretched_and_stretching_spring_pulls_with_the_force_worked_by_hand():
    # l = 5, stretched by 4 and lengthening by 3 m/s: 2 * 4 + 4 * 3 = 20 N along (3, 4)/5.
    spring = Springs([[0, 1]], 2.0, rest_length=1.0, damping=4.0)
    x, v = np.array([(0.0, 0, 0), (3.0, 4.0, 0)]), np.array([(0.0, 0, 0), (5.0, 0, 9.0)])
    np.testing.assert_allclose(
        nodal_forces(spring, x, v), [(12.0, 16, 0), (-12, -16, 0)], rtol=0, atol=20 * EPS
    )


def test_energy_worked_by_hand():
    assert spring_energy(((3.0, 4.0, 0.0),), (), (2.0, 0.0, 1.0), ()) == 16.0  # 2/2 (5 - 1)^2


def test_forces_and_gradient_equal_the_reference(rng):
    springs = random_springs(rng)
    model = Model(rng.uniform(0.5, 2.0, N_NODES), {"net": springs})

    def references(at):
        parameters = {name: at[f"net.{name}"] for name in ("stiffness", "rest_length", "damping")}
        return [lambda k, x, v: reference.forces(x, v, EDGES, **parameters)]

    check_one_step(model, random_state(rng), 1e-2, references, rng)


def test_the_rest_length_is_that_of_the_rest_positions_and_then_its_own(rng):
    springs = random_springs(rng)
    np.testing.assert_allclose(
        springs.rest_length, reference.lengths(REST, EDGES), rtol=4 * EPS, atol=0
    )
    shorter = springs.with_values({"rest_length": 0.5 * springs.rest_length})
    assert set(shorter.parameters()) == {"stiffness", "damping", "rest_length"}
    np.testing.assert_array_equal(shorter.rest_length, 0.5 * springs.rest_length)
    assert Springs(EDGES, 300.0, rest_length=0.2, rest_positions=REST).rest_length == 0.2


def test_stiffness_bound_is_the_largest_eigenvalue():
    spring = Springs([[0, 1]], 3.0, rest_positions=[(0, 0, 0), (0.6, 0, 0.8)])
    x, v, consts, params, series = element_input(spring, 0, spring.rest_positions, np.zeros((2, 3)))
    columns = [
        np.ravel(on_nodes(spring_jvp(
            x, v, consts, params, series, vectors(relative(unit.reshape(2, 3))), v, (0.0,) * 3, ()
        )))
        for unit in np.eye(6)
    ]  # fmt: skip
    largest = np.linalg.eigvalsh(-np.array(columns)).max()
    assert spring.stiffness_bound() == pytest.approx([largest], rel=20 * EPS)
    model = Model([2.0, 2.0], {"it": spring})
    assert model.stable_dt() == pytest.approx(2.0 / np.sqrt(2 * 3.0 / 2.0), rel=20 * EPS)
    damped = spring.with_values({"damping": 0.4})
    np.testing.assert_array_equal(damped.damping_bound(), [0.8])


def test_ends_that_meet_on_the_way_end_the_rollout():
    # They approach by 1 m/s each and meet, to the bit, after 4 steps of 1/8 s.
    spring = Springs([[0, 1]], 0.0, rest_length=1.0)
    model = Model([1.0, 1.0], {"it": spring}, gravity=(0, 0, 0))
    state = State([(-0.5, 0, 0), (0.5, 0, 0)], [(1.0, 0, 0), (-1.0, 0, 0)])
    assert np.abs(rollout(model, state, 0.125, 4).x).max() == 0.0
    named = (
        r"left the finite numbers in step 4 \(t = 0.5 s\), first at node 0: spring 0 of `it`, "
        r"between nodes 0 and 1, has length 0: .* Try a smaller `dt`, more stiffness or damping"
    )
    for options in ({}, {"dtype": np.float32}, {"frames": range(6)}):
        with pytest.raises(RolloutError, match=named):
            rollout(model, state, 0.125, 5, **options)
    with pytest.raises(RolloutError, match=named):
        record(model, state, 0.125, 5, checkpoint=Binomial(2))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_spring_that_collapsed_is_named_in_its_world(threads):
    springs = Springs([[1, 2], [0, 2], [0, 1]], 0.0, rest_length=1.0)
    model = Model(np.ones(3), {"it": springs}, gravity=(0, 0, 0))
    x, meeting = [(-0.5, 0, 0), (0.5, 0, 0), (0, 1, 0)], [(1.0, 0, 0), (-1.0, 0, 0), (0, 0, 0)]
    with pytest.raises(RolloutError, match=r"node 0 of world 1: spring 2 of `it`, between nodes 0"):
        rollout(stack([model] * 2), [State(x), State(x, meeting)], 0.125, 9, threads=threads)


def test_a_motion_that_ends_otherwise_names_no_spring():
    springs = Springs([[0, 1]], 1.0, rest_length=1.0)
    state = State([(0, 0, 0), (1, 0, 0)], [(1e200, 0, 0), (0, 0, 0)])
    with pytest.raises(RolloutError, match=r"first at node 0\. A step is"):
        rollout(Model([1.0, 1.0], {"it": springs}), state, 1.0, 5)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_spring_that_reads_no_damping_still_has_its_gradient(rng, threads):
    # c = 0 is where a fit may begin: dL/dc is not zero there.
    springs = random_springs(rng, damping=0.0)
    model = Model(np.ones(N_NODES), {"net": springs})
    run = record(model, random_state(rng), 1e-2, 1, threads=threads)
    assert abs(run.vjp(rng.standard_normal((1, N_NODES, 3)))["net.damping"]) > 0


FITS = {"edges": [[0, 1], [1, 2]], "stiffness": 2.0, "rest_length": 1.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edges": [[0, 1], [2, 2]]}, r"`edges` must join two different nodes, got \[2, 2\] at r"),
        ({"edges": [[0, 1, 2]]}, r"`edges` must have shape \(n_springs, 2\), got \(1, 3\)"),
        ({"edges": [[0.0, 1.0]]}, r"`edges` must hold integers, got float64"),
        ({"stiffness": -1.0}, r"`stiffness` must not be negative, got -1"),
        ({"stiffness": [1.0] * 3}, r"`stiffness` must have shape \(\) or \(n_springs,\) = \(2,\)"),
        ({"damping": -1.0}, r"`damping` must not be negative, got -1"),
        ({"rest_length": [1.0, -1.0]}, r"`rest_length` must not be negative, got -1"),
        ({"rest_length": None}, r"`rest_length` is needed, or `rest_positions`"),
        (
            {"rest_length": None, "rest_positions": [(0.0, 0, 0), (1.0, 0, 0), (1.0, 0, 0)]},
            r"`edges` .* spring 1, between nodes 1 and 2, has length 0.* Remove it, or merge",
        ),
        (
            {"rest_length": None, "rest_positions": np.zeros((2, 3))},
            r"`edges` must index the 2 points, 0 to 1, got \[1, 2\] at row 1",
        ),
        ({"stiffness": None}, "`stiffness` must be an array .* no number, got None"),
        ({"rest_positions": np.zeros((3, 2))}, r"`rest_positions` must have shape \(n_nodes, 3\)"),
    ],
)  # fmt: skip
def test_bad_input_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        Springs(**{**FITS, **changed})


def test_nodes_must_be_those_of_the_model():
    with pytest.raises(ValueError, match=r"`net.edges` must index the 2 points, 0 to 1"):
        Model(np.ones(2), {"net": Springs(**FITS)})


def test_ends_at_one_place_are_named():
    model = Model(np.ones(4), {"net": Springs([[0, 1], [2, 3]], 1.0, rest_length=1.0)})
    x = [[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 0, 0]]
    with pytest.raises(ValueError, match=r"`state.x` .* spring 1 of `net`, between nodes 2 and 3"):
        rollout(model, State(x), 1e-3, 1)


def test_springs_without_damping_have_no_such_parameter():
    given = Springs([[0, 1]], 1.0, rest_length=1.0)
    assert set(given.parameters()) == {"stiffness", "rest_length"}
    assert (given.pack_params()[:, 1] == 0.0).all()
    assert "damping" in Springs([[0, 1]], 1.0, rest_length=1.0, damping=0.0).parameters()
