"""The step of a user's own in `docs/own_step.md`: its order, its derivatives, and its errors."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.systems.solids import viscous
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.steps.field_step import FieldStep
from adjsim.system import OnDivergence, RolloutError
from adjsim.worlds import stack
from studies.problem.forward import simulate
from studies.runs.errors import StudyError
from studies.scene.declared import Scene, Soft, World
from tests.cuda.scenes import tetrahedron


DOCS = Path(__file__).resolve().parents[2] / "docs"
N_STEPS = 12
spec = importlib.util.spec_from_file_location("midpoint", DOCS / "midpoint.py")
midpoint = sys.modules["midpoint"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(midpoint)
STEP = midpoint.Midpoint()


@pytest.fixture
def case():
    scene = viscous(N_STEPS)
    pinned = np.isin(np.arange(scene.model.n_nodes), (0, 1))
    model = Model(scene.model.mass, scene.model.forces, (0.5, -9.8, 0.0), pinned=pinned)
    return model, scene.state, scene.dt


def test_the_midpoint_rule_is_of_second_order(case):
    model, state, dt = case
    body = model.forces["solid"]
    model = Model(
        model.mass,
        {"solid": type(body)(body.tets, body.rest_positions, 2e4, 5e4, 2.0)},
        pinned=model.pinned,
    )
    exact = rollout(model, state, dt / 64, 64 * N_STEPS, step=STEP).x[-1]
    errors = [
        np.abs(rollout(model, state, dt / n, n * N_STEPS, step=STEP).x[-1] - exact).max()
        for n in (2, 4, 8)
    ]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2)


def test_its_adjoint_and_its_tangent_are_exact(case, rng):
    model, state, dt = case
    options = {"step": STEP, "frames": (0, 5, N_STEPS)}
    run = record(model, state, dt, N_STEPS, **options)
    adj_x, adj_v = rng.standard_normal((2, *run.trajectory.x.shape))
    at = {**model.parameters(), **model.state_parameters(state)}
    grads = run.vjp(adj_x, adj_v)
    tangents = {path: 0.1 * v * rng.standard_normal(v.shape) for path, v in at.items()}
    _, tan = rollout_jvp(model, state, dt, N_STEPS, tangents, **options)
    by_tangent = np.vdot(adj_x, tan.x) + np.vdot(adj_v, tan.v)
    by_adjoint = sum(np.vdot(grads[path], tangents[path]) for path in tangents)
    assert by_adjoint == pytest.approx(by_tangent, rel=1e-11)

    def loss(values):
        end = rollout(*model.with_values(state, values), dt, N_STEPS, **options)
        return np.vdot(adj_x, end.x) + np.vdot(adj_v, end.v)

    assert gradcheck(loss, grads, at).passed


def test_checkpoints_change_no_bit_of_it(case, rng):
    model, state, dt = case
    stored, short = (
        record(model, state, dt, N_STEPS, step=STEP, checkpoint=budget) for budget in ("1MB", "6kB")
    )
    assert short.cost.extra_forward_steps > 0
    adj = rng.standard_normal(stored.trajectory.x.shape)
    for path, grad in stored.vjp(adj).items():
        np.testing.assert_array_equal(short.vjp(adj)[path], grad, strict=True)


def test_a_step_that_is_too_long_says_where_and_can_be_marked(case):
    model, state, dt = case
    with pytest.raises(RolloutError, match="left the finite numbers in step"):
        rollout(model, state, 1e6 * dt, N_STEPS, step=STEP)
    marked = rollout(model, state, 1e6 * dt, N_STEPS, step=STEP, on_divergence=OnDivergence.MARK)
    assert marked.diverged is not None


def test_what_it_cannot_do_is_said(case):
    model, state, dt = case
    bodies = {"stone": RigidBodies(tetrahedron(), density=900.0)}
    with_body = Model(None, {}, bodies=bodies), State(bodies={"stone": BodyState([0.0, 0.0, 0.0])})
    with pytest.raises(ValueError, match=r"no rigid bodies where `step` is Midpoint\(\)"):
        rollout(*with_body, dt, 1, step=STEP)
    with pytest.raises(ValueError, match=r"one world where `step` is Midpoint\(\)"):
        rollout(stack([model, model]), [state, state], dt, 1, step=STEP)
    with pytest.raises(ValueError, match='`device` must be "cpu"'):
        rollout(model, state, dt, 1, step=STEP, device="cuda")
    with pytest.raises(ValueError, match="`dtype` must be float64"):
        rollout(model, state, dt, 1, step=STEP, dtype=np.float32)


def test_a_step_without_a_twin_says_so_where_a_gradient_is_asked_for(case):
    class Alone(FieldStep):
        STEPPER = midpoint.MidpointStepper

    model, state, dt = case
    rollout(model, state, dt, N_STEPS, step=Alone())
    with pytest.raises(TypeError, match="No adjoint is registered for `step` Alone"):
        record(model, state, dt, N_STEPS, step=Alone()).vjp(np.ones((1, *state.x.shape)))


def test_a_scene_takes_it_by_its_import_path():
    times = np.linspace(0.0, 0.05, 3)
    ends = {}
    for step in ("semi-implicit", "midpoint:Midpoint"):
        bar = Soft(mesh="box", size=(0.1, 0.05, 0.05), cells=(2, 1, 1), E=1e4, density=1000.0)
        scene = Scene(bodies={"bar": bar}, world=World(step=step, dt=1e-4))
        ends[step] = simulate(scene, times).surfaces["bar"][-1]
    fallen = 0.5 * 9.81 * times[-1] ** 2
    difference = np.abs(ends["semi-implicit"] - ends["midpoint:Midpoint"]).max()
    assert 0.0 < difference < 0.01 * fallen


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("implicits", '`world.step` must be "semi-implicit", "implicit" or module:Class'),
        ("adjsim.system:TimeStep", "is made without arguments"),
        ("midpoint:MidpointStepper", "must be .* a subclass of TimeStep"),
        ("other:Step", "runs no code that you have not allowed"),
    ],
)
def test_a_scene_says_what_is_no_step(step, message):
    with pytest.raises(StudyError, match=message):
        simulate(Scene(bodies={"a": Soft(mesh="box", E=1e4)}, world=World(step=step)), [0.0, 0.1])
