"""Tiles, slots and node sums: nothing is lost, and padding never leaks."""

import dataclasses
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adjoint.engine.sweep import ReverseSweep
from adjoint.rollout import record
from adjsim.courses import Signal
from adjsim.engine.packing import KEPT, _kept_rows, _kept_series, pack
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from adjsim.system import RunSettings, make_stepper
from adjsim.tiles.assembly import NODES, PARAMS, SERIES, SERIES_STRIDE, SLOTS, TILE
from adjsim.tiles.by_tiles import from_tiles, to_tiles
from tests.physics import referenced, sliding_box, values_of


F64 = np.dtype(np.float64)
DT = 1e-4


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 48])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_packing_by_tiles_and_back_changes_nothing(rng, n, k):
    rows = rng.standard_normal((n, k))
    flat = to_tiles(rows, F64)
    assert flat.size == -(-n // TILE) * TILE * k
    np.testing.assert_array_equal(from_tiles(flat, n, k), rows)


def test_a_row_of_a_lane_lies_where_the_layout_says(rng):
    rows = rng.standard_normal((40, 3))
    flat = to_tiles(rows, F64)
    for e, k in [(0, 0), (5, 2), (16, 1), (39, 2)]:
        assert flat[(e // TILE * 3 + k) * TILE + e % TILE] == rows[e, k]


def test_lanes_that_pad_the_last_tile_repeat_its_last_element(rng):
    rows = rng.standard_normal((18, 2))
    lanes = from_tiles(to_tiles(rows, F64), 32, 2)
    np.testing.assert_array_equal(lanes[18:], np.tile(rows[17], (14, 1)))


def free_nodes(n):
    """As many nodes, some of them inside a floor that pushes."""
    x = np.linspace(-0.5, 0.5, 3 * n).reshape(n, 3)
    return State(x, np.ones((n, 3)) * [0.5, -1.0, 0.2])


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33])
def test_any_number_of_elements_gives_the_numbers_of_the_reference(n):
    floor = HalfSpaceContact(
        (0.1, 1.0, 0), stiffness=300.0, damping=3.0, friction_stiffness=2.0, friction=0.3
    )
    model, state = Model(np.full(n, 0.5), {"floor": floor}), free_nodes(n)
    run = rollout(model, state, 1e-3, 3, threads=1)
    x, v = referenced(model, state, 1e-3, 3)
    np.testing.assert_allclose(run.x, x, rtol=0, atol=1e-14)
    np.testing.assert_allclose(run.v, v, rtol=0, atol=1e-13)


def poisoned(stepper, value):
    """Fill what a run must overwrite, or never read, with a value."""
    stepper.slots[:] = value
    stepper.scratch[:] = value


@pytest.mark.parametrize("poison", [np.inf, np.nan])
def test_slots_are_written_before_they_are_read(rng, poison):
    model, state = sliding_box(rng, 2)
    stepper = make_stepper(model, RunSettings(DT, 2, threads=1))
    fields = stepper.allocate(3)
    for field in fields:
        field[:] = poison
    stepper.load(state, fields, 0)
    poisoned(stepper, poison)
    stepper.advance(0, np.arange(3), fields)
    X, V, _ = fields
    clean = rollout(model, state, DT, 2, threads=1)
    np.testing.assert_array_equal(X[2], clean.x[0])
    np.testing.assert_array_equal(V[2], clean.v[0])


def test_padding_lanes_never_reach_a_node(rng):
    # Padding lanes of the packed parameters hold infinities: no node feels them.
    model, state = sliding_box(rng, 1)
    stepper = make_stepper(model, RunSettings(DT, 1, threads=1))
    p = stepper.packed
    n_params = model.forces["solid"].kind.n_params
    lanes = p.params[p.table[0, PARAMS] : p.table[1, PARAMS]].reshape(-1, n_params, TILE)
    assert len(model.forces["solid"].tets) % TILE == 8
    lanes[-1, :, 8:] = np.inf
    fields = stepper.allocate(2)
    stepper.load(state, fields, 0)
    with np.errstate(all="ignore"):  # without compilation NumPy warns of the infinities
        stepper.advance(0, np.arange(2), fields)
    np.testing.assert_array_equal(fields[0][1], rollout(model, state, DT, 1, threads=1).x[0])


def test_the_reverse_writes_its_slots_before_it_reads_them(rng, monkeypatch):
    model, state = sliding_box(rng, 2)
    run = record(model, state, DT, 2, threads=1)
    adj = rng.standard_normal(run.trajectory.x.shape)
    clean = run.vjp(adj, adj)

    class Poisoned(ReverseSweep):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            for array in self.work:
                array[:] = np.nan

    monkeypatch.setattr("adjoint.engine.sweep.ReverseSweep", Poisoned)
    again = run.vjp(adj, adj)
    for path, value in clean.items():
        np.testing.assert_array_equal(again[path], value, err_msg=path)


def test_a_model_without_forces_falls_freely():
    model = Model(np.ones(3))
    run = record(model, State(np.zeros((3, 3)), np.ones((3, 3))), 0.5, 2)
    np.testing.assert_array_equal(run.trajectory.v[0, 0], [1.0, 1.0 - 9.8, 1.0])
    gradient = run.vjp(np.ones((1, 3, 3)))
    # x2 = x0 + 2 dt v0 + 3 dt^2 g
    np.testing.assert_array_equal(gradient["state.v"], np.ones((3, 3)))
    np.testing.assert_allclose(gradient["gravity"], 3 * 3 * 0.25 * np.ones(3), rtol=1e-15)
    np.testing.assert_array_equal(gradient["mass"], np.zeros(3))


def test_many_forces_add_up():
    n_forces = 7
    state = free_nodes(4)

    def model(k_e, count):
        floors = {f"floor{i}": HalfSpaceContact(stiffness=k_e, damping=0.5) for i in range(count)}
        return Model(np.ones(4), floors)

    many = record(model(10.0, n_forces), state, 1e-2, 1, threads=1)
    single = record(model(10.0 * n_forces, 1), state, 1e-2, 1, threads=1)
    damping = 0.5 * (n_forces - 1)
    touching = state.x[:, 1] < 0
    expected = single.trajectory.v[0] + np.where(touching, 1e-2 * damping, 0)[:, None] * [0, 1, 0]
    np.testing.assert_allclose(many.trajectory.v[0], expected, rtol=1e-13)
    gradient = many.vjp(np.ones((1, 4, 3)))
    first = gradient["floor0.stiffness"]
    assert first > 0
    for i in range(n_forces):
        assert gradient[f"floor{i}.stiffness"] == first


def test_two_bodies_in_one_model_move_as_each_alone(rng):
    model, state = sliding_box(rng, 1)
    solid, n = model.forces["solid"], model.n_nodes
    rest = np.concatenate([solid.rest_positions] * 2)
    both = {
        "left": dataclasses.replace(solid, rest_positions=rest),
        "right": dataclasses.replace(solid, tets=solid.tets + n, rest_positions=rest),
    }
    twice = Model(np.tile(model.mass, 2), both)
    alone = rollout(Model(model.mass, {"solid": solid}), state, DT, 1, threads=1)
    pair = rollout(
        twice, State(np.tile(state.x, (2, 1)), np.tile(state.v, (2, 1))), DT, 1, threads=1
    )
    np.testing.assert_array_equal(pair.x[0, :n], alone.x[0])
    np.testing.assert_array_equal(pair.x[0, n:], alone.x[0])


def test_a_series_has_one_row_per_step_or_one_for_all(rng):
    model, _ = sliding_box(rng, 6)
    packed = pack([model], 6, F64)
    solid = model.forces["solid"]
    stride = packed.table[0, SERIES_STRIDE]
    assert stride == 48
    assert packed.table[1, SERIES_STRIDE] == 0
    for k in range(6):
        start = packed.table[0, SERIES] + k * stride
        row = from_tiles(packed.series[start : start + stride], 40, 1)[:, 0]
        np.testing.assert_array_equal(row, solid.actuation[k])
    with pytest.raises(ValueError, match=r"`solid.actuation` has a series of 6 rows, .* 5 steps"):
        pack([model], 5, F64)
    short = dataclasses.replace(solid, actuation=solid.actuation[:1])
    with pytest.raises(ValueError, match=r"`solid.actuation` has a series of 1 rows, .* 6 steps"):
        pack([Model(model.mass, {"solid": short})], 6, F64)


def element_of(slot, packed):
    """Force, element and local node that own a slot."""
    row = int(np.searchsorted(packed.table[:, SLOTS], slot, side="right")) - 1
    k = packed.kinds[row].n_nodes
    block, lane = np.divmod(slot - packed.table[row, SLOTS], TILE)
    tile, local = np.divmod(block // 3, k)
    return row, int(tile * TILE + lane), int(local)


def test_a_series_is_packed_anew_for_another_number_of_steps_alone(rng, monkeypatch):
    model, state = sliding_box(rng, 1)
    signal = Signal([0.0, 5.0], 0.1 * rng.standard_normal((2, 40)))
    model, _ = model.with_values(state, {"solid.actuation": signal})
    asked, packs = [], NeoHookeanTets.pack_series
    monkeypatch.setattr(
        NeoHookeanTets,
        "pack_series",
        lambda force, n_steps: asked.append(n_steps) or packs(force, n_steps),
    )
    for n_steps in (7, 7, 3, 1, 1, 7):
        flat = to_tiles(packs(model.forces["solid"], n_steps), F64)
        np.testing.assert_array_equal(pack([model], n_steps, F64).series[: flat.size], flat)
    assert asked == [7, 3, 1, 7]
    assert id(model.forces["solid"]) in _kept_series
    pack([model], KEPT // 40 + 1, F64)  # too many rows to keep
    pack([model], KEPT // 40 + 1, F64)
    assert asked[4:] == [KEPT // 40 + 1] * 2
    solid = id(model.forces["solid"])
    del model
    gc.collect()
    assert solid not in _kept_series


def test_a_force_is_packed_once_but_its_series_for_every_number_of_steps(rng, monkeypatch):
    model, state = sliding_box(rng, 1)
    signal = Signal([0.0, 5.0], 0.1 * rng.standard_normal((2, 40)))
    model, state = model.with_values(state, {"solid.actuation": signal})
    packed, packs = [], NeoHookeanTets.pack_params
    monkeypatch.setattr(
        NeoHookeanTets, "pack_params", lambda force: packed.append(id(force)) or packs(force)
    )
    for n_steps in (1, 7, 1, 3):
        fresh, _ = model.with_values(state, {"solid.mu": model.forces["solid"].mu})
        here, there = (pack([m], n_steps, F64) for m in (model, fresh))
        for field in ("consts", "params", "series", "table"):
            np.testing.assert_array_equal(getattr(here, field), getattr(there, field))
        assert here.table[0, SERIES_STRIDE] == (48 if n_steps > 1 else 0)
    assert packed.count(id(model.forces["solid"])) == 1
    solid = id(model.forces["solid"])
    assert solid in _kept_rows
    del model
    gc.collect()
    assert solid not in _kept_rows, "rows go with their force"


def test_every_node_sums_the_slots_of_its_elements_in_order(rng):
    model, _ = sliding_box(rng, 1)
    packed = pack([model], 1, F64)
    owner = np.full(packed.n_slots, -1)
    for force, row in zip(model.forces.values(), packed.table, strict=True):
        n_lanes = -(-len(force.nodes) // TILE) * TILE
        size = n_lanes * force.kind.n_nodes
        nodes = packed.nodes[row[NODES] : row[NODES] + size]
        assert (
            from_tiles(nodes, len(force.nodes), force.kind.n_nodes).tolist() == force.nodes.tolist()
        )
    for n in range(model.n_nodes):
        slots = packed.node_slots[packed.node_ptr[n] : packed.node_ptr[n + 1]].astype(int)
        assert (owner[slots] == -1).all()
        owner[slots] = n
        order = [element_of(slot, packed) for slot in slots]
        assert order == sorted(order)
    tets, contacts = model.forces["solid"].tets, model.forces["floor"].contact_nodes
    assert (owner >= 0).sum() == tets.size + len(contacts)


def test_only_forces_that_read_velocities_have_velocity_slots(rng):
    model, _ = sliding_box(rng, 1, viscosity=None)
    packed = pack([model], 1, F64)
    assert len(packed.velocity_slots) == model.n_nodes  # of the floor
    assert len(packed.node_slots) == model.n_nodes + 4 * 40


def test_the_padded_parameters_get_no_share_of_a_gradient(rng):
    # 40 tetrahedra fill two tiles and a half; one modulus for all sums over 40, not 48.
    model, state = sliding_box(rng, 1)
    solid = dataclasses.replace(model.forces["solid"], mu=2e4, lam=5e4)
    each = dataclasses.replace(solid, mu=np.full(40, 2e4))
    adj = rng.standard_normal((1, model.n_nodes, 3))
    gradients = [
        record(Model(model.mass, {"solid": s}), state, DT, 1, threads=1).vjp(adj)
        for s in (solid, each)
    ]
    assert gradients[0]["solid.mu"] == pytest.approx(gradients[1]["solid.mu"].sum(), rel=1e-12)
    assert set(values_of(model, state)) == set(record(model, state, DT, 1).vjp(adj))


FOREIGN = """
import numpy as np
from adjsim.jit.backend import device_fn
from adjsim.forces.element import Force
from adjsim.tiles.element_kind import ElementKind
from adjsim.model import Model, State
from adjsim.rollout import rollout

@device_fn
def push(x, v, consts, params, series):
    return ((FORCE, 0.0, 0.0),)

class Push(Force):
    PARAMETERS = ()
    kind = ElementKind("push", push, 1, 0, 0, 0, uses_velocity=False)
    nodes = np.zeros((1, 1), np.int64)

    def bind(self, n_nodes, name):
        return self

    def pack_consts(self):
        return np.zeros((1, 0))

    pack_params = pack_consts

    def pack_series(self, n_steps):
        return np.zeros((1, 1, 0))

model = Model([1.0], {"push": Push()}, gravity=(0, 0, 0))
print(rollout(model, State([[0.0, 0.0, 0.0]]), 1.0, 1).v[0, 0, 0])
"""


def test_a_force_from_elsewhere_that_changes_is_compiled_again(tmp_path):
    # The key of the cache is a hash of our own sources.
    script = tmp_path / "foreign.py"
    path = os.pathsep.join(
        filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")])
    )
    for force in ("1.5", "-2.0"):
        script.write_text(FOREIGN.replace("FORCE", force))
        done = subprocess.run(
            [sys.executable, script], env={**os.environ, "PYTHONPATH": path},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert float(done.stdout) == float(force)
