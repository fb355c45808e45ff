import numpy as np
import pytest

from adjsim.jit.backend import cpu_kernel
from adjsim.jit.row_sums import LANES, outer, row_sums, vector_rows


STEP = 41
THREE, SIX = outer(0, 3 * STEP, STEP), outer(0, 3 * STEP, STEP, 2)
add_plain = row_sums(*(((i * STEP,),) for i in range(LANES)))
add_mixed = row_sums(*THREE, ((0, 0), (STEP, 2 * STEP), (STEP,)))


def _plain(rows, n, out):
    add_plain(rows, np.uint64(n), np.uint64(out))


def _mixed(rows, n, out):
    add_mixed(rows, np.uint64(n), np.uint64(out))


plain, mixed = cpu_kernel(_plain, cached=False), cpu_kernel(_mixed, cached=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 8, 40])
def test_eight_rows_are_summed_each_by_itself(n, dtype):
    rows, k, out = np.full(512, np.nan, dtype), np.arange(n), 500
    for i in range(LANES):
        rows[i * STEP :][:n] = (i + 1) * k + i
    before = rows.copy()
    plain(rows, n, out)
    expected = [(i + 1) * k.sum() + i * n for i in range(LANES)]  # whole numbers: no rounding
    np.testing.assert_array_equal(rows[out : out + LANES], expected)
    rows[out : out + LANES] = before[out : out + LANES]
    np.testing.assert_array_equal(rows, before)


def test_what_is_no_number_in_one_row_stays_there(rng):
    rows = rng.normal(size=400)
    rows[2 * STEP + 3] = np.nan
    plain(rows, 8, 350)
    assert np.flatnonzero(np.isnan(rows[350:358])).tolist() == [2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_rows_are_summed_and_zeros_fill_the_last_eight(rng, dtype):
    n, out = 24, 400
    rows = rng.integers(-9, 9, 512).astype(dtype)  # whole numbers: no rounding
    a = rows[: 6 * STEP].reshape(6, STEP)[:, :n].copy()
    mixed(rows, n, out)
    last = a[0] @ a[0] + a[1] @ a[2] + a[1].sum()
    expected = [*(a[:3] @ a[3:].T).ravel(), last, *[0.0] * 6]
    np.testing.assert_array_equal(rows[out : out + 2 * LANES], expected)


def test_the_sums_of_an_outer_product_are_named_row_by_row():
    assert [terms for (terms,) in SIX] == [
        (i * STEP, (3 + j) * STEP) for i in range(3) for j in range(2)
    ]


write_three = vector_rows(STEP)


def _vectors(rows, at, n, out, first):
    write_three(rows, np.uint64(at), np.uint64(n), out, np.uint64(first))


vectors = cpu_kernel(_vectors, cached=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 3, 8, 21])
def test_three_rows_become_vectors_side_by_side(rng, n, dtype):
    rows, at, first = rng.normal(size=200).astype(dtype), 5, 2
    out = np.full((40, 3), np.nan, dtype)
    vectors(rows, at, n, out, first)
    expected = np.full((40, 3), np.nan, dtype)
    for c in range(3):
        expected[first : first + n, c] = rows[at + c * STEP :][:n]
    np.testing.assert_array_equal(out, expected)
