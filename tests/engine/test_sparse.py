"""Sparse matrices times arrays; on a device: `tests/cuda`."""

import numpy as np
import pytest
import scipy.sparse

from adjsim.engine.sparse import product


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_product_is_over_the_second_axis_from_the_end(shape, dtype):
    rng = np.random.default_rng(0)
    dense = rng.random((6, 4)) * (rng.random((6, 4)) < 0.5)
    x = rng.random(shape).astype(dtype)
    out = product(scipy.sparse.csr_array(dense), x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, dense @ x, rtol=1e-6)
