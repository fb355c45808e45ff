"""Blocks of a GPU: which worlds they take, what they share, and the slices of each world."""

import numpy as np
import pytest

from adjsim.engine import cuda_teams
from adjsim.engine.cuda_teams import (
    MOST_ELEMENTS,
    MOST_IF_FEW_WORLDS,
    MOST_IF_SHARED,
    MOST_THREADS,
    PROCESSORS,
    Sizes,
    fits_blocks,
    model_of,
    part_of,
    pieces_of,
    place_in_shared_memory,
)
from adjsim.engine.packing import pack
from adjsim.tiles.assembly import N_TILES, SLOTS
from tests.cuda.scenes import small_world


F64 = np.dtype(np.float64)


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ([MOST_IF_FEW_WORLDS], True),
        ([2 * MOST_IF_FEW_WORLDS], False),
        ([2 * MOST_IF_FEW_WORLDS] * PROCESSORS, True),
        ([10, MOST_ELEMENTS] * PROCESSORS, True),
        ([10, MOST_ELEMENTS + 1] * PROCESSORS, False),
    ],
)
def test_blocks_take_worlds_that_are_small_or_many(sizes, fits):
    assert fits_blocks(sizes) == fits


@pytest.mark.parametrize(
    ("lanes", "n_worlds", "shared", "threads"),
    [
        (100, 1, 20_000, 128),
        (1000, 1, 200_000, MOST_THREADS),
        (1000, PROCESSORS + 1, 120_000, MOST_THREADS),  # no room for two
        (1000, PROCESSORS + 1, 100_000, MOST_IF_SHARED),
    ],
)
def test_a_block_that_is_alone_has_more_threads(lanes, n_worlds, shared, threads):
    sizes = Sizes(80, 80, 0, 0, 0, 0, columns=1, lanes=lanes, of_elements=(0, 0, 0))
    assert sizes.threads(n_worlds, shared, 220_000) == threads


def test_shared_memory_is_given_to_the_first_that_fit():
    places, size = place_in_shared_memory([(8,), (40, 1), (100,), (16,)], 96)
    assert places.tolist() == [0, 16, 64, -1, 80]
    assert size == 96


@pytest.fixture
def models(rng):
    return [small_world(rng, n)[0] for n in (1, 0, 2, 3)]


def test_a_world_among_others_is_given_what_it_is_given_alone(models, monkeypatch):
    monkeypatch.setattr(cuda_teams, "cut", lambda array, lo, hi: array[lo:hi])
    of_model = getattr(model_of, "py_func", model_of)  # compiled for the CPU it returns the owners
    packed = pack(models, 1, F64, apart=True)
    sizes = Sizes.of(packed)
    assert sizes.rows == max(model.n_rows for model in models)
    assert sizes.columns == len(packed.kinds)
    for world, model in enumerate(models):
        whole = pack([models[2], model], 1, F64, apart=True)  # of the same columns
        parts = [part_of(packing.starts, w) for packing, w in ((packed, world), (whole, 1))]
        first, second = (
            of_model(w, share, packing.starts, packing.arrays)
            for w, share, packing in zip((world, 1), parts, (packed, whole), strict=True)
        )
        for columns in ([SLOTS], [N_TILES]):
            np.testing.assert_array_equal(
                first.elements.table[:, columns], second.elements.table[:, columns]
            )
        for name in ("w", "gravity", "ptr", "slots_of", "velocity_ptr", "velocity_slots_of"):
            np.testing.assert_array_equal(getattr(first.nodes, name), getattr(second.nodes, name))
        for numbers, other in zip(first.bodies, second.bodies, strict=True):
            np.testing.assert_array_equal(numbers, other)
        assert len(first.nodes.ptr) == model.n_rows + 1
        assert first.bodies.point_ptr[0] == model.n_nodes
        assert first.nodes.slots_of.max() < parts[0].slot_hi - parts[0].slot_lo


def test_rows_of_a_world_that_stands_apart_follow_each_other(models):
    packed = pack(models, 1, F64, apart=True)
    end = 0
    for world, model in enumerate(models):
        nodes, points, _ = packed.slices(world)
        assert (nodes.start, points.start, points.stop) == (
            end, end + model.n_nodes, end + model.n_rows,
        )  # fmt: skip
        end = points.stop
    assert end == packed.n_rows


@pytest.mark.parametrize("apart", [False, True])
def test_pieces_have_all_points_once(models, apart):
    packed = pack(models, 1, F64, apart=apart)
    pieces = pieces_of(packed, F64)
    points = [model.n_rows - model.n_nodes for model in models]
    n_pieces = [max(1, -(-n // 32)) for n in points]
    assert np.diff(pieces.ptr).tolist() == n_pieces
    ends = np.cumsum([0, *n_pieces])
    for world, model in enumerate(models):
        first = ends[world] + world * apart
        bounds = pieces.point_ptr[first : first + n_pieces[world] + 1]
        start = model.n_nodes if apart else packed.slices(world)[1].start
        assert bounds[0] == start
        assert bounds[-1] == start + points[world]
        assert np.diff(bounds).min() > 0
        assert np.diff(bounds).max() <= 32
