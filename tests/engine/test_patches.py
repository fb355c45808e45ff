"""Patches: compact runs of elements, whose nodes add up all of their slots."""

import numpy as np

from adjoint.engine.packing import part_rows
from adjsim.engine.packing import pack
from adjsim.engine.patches import (
    ELEMENTS,
    MOST_IN_SMALL,
    NODE_LO,
    NODES,
    READS_VELOCITY,
    ROW,
    SMALL_PATCH,
    TILE_HI,
    TILE_LO,
    patch_elements,
)
from adjsim.engine.tangent_packing import PackedVector
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.springs import Springs
from adjsim.meshes.grid import box_tets
from adjsim.model import Model
from adjsim.tiles.assembly import N_TILES, TILE


FLOAT = np.dtype(np.float64)


def shuffled_model(rng):
    """A block of 625 tetrahedra in any order on a floor, with some springs."""
    mesh = box_tets(cells=(5, 5, 5), size=(1.0, 1.0, 1.0))
    tets = mesh.tets[rng.permutation(len(mesh.tets))]
    forces = {
        "block": NeoHookeanTets(tets, mesh.points, rng.uniform(1e4, 2e4, len(tets)), 4e4),
        "net": Springs(tets[:70, :2], 1e3, rest_positions=mesh.points),
        "floor": HalfSpaceContact(height=0.0, stiffness=1e3, damping=1.0),
    }
    return Model(np.ones(len(mesh.points)), forces)


def test_every_slot_is_summed_once_and_by_its_node(rng):
    model = shuffled_model(rng)
    packed = pack([model], 1, FLOAT, n_parts=0)
    patches = packed.patches
    kinds, table = packed.kinds, patches.table
    total, expected = np.zeros(packed.n_rows), np.zeros(packed.n_rows)
    sums = np.zeros(len(patches.nodes))
    for patch, entry in enumerate(table[:-1]):
        kind, start = kinds[entry[ROW]], packed.table[entry[ROW]]
        lo, hi = entry[NODE_LO], table[patch + 1, NODE_LO]
        assert entry[READS_VELOCITY] == kind.uses_velocity
        assert 0 < hi - lo <= NODES
        assert (entry[TILE_HI] - entry[TILE_LO]) * TILE <= SMALL_PATCH
        tiles = (entry[TILE_HI] - entry[TILE_LO], kind.n_nodes, TILE)
        first = start[1] + entry[TILE_LO] * kind.n_nodes * TILE
        local = packed.nodes[first : first + np.prod(tiles)].reshape(tiles)
        slots = rng.standard_normal((*tiles[:2], 3, TILE))
        for j in range(lo, hi):
            places = patches.places[patches.ptr[j] : patches.ptr[j + 1]]
            sums[j] = slots.ravel()[places].sum()
        n_lanes = len(list(model.forces.values())[entry[ROW]].nodes) - entry[TILE_LO] * TILE
        real = np.arange(tiles[0] * TILE).reshape(tiles[0], TILE) < n_lanes  # not padding
        for a in range(kind.n_nodes):
            rows = patches.nodes[lo + local[:, a][real].astype(int)]
            np.add.at(expected, rows, slots[:, a, 0][real])
    for n in range(packed.n_rows):
        node_slots = packed.node_slots[packed.node_ptr[n] : packed.node_ptr[n + 1]]
        total[n] = sums[node_slots].sum()
    assert table[-1, NODE_LO] == len(patches.nodes)
    assert packed.table[:, N_TILES].sum() == (table[:-1, TILE_HI] - table[:-1, TILE_LO]).sum()
    np.testing.assert_allclose(total, expected, atol=1e-12)


def test_patches_of_shuffled_elements_are_compact(rng):
    packed = pack([shuffled_model(rng)], 1, FLOAT, n_parts=0)
    block = packed.patches.table[packed.patches.table[:, ROW] == 0, NODE_LO]
    assert len(block) == 5
    assert np.diff(block).max() < 110  # of 216


def test_patches_are_small_where_all_are_at_work_at_once():
    assert patch_elements(MOST_IN_SMALL) == SMALL_PATCH < ELEMENTS == patch_elements(100_000)


def test_numbers_of_elements_come_back_in_their_order(rng):
    model = shuffled_model(rng)
    packed = pack([model], 1, FLOAT, n_parts=0)
    n = packed.n_nodes
    rows, bodies = np.zeros((n, 3)), np.zeros((0, 13))
    arrays = {"params": packed.params, "series": packed.series, "consts": packed.consts}
    vector = PackedVector(
        rows, rows, rows, np.zeros(n), **arrays, p=bodies, bodies=bodies, arms=rows
    )
    (unpacked,) = part_rows(vector, packed, [model])
    for params, consts, force in zip(
        unpacked.params, unpacked.consts, model.forces.values(), strict=True
    ):
        np.testing.assert_array_equal(params, force.pack_params())
        np.testing.assert_array_equal(consts, force.pack_consts())
