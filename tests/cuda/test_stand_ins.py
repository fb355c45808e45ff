"""The stand-ins of CuPy and `numba.cuda` refuse what a GPU refuses: else runs prove little."""

import numpy as np
import pytest

from adjsim.jit.device_arrays import DeviceArray
from tests.cuda.stand_ins import CupyArray, Kernel, copied, left_over


CUPY, HOST = copied([1.0, 2.0, 3.0]), np.arange(3.0)
GIVEN = DeviceArray(CUPY)


class Simulated:
    """A kernel that notes what it is given."""

    def __getitem__(self, grid):
        return lambda n, arrays: self.given.append((grid, n, arrays))

    def __init__(self):
        self.given = []


@pytest.mark.parametrize(
    "mix",
    [
        lambda: CUPY + HOST,
        lambda: HOST + CUPY,
        lambda: CUPY.__setitem__(slice(None), HOST),
        lambda: np.asarray(CUPY),
        lambda: np.concatenate([CUPY, CUPY]),
    ],
)
def test_arrays_of_host_and_device_do_not_mix(mix):
    with pytest.raises(TypeError):
        mix()


def test_what_nobody_wrote_is_no_number_and_no_index():
    assert np.isnan(left_over((2, 3)).get()).all()
    for dtype in (np.int32, np.int64):
        numbers = left_over(4, dtype).get()
        assert numbers.dtype == dtype
        with pytest.raises(IndexError):
            HOST[numbers]


def test_arithmetic_and_views_stay_on_the_device():
    assert isinstance(2.0 * CUPY, CupyArray)
    assert isinstance(CUPY.sum(), CupyArray)
    assert isinstance(CUPY[0], CupyArray)
    assert float(CUPY[np.array([2])].get()[0]) == 3.0


@pytest.mark.parametrize("array", [CUPY, HOST, DeviceArray(HOST)])
def test_a_kernel_takes_only_what_was_put_on_the_device(array):
    simulated = Simulated()
    kernel = Kernel(simulated)
    with pytest.raises(AssertionError, match=r"was given a|is not there"):
        kernel.run(2, 128, (GIVEN, (array,)), 3)
    kernel.run(2, 128, (GIVEN, (GIVEN,)), 3)
    ((grid, n, arrays),) = simulated.given
    assert grid == (1, 8)
    assert n == 3
    assert arrays[1][0] is CUPY.numbers
    with pytest.raises(AssertionError):
        kernel.run(2, 128, (GIVEN,), 1000)  # more than the grid has threads
