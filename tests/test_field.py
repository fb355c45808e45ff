"""The force field without a time step: bits of a rollout, tangent, adjoint, stiffness."""

import numpy as np
import pytest

from adjoint.field import pull
from adjoint.verify.dot_test import dot_test
from adjoint.verify.systems import joints
from adjsim.field import Field
from adjsim.forces.external import ExternalForces
from adjsim.forces.springs import Springs
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.physics import sliding_box


@pytest.fixture
def case(rng):
    model, state = sliding_box(rng, 1)
    return Field(model), model, state


def test_forces_have_the_bits_of_a_rollout(rng):
    model, state = sliding_box(rng, 1, pinned=())
    light = model.with_values(state, {"mass": np.ones(model.n_nodes), "gravity": np.zeros(3)})
    at_rest = State(state.x)
    step = rollout(light[0], at_rest, 1.0, 1)
    np.testing.assert_array_equal(Field(light[0]).forces(at_rest), step.v[0])


def test_push_is_the_slope_of_the_forces_and_pull_its_transpose(rng, case):
    field, model, state = case
    paths = ("state.x", "state.v", "solid.mu", "solid.rest_positions", "floor.stiffness")
    at = {**model.parameters(), **model.state_parameters(state)}
    tangents = {
        path: rng.standard_normal(at[path].shape) * np.abs(at[path]).max() for path in paths
    }
    pushed, h = field.push(state, tangents), 1e-7

    def forces(step):
        moved = {path: at[path] + step * tangents[path] for path in paths}
        changed, there = model.with_values(state, moved)
        return Field(changed).forces(there)

    slope = (forces(h) - forces(-h)) / (2.0 * h)
    assert np.abs(slope - pushed).max() < 1e-6 * np.abs(pushed).max()
    adj = rng.standard_normal(pushed.shape)
    pulled = pull(field, state, adj, paths)
    total = sum(np.vdot(pulled[path], tangents[path]) for path in paths)
    assert total == pytest.approx(np.vdot(adj, pushed), rel=1e-12)


def test_what_a_field_keeps_between_calls_changes_no_bit(rng, case):
    _, model, state = case
    field = Field(model, with_weight=True)
    for wrt in (["state.x"], ["solid.mu", "state.v"], ["state.x"], None):
        other = State(state.x + 1e-4 * rng.standard_normal(state.x.shape), state.v)
        adj, tan = rng.standard_normal((2, model.n_rows, 3))
        fresh = Field(model, with_weight=True)
        grads, expected = pull(field, other, adj, wrt), pull(fresh, other, adj, wrt)
        for path, grad in grads.items():
            np.testing.assert_array_equal(grad, expected[path], strict=True)
        moved = {"state.x": tan}
        by_all = fresh.push(other, moved | {"gravity": np.zeros(3)})
        np.testing.assert_array_equal(field.push(other, moved), by_all, strict=True)


def test_stiffness_has_the_products_of_push_as_columns(rng, case):
    field, _, state = case
    K = field.stiffness(state)
    t = rng.standard_normal(state.x.shape)
    expected = -field.push(state, {"state.x": t}).ravel()
    np.testing.assert_allclose(K @ t.ravel(), expected, rtol=0, atol=1e-13 * np.abs(expected).max())


def test_the_stiffness_of_what_has_an_energy_is_symmetric_and_blind_to_translations(rng):
    model, state = sliding_box(rng, 1)
    solid = Model(model.mass, {"solid": model.forces["solid"]})
    K = Field(solid).stiffness(State(state.x)).toarray()
    assert np.abs(K - K.T).max() < 1e-13 * np.abs(K).max()
    assert np.abs(K @ np.tile(np.eye(3), (len(state.x), 1))).max() < 1e-12 * np.abs(K).max()


def test_magnitude_is_what_elements_do_to_the_busiest_node():
    springs = Springs([(0, 1), (0, 2)], 10.0, 1.0)
    x = np.array([[0.0, 0, 0], [3.0, 0, 0], [-3.0, 0, 0]])
    field = Field(Model(np.ones(3), {"net": springs}))
    assert np.abs(field.forces(State(x))[0]).max() == 0.0
    assert field.magnitude(State(x)) == 40.0


def test_a_series_has_the_row_of_the_step(rng):
    force = rng.standard_normal((3, 1, 3))
    field = Field(Model(np.ones(1), {"push": ExternalForces([0], force)}), n_steps=3)
    state, tangent = State(np.zeros((1, 3))), rng.standard_normal((3, 1, 3))
    for step in range(3):
        np.testing.assert_array_equal(field.forces(state, step), force[step])
        np.testing.assert_array_equal(
            field.push(state, {"push.force": tangent}, step), tangent[step]
        )
        pulled = pull(field, state, np.ones((1, 3)), ["push.force"], step)["push.force"]
        np.testing.assert_array_equal(pulled, np.eye(3)[step][:, None, None] * np.ones(3))


def test_the_matrix_of_a_step_has_the_products_of_push_as_columns(rng, case):
    field, _, state = case
    t = rng.standard_normal(state.x.shape)
    matrix = field.matrix_at(field.row(state), 0.3, 0.7, 0)
    expected = field.push(state, {"state.x": 0.3 * t, "state.v": 0.7 * t}).ravel()
    np.testing.assert_allclose(
        matrix @ t.ravel(), expected, rtol=0, atol=1e-13 * np.abs(expected).max()
    )


def test_forces_act_on_the_points_of_bodies_too(rng):
    scene = joints.loose(1)
    field, state = Field(scene.model), scene.state
    values = scene.parameters()
    assert field.forces(state).shape == (scene.model.n_rows, 3)
    dot = dot_test(
        lambda tan: field.push(state, tan),
        lambda adj: pull(field, state, adj, list(values)), values, tolerance=1e-12,
    )  # fmt: skip
    assert dot.passed, dot


def test_wrong_shapes_and_names_are_refused(case):
    field, _, state = case
    with pytest.raises(ValueError, match="`adj_forces`"):
        pull(field, state, np.zeros(3))
    with pytest.raises(ValueError, match=r"Unknown parameter `solid.nu`"):
        field.push(state, {"solid.nu": 1.0})


@pytest.mark.parametrize("step", [3, 10**9, -1, 1.0, 2.7, np.nan, True, "1"])
def test_a_step_outside_of_the_series_is_refused(step):
    push = ExternalForces([0], np.ones((3, 1, 3)))
    field = Field(Model(np.ones(1), {"push": push}), n_steps=3)
    state = State(np.zeros((1, 3)))
    for call in (
        lambda: field.forces(state, step),
        lambda: field.magnitude(state, step),
        lambda: field.push(state, {}, step),
        lambda: field.stiffness(state, step),
        lambda: pull(field, state, np.ones((1, 3)), None, step),
    ):
        with pytest.raises(
            ValueError, match=r"`step` must be (a whole number|below `n_steps` = 3)"
        ):
            call()


@pytest.mark.parametrize("n_steps", [0, -3, 2.0, np.nan, "a", None])
def test_a_number_of_steps_must_be_one(n_steps):
    with pytest.raises(ValueError, match="`n_steps` must be a whole number of at least 1, got"):
        Field(Model(np.ones(1)), n_steps=n_steps)
