"""What acts along the axis of a joint: its closed form, and its derivatives in every branch."""

import numpy as np
import pytest

from adjoint.joints.drive import drive_vjp
from adjsim.joints.drive import drive, drive_jvp


OWN = (0.4, 0.8, 0.6, 5.0, 0.3, 7.0, -0.4, 0.5)


@pytest.mark.parametrize(("q", "pushed"), [(0.1, 0.0), (0.9, 7.0 * 0.4), (-0.6, -7.0 * 0.2)])
def test_it_is_the_closed_form(q, pushed):
    dry = 0.8 * 1.2 / np.hypot(1.2, 0.6)
    expected = 2.0 - 0.4 * 1.2 - dry - 5.0 * (q - 0.3) - pushed
    assert drive(q, 1.2, OWN, 2.0) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("q", [0.1, 0.9, -0.6])
def test_tangent_matches_differences_and_the_adjoint_is_its_transpose(rng, q):
    base = np.array([q, 1.2, *OWN, 2.0])
    adj_q, adj_w, adj_own = drive_vjp(q, 1.2, OWN, 1.0)
    pulled = np.array([adj_q, adj_w, *adj_own, 1.0])

    def at(y):
        return drive(y[0], y[1], tuple(y[2:10]), y[10])

    for k, unit in enumerate(np.eye(11)):
        h = 1e-6
        slope = (at(base + h * unit) - at(base - h * unit)) / (2 * h)
        tan = drive_jvp(q, 1.2, OWN, 2.0, unit[0], unit[1], tuple(unit[2:10]), unit[10])
        assert tan == pytest.approx(slope, abs=1e-8)
        assert pulled[k] == pytest.approx(tan, abs=1e-15)
