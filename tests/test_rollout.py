"""`rollout`, `record` and `rollout_jvp`: gradients of whole rollouts, bits, memory."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import Binomial, EveryK, MemoryBudget, Segments, StoreAll
from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from adjsim.engine.stepper import RolloutError
from adjsim.jit.backend import JIT_DISABLED
from adjsim.model import Model
from adjsim.rollout import rollout
from tests.physics import rebuilt, referenced, sliding_box, values_of


ROOT = Path(__file__).resolve().parent.parent
N_STEPS, DT = 30, 3e-4
FRAMES = [0, 11, 12, 30]
PATHS = [
    "mass", "gravity", "solid.mu", "solid.lam", "solid.viscosity", "solid.actuation",
    "solid.rest_positions",
    "floor.normal", "floor.height", "floor.velocity", "floor.radius", "floor.stiffness",
    "floor.damping", "floor.friction_stiffness", "floor.friction", "state.x", "state.v",
]  # fmt: skip
SCHEDULES = [
    StoreAll(), EveryK(4), EveryK(30), EveryK(100), Segments(3, 8), Segments(0, 30),
    Binomial(1), Binomial(3), Binomial(40), MemoryBudget("20kB"), "10kB", 8000,
]  # fmt: skip


@pytest.fixture(scope="module")
def box():
    """A box that sticks, slips and bounces on a floor, driven by a series."""
    return sliding_box(np.random.default_rng(5), N_STEPS)


@pytest.fixture(scope="module")
def adj():
    """Cotangents of the frames: positions and velocities."""
    rng = np.random.default_rng(6)
    return rng.standard_normal((2, len(FRAMES), 27, 3)) * np.array([1.0, 0.01])[:, None, None, None]


@pytest.fixture(scope="module")
def run(box):
    """The rollout with every state kept."""
    model, state = box
    return record(model, state, DT, N_STEPS, frames=FRAMES, threads=1)


@pytest.fixture(scope="module")
def gradient(run, adj):
    """Its gradient with respect to everything."""
    return run.vjp(*adj)


def test_record_is_rollout_to_the_bit(box, run):
    plain = rollout(*box, DT, N_STEPS, frames=FRAMES, threads=1)
    np.testing.assert_array_equal(run.trajectory.x, plain.x)
    np.testing.assert_array_equal(run.trajectory.v, plain.v)
    np.testing.assert_array_equal(run.trajectory.steps, FRAMES)


def test_a_gradient_has_every_parameter_in_its_own_shape(box, gradient):
    values = values_of(*box)
    assert sorted(gradient) == sorted(values) == sorted(PATHS)
    for path, value in values.items():
        assert gradient[path].shape == value.shape, path
        assert gradient[path].dtype == np.float64
        assert np.abs(gradient[path]).max() > 0, path


@pytest.mark.parametrize("path", PATHS)
def test_gradient_matches_complex_steps_through_the_reference(path, box, gradient, adj, rng):
    value = values_of(*box)[path]
    direction = rng.standard_normal(value.shape)
    x, v = referenced(*box, DT, N_STEPS, {path: value + 1e-30j * direction}, frames=FRAMES)
    slope = (np.vdot(adj[0], x) + np.vdot(adj[1], v)).imag / 1e-30
    size = np.linalg.norm(gradient[path]) * np.linalg.norm(direction)
    # 30 steps round by some 1000 eps each.
    assert abs(slope - np.vdot(gradient[path], direction)) <= 1e-11 * size


@pytest.mark.parametrize("path", ["mass", "solid.lam", "floor.normal", "state.x"])
def test_gradient_matches_central_differences(path, box, run):
    model, state = box

    def ends(values):
        end = rollout(*rebuilt(model, state, values), DT, N_STEPS, frames=FRAMES, threads=1)
        return np.stack([end.x, 0.01 * end.v])

    check = gradcheck(
        ends,
        lambda c: {path: run.vjp(c[0], 0.01 * c[1], wrt=[path])[path]},
        {path: values_of(model, state)[path]},
        n_directions=3,
        step=1e-6,  # so small that no node crosses a kink in 30 steps
        tolerance=1e-6,
    )
    assert check.passed, check.table()


@pytest.mark.parametrize("path", PATHS)
def test_tangent_and_adjoint_are_transposes(path, box, run):
    model, state = box

    def tangent(tangents):
        _, tan = rollout_jvp(model, state, DT, N_STEPS, tangents, frames=FRAMES, threads=1)
        return np.stack([tan.x, 0.01 * tan.v])

    check = dot_test(
        tangent,
        lambda c: {path: run.vjp(c[0], 0.01 * c[1], wrt=[path])[path]},
        {path: values_of(model, state)[path]},
        n_pairs=2,
        tolerance=1e-10,
    )
    assert check.passed, check.table()


def test_every_row_of_a_series_has_its_own_gradient(box, gradient, adj):
    series = values_of(*box)["solid.actuation"]
    assert series.shape == (N_STEPS, 40)
    for k in (0, 1, 10, 11, 28):
        step = np.zeros(series.shape, complex)
        step[k, 7] = 1e-30j
        x, v = referenced(*box, DT, N_STEPS, {"solid.actuation": series + step}, frames=FRAMES)
        slope = (np.vdot(adj[0], x) + np.vdot(adj[1], v)).imag / 1e-30
        assert gradient["solid.actuation"][k, 7] == pytest.approx(slope, rel=1e-9), k


def test_a_row_after_the_last_frame_has_no_gradient(box):
    model, state = box
    run = record(model, state, DT, N_STEPS, frames=[5], threads=1)
    series = run.vjp(np.ones((1, 27, 3)))["solid.actuation"]
    assert (np.abs(series[:5]).max(axis=1) > 0).all()
    np.testing.assert_array_equal(series[5:], 0.0)


def test_a_subset_of_the_gradient_has_the_same_bits(run, adj, gradient):
    for wrt in (["solid.mu"], ["state.v", "gravity"], ["mass"], ["floor.friction", "state.x"]):
        subset = run.vjp(*adj, wrt=wrt)
        assert list(subset) == wrt
        for path in wrt:
            np.testing.assert_array_equal(subset[path], gradient[path], err_msg=path)


def test_cotangents_add_up(run, adj, gradient):
    only_x, only_v = run.vjp(adj[0]), run.vjp(np.zeros_like(adj[1]), adj[1])
    for path, value in gradient.items():
        np.testing.assert_allclose(
            only_x[path] + only_v[path], value, rtol=0, atol=1e-11 * np.abs(value).max()
        )


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_every_schedule_gives_the_same_bits_again_and_again(schedule, box, adj, gradient):
    run = record(*box, DT, N_STEPS, frames=FRAMES, checkpoint=schedule, threads=1)
    before = run.trajectory.x.copy()
    for _ in range(2):
        again = run.vjp(*adj)
        for path, value in gradient.items():
            np.testing.assert_array_equal(again[path], value, err_msg=path)
        np.testing.assert_array_equal(run.trajectory.x, before)


def test_two_threads_give_the_bits_of_one(box, run, adj, gradient):
    two = record(*box, DT, N_STEPS, frames=FRAMES, threads=2)
    np.testing.assert_array_equal(two.trajectory.x, run.trajectory.x)
    np.testing.assert_array_equal(two.trajectory.v, run.trajectory.v)
    for path, value in two.vjp(*adj).items():
        np.testing.assert_array_equal(value, gradient[path], err_msg=path)
    tangents = {path: np.ones_like(value) for path, value in values_of(*box).items()}
    tans = [
        rollout_jvp(*box, DT, N_STEPS, tangents, frames=FRAMES, threads=threads)[1]
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(tans[0].x, tans[1].x)
    np.testing.assert_array_equal(tans[0].v, tans[1].v)


def test_float32_follows_float64(box, run, adj, gradient):
    single = record(*box, DT, N_STEPS, frames=FRAMES, dtype="float32", threads=1)
    assert single.trajectory.x.dtype == np.float32
    # A rounded position acts as a force: each step adds dt K/m delta to v, K/m <= 4/dt_s^2.
    model = box[0]
    delta = np.finfo(np.float32).eps * np.abs(run.trajectory.x).max()
    v_error = N_STEPS * 4.0 * DT / model.stable_dt() ** 2 * delta
    np.testing.assert_allclose(single.trajectory.v, run.trajectory.v, rtol=0, atol=v_error)
    np.testing.assert_allclose(
        single.trajectory.x, run.trajectory.x, rtol=0, atol=N_STEPS * (delta + DT * v_error)
    )
    for path, value in single.vjp(*adj).items():
        assert value.dtype == np.float64
        # The same growth, relative: v_error against velocities of size 1.
        assert np.linalg.norm(value - gradient[path]) <= v_error * np.linalg.norm(gradient[path])


SCRIPT = """
import hashlib, sys
import numpy as np
from adjoint.rollout import record
from tests.physics import sliding_box
run = record(*sliding_box(np.random.default_rng(5), 30), 3e-4, 30, threads=int(sys.argv[1]))
gradient = run.vjp(np.ones_like(run.trajectory.x), np.ones_like(run.trajectory.x))
digest = hashlib.sha256(run.trajectory.x.tobytes())
for path in sorted(gradient):
    digest.update(gradient[path].tobytes())
print(digest.hexdigest())
"""


def in_process(script, *args):
    """A script started in another process, at the root of the sources."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-c", script, *args], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_another_process_gives_the_same_bits(run, gradient):
    processes = [in_process(SCRIPT, threads) for threads in ("1", "1", "2")]
    hashes = [process.communicate()[0].strip() for process in processes]
    assert len(hashes[0]) == 64
    assert len(set(hashes)) == 1


MEMORY = """
from pathlib import Path
import numpy as np
from adjoint.rollout import record
from adjsim.jit.backend import JIT_DISABLED
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State

def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

n = 3000
x = np.random.default_rng(0).uniform(-1, 1, (n, 3))
model, state = Model(np.ones(n), {"floor": HalfSpaceContact(stiffness=50.0)}), State(x)
adj = np.ones((1, n, 3))
record(model, state, 1e-3, 5, checkpoint="100MB", threads=1).vjp(adj)
before = peak()
run = record(model, state, 1e-3, 4000, checkpoint="100MB", threads=1)
gradient = run.vjp(adj)
print(peak() - before, run.cost.bytes, np.abs(gradient["state.x"]).max())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.skipif(JIT_DISABLED, reason="4000 steps of 3000 nodes take compiled code")
def test_a_memory_budget_is_kept():
    # All 4000 states take 576 MB.
    output = in_process(MEMORY).communicate()[0].split()
    grown, predicted, gradient = (float(word) for word in output)
    assert 0.0 < gradient < np.inf
    assert 50e6 < predicted <= 100e6
    assert 0.5 * predicted < grown <= 120e6


def rollout_of(solid, state, dt, n_steps, series):
    """The first steps of a body that is driven by a longer series."""
    shorter = {"solid.actuation": series[:n_steps]}
    return rollout(*rebuilt(solid, state, shorter), dt, n_steps, threads=1)


@np.errstate(all="ignore")  # without compilation NumPy warns of the explosion
def test_an_exploding_rollout_names_step_time_node_and_stable_dt(box):
    model, state = box
    solid = Model(model.mass, {"solid": model.forces["solid"]}, pinned=model.pinned)
    stable = solid.stable_dt()
    with pytest.raises(RolloutError) as error:
        rollout(solid, state, 3.0 * stable, N_STEPS, threads=1)
    message = str(error.value)
    step = int(message.split("in step ")[1].split(maxsplit=1)[0])
    assert f"t = {step * 3.0 * stable:.6g} s" in message
    assert f"estimated stable dt is {stable:.3g} s. Try `dt` below {stable:.3g} s" in message
    assert 0 <= int(message.split("at node ")[1].split(".", maxsplit=1)[0]) < 27
    series = solid.forces["solid"].actuation
    assert np.isfinite(rollout_of(solid, state, 3.0 * stable, step, series).x).all()
    for call in (record, lambda *a, **k: rollout_jvp(*a, {}, **k)):
        with pytest.raises(RolloutError, match=f"in step {step} "):
            call(solid, state, 3.0 * stable, N_STEPS, threads=1)


def test_half_the_estimated_step_is_stable(rng):
    model, state = sliding_box(rng, 1, viscosity=0.0, height=-10.0)
    tets = dataclasses.replace(model.forces["solid"], actuation=0.0)
    solid = Model(model.mass, {"solid": tets}, gravity=(0.0, 0.0, 0.0))
    frames = range(0, 501, 25)
    run = rollout(solid, state, 0.5 * solid.stable_dt(), 500, frames=frames, threads=1)
    kinetic = (solid.mass[:, None] * run.v**2).sum(axis=(1, 2))
    assert kinetic.max() <= 3.0 * kinetic[0]
