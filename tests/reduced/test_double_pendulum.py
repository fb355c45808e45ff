"""The double pendulum: its mass matrix, elements against a complex step, and the contract."""

import numpy as np
import pytest

from adjoint.reduced.double_pendulum import double_pendulum_jvp, double_pendulum_vjp
from adjsim.courses import Signal
from adjsim.reduced.double_pendulum import DoublePendulum, double_pendulum_acceleration, mass_matrix
from adjsim.reduced.pendulum import PendulumState
from tests.reduced.contract import SystemContract
from tests.reference import pendulum as reference


PARAMS = (1.2, 0.7, 0.6, 1.5, 0.3, 0.2, 9.8)
Q, U, TORQUE, ADJ = (0.7, -0.4), (-1.3, 2.1), (0.4, -0.8), (0.9, -1.7)


def test_the_determinant_is_that_of_the_matrix_and_positive_at_every_angle():
    for angle in np.linspace(-4.0, 4.0, 33):
        _, _, _, M, det = mass_matrix((angle, 0.3), PARAMS)
        exact = np.linalg.det([[M[0], M[2]], [M[2], M[1]]])
        np.testing.assert_allclose(det, exact, rtol=1e-13)
        assert det > 0.0


def test_two_equal_rods_side_by_side_fall_like_one_system_in_its_normal_modes():
    # Small angles, l = m = 1: omega^2 = g (2 -+ sqrt 2), along (1, +- sqrt 2)
    params = (1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 9.8)
    for sign in (1.0, -1.0):
        shape = 1e-6 * np.array([1.0, sign * np.sqrt(2.0)])
        a = double_pendulum_acceleration(tuple(shape), (0.0, 0.0), params, (0.0, 0.0))
        # the sine's cubic term is 1e-12 of the linear one
        np.testing.assert_allclose(a, -9.8 * (2.0 - sign * np.sqrt(2.0)) * shape, rtol=1e-11)


def acceleration(x):
    l, m, b = x[4:6], x[6:8], x[8:10]
    return reference.double(x[0:2], x[2:4], l, m, b, x[10], x[11:13])


def test_tangent_and_adjoint_of_an_element_are_those_of_a_complex_step():
    point = np.array([*Q, *U, *PARAMS, *TORQUE])
    slope = np.array([acceleration(point + 1e-30j * e).imag / 1e-30 for e in np.eye(13)])
    parts = double_pendulum_vjp(Q, U, PARAMS, TORQUE, ADJ)
    np.testing.assert_allclose(np.concatenate(parts), slope @ ADJ, rtol=1e-12, atol=1e-13)
    for k, e in enumerate(np.eye(13)):
        tangents = (tuple(part) for part in np.split(e, [2, 4, 11]))
        tangent = double_pendulum_jvp(Q, U, PARAMS, TORQUE, *tangents)
        np.testing.assert_allclose(tangent, slope[k], rtol=1e-12, atol=1e-13)
    value = double_pendulum_acceleration(Q, U, PARAMS, TORQUE)
    np.testing.assert_allclose(value, acceleration(point), rtol=1e-13)


class DoubleContract(SystemContract):
    FIELDS = ("angle", "rate")

    def reference(self, values, n_steps):
        torque = self.rows(values["torque"], n_steps)
        return reference.rollout(
            reference.double, values["state.angle"], values["state.rate"], self.DT, n_steps,
            torque=lambda k: torque[k],
            **{name: values[name] for name in ("length", "mass", "damping", "gravity")},
        )  # fmt: skip

    def rows(self, torque, n_steps):
        return np.broadcast_to(torque, (n_steps, 2))

    def torque(self, rng):
        return rng.standard_normal(2)

    def make(self, rng):
        system = DoublePendulum((1.3, 0.8), (0.7, 1.1), (0.2, 0.1), 9.8, self.torque(rng))
        return system, PendulumState((0.9, 2.0), (-1.1, 0.6))


class TestConstantTorque(DoubleContract):
    pass


class TestTorqueInEveryStep(DoubleContract):
    def torque(self, rng):
        return rng.standard_normal((self.N_STEPS, 2))


class TestTorqueAsASignal(DoubleContract):
    KNOTS = (2.0, 6.5)

    def torque(self, rng):
        return Signal(self.KNOTS, rng.standard_normal((2, 2)))

    def rows(self, torque, n_steps):
        t = np.clip((np.arange(n_steps) - 2.0) / 4.5, 0.0, 1.0)[:, None]
        return (1.0 - t) * torque[0] + t * torque[1]


BAD = [
    ({"length": (1.0, 0.0)}, "`length` must be positive, got 0"),
    ({"length": 1.0}, r"`length` must have shape \(2,\), got \(\)"),
    ({"mass": (1.0, -1.0)}, "`mass` must be positive, got -1"),
    ({"damping": (0.0, -0.1)}, "`damping` must not be negative, got -0.1"),
    ({"torque": 1.0}, "`torque` must have shape"),
    ({"mass": (1.0, np.nan)}, r"`mass` must be finite, got nan at index \(1,\)"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_a_double_pendulum_that_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DoublePendulum(**{"length": (1.0, 1.0), **given})
