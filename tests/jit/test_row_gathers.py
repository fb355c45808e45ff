import numpy as np
import pytest

from adjsim.jit.backend import cpu_kernel
from adjsim.jit.row_gathers import (
    LANES,
    TILE,
    _add_scaled_slowly,
    _gather_rows_slowly,
    _gather_slowly,
    add_scaled,
    make_gather,
    make_row_gather,
)


N_NODES, N_ROWS = 37, 3
BASE, SKIPPED = 5, 2 * TILE  # what lies before the tile in scratch and in the nodes


def _compiled(n, *, relative):
    gather = make_gather(n, relative=relative)

    def kernel(scratch, nodes, o, base, field):
        gather(scratch, nodes, np.uint64(o), np.uint64(base), field)

    return cpu_kernel(kernel, cached=False)


CASES = [(1, False), (3, False), (2, True), (0, True), (0, False)]
KERNELS = {case: _compiled(case[0], relative=case[1]) for case in CASES}


def _tile(rng, dtype):
    field = rng.normal(size=(N_NODES, 3)).astype(dtype)
    nodes = rng.integers(0, N_NODES, SKIPPED + N_ROWS * TILE).astype(np.uint32)
    nodes[SKIPPED], nodes[-1] = N_NODES - 1, N_NODES - 1  # the last row ends the memory
    return field, nodes, np.full(BASE + 3 * N_ROWS * TILE + 1, np.nan, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_tile_has_the_vectors_of_its_nodes_component_by_component(rng, case, dtype):
    n, relative = case
    field, nodes, scratch = _tile(rng, dtype)
    KERNELS[case](scratch, nodes, SKIPPED, BASE, field)
    for a in range(n):
        for q in range(TILE):
            here = nodes[SKIPPED + (a + relative) * TILE + q]
            expected = field[here] - field[nodes[SKIPPED + q]] if relative else field[here]
            vector = [scratch[BASE + (3 * a + c) * TILE + q] for c in range(3)]
            np.testing.assert_array_equal(vector, expected)
    assert np.isnan(scratch[:BASE]).all()  # and nothing else is written
    assert np.isnan(scratch[BASE + 3 * n * TILE :]).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_the_same_without_compiler(rng, case):
    n, relative = case
    field, nodes, compiled = _tile(rng, np.float64)
    slow = compiled.copy()
    KERNELS[case](compiled, nodes, SKIPPED, BASE, field)
    _gather_slowly(n, relative, slow, nodes, np.uint64(SKIPPED), np.uint64(BASE), field)
    np.testing.assert_array_equal(slow, compiled)


def test_a_tile_is_whole_registers():
    assert TILE % LANES == 0


STEP, SETS = 40, 2
gather_rows = make_row_gather(STEP, SETS)


def _rows(field, places, n, rows, at):
    gather_rows(field, places, np.uint64(n), rows, np.uint64(at))


rows_kernel = cpu_kernel(_rows, cached=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 8, 24])
def test_rows_have_the_vectors_at_their_places(rng, n, dtype):
    field, at = rng.normal(size=(N_NODES, 3)).astype(dtype), 7
    places = rng.integers(0, N_NODES, STEP * SETS).astype(np.int32)
    if n:
        places[n - 1] = N_NODES - 1  # the last row ends the memory
    compiled = np.full(at + 3 * SETS * STEP, np.nan, dtype)
    slow = compiled.copy()
    rows_kernel(field, places, n, compiled, at)
    _gather_rows_slowly(STEP, SETS, field, places, n, slow, at)
    np.testing.assert_array_equal(compiled, slow)
    expected = field[places.reshape(SETS, STEP)[:, :n]].transpose(0, 2, 1)
    np.testing.assert_array_equal(slow[at:].reshape(SETS, 3, STEP)[..., :n], expected)
    assert np.isnan(slow).sum() == len(slow) - 3 * SETS * n


def _add(field, i, s, v):
    add_scaled(field, np.uint64(i), s, v)


add_kernel = cpu_kernel(_add, cached=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("add", [add_kernel, _add_scaled_slowly])
def test_a_vector_is_added_to_its_row_alone(rng, add, dtype):
    field = rng.integers(-9, 9, (5, 3)).astype(dtype)  # whole numbers: no rounding
    expected = field.copy()
    expected[4] += 3 * np.array([1, -2, 5])
    add(field, 4, dtype(3), (dtype(1), dtype(-2), dtype(5)))
    np.testing.assert_array_equal(field, expected)
