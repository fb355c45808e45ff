"""The double pendulum: its mass matrix, elements against a complex step, and the contract."""

import numpy as np
import pytest

from adjoint.reduced.double_pendulum import double_pendulum_jvp, double_pendulum_vjp
from adjsim.courses import Signal
from adjsim.reduced.double_pendulum import DoublePendulum, double_pendulum_acceleration, mass_matrix
from adjsim.reduced.pendulum import PendulumState
from tests.reduced.contract import SystemContract
from tests.reference import pendulum as reference


LENGTHS, MASSES, CENTERS, INERTIAS = (1.2, 0.7), (0.6, 1.5), (0.5, 0.9), (0.08, 0.11)
PARAMS = (*LENGTHS, *MASSES, *CENTERS, *INERTIAS, 0.3, 0.2, 0.4, 0.7, 0.5, 9.8)
Q, U, TORQUE, ADJ = (0.7, -0.4), (-1.3, 2.1), (0.4, -0.8), (0.9, -1.7)


def test_the_determinant_is_that_of_the_matrix_and_positive_at_every_angle():
    for angle in np.linspace(-4.0, 4.0, 33):
        _, _, _, M, det = mass_matrix((angle, 0.3), PARAMS)
        exact = np.linalg.det([[M[0], M[2]], [M[2], M[1]]])
        np.testing.assert_allclose(det, exact, rtol=1e-13)
        assert det > 0.0


def test_two_equal_rods_side_by_side_fall_like_one_system_in_its_normal_modes():
    # Small angles, l = m = 1: omega^2 = g (2 -+ sqrt 2), along (1, +- sqrt 2)
    params = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 9.8)
    for sign in (1.0, -1.0):
        shape = 1e-6 * np.array([1.0, sign * np.sqrt(2.0)])
        a = double_pendulum_acceleration(tuple(shape), (0.0, 0.0), params, (0.0, 0.0))
        # the sine's cubic term is 1e-12 of the linear one
        np.testing.assert_allclose(a, -9.8 * (2.0 - sign * np.sqrt(2.0)) * shape, rtol=1e-11)


def acceleration(x):
    links = dict(zip(reference.CONSTANTS, x[4:16].reshape(6, 2), strict=False))
    width, gravity, torque = x[16], x[17], x[18:20]
    return reference.double(
        x[0:2], x[2:4], torque=torque, gravity=gravity, friction_width=width, **links
    )


def test_tangent_and_adjoint_of_an_element_are_those_of_a_complex_step():
    point = np.array([*Q, *U, *PARAMS, *TORQUE])
    slope = np.array([acceleration(point + 1e-30j * e).imag / 1e-30 for e in np.eye(20)])
    parts = double_pendulum_vjp(Q, U, PARAMS, TORQUE, ADJ)
    np.testing.assert_allclose(np.concatenate(parts), slope @ ADJ, rtol=1e-12, atol=1e-13)
    for k, e in enumerate(np.eye(20)):
        tangents = (tuple(entries) for entries in np.split(e, [2, 4, 18]))
        tangent = double_pendulum_jvp(Q, U, PARAMS, TORQUE, *tangents)
        np.testing.assert_allclose(tangent, slope[k], rtol=1e-12, atol=1e-13)
    value = double_pendulum_acceleration(Q, U, PARAMS, TORQUE)
    np.testing.assert_allclose(value, acceleration(point), rtol=1e-13)


def test_the_defaults_are_point_masses_on_rods():
    l1, l2, m1, m2, b, g = 1.3, 0.8, 0.7, 1.1, np.array([0.2, 0.1]), 9.8
    system = DoublePendulum((l1, l2), (m1, m2), b, g, TORQUE)
    params = tuple(np.concatenate([np.ravel(constant) for constant in system.constants().values()]))
    s, c, p = np.sin(Q[0] - Q[1]), np.cos(Q[0] - Q[1]), m2 * l1 * l2
    M = np.array([[(m1 + m2) * l1**2, p * c], [p * c, m2 * l2**2]])
    tau = np.array(
        [
            -p * s * U[1] ** 2 - (m1 + m2) * g * l1 * np.sin(Q[0]),
            p * s * U[0] ** 2 - m2 * g * l2 * np.sin(Q[1]),
        ]
    )
    exact = np.linalg.solve(M, tau + TORQUE - b * U)
    value = double_pendulum_acceleration(Q, U, params, TORQUE)
    np.testing.assert_allclose(value, exact, rtol=1e-14)


def test_dry_friction_between_the_links_acts_on_both_alike():
    # it is an inner torque: equal and opposite on the two links
    params = (1.2, 0.7, 0.6, 1.5, 0.5, 0.9, 0.08, 0.11, 0.0, 0.0, 0.0, 0.7, 0.5, 0.0)
    q, u = (0.4, 0.4), (-1.3, 2.1)
    _, _, _, M, _ = mass_matrix(q, params)
    with_friction = double_pendulum_acceleration(q, u, params, (0.0, 0.0))
    without = double_pendulum_acceleration(q, u, (*params[:11], 0.0, *params[12:]), (0.0, 0.0))
    a1, a2 = np.subtract(with_friction, without)
    torques = np.array([M[0] * a1 + M[2] * a2, M[2] * a1 + M[1] * a2])
    np.testing.assert_allclose(torques, 0.7 * 3.4 / np.hypot(3.4, 0.5) * np.array([1.0, -1.0]))


class DoubleContract(SystemContract):
    FIELDS = ("angle", "rate")

    def reference(self, values, n_steps):
        torque = self.rows(values["torque"], n_steps)
        return reference.rollout(
            reference.double, values["state.angle"], values["state.rate"], self.DT, n_steps,
            torque=lambda k: torque[k],
            **{name: values[name] for name in reference.CONSTANTS if name in values},
        )  # fmt: skip

    def rows(self, torque, n_steps):
        return np.broadcast_to(torque, (n_steps, 2))

    def torque(self, rng):
        return rng.standard_normal(2)

    def make(self, rng):
        links = {"center_of_mass": (0.6, 0.5), "inertia": (0.1, 0.07), "friction": (0.2, 0.3)}
        given = {**links, "friction_width": 0.5, "torque": self.torque(rng)}
        system = DoublePendulum((1.3, 0.8), (0.7, 1.1), (0.2, 0.1), 9.8, **given)
        return system, PendulumState((0.9, 2.0), (-1.1, 0.6))


class TestConstantTorque(DoubleContract):
    pass


class TestCentresOfMassAtTheEnds(DoubleContract):
    def make(self, rng):
        given = {"inertia": (0.1, 0.07), "friction": (0.2, 0.3), "friction_width": 0.5}
        given["torque"] = self.torque(rng)
        system = DoublePendulum((1.3, 0.8), (0.7, 1.1), (0.2, 0.1), 9.8, **given)
        return system, PendulumState((0.9, 2.0), (-1.1, 0.6))


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
    ({"center_of_mass": (0.5, 0.0)}, "`center_of_mass` must be positive, got 0"),
    ({"inertia": 0.1}, r"`inertia` must have shape \(2,\), got \(\)"),
    ({"friction": (-0.1, 0.0)}, "`friction` must not be negative, got -0.1"),
    ({"friction_width": (0.1, 0.1)}, r"`friction_width` must have shape \(\), got \(2,\)"),
    ({"torque": 1.0}, "`torque` must have shape"),
    ({"mass": (1.0, np.nan)}, r"`mass` must be finite, got nan at index \(1,\)"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_a_double_pendulum_that_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DoublePendulum(**{"length": (1.0, 1.0), **given})
