"""The time loop and its twin: closed forms, the reference, momentum, order of accuracy."""

import dataclasses

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjsim.engine.partition import cuts
from adjsim.engine.timeloop import euler_step, euler_step_jvp
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.physics import referenced, sliding_box


DT = 3e-4
G = np.array([0.3, -9.8, 0.2])


def test_free_fall_is_the_sum_of_the_steps(rng):
    x, v = rng.standard_normal((2, 4, 3))
    n = 10
    end = rollout(Model(np.full(4, 3.0), gravity=G), State(x, v), 0.01, n)
    np.testing.assert_allclose(end.v[0], v + n * 0.01 * G, rtol=1e-14)
    np.testing.assert_allclose(
        end.x[0], x + n * 0.01 * v + n * (n + 1) / 2 * 1e-4 * G, rtol=0, atol=1e-14
    )


def test_adjoint_of_free_fall_is_the_same_sum(rng):
    x, v = rng.standard_normal((2, 4, 3))
    n, adj = 10, rng.standard_normal((1, 4, 3))
    gradient = record(Model(np.full(4, 3.0), gravity=G), State(x, v), 0.01, n).vjp(adj)
    np.testing.assert_array_equal(gradient["state.x"], adj[0])
    np.testing.assert_allclose(gradient["state.v"], n * 0.01 * adj[0], rtol=1e-13)
    np.testing.assert_allclose(
        gradient["gravity"], n * (n + 1) / 2 * 1e-4 * adj[0].sum(axis=0), rtol=1e-12
    )


def test_a_pinned_node_moves_uniformly(rng):
    model, state = sliding_box(rng, 20, pinned=(0, 11))
    end = rollout(model, state, DT, 20, threads=1)
    np.testing.assert_array_equal(end.v[0, [0, 11]], state.v[[0, 11]])
    np.testing.assert_allclose(
        end.x[0, [0, 11]], state.x[[0, 11]] + 20 * DT * state.v[[0, 11]], rtol=1e-14
    )
    gradient = record(model, state, DT, 20, threads=1).vjp(np.ones_like(end.x), np.ones_like(end.x))
    np.testing.assert_array_equal(gradient["mass"][[0, 11]], 0.0)
    assert (gradient["mass"][1:11] != 0).all()


@pytest.mark.parametrize("w", [0.0, 2.0])
def test_one_step_by_hand_and_its_tangent(rng, w):
    x, v, f, tan_x, tan_v, tan_f, tan_g = (
        tuple(map(float, row)) for row in rng.normal(size=(7, 3))
    )
    dt, g, tan_w = 0.1, (0.0, -10.0, 0.0), 0.7
    x_new, v_new = euler_step(x, v, f, w, g, dt)
    tx, tv = euler_step_jvp(tan_x, tan_v, f, tan_f, w, tan_w, tan_g, dt)
    free = float(w > 0)
    for c in range(3):
        expected = v[c] + dt * (w * f[c] + free * g[c])
        assert v_new[c] == pytest.approx(expected, rel=1e-14)
        assert x_new[c] == pytest.approx(x[c] + dt * expected, rel=1e-14)
        slope = tan_v[c] + dt * (w * tan_f[c] + tan_w * f[c] + free * tan_g[c])
        assert tv[c] == pytest.approx(slope, rel=1e-13)
        assert tx[c] == pytest.approx(tan_x[c] + dt * slope, rel=1e-13)


@pytest.fixture(scope="module")
def box():
    """A box in contact and all 201 of its states by the reference."""
    model, state = sliding_box(np.random.default_rng(5), 200)
    return model, state, *referenced(model, state, DT, 200, frames=range(201))


@pytest.mark.parametrize("frames", [[0], [0, 200], [7, 8, 9, 150], range(201), None])
def test_two_hundred_steps_in_contact_equal_the_reference(frames, box):
    # 200 steps round v, of size 1, by about eps = 2e-16 each, and contact with k_e/m = 1e4
    # amplifies: 1e-12 leaves a factor of 25 in v, and far more in x.
    model, state, x, v = box
    run = rollout(model, state, DT, 200, frames=frames, threads=1)
    steps = [200] if frames is None else list(frames)
    assert run.steps.tolist() == steps
    np.testing.assert_allclose(run.times, np.array(steps) * DT)
    np.testing.assert_allclose(run.x, x[steps], rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.v, v[steps], rtol=0, atol=1e-12 * np.abs(v).max())


def test_the_box_sticks_slips_and_leaves_the_floor(box):
    model, _, x, v = box
    floor = model.forces["floor"]
    n = floor.normal / np.linalg.norm(floor.normal)
    depth = floor.height + floor.radius - x @ n
    u_n = v @ n
    slip = np.linalg.norm(v - u_n[..., None] * n, axis=-1)
    cone = floor.friction * (floor.stiffness * depth + floor.damping * np.maximum(0, -u_n))
    sticks = floor.friction_stiffness * slip <= cone
    touches = depth > 0
    assert 0.05 < touches.mean() < 0.95
    assert 0.05 < sticks[touches].mean() < 0.95


def test_frames_in_between_do_not_change_the_end(rng):
    model, state = sliding_box(rng, 20)
    every = rollout(model, state, DT, 20, frames=range(21), threads=1)
    some = rollout(model, state, DT, 20, frames=[0, 3, 20], threads=1)
    np.testing.assert_array_equal(some.x, every.x[[0, 3, 20]])
    np.testing.assert_array_equal(every.x[0], state.x)
    np.testing.assert_array_equal(every.v[0], state.v)


def test_momentum_changes_by_gravity_only(rng):
    model, state = sliding_box(rng, 50, pinned=(), height=-10.0)
    end = rollout(model, state, DT, 50, threads=1)
    gained = (model.mass[:, None] * (end.v[0] - state.v)).sum(axis=0)
    # 50 steps of forces that cancel to eps of their sizes.
    expected = 50 * DT * model.mass.sum() * model.gravity
    np.testing.assert_allclose(gained, expected, rtol=0, atol=1e-12)


def test_angular_momentum_stays_without_gravity(rng):
    model, state = sliding_box(rng, 50, pinned=(), height=-10.0)
    free = Model(model.mass, {"solid": model.forces["solid"]}, gravity=(0.0, 0.0, 0.0))
    end = rollout(free, state, DT, 50, threads=1)
    m = model.mass[:, None]
    before = np.cross(state.x, m * state.v).sum(axis=0)
    after = np.cross(end.x[0], m * end.v[0]).sum(axis=0)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12 * np.abs(before).max() + 1e-15)


def test_the_error_falls_with_the_first_power_of_the_step(rng):
    model, state = sliding_box(rng, 1, height=-10.0)
    solid = model.forces["solid"]
    constant = {"solid": dataclasses.replace(solid, actuation=solid.actuation[0])}
    fall = Model(model.mass, constant, pinned=model.pinned)
    ends = [rollout(fall, state, 4e-4 / 2**k, 20 * 2**k, threads=1).x[0] for k in range(7)]
    errors = [np.linalg.norm(end - ends[-1]) for end in ends[:4]]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    # The finest run has a sixty-fourth of the largest step: it bends the slopes by a few percent.
    assert ((slopes > 0.9) & (slopes < 1.25)).all(), slopes


def test_the_tangent_follows_the_difference_of_two_runs(rng):
    model, state = sliding_box(rng, 30)
    direction = rng.standard_normal(state.x.shape)
    frames = [0, 1, 15, 30]
    run, tan = rollout_jvp(model, state, DT, 30, {"state.v": direction}, frames=frames, threads=1)
    np.testing.assert_array_equal(run.x, rollout(model, state, DT, 30, frames=frames, threads=1).x)
    step = 1e-30j * direction
    x, v = referenced(model, state, DT, 30, {"state.v": state.v + step}, frames=frames)
    np.testing.assert_allclose(tan.x, x.imag / 1e-30, rtol=0, atol=1e-11)
    np.testing.assert_allclose(tan.v, v.imag / 1e-30, rtol=0, atol=1e-9)


def test_cuts_share_out_everything_evenly():
    for n in (0, 1, 7, 16, 33):
        for n_chunks in (1, 2, 5):
            ends = cuts(n, n_chunks)
            assert (ends[0], ends[-1]) == (0, n)
            assert np.ptp(np.diff(ends)) <= 1


def test_a_node_on_a_stiff_floor_bounces_back():
    floor = HalfSpaceContact(stiffness=1e4)
    model = Model([1.0], {"floor": floor}, gravity=(0.0, 0.0, 0.0))
    end = rollout(model, State([[0.0, 0.05, 0.0]], [[0.0, -1.0, 0.0]]), 1e-4, 2000)
    # No damping: it leaves as fast as it came, to the first order of the step.
    assert end.v[0, 0, 1] == pytest.approx(1.0, abs=1e-2)
