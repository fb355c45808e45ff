"""Implicit Euler: its closed form, its order, its stability, its derivatives, what it refuses."""

import dataclasses

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import Binomial, EveryK, Segments, StoreAll
from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.systems import implicit as scenes
from adjoint.verify.systems.solids import rollout_problem
from adjoint.verify.taylor_test import taylor_test
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rollout import rollout
from adjsim.steps.implicit import ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler
from adjsim.system import RolloutError
from adjsim.worlds import Batch


G = 9.8
STEP = ImplicitEuler()


class Stiff(HalfSpaceContact):
    """A force of a kind without a tangent."""

    KIND = dataclasses.replace(HalfSpaceContact.KIND, name="stiff", jvp=None)


def hanging(k=50.0, m=0.4, c=0.0):
    """A mass on a spring below where it is held."""
    model = Model([1.0, m], {"spring": Springs([(0, 1)], k, 0.3, c)}, pinned=[True, False])
    return model, State([[0, 0, 0], [0, -0.35, 0]])


def cantilever(E=1e5):
    """A beam of tetrahedra, held at one end."""
    mesh = box_tets((4, 1, 1), (0.2, 0.05, 0.05))
    tets = NeoHookeanTets(mesh.tets, mesh.points, E / 2.8, E * 0.4 / 0.28, density=1000.0)
    return Model(None, {"beam": tets}, pinned=mesh.points[:, 0] < 1e-9), State(mesh.points)


def test_a_mass_on_a_spring_moves_by_the_closed_form():
    k, m, c, dt = 50.0, 0.4, 0.7, 0.1
    model, state = hanging(k, m, c)
    run = rollout(model, state, dt, 20, step=STEP, frames=range(21))
    y, v = -0.35, 0.0
    for n in range(1, 21):
        v = (m * v - dt * (k * (y + 0.3) + m * G)) / (m + dt * c + dt**2 * k)
        y += dt * v
        np.testing.assert_allclose(run.x[n, 1], [0, y, 0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(run.v[n, 1], [0, v, 0], rtol=0, atol=1e-14)
    assert not run.x[:, 0].any()


def test_pinned_nodes_keep_their_velocity_as_in_semi_implicit_steps():
    scene = scenes.chain(4)
    model, state = scene.model, scene.state
    run, other = (rollout(model, state, 1e-3, 4, step=step) for step in (STEP, SemiImplicitEuler()))
    np.testing.assert_array_equal(run.v[-1, 0], state.v[0])
    np.testing.assert_allclose(run.x[-1, 0], other.x[-1, 0], rtol=1e-15)


def test_it_is_of_first_order_against_fine_steps():
    model, state = cantilever()
    time = 0.05
    fine = rollout(model, state, time / 20_000, 20_000).x[-1]
    errors = [
        np.abs(rollout(model, state, time / n, n, step=STEP).x[-1] - fine).max()
        for n in (16, 32, 64)
    ]
    assert (np.abs(np.log2(np.divide(errors[:-1], errors[1:])) - 1.0) < 0.15).all()


def test_steps_of_a_hundred_times_the_stable_one_come_to_rest():
    model, state = cantilever(E=1e7)
    dt = 100.0 * model.stable_dt()
    with pytest.raises(RolloutError):
        rollout(model, state, dt, 200, step=SemiImplicitEuler())
    run = rollout(model, state, dt, 400, step=STEP)
    assert np.abs(run.x - state.x).max() < 0.01
    assert np.abs(run.v).max() < 1e-3


def test_a_step_run_again_has_the_same_bits():
    scene = scenes.block(3)
    twice = [scene.run(range(4)) for _ in range(2)]
    np.testing.assert_array_equal(twice[0].x, twice[1].x)
    np.testing.assert_array_equal(scene.run([3]).x[0], twice[0].x[3])


@pytest.fixture(scope="module", params=["block", "cloth", "chain", "touching"])
def problem(request):
    return rollout_problem(getattr(scenes, request.param), 3)


def wanted(problem):
    """The point without what does not act."""
    return {path: value for path, value in problem.point.items() if path not in problem.inert}


def test_tangent_and_adjoint_are_transposes_in_a_step_and_in_a_rollout(problem):
    for function, tolerance in ((problem.kernel, 1e-12), (problem, 1e-10)):
        point = wanted(function)
        test = dot_test(
            function.jvp, lambda c, function=function, point=point: function.vjp(c, list(point)),
            point, tolerance=tolerance,
        )  # fmt: skip
        assert test.passed, test


def test_gradients_of_every_parameter_are_those_of_differences(problem):
    y = problem.forward(problem.point)
    r = np.random.default_rng(0).standard_normal(y.shape)
    gradient = problem.vjp(r, list(problem.point))
    for path, value in wanted(problem).items():
        test = gradcheck(
            lambda x, path=path: float(r @ problem.forward({**problem.point, path: np.asarray(x)})),
            gradient[path], value, n_directions=2, step=1e-3, tolerance=1e-7,
        )  # fmt: skip
        assert test.passed, (path, test)
    for path in problem.inert:
        assert not gradient[path].any()


def test_the_remainder_falls_with_the_square_of_the_step(problem):
    point = wanted(problem)
    target = problem.forward(problem.point) + 0.1

    def loss(values):
        return 0.5 * float(np.square(problem.forward({**problem.point, **values}) - target).sum())

    gradient = problem.vjp(problem.forward(problem.point) - target, list(point))
    test = taylor_test(loss, gradient, point, eps0=1e-3, n_halvings=8)
    assert test.passed, test.table()
    assert test.slope1 == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("schedule", [EveryK(1), EveryK(3), Segments(3, 2), Binomial(2)])
def test_every_schedule_has_the_bits_of_all_states(rng, schedule):
    scene = scenes.block(7)

    def gradient(checkpoint):
        run = record(
            scene.model, scene.state, scene.dt, 7, step=STEP, frames=[0, 2, 3, 7],
            checkpoint=checkpoint,
        )  # fmt: skip
        adj = np.random.default_rng(1).standard_normal((2, *run.trajectory.x.shape))
        return [run.vjp(*adj), run.vjp(*adj)]

    (expected, again), checkpointed = gradient(StoreAll()), gradient(schedule)
    for path, value in expected.items():
        for other in (again, *checkpointed):
            np.testing.assert_array_equal(other[path], value, err_msg=path)


def test_a_frame_at_the_start_and_the_rows_of_a_series_count():
    x, n = np.array([[0.0, 0, 0]]), 3
    model, dt = Model([2.0], {"push": ExternalForces([0], np.ones((n, 1, 3)))}), 0.1
    run = record(model, State(x), dt, n, step=STEP, frames=[0, n])
    gradient = run.vjp(np.ones((2, 1, 3)))
    np.testing.assert_allclose(gradient["state.x"], [[2.0] * 3], rtol=1e-14)
    np.testing.assert_allclose(
        gradient["push.force"][:, 0, 0], dt**2 / 2.0 * np.arange(n, 0, -1), rtol=1e-12
    )


def test_what_does_not_converge_says_what_to_try_or_is_marked():
    model, _ = hanging()
    impatient = ImplicitEuler(most_iterations=1, tolerance=1e-15)
    bent = State([[0, 0, 0], [0.4, -0.1, 0]], [[0, 0, 0], [30.0, 20.0, 5.0]])
    with pytest.raises(RolloutError, match=r"Step 0 \(t = 0 s\) did not converge.*smaller `dt`"):
        rollout(model, bent, 0.1, 5, step=impatient)
    run = record(model, bent, 0.1, 5, step=impatient, on_divergence="mark", frames=range(6))
    assert run.trajectory.diverged == 0
    assert np.isnan(run.trajectory.x[1:]).all()
    assert np.isnan(run.vjp(np.ones((6, 2, 3)))["spring.stiffness"])
    _, tan = rollout_jvp(
        model, bent, 0.1, 5, {"gravity": np.ones(3)}, step=impatient, on_divergence="mark"
    )
    assert np.isnan(tan.x).all()


def test_what_it_cannot_do_is_refused():
    model, state = hanging()

    def refused(error, match, model=model, state=state, dt=0.1, **options):
        with pytest.raises(error, match=match):
            rollout(model, state, dt, 2, **{"step": STEP, **options})

    refused(ValueError, "`dtype` must be float64", dtype=np.float32)
    refused(ValueError, '`device` must be "cpu"', device="cuda")
    refused(ValueError, "`device` must be cpu or cuda", device="gpu")
    refused(ValueError, "`dt` must be a number of seconds where `step` is Impl", dt="auto")
    refused(TypeError, "`step` must be", step="implicit")
    refused(ValueError, "got a Batch", Batch([model]), [state])
    refused(TypeError, "got SimplePendulum", SimplePendulum(1.0), PendulumState(0.1))
    stiff = Model([1.0, 1.0], {"floor": Stiff(stiffness=1.0)})
    refused(TypeError, "`stiff` is a kind of force without a tangent", stiff)
    with pytest.raises(ValueError, match="`tolerance` must be positive"):
        ImplicitEuler(tolerance=0.0)
    with pytest.raises(ValueError, match="`most_iterations`"):
        ImplicitEuler(most_iterations=0)


def test_shares_of_frames_sum_to_the_norm_of_the_gradient():
    model, state = hanging()
    run = record(model, state, 0.1, 3, step=STEP, frames=[1, 3])
    inspection = run.inspect(np.ones((2, 2, 3)), wrt=["spring.stiffness"], thorough=True)
    size = np.linalg.norm(inspection.gradient["spring.stiffness"])
    assert inspection.shares["spring.stiffness"].sum() == pytest.approx(size, rel=1e-9)


def test_a_product_with_the_hessian_is_of_implicit_steps():
    model, state = hanging()
    target, stiffness = model.parameters()["spring.stiffness"], "spring.stiffness"

    def gradient(k):
        beside, start = model.with_values(state, {stiffness: np.full_like(target, k)})
        run = record(beside, start, 0.1, 5, step=STEP)
        return run.vjp(run.trajectory.x - 1.0, wrt=(stiffness,))[stiffness]

    run = record(model, state, 0.1, 5, step=STEP)
    product = run.hvp({stiffness: np.ones_like(target)}, lambda trajectory: trajectory.x - 1.0)[
        stiffness
    ]
    np.testing.assert_allclose(product, (gradient(50.01) - gradient(49.99)) / 0.02, rtol=1e-6)
