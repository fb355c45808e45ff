"""The angle of a vector, in every quadrant and at its corners."""

import math

import numpy as np
import pytest

from adjsim.joints.angle import angle_of


def test_it_is_atan2_to_two_roundings(rng):
    angles = rng.uniform(-math.pi, math.pi, 5000)
    lengths = np.exp(rng.uniform(-20.0, 20.0, 5000))
    for along, across in zip(lengths * np.cos(angles), lengths * np.sin(angles), strict=True):
        exact = math.atan2(across, along)
        assert abs(angle_of(float(along), float(across)) - exact) <= 2 * np.spacing(math.pi)


@pytest.mark.parametrize(
    ("along", "across", "angle"),
    [
        (1.0, 0.0, 0.0), (0.0, 2.0, math.pi / 2), (-3.0, 0.0, math.pi), (0.0, -1.0, -math.pi / 2),
        (1.0, 1.0, math.pi / 4), (-1.0, -1.0, -3 * math.pi / 4), (1.0, 1e-300, 1e-300),
    ],
)  # fmt: skip
def test_it_is_exact_on_the_axes_and_diagonals(along, across, angle):
    assert angle_of(along, across) == pytest.approx(angle, rel=1e-15, abs=0.0)


def test_it_keeps_the_precision_of_its_numbers():
    got = angle_of(np.float32(-0.3), np.float32(0.7))
    assert got == pytest.approx(math.atan2(0.7, -0.3), rel=1e-6)
