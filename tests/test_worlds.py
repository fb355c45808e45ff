"""Worlds: a batch gives the bits of every world alone, whatever runs beside it."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

import adjsim.engine.layouts
from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import Binomial, EveryK, MemoryBudget, Segments, StoreAll
from adjsim.courses import Signal
from adjsim.engine.packing import pack
from adjsim.engine.partition import even_shares, whole_groups
from adjsim.engine.stepper import CpuStepper
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
from adjsim.model import Model, State
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.system import RolloutError, RunSettings, make_stepper
from adjsim.worlds import stack
from tests.cuda import scenes


DT, N_STEPS, FRAMES = 1e-4, 6, [0, 2, 6]
F64 = np.dtype(np.float64)


def world(seed, cells=(1, 1, 1), actuation=None):
    """A soft box with a density, moduli of its own, on a rough floor."""
    rng = np.random.default_rng(seed)
    mesh = box_tets(cells, 0.1 * np.array(cells))
    n, n_tets = len(mesh.points), len(mesh.tets)
    if actuation is None:
        actuation = 0.05 * rng.standard_normal((N_STEPS, n_tets))
    solid = NeoHookeanTets(
        mesh.tets, mesh.points, 1e4 * rng.uniform(0.8, 1.2, n_tets), 2e4, actuation=actuation,
        density=1000.0,
    )  # fmt: skip
    floor = HalfSpaceContact(
        height=0.02, stiffness=1e3, damping=1.0, friction_stiffness=10.0, friction=0.4
    )
    gravity = rng.standard_normal(3)
    model = Model(None, {"solid": solid, "floor": floor}, gravity, np.arange(n) == 0)
    x = mesh.points + 1e-3 * rng.standard_normal((n, 3))
    return model, State(x, rng.standard_normal((n, 3)))


def drawn(worlds, seed=3):
    """Cotangents of x and v of each world at the frames."""
    rng = np.random.default_rng(seed)
    shapes = [(2, len(FRAMES), *state.x.shape) for _, state in worlds]
    return list(zip(*(rng.standard_normal(shape) for shape in shapes), strict=True))


def gradients(worlds, adj, **options):
    """Trajectories and gradients of a batch."""
    models, states = zip(*worlds, strict=True)
    run = record(stack(models), states, DT, N_STEPS, frames=FRAMES, **options)
    return run.trajectory, run.vjp(*adj)


def alone(worlds, adj, **options):
    """The same of each world by itself."""
    runs = [record(*pair, DT, N_STEPS, frames=FRAMES, **options) for pair in worlds]
    each = zip(runs, *adj, strict=True)
    return [run.trajectory for run in runs], [run.vjp(x, v) for run, x, v in each]


def assert_same_bits(batch, expected):
    """Trajectories and gradients are equal to the last bit, and are about something."""
    for world, (ours, theirs) in enumerate(zip(*map(list, (batch[0], expected[0])), strict=True)):
        np.testing.assert_array_equal(ours.x, theirs.x, err_msg=f"world {world}")
        np.testing.assert_array_equal(ours.v, theirs.v, err_msg=f"world {world}")
    for world, (ours, theirs) in enumerate(zip(batch[1], expected[1], strict=True)):
        assert list(ours) == list(theirs)
        for path, value in theirs.items():
            np.testing.assert_array_equal(ours[path], value, err_msg=f"world {world}: {path}")
            assert ours[path].shape == value.shape
        assert np.abs(theirs["solid.mu"]).max() > 0


@pytest.fixture(scope="module")
def different():
    """Seven worlds of other sizes, values, and series: by step, constant, or a signal."""
    signal = Signal([0.0, 4.5], [0.1, -0.1])
    return [
        world(0), world(1, (2, 1, 1)), world(2, (1, 1, 1), 0.02), world(3, (2, 2, 2), 0.03),
        world(4, (1, 2, 1)), world(5, (1, 1, 1), signal), world(6),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def expected(different):
    """What they do alone, and their gradients."""
    adj = list(zip(*((x, v) for x, v in zip(*drawn(different), strict=True)), strict=True))
    return adj, alone(different, adj, threads=1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n_worlds", [1, 2, 7])
def test_a_world_is_the_same_to_the_bit_beside_any_others(different, expected, n_worlds, threads):
    adj, (runs, grads) = expected
    first_worlds = [field[:n_worlds] for field in adj]
    batch = gradients(different[:n_worlds], first_worlds, threads=threads)
    assert_same_bits(batch, (runs[:n_worlds], grads[:n_worlds]))


@pytest.mark.parametrize("limit", [1, 20, 10_000])
def test_the_size_of_the_groups_changes_no_bit(different, expected, limit, monkeypatch):
    monkeypatch.setattr(adjsim.engine.layouts, "GROUP", limit)
    adj, alone = expected
    assert_same_bits(gradients(different, adj, threads=1), alone)


def test_a_thousand_worlds_give_the_bits_of_one(different):
    worlds = [different[0]] * 999 + [different[1]]
    rng = np.random.default_rng(2)
    first, last = (rng.standard_normal((2, len(FRAMES), *s.x.shape)) for _, s in worlds[-2:])
    adj = [[first[k]] * 999 + [last[k]] for k in range(2)]
    expected = alone(worlds[-2:], [[first[k], last[k]] for k in range(2)])
    batch = gradients(worlds, adj)
    assert_same_bits(batch, tuple([field[0]] * 999 + [field[1]] for field in expected))


@pytest.mark.parametrize(
    "schedule", [StoreAll(), EveryK(4), Segments(2, 3), Binomial(2), MemoryBudget("20kB"), "9kB"]
)
def test_every_schedule_gives_the_same_bits(different, expected, schedule):
    adj, alone = expected
    assert_same_bits(gradients(different, adj, checkpoint=schedule, threads=1), alone)


def test_a_budget_is_that_of_the_batch(different):
    models, states = zip(*different, strict=True)
    batch = record(stack(models), states, DT, N_STEPS, checkpoint="13kB")
    n_nodes = sum(model.n_nodes for model in models)
    assert 6 * 8 * n_nodes < batch.cost.bytes <= 13_000
    assert batch.cost.bytes % (6 * 8 * n_nodes) == 0
    assert batch.cost.total_forward_steps > N_STEPS
    with pytest.raises(ValueError, match="20B"):
        record(stack(models), states, DT, N_STEPS, checkpoint="20B")


def test_single_precision_is_the_same_to_the_bit(different):
    adj = drawn(different)
    batch = gradients(different, adj, threads=2, dtype=np.float32)
    assert batch[0][0].x.dtype == np.float32
    assert_same_bits(batch, alone(different, adj, threads=1, dtype=np.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_every_kind_of_force_and_bodies_are_the_same_to_the_bit(threads):
    # 5 tetrahedra or 12 triangles a world: the lanes of each world begin somewhere else.
    model, state, adj = scenes.toy()
    worlds = [(model, state)]
    for scale in (0.9, 1.1, 1.2):
        changed = {"body.mu": 1e4 * scale, "gravity": model.gravity * scale}
        changed["pair.velocity"] = state.bodies["pair"].velocity * scale
        worlds.append(model.with_values(state, changed))
    models, states = zip(*worlds, strict=True)
    options = {"frames": scenes.FRAMES, "threads": threads}
    run = record(stack(models), states, scenes.DT, scenes.N_STEPS, **options)
    turned = [frames.bodies for frames in run.trajectory]
    grads = run.vjp([adj] * 4, [0.1 * adj] * 4, bodies=turned)
    for pair, frames, ours in zip(worlds, run.trajectory, grads, strict=True):
        single = record(*pair, scenes.DT, scenes.N_STEPS, frames=scenes.FRAMES, threads=1)
        np.testing.assert_array_equal(frames.x, single.trajectory.x)
        for name, poses in single.trajectory.bodies.items():
            for key, value in vars(poses).items():
                np.testing.assert_array_equal(vars(frames.bodies[name])[key], value)
        theirs = single.vjp(adj, 0.1 * adj, bodies=single.trajectory.bodies)
        assert len(theirs) > 50
        for path, value in theirs.items():
            np.testing.assert_array_equal(ours[path], value, err_msg=path)


@pytest.mark.parametrize("threads", [1, 2])
def test_tangents_are_the_same_to_the_bit(threads):
    model, state, _ = scenes.toy()
    rng = np.random.default_rng(8)
    values = {**model.parameters(), **model.state_parameters(state)}
    tangents = [
        {path: 1e-3 * rng.standard_normal(np.shape(value)) for path, value in values.items()}
        for _ in range(3)
    ]
    options = {"frames": scenes.FRAMES}
    args = scenes.DT, scenes.N_STEPS
    runs, tans = rollout_jvp(
        stack([model] * 4), [state] * 4, *args, [*tangents, None], threads=threads, **options
    )
    for tangent, run, tan in zip(tangents, runs, tans, strict=False):
        single, expected = rollout_jvp(model, state, *args, tangent, threads=1, **options)
        np.testing.assert_array_equal(run.x, single.x)
        np.testing.assert_array_equal(tan.x, expected.x)
        np.testing.assert_array_equal(tan.v, expected.v)
        for name, poses in expected.bodies.items():
            np.testing.assert_array_equal(tan.bodies[name].orientation, poses.orientation)
    assert np.abs(tans[0].x).max() > 0
    assert not tans[3].x.any()


def test_worlds_have_losses_of_their_own(different):
    worlds = different[:3]
    adj = drawn(worlds)[0]
    models, states = zip(*worlds, strict=True)
    run = record(stack(models), states, DT, N_STEPS, frames=FRAMES)
    grads = run.vjp([None, adj[1], None], wrt=["solid.mu", "state.v"])
    assert [list(gradient) for gradient in grads] == [["solid.mu", "state.v"]] * 3
    assert not any(value.any() for k in (0, 2) for value in grads[k].values())
    theirs = record(*worlds[1], DT, N_STEPS, frames=FRAMES).vjp(adj[1])
    np.testing.assert_array_equal(grads[1]["solid.mu"], theirs["solid.mu"])


def test_a_few_worlds_may_run_step_by_step_together(different, expected):
    # Fewer groups than threads: the tiles and nodes of one group are shared out.
    _, (runs, _) = expected
    models, states = zip(*different[:2], strict=True)
    packed = pack(models, N_STEPS, F64)
    assert packed.n_groups == 1
    stepper = CpuStepper(stack(models), packed, F64, DT, N_STEPS, 2)
    assert not stepper.stands_apart
    fields = stepper.allocate(N_STEPS + 1)
    stepper.load(states, fields, 0)
    stepper.advance(0, np.arange(N_STEPS + 1), fields)
    n = models[0].n_nodes
    np.testing.assert_array_equal(fields[0][N_STEPS, :n], runs[0].x[-1])
    np.testing.assert_array_equal(fields[0][N_STEPS, n:], runs[1].x[-1])


@pytest.mark.parametrize("n_parts", [1, 2, 3, 5])
def test_parts_share_out_everything_once(different, n_parts):
    packed = pack([model for model, _ in different], N_STEPS, F64, n_parts)
    assert packed.n_groups >= n_parts
    for parts in (
        whole_groups(packed), whole_groups(packed, merged=False), even_shares(packed, n_parts)
    ):  # fmt: skip
        tile_ptr, tiles, range_ptr, ranges = parts
        assert (tile_ptr[-1], range_ptr[-1]) == (len(tiles), len(ranges))
        for row, entry in enumerate(packed.table):
            row_tiles = tiles[tiles[:, 1] == row]
            assert (row_tiles[:, 0] == row % 2).all()
            covered = np.concatenate([np.arange(lo, hi) for lo, hi in row_tiles[:, 2:]])
            np.testing.assert_array_equal(np.sort(covered), np.arange(entry[0]))
        nodes = np.concatenate([np.arange(lo, hi) for lo, hi in ranges[:, 1:3]])
        np.testing.assert_array_equal(nodes, np.arange(packed.n_nodes))
        world_of = np.concatenate([np.full(hi - lo, w) for w, lo, hi in ranges[:, :3]])
        np.testing.assert_array_equal(world_of, packed.world_of)


@pytest.mark.parametrize("sizes", [((5, 1), (1, 5)), ((1, 5), (5, 1)), ((7, 1), (1, 2), (2, 9))])
def test_worlds_with_nodes_here_and_bodies_there_are_shared_out_once(sizes):
    # A part whose bodies reach into worlds that its nodes do not: no node is undone twice.
    rng = np.random.default_rng(4)
    hull = shape("cube", 0.5)
    worlds = [
        (
            Model(np.ones(n), bodies={"set": RigidBodies([hull] * k, mass=1.0)}),
            State(
                rng.standard_normal((n, 3)), bodies={"set": BodyState(rng.standard_normal((k, 3)))}
            ),
        )
        for n, k in sizes
    ]
    models, states = zip(*worlds, strict=True)
    packed = pack(models, N_STEPS, F64, 2)
    assert packed.n_groups == 1  # no elements: shared out even where there are many worlds
    for n_parts in range(1, 6):
        _, _, range_ptr, ranges = even_shares(packed, n_parts)
        for lo, hi in ((1, 2), (3, 4)):
            firsts = [ranges[a, lo] for a, b in pairwise(range_ptr) if a < b]
            lasts = [ranges[b - 1, hi] for a, b in pairwise(range_ptr) if a < b]
            assert lasts[:-1] == firsts[1:]  # as `adjoint/engine/timeloop.py` takes a part's rows
    adj = [rng.standard_normal((1, *state.x.shape)) for state in states]
    grads = record(stack(models), states, DT, N_STEPS, threads=2).vjp(adj)
    for pair, cotangent, ours in zip(worlds, adj, grads, strict=True):
        theirs = record(*pair, DT, N_STEPS, threads=1).vjp(cotangent)
        for path, value in theirs.items():
            np.testing.assert_array_equal(ours[path], value, err_msg=path)
        assert theirs["gravity"].any()


def test_values_change_by_number_and_path(different):
    models, states = zip(*different[:3], strict=True)
    batch = stack(models)
    named = {**batch.parameters(), **batch.state_parameters(states)}
    assert len(named) == sum(
        len({**m.parameters(), **m.state_parameters(s)}) for m, s in different[:3]
    )
    changed, starts = batch.with_values(
        states, {"1.solid.lam": 5e4, "2.state.v": 0.0 * states[2].v, "0.gravity": [1.0, 2.0, 3.0]}
    )
    assert changed.models[1].forces["solid"].lam == 5e4
    assert not starts[2].v.any()
    np.testing.assert_array_equal(changed.models[0].gravity, [1.0, 2.0, 3.0])
    assert changed.models[0].forces["solid"].lam == models[0].forces["solid"].lam
    with pytest.raises(ValueError, match=r"3\.solid\.lam"):
        batch.with_values(states, {"3.solid.lam": 5.0})


@pytest.mark.parametrize("threads", [1, 2])
def test_worlds_of_other_kinds_give_the_bits_of_each_alone(different, threads):
    model, state = different[0]
    solid, floor = model.forces["solid"], model.forces["floor"]
    block = RigidBodies(shape("cube"), density=100.0)
    models = [
        model,
        dataclasses.replace(model, forces={"solid": solid}),
        dataclasses.replace(model, forces={**model.forces, "wall": floor}),
        dataclasses.replace(model, forces={"floor": floor, "body": solid}),
        dataclasses.replace(
            model, forces={"solid": dataclasses.replace(solid, viscosity=1.0), "floor": floor}
        ),
        Model(model.mass),
        Model(bodies={"block": block}),
    ]
    states = [state] * 6 + [State(bodies={"block": BodyState((0.0, 1.0, 0.0))})]
    run = record(stack(models), states, DT, N_STEPS, frames=FRAMES, threads=threads)
    tangents = [{"gravity": np.ones(3)}] * 7
    tangents[4] = {"solid.viscosity": 1.0, "gravity": np.ones(3)}
    pushed = run.jvp(tangents)
    turned = [{}] * 6 + [run.trajectory[6].bodies]
    grads = run.vjp([trajectory.x for trajectory in run.trajectory], bodies=turned)
    some = run.vjp([trajectory.x for trajectory in run.trajectory], wrt=["solid.mu", "mass"])
    assert [sorted(gradient) for gradient in some] == [
        ["solid.mu"], ["solid.mu"], ["solid.mu"], [], ["solid.mu"], ["mass"], [],
    ]  # fmt: skip
    for world, world_model in enumerate(models):
        alone = record(world_model, states[world], DT, N_STEPS, frames=FRAMES, threads=1)
        mine = run.trajectory[world]
        np.testing.assert_array_equal(mine.x, alone.trajectory.x)
        np.testing.assert_array_equal(pushed[world].x, alone.jvp(tangents[world]).x)
        wanted = alone.vjp(mine.x, bodies=turned[world])
        assert set(grads[world]) == set(wanted)
        for path, value in wanted.items():
            np.testing.assert_array_equal(grads[world][path], value, err_msg=f"{world} {path}")


def test_only_models_can_be_stacked(different):
    with pytest.raises(ValueError, match="at least one Model"):
        stack([])
    with pytest.raises(TypeError, match=r"got SimplePendulum for world 1\."):
        stack([different[0][0], SimplePendulum(length=1.0, mass=1.0)])


def test_lists_have_one_entry_per_world(different):
    models, states = zip(*different[:2], strict=True)
    batch = stack(models)
    for wrong, got in ((states[0], "State"), (states[:1], "1"), ([*states, states[0]], "3")):
        with pytest.raises((TypeError, ValueError), match=f"one entry per world, 2, got {got}"):
            rollout(batch, wrong, DT, N_STEPS)
    with pytest.raises(ValueError, match=r"World 1: `state\.x` must have one row per node"):
        rollout(batch, [states[0], states[0]], DT, N_STEPS)
    run = record(batch, states, DT, N_STEPS)
    ones = [np.ones((1, *state.x.shape)) for state in states]
    with pytest.raises(ValueError, match="`adj_x` must have one entry per world, 2, got 1"):
        run.vjp(ones[:1])
    with pytest.raises(ValueError, match="World 1: `adj_x`"):
        run.vjp([ones[0], ones[0]])
    with pytest.raises(ValueError, match="must be given for some world"):
        run.vjp([None, None])
    with pytest.raises(ValueError, match=r"solid\.muu"):
        run.vjp(ones, wrt=["solid.muu"])
    with pytest.raises(TypeError, match="one entry per world, 2, got dict"):
        rollout_jvp(batch, states, DT, N_STEPS, {"solid.lam": 1.0})
    with pytest.raises(ValueError, match="`tangents` must have one entry per world, 2, got 3"):
        rollout_jvp(batch, states, DT, N_STEPS, [None] * 3)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_world_that_leaves_the_finite_numbers_is_named(different, threads):
    models, states = zip(*different, strict=True)
    far = np.array(states[4].v)
    far[5] = 1e200
    states = [*states[:4], State(states[4].x, far), *states[5:]]
    with pytest.raises(RolloutError, match=r"in step \d .* node \d+ of world 4\."):
        rollout(stack(models), states, DT, N_STEPS, threads=threads)


def test_a_batch_makes_no_more_groups_than_it_can(different):
    models = [model for model, _ in different]
    stepper = make_stepper(stack(models[:2]), RunSettings(DT, N_STEPS, threads=1))
    assert stepper.packed.n_groups == 1
    assert whole_groups(pack(models[:1], N_STEPS, F64, 2))[0].tolist() == [0, 2]


def test_worlds_of_one_gravity_and_group_are_one_range(different):
    model, state = different[0]
    heavy = dataclasses.replace(model, gravity=(0.0, -20.0, 0.0))
    models = [model, model, heavy, model, model, model]
    packed = pack(models, N_STEPS, F64, 2)
    assert packed.group_ends.tolist() == [0, 3, 6]
    n = model.n_nodes
    _, _, range_ptr, ranges = whole_groups(packed)
    assert range_ptr.tolist() == [0, 2, 3]
    assert ranges[:, :3].tolist() == [[0, 0, 2 * n], [2, 2 * n, 3 * n], [3, 3 * n, 6 * n]]
    _, _, range_ptr, ranges = whole_groups(packed, merged=False)
    assert range_ptr.tolist() == [0, 3, 6]
    assert ranges[:, 0].tolist() == list(range(6))
    run = rollout(stack(models), [state] * 6, DT, N_STEPS)
    for each, frames in zip(models, run, strict=True):
        np.testing.assert_array_equal(frames.x, rollout(each, state, DT, N_STEPS).x)
    assert np.abs(run[2].x - run[1].x).max() > 0
