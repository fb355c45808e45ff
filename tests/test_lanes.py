import numpy as np
import pytest

from adjsim.backend import cpu_kernel
from adjsim.lanes import LANES, sum_rows


def _sum_rows_at(rows, at, step, n, out):
    sum_rows(rows, np.uint64(at), np.uint64(step), np.uint64(n), np.uint64(out))


sum_rows_at = cpu_kernel(_sum_rows_at, cached=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 8, 40])
def test_eight_rows_are_summed_each_by_itself(n, dtype):
    at, step, out = 3, 41, 500
    rows, k = np.full(512, np.nan, dtype), np.arange(n)
    for i in range(LANES):
        rows[at + i * step :][:n] = (i + 1) * k + i
    before = rows.copy()
    sum_rows_at(rows, at, step, n, out)
    expected = [(i + 1) * k.sum() + i * n for i in range(LANES)]  # whole numbers: no rounding
    np.testing.assert_array_equal(rows[out : out + LANES], expected)
    rows[out : out + LANES] = before[out : out + LANES]
    np.testing.assert_array_equal(rows, before)


def test_what_is_no_number_in_one_row_stays_there(rng):
    rows = rng.normal(size=80)
    rows[19] = np.nan
    sum_rows_at(rows, 0, 8, 8, 70)
    assert np.flatnonzero(np.isnan(rows[70:78])).tolist() == [2]
