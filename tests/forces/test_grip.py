"""Nodes that are led along a path: where they are, closed forms, worlds, bad input."""

import dataclasses

import numpy as np
import pytest

from adjoint.forces.grip import example
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from adjsim.courses import Signal
from adjsim.forces.grip import Grip
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from adjsim.steps.field_step import FieldStep, FieldStepper
from adjsim.steps.implicit import ImplicitEuler
from adjsim.worlds import stack


N_STEPS = 12
STEPS = {"semi-implicit": {}, "implicit": {"step": ImplicitEuler(tolerance=1e-14)}}


def run_of(how, scene, **more):
    options = {"frames": range(scene.n_steps + 1), **STEPS[how], **more}
    return record(scene.model, scene.state, scene.dt, scene.n_steps, **options)


@pytest.mark.parametrize("how", STEPS)
def test_led_nodes_are_where_their_path_is_to_the_bit(how):
    scene = example(N_STEPS)
    run, grips = run_of(how, scene).trajectory, scene.model.forces
    for name in ("left", "right"):
        nodes, places = grips[name].held_nodes, grips[name].pack_series(N_STEPS)
        np.testing.assert_array_equal(run.x[1:, nodes], places)
        before = run.x[:-1, nodes]
        np.testing.assert_array_equal(run.v[1:, nodes], (places - before) / scene.dt)


@pytest.mark.parametrize("how", STEPS)
def test_the_cotangent_of_a_place_is_that_of_the_rows_that_show_it(how):
    # p_k is x of state k + 1, and in v of states k + 1 and k + 2, if no force feels it.
    model = Model(np.ones(2), {"grip": Grip([1], np.ones((4, 1, 3)))}, gravity=(0.0, 0.0, 0.0))
    run = record(model, State(np.zeros((2, 3))), 0.5, 4, frames=range(5), **STEPS[how])
    adj_x, adj_v = np.random.default_rng(3).standard_normal((2, 5, 2, 3))
    adj = run.vjp(adj_x, adj_v, wrt=("grip.positions", "state.x", "state.v"))
    later = np.concatenate([adj_v[2:, 1], np.zeros((1, 3))])
    expected = adj_x[1:, 1] + (adj_v[1:, 1] - later) / 0.5
    np.testing.assert_allclose(adj["grip.positions"][:, 0], expected, rtol=1e-14)
    np.testing.assert_allclose(adj["state.x"][1], adj_x[0, 1] - adj_v[1, 1] / 0.5, rtol=1e-14)
    np.testing.assert_array_equal(adj["state.v"][1], adj_v[0, 1])


@pytest.mark.parametrize("how", STEPS)
def test_a_checkpointed_gradient_and_two_threads_have_the_bits_of_one(how):
    scene = example(N_STEPS)
    runs = [run_of(how, scene, **more) for more in ({}, {"checkpoint": 3000}, {"threads": 2})]
    adj = np.random.default_rng(4).standard_normal(runs[0].trajectory.x.shape)
    first, *others = [run.vjp(adj, 0.1 * adj) for run in runs]
    assert all(np.abs(first[f"{name}.positions"]).max() > 0.0 for name in ("left", "right"))
    for run, other in zip(runs[1:], others, strict=True):
        np.testing.assert_array_equal(run.trajectory.x, runs[0].trajectory.x)
        for path, value in first.items():
            np.testing.assert_array_equal(other[path], value)


def test_worlds_with_grips_have_the_bits_of_one_alone():
    scenes = [example(N_STEPS), example(N_STEPS)]
    net = {key: value for key, value in scenes[0].model.forces.items() if key != "right"}
    models = [scenes[0].model, Model(scenes[0].model.mass, net), scenes[1].model]
    states = [scenes[0].state] * 3
    run = record(stack(models), states, 2e-3, N_STEPS)
    adj = [np.random.default_rng(k).standard_normal((1, 7, 3)) for k in range(3)]
    for world, (model, grads) in enumerate(zip(models, run.vjp(adj), strict=True)):
        alone = record(model, states[0], 2e-3, N_STEPS)
        np.testing.assert_array_equal(run.trajectory[world].x, alone.trajectory.x)
        for path, value in alone.vjp(adj[world]).items():
            np.testing.assert_array_equal(grads[path], value)


@pytest.mark.parametrize("how", STEPS)
def test_tangent_and_adjoint_of_a_path_agree(how):
    scene = example(N_STEPS)
    run = run_of(how, scene)
    options = {"frames": range(N_STEPS + 1), **STEPS[how]}

    def push(tangent):
        tan = {"left.positions": tangent}
        _, tan = rollout_jvp(scene.model, scene.state, scene.dt, N_STEPS, tan, **options)
        return np.stack([tan.x, tan.v])

    def pull(adj):
        return run.vjp(*adj, wrt=("left.positions",))["left.positions"]

    at = scene.model.forces["left"].positions
    check = dot_test(push, pull, at, tolerance=1e-12)
    assert check.passed, check


def test_a_bar_pulled_slowly_ends_where_linear_elasticity_has_it():
    # u = x strain; across -nu strain; E A strain is in the tests of the force.
    strain, n_steps = 1e-4, 400
    mesh = box_tets((4, 2, 2), (0.2, 0.05, 0.05))
    E, nu = 1e5, 0.3
    bar = NeoHookeanTets.from_young(mesh.tets, mesh.points, E, nu, density=1000.0, viscosity=40.0)
    x = mesh.points
    ends = np.flatnonzero((x[:, 0] == 0.0) | (x[:, 0] == x[:, 0].max()))
    stretched = x * (1.0 + strain, 1.0 - nu * strain, 1.0 - nu * strain)
    path = Signal([-1.0, 0.6 * n_steps, n_steps], [x[ends], *[stretched[ends]] * 2])
    model = Model(None, {"bar": bar, "grip": Grip(ends, path)}, gravity=(0.0, 0.0, 0.0))
    end = rollout(model, State(x), 5e-3, n_steps, step=ImplicitEuler()).x[0]
    # A strain of 1e-4 leaves linear elasticity by terms of its square.
    assert np.abs(end - stretched).max() < 1e-6 * strain + 0.2 * strain**2


def test_a_gradient_of_a_path_is_that_of_differences():
    scene = example(N_STEPS)
    target = np.random.default_rng(5).standard_normal((1, 7, 3))

    def loss(knots):
        model, state = scene.model.with_values(scene.state, {"right.positions": knots})
        end = rollout(model, state, scene.dt, N_STEPS).x
        return 0.5 * float(np.square(end - target).sum())

    run = record(scene.model, scene.state, scene.dt, N_STEPS)
    gradient = run.vjp(run.trajectory.x - target)["right.positions"]
    at = scene.model.forces["right"].parameters()["positions"]
    assert gradcheck(loss, gradient, at, tolerance=1e-8).passed


def test_nodes_of_grips_are_pinned_and_led_by_one():
    model = Model(np.ones(3), {"grip": Grip([2], np.ones((1, 3)))}, pinned=[True, False, False])
    assert model.pinned.tolist() == [True, False, True]
    with pytest.raises(ValueError, match="each node by one grip, got node 2 in `grip` and `more`"):
        Model(np.ones(3), {**model.forces, "more": Grip([0, 2], np.ones((2, 3)))})


def test_bad_grips_are_refused():
    with pytest.raises(ValueError, match="name each node once, got node 4 twice"):
        Grip([4, 2, 4], np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"`positions` must have shape \(n_steps, 2, 3\)"):
        Grip([4, 2], np.zeros((5, 3)))
    with pytest.raises(ValueError, match="`positions` must be finite"):
        Grip([4], np.full((1, 3), np.nan))
    model = Model(np.ones(2), {"grip": Grip([1], np.zeros((3, 1, 3)))})
    with pytest.raises(ValueError, match=r"`grip\.positions` has a series of 3 rows, but the"):
        rollout(model, State(np.zeros((2, 3))), 0.1, 4)


class _Own(FieldStepper):
    def end(self, k, before):
        return before


@dataclasses.dataclass(frozen=True)
class _OwnStep(FieldStep):
    STEPPER = _Own


def test_a_step_of_ones_own_that_leads_no_nodes_says_so():
    springs = Springs([(0, 1)], 1.0, 0.1)
    model = Model(np.ones(2), {"net": springs, "grip": Grip([1], np.zeros((1, 3)))})
    with pytest.raises(ValueError, match="must have no grips where `step` is _OwnStep"):
        rollout(model, State(np.eye(2, 3)), 0.1, 1, step=_OwnStep())
