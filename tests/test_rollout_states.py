"""Whose memory is whose: models, states, trajectories and what a record keeps."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import Binomial, EveryK, StoreAll
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.jit.backend import JIT_DISABLED
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.physics import sliding_box
from tests.test_rollout import in_process


N_STEPS, DT = 30, 3e-4
FRAMES = [0, 11, 12, 30]


@pytest.fixture(scope="module")
def box():
    """A box that sticks, slips and bounces on a floor, driven by a series."""
    return sliding_box(np.random.default_rng(5), N_STEPS)


@pytest.fixture(scope="module")
def adj():
    """Cotangents of the frames' positions."""
    return np.random.default_rng(6).standard_normal((len(FRAMES), 27, 3))


@pytest.fixture(scope="module")
def gradient(box, adj):
    """The gradient with every state kept."""
    return record(*box, DT, N_STEPS, frames=FRAMES, threads=1).vjp(adj)


def assert_same(got, expected):
    assert list(got) == list(expected)
    for path, value in expected.items():
        np.testing.assert_array_equal(got[path], value, err_msg=path)


def test_models_and_states_keep_their_values_when_the_caller_changes_his_arrays():
    mesh = box_tets((1, 1, 1))
    rest, mu, mass = mesh.points.copy(), np.full(5, 2e4), np.ones(8)
    pinned, x = np.zeros(8, bool), mesh.points.copy()
    floor = HalfSpaceContact(friction=mu, friction_stiffness=mu, contact_nodes=np.arange(5))
    model = Model(
        mass, {"it": NeoHookeanTets(mesh.tets, rest, mu, mu), "floor": floor}, x[1], pinned
    )
    state = State(x)
    before = {path: value.copy() for path, value in model.parameters().items()}
    for array in (rest, mu, mass, x):
        array[:] = 7.0
    pinned[:] = True
    assert_same(model.parameters(), before)
    np.testing.assert_array_equal(model.forces["it"].rest_positions, mesh.points)
    np.testing.assert_array_equal(state.x, mesh.points)
    assert not model.pinned.any()
    for array in (state.x, state.v, model.mass, model.forces["it"].mu, mesh.points, mesh.tets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_cotangents_may_be_read_only(box, adj, gradient):
    run = record(*box, DT, N_STEPS, frames=FRAMES, threads=1)
    fixed = adj.copy()
    fixed.setflags(write=False)
    assert_same(run.vjp(fixed), gradient)
    assert_same(run.vjp(fixed, fixed), run.vjp(adj, adj))


@pytest.mark.parametrize("schedule", [StoreAll(), EveryK(4), Binomial(2)], ids=str)
def test_a_trajectory_belongs_to_the_caller(schedule, box, adj, gradient):
    run = record(*box, DT, N_STEPS, frames=FRAMES, checkpoint=schedule, threads=1)
    run.trajectory.x[:] = 7.0
    for _ in range(2):
        assert_same(run.vjp(adj), gradient)
        assert (run.trajectory.x == 7.0).all()


def test_an_interrupted_sweep_leaves_a_record_that_can_be_reversed(box, adj, gradient, monkeypatch):
    run = record(*box, DT, N_STEPS, frames=FRAMES, checkpoint=EveryK(4), threads=1)
    advance, calls = run._stepper.advance, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) in (3, 6, 25):
            raise KeyboardInterrupt
        advance(*args)

    monkeypatch.setattr(run._stepper, "advance", interrupted)
    interruptions = 0
    for _ in range(6):
        try:
            assert_same(run.vjp(adj), gradient)
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions == 3


def test_threads_that_share_a_record_take_turns(box, gradient, adj):
    run = record(*box, DT, N_STEPS, frames=FRAMES, checkpoint=Binomial(3), threads=1)
    with ThreadPoolExecutor(4) as pool:
        for of_thread in pool.map(lambda _: run.vjp(adj), range(8)):
            assert_same(of_thread, gradient)


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("schedule", [StoreAll(), EveryK(9), Binomial(2, 3)], ids=str)
def test_long_runs_are_cut_without_a_trace(chunk, schedule, box, adj, gradient, monkeypatch):
    whole = rollout(*box, DT, N_STEPS, frames=FRAMES, threads=1)
    monkeypatch.setattr(import_module("adjsim.rollout"), "CHUNK", chunk)
    cut = rollout(*box, DT, N_STEPS, frames=FRAMES, threads=1)
    np.testing.assert_array_equal(cut.x, whole.x)
    np.testing.assert_array_equal(cut.v, whole.v)
    run = record(*box, DT, N_STEPS, frames=FRAMES, checkpoint=schedule, threads=1)
    np.testing.assert_array_equal(run.trajectory.x, whole.x)
    assert_same(run.vjp(adj), gradient)


def test_the_number_of_steps_may_be_any_integer_type():
    model, state = Model(np.ones(1)), State(np.zeros((1, 3)))
    for n_steps in (np.uint8(255), np.int8(127), np.uint64(300)):
        expected = rollout(model, state, 1e-2, int(n_steps)).x
        np.testing.assert_array_equal(rollout(model, state, 1e-2, n_steps).x, expected)
        np.testing.assert_array_equal(record(model, state, 1e-2, n_steps).trajectory.x, expected)
        np.testing.assert_array_equal(rollout_jvp(model, state, 1e-2, n_steps, {})[0].x, expected)


MEMORY = """
from pathlib import Path
import numpy as np
from adjoint.rollout import record
from adjsim.model import Model, State

def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

model, state, adj = Model(np.ones(1)), State(np.zeros((1, 3))), np.ones((1, 1, 3))
record(model, state, 1e-3, 5, checkpoint="10MB", threads=1).vjp(adj)
before = peak()
run = record(model, state, 1e-3, 4_000_000, checkpoint="10MB", threads=1)
gradient = run.vjp(adj)["state.v"]
print(peak() - before, run.cost.bytes, gradient[0, 0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.skipif(JIT_DISABLED, reason="four million steps take compiled code")
def test_a_memory_budget_is_kept_over_a_long_horizon():
    # One number of 8 bytes for every step would be 32 MB.
    output = in_process(MEMORY).communicate()[0].split()
    grown, predicted, slope = (float(word) for word in output)
    assert slope == pytest.approx(4000.0, rel=1e-6)  # x = v t
    assert predicted <= 10e6
    assert grown <= 20e6
