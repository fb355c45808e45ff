"""States kept without the points of bodies: the bits of those kept whole, in less memory."""

from pathlib import Path

import numpy as np
import pytest

import adjoint.engine.checkpoint_states
import adjsim.engine.stepper
from adjoint.engine.checkpoint_states import PartialStates, WholeStates
from adjoint.rollout import record
from adjoint.schedules import Binomial, EveryK, Segments, StoreAll
from adjsim.jit.backend import JIT_DISABLED
from adjsim.rollout import ready_stepper, rollout
from adjsim.worlds import stack
from tests.rigid.scenes import tumbling
from tests.rigid.test_rollout_bodies import packed, split
from tests.test_rollout import in_process


DT, N_STEPS, FRAMES = 1e-3, 45, [0, 7, 8, 30, 45]
SCHEDULES = [StoreAll(), EveryK(7), Binomial(4), Binomial(3, 5), Segments(4, 10), "2kB"]


@pytest.fixture(scope="module")
def scene():
    return tumbling(np.random.default_rng(3))


@pytest.fixture(scope="module")
def adj():
    return np.random.default_rng(4).standard_normal((len(FRAMES), 3, 13))


@pytest.fixture(scope="module")
def whole(scene, adj):
    """Trajectory and gradient from states that are kept whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjsim.engine.stepper, "keeps_no_points", lambda n_nodes, n_rows: False)
        run = record(*scene, DT, N_STEPS, frames=FRAMES)
        assert isinstance(run._states, WholeStates)
        return packed(run.trajectory), run.vjp(bodies=split(scene[0], adj))


@pytest.mark.parametrize("steps", [1, 4, 10, 100])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_points_that_are_placed_again_have_their_bits(
    schedule, steps, scene, adj, whole, monkeypatch
):
    monkeypatch.setattr(adjoint.engine.checkpoint_states, "WORK_BYTES", 0)
    monkeypatch.setattr(adjoint.engine.checkpoint_states, "LEAST_STEPS", steps)
    run = record(*scene, DT, N_STEPS, frames=FRAMES, checkpoint=schedule)
    assert isinstance(run._states, PartialStates)
    np.testing.assert_array_equal(packed(run.trajectory), whole[0])
    for _ in range(2):  # again, with a forward sweep of its own
        for path, value in run.vjp(bodies=split(scene[0], adj)).items():
            np.testing.assert_array_equal(value, whole[1][path], err_msg=path)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_completed_states_are_those_that_a_step_makes(scene, dtype, threads):
    stepper = ready_stepper(*scene[:1], DT, 9, dtype, threads, "cpu", "raise")
    fields = stepper.allocate(10)
    stepper.load(scene[1], fields, 0)
    stepper.advance(0, np.arange(10), fields)
    completed = tuple(array.copy() for array in fields)
    for array in completed[:2]:
        array[:] = np.nan
    stepper.complete(np.arange(10), completed)
    for ours, theirs in zip(completed, fields, strict=True):
        assert ours.size
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_of_bodies_has_the_bits_of_its_worlds(scene, adj, whole, threads):
    model, state = scene
    moved = model.with_values(state, {"stone.velocity": np.ones((1, 3))})
    run = record(
        stack([model, moved[0]]), [state, moved[1]], DT, N_STEPS, frames=FRAMES, checkpoint="3kB",
        threads=threads,
    )  # fmt: skip
    np.testing.assert_array_equal(packed(run.trajectory[0]), whole[0])
    theirs = rollout(*moved, DT, N_STEPS, frames=FRAMES)
    np.testing.assert_array_equal(packed(run.trajectory[1]), packed(theirs))
    gradient = run.vjp(bodies=[split(model, adj)] * 2)[0]
    for path, value in gradient.items():
        np.testing.assert_array_equal(value, whole[1][path], err_msg=path)


def test_only_poses_and_nodes_are_kept_where_points_are_the_most(scene):
    run = record(*scene, DT, N_STEPS)
    assert run.cost.bytes == N_STEPS * 3 * 13 * 8
    kept = sum(field.nbytes for field in run._states.frames)
    assert kept == run.cost.bytes + 3 * 13 * 8  # and the one frame
    beside = tumbling(np.random.default_rng(3), soft=True)
    assert beside[0].n_rows < 2 * beside[0].n_nodes
    whole = record(*beside, DT, 2)
    assert isinstance(whole._states, WholeStates)
    assert whole.cost.bytes == 2 * 8 * (6 * beside[0].n_rows + 3 * 13)


MEMORY = """
from pathlib import Path
import numpy as np
from adjoint.rollout import record
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.meshes.shapes import shape
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState

def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

n = 16
bodies = RigidBodies([shape("gear", 0.5)] * n, density=100.0)
floor = HalfSpaceContact(stiffness=50.0, acts_on="it")
model = Model(forces={"floor": floor}, bodies={"it": bodies})
state = State(bodies={"it": BodyState(np.eye(n, 3))})
adj = {"it": {"position": np.ones((1, n, 3))}}
record(model, state, 1e-4, 5, checkpoint="20MB", threads=1).vjp(bodies=adj)
before = peak()
run = record(model, state, 1e-4, 20_000, checkpoint="20MB", threads=1)
gradient = run.vjp(bodies=adj)
print(peak() - before, run.cost.bytes, np.abs(gradient["it.position"]).max(), model.n_rows)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.skipif(JIT_DISABLED, reason="20 000 steps take compiled code")
def test_a_memory_budget_is_kept_by_bodies():
    # All 20 000 states take 33 MB, and with the points of the bodies some GB.
    output = in_process(MEMORY).communicate()[0].split()
    grown, predicted, gradient, n_rows = (float(word) for word in output)
    assert 0.0 < gradient < np.inf
    assert 20_000 * 48 * n_rows > 1e9
    assert 10e6 < predicted <= 20e6
    assert 0.5 * predicted < grown <= 24e6
