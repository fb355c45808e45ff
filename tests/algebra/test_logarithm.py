"""The logarithm that element functions call."""

import math

import numpy as np
import pytest

from adjsim.algebra.logarithm import natural_log


# A result of n roundings is wrong by n eps/2 at most: there are about 20, most of them of terms
# that are a small part.
@pytest.mark.parametrize(
    ("most", "tolerance"), [(1.0 + 1e-12, 1e-15), (1.01, 1e-15), (32.0, 1e-15), (4000.0, 1e-8)]
)
def test_it_is_the_logarithm(rng, most, tolerance):
    for y in rng.uniform(-math.log(most), math.log(most), 2000):
        J = math.exp(y)
        assert natural_log(J) == pytest.approx(math.log(J), rel=tolerance, abs=0.0)


def test_it_is_zero_at_one_and_no_number_at_zero_and_below():
    assert natural_log(1.0) == 0.0
    assert math.isnan(natural_log(-0.5))
    assert math.isnan(natural_log(0.0))


def test_it_keeps_the_precision_of_its_numbers():
    assert natural_log(np.float32(1.7)) == pytest.approx(math.log(1.7), rel=1e-6)
