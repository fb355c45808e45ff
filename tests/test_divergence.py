"""Marked divergence: who left the finite numbers, and when; the others' bits are their own."""

import re

import numpy as np
import pytest

import adjsim.engine.layouts
from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import Binomial, EveryK, StoreAll
from adjsim import OnDivergence
from adjsim.engine.packing import pack
from adjsim.engine.stepper import CpuStepper
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.system import RolloutError
from adjsim.worlds import stack
from tests.rigid.scenes import box
from tests.test_worlds import DT, F64, FRAMES, N_STEPS, world


FAST = {1: 1e200, 4: 3e58}  # velocities [m/s] of a node of these worlds: too fast at once, and soon
MARK = {"on_divergence": "mark"}


def thrown(pair, v, dtype=np.float64):
    """A world with a node that is much too fast."""
    model, state = pair
    fast = np.array(state.v)
    fast[5] = v if dtype == np.float64 else 1e15
    return model, State(state.x, fast)


@pytest.fixture(scope="module")
def worlds():
    """Six worlds of several sizes, two of which diverge."""
    resting = [world(k, cells) for k, cells in enumerate([(1, 1, 1), (2, 1, 1), (1, 2, 1)] * 2)]
    return [thrown(each, FAST[k]) if k in FAST else each for k, each in enumerate(resting)]


@pytest.fixture(scope="module")
def adj(worlds):
    """Cotangents of x and v at the frames, NaN of those that diverge: the loss of what is NaN."""
    rng = np.random.default_rng(3)
    parts = [rng.standard_normal((2, len(FRAMES), *state.x.shape)) for _, state in worlds]
    for k in FAST:
        parts[k][:] = np.nan
    return list(zip(*parts, strict=True))


def step_of(model, state, dt=DT, **options):
    """The step in which a rollout fails, as its error says."""
    with pytest.raises(RolloutError) as caught:
        rollout(model, state, dt, N_STEPS, **options)
    return int(re.search(r"in step (\d+)", str(caught.value))[1])


def check_trajectories(runs, worlds, **options):
    """Those that diverge say when and are NaN from there on; the others have their own bits."""
    for k, (run, pair) in enumerate(zip(runs, worlds, strict=True)):
        if k not in FAST:
            theirs = rollout(*pair, DT, N_STEPS, frames=FRAMES, **options)
            assert run.diverged is theirs.diverged is None
            np.testing.assert_array_equal(run.x, theirs.x)
            np.testing.assert_array_equal(run.v, theirs.v)
            continue
        assert run.diverged == step_of(*pair, **options)
        after = np.array(FRAMES) > run.diverged
        assert after.any()
        assert not after.all()
        for field in (run.x, run.v):
            assert np.isnan(field[after]).all()
            assert np.isfinite(field[~after]).all()


def check_gradients(gradients, worlds, adj):
    """Those of worlds that diverge are NaN; the others have the bits of their worlds alone."""
    for k, (grads, pair) in enumerate(zip(gradients, worlds, strict=True)):
        if k in FAST:
            assert all(np.isnan(value).all() for value in grads.values())
            assert set(grads) == {*pair[0].parameters(), *pair[0].state_parameters(pair[1])}
            continue
        theirs = record(*pair, DT, N_STEPS, frames=FRAMES).vjp(adj[0][k], adj[1][k])
        assert np.abs(theirs["solid.mu"]).max() > 0
        for path, value in theirs.items():
            np.testing.assert_array_equal(grads[path], value, err_msg=f"world {k}: {path}")


def test_they_diverge_at_different_times(worlds):
    steps = {k: step_of(*worlds[k]) for k in FAST}
    assert steps[1] < steps[4] < N_STEPS - 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("limit", [1, 40, 10_000])
def test_a_batch_goes_on_without_the_worlds_that_diverge(worlds, limit, threads, monkeypatch):
    monkeypatch.setattr(adjsim.engine.layouts, "GROUP", limit)
    models, states = zip(*worlds, strict=True)
    runs = rollout(stack(models), states, DT, N_STEPS, frames=FRAMES, threads=threads, **MARK)
    check_trajectories(runs, worlds)


def test_in_single_precision(worlds):
    worlds = [thrown(pair, 0.0, np.float32) if k in FAST else pair for k, pair in enumerate(worlds)]
    models, states = zip(*worlds, strict=True)
    options = {"dtype": np.float32}
    runs = rollout(stack(models), states, DT, N_STEPS, frames=FRAMES, **MARK, **options)
    check_trajectories(runs, worlds, **options)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("schedule", [StoreAll(), EveryK(4), Binomial(2)])
def test_the_gradients_of_the_other_worlds_keep_their_bits(worlds, adj, schedule, threads):
    models, states = zip(*worlds, strict=True)
    run = record(
        stack(models), states, DT, N_STEPS, frames=FRAMES, checkpoint=schedule, threads=threads,
        on_divergence=OnDivergence.MARK,
    )  # fmt: skip
    for _ in range(2):  # again, with a forward sweep of its own
        check_gradients(run.vjp(*adj), worlds, adj)
    check_trajectories(run.trajectory, worlds)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_tangents_of_the_other_worlds_keep_their_bits(worlds, threads):
    models, states = zip(*worlds, strict=True)
    rng = np.random.default_rng(5)
    tangents = [{"state.v": rng.standard_normal(s.x.shape), "floor.friction": 0.3} for s in states]
    options = {"frames": FRAMES, "threads": threads}
    runs, tans = rollout_jvp(stack(models), states, DT, N_STEPS, tangents, **options, **MARK)
    check_trajectories(runs, worlds)
    for k, (pair, tan) in enumerate(zip(worlds, tans, strict=True)):
        if k in FAST:
            assert tan.diverged == runs[k].diverged
            assert np.isnan(tan.x[np.array(FRAMES) > tan.diverged]).all()
            assert np.isfinite(tan.x[np.array(FRAMES) <= tan.diverged]).all()
            continue
        _, theirs = rollout_jvp(*pair, DT, N_STEPS, tangents[k], frames=FRAMES)
        np.testing.assert_array_equal(tan.x, theirs.x)
        np.testing.assert_array_equal(tan.v, theirs.v)


def test_worlds_that_share_a_part_are_marked_one_by_one(worlds):
    # Fewer groups than threads: both worlds' nodes are shared out, and run step by step together.
    models, states = zip(*worlds[:2], strict=True)
    packed = pack(models, N_STEPS, F64)
    stepper = CpuStepper(stack(models), packed, F64, DT, N_STEPS, 2)
    assert not stepper.stands_apart
    stepper.on_divergence = OnDivergence.MARK
    fields = stepper.allocate(N_STEPS + 1)
    stepper.load(states, fields, 0)
    stepper.advance(0, np.arange(N_STEPS + 1), fields)
    first, second = stepper.trajectory(np.arange(N_STEPS + 1), fields)
    assert (first.diverged, second.diverged) == (None, step_of(*worlds[1]))
    theirs = rollout(*worlds[0], DT, N_STEPS, frames=range(N_STEPS + 1))
    np.testing.assert_array_equal(first.x, theirs.x)


def test_a_model_alone_can_be_marked_too(worlds, adj):
    run = record(*worlds[1], DT, N_STEPS, frames=FRAMES, **MARK)
    assert run.trajectory.diverged == step_of(*worlds[1])
    assert all(np.isnan(value).all() for value in run.vjp(adj[0][1]).values())
    fine = record(*worlds[0], DT, N_STEPS, frames=FRAMES, **MARK)
    assert fine.trajectory.diverged is None
    assert np.isfinite(fine.vjp(adj[0][0])["state.x"]).all()


def test_a_gradient_that_overflows_is_marked_like_a_state(worlds):
    models, states = zip(*worlds[2:4], strict=True)
    # Three frames of 1e308 add up to more than there is.
    large = [np.full((3, *s.x.shape), c) for s, c in zip(states, (1e308, 1.0), strict=True)]
    with pytest.raises(RolloutError, match="of world 0 left the finite numbers"):
        record(stack(models), states, DT, N_STEPS, frames=FRAMES).vjp(large)
    run = record(stack(models), states, DT, N_STEPS, frames=FRAMES, **MARK)
    assert [frames.diverged for frames in run.trajectory] == [None, None]
    lost, kept = run.vjp(large)
    assert all(np.isnan(value).all() for value in lost.values())
    theirs = record(*worlds[3], DT, N_STEPS, frames=FRAMES).vjp(large[1])
    assert all(np.array_equal(kept[path], value) for path, value in theirs.items())


@pytest.mark.parametrize("threads", [1, 2])
def test_bodies_are_marked_like_nodes(threads):
    blocks = RigidBodies(box(), density=500.0)
    model = Model(forces={"floor": HalfSpaceContact(acts_on="block")}, bodies={"block": blocks})
    spins = [(1.0, 2.0, 3.0), (1e200, 2e200, 3e200), (3.0, 2.0, 1.0)]
    states = [
        State(bodies={"block": BodyState((0.0, 1.0, 0.0), angular_velocity=spin)}) for spin in spins
    ]
    run = record(stack([model] * 3), states, 1e-3, N_STEPS, frames=FRAMES, threads=threads, **MARK)
    assert run.trajectory[1].diverged == step_of(model, states[1], 1e-3)
    lost = run.trajectory[1].bodies["block"]
    assert np.isnan(lost.position[1:]).all()
    assert np.isnan(lost.orientation[1:]).all()
    adj = {"block": {"position": np.ones((len(FRAMES), 1, 3))}}
    gradients = run.vjp(bodies=[adj] * 3)
    assert all(np.isnan(value).all() for value in gradients[1].values())
    for k in (0, 2):
        theirs = record(model, states[k], 1e-3, N_STEPS, frames=FRAMES)
        same = (
            run.trajectory[k].bodies["block"].position == theirs.trajectory.bodies["block"].position
        )
        assert same.all()
        for path, value in theirs.vjp(bodies=adj).items():
            np.testing.assert_array_equal(gradients[k][path], value, err_msg=path)


def test_what_cannot_be_marked_is_refused(worlds):
    with pytest.raises(ValueError, match="`on_divergence` must be raise or mark, got 'ignore'"):
        rollout(*worlds[0], DT, N_STEPS, on_divergence="ignore")
    pendulum = (SimplePendulum(1.0), PendulumState(0.1))
    for verb in (rollout, record):
        with pytest.raises(ValueError, match="must be raise for a SimplePendulum, got mark"):
            verb(*pendulum, 0.1, 3, on_divergence="mark")
    with pytest.raises(ValueError, match="only rollouts of a Model or of a Batch can be marked"):
        rollout_jvp(*pendulum, 0.1, 3, {}, on_divergence="mark")
