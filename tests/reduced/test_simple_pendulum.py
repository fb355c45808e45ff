"""The simple pendulum: by hand, against the reference, and the contract."""

import numpy as np
import pytest

from adjoint.reduced.simple_pendulum import simple_pendulum_jvp, simple_pendulum_vjp
from adjsim.courses import Signal
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum, simple_pendulum_acceleration
from adjsim.rollout import rollout
from tests.reduced.contract import SystemContract
from tests.reference import pendulum as reference


def test_a_level_rod_at_rest_falls_with_g_over_l():
    run = rollout(SimplePendulum(2.0, gravity=10.0), PendulumState(np.pi / 2), 0.1, 1)
    # u = -dt g/l, q = pi/2 + dt u, to a rounding or two
    np.testing.assert_allclose(run.rate, [-0.5], rtol=1e-15)
    np.testing.assert_allclose(run.angle, [np.pi / 2 - 0.05], rtol=1e-15)


def test_damping_and_torque_by_hand():
    pendulum = SimplePendulum(2.0, mass=0.5, damping=0.3, gravity=0.0, torque=4.0)
    run = rollout(pendulum, PendulumState(0.0, 1.5), 0.1, 1)
    # -(b/m) u + T/(m l^2) = -0.9 + 2
    np.testing.assert_allclose(run.rate, [1.5 + 0.1 * 1.1], rtol=1e-15)


def test_row_k_of_the_torque_acts_in_step_k():
    pendulum = SimplePendulum(1.0, gravity=0.0, torque=[0.0, 2.0, 0.0])
    run = rollout(pendulum, PendulumState(0.0), 0.5, 3, frames=range(4))
    np.testing.assert_array_equal(run.rate, [0.0, 0.0, 1.0, 1.0])


def test_tangent_and_adjoint_of_an_element_are_those_of_a_complex_step():
    q, u, torque, a = (0.7,), (-1.3,), (0.4,), (0.9,)
    params = (1.2, 0.6, 0.9, 0.2, 0.3, 0.7, 0.5, 9.8)
    point = np.array([*q, *u, *params, *torque])

    def acceleration(x):
        constants = dict(zip(reference.CONSTANTS, x[2:10], strict=True))
        return reference.simple(x[0], x[1], torque=x[10], **constants)

    slope = np.array([acceleration(point + 1e-30j * e).imag / 1e-30 for e in np.eye(11)])
    adj_q, adj_u, adj_params, adj_torque = simple_pendulum_vjp(q, u, params, torque, a)
    gradient = np.array([*adj_q, *adj_u, *adj_params, *adj_torque])
    np.testing.assert_allclose(gradient, 0.9 * slope, rtol=1e-13)
    for k, e in enumerate(np.eye(11)):
        tangents = ((e[0],), (e[1],), tuple(e[2:10]), (e[10],))
        (tangent,) = simple_pendulum_jvp(q, u, params, torque, *tangents)
        np.testing.assert_allclose(tangent, slope[k], rtol=1e-13)
    (value,) = simple_pendulum_acceleration(q, u, params, torque)
    np.testing.assert_allclose(value, acceleration(point), rtol=1e-14)


class SimpleContract(SystemContract):
    FIELDS = ("angle", "rate")

    def reference(self, values, n_steps):
        torque = self.rows(values["torque"], n_steps)
        return reference.rollout(
            reference.simple, values["state.angle"], values["state.rate"], self.DT, n_steps,
            torque=lambda k: torque[k],
            **{name: values[name] for name in reference.CONSTANTS if name in values},
        )  # fmt: skip

    def rows(self, torque, n_steps):
        return np.broadcast_to(torque, n_steps)

    def torque(self, rng):
        return 0.4

    def make(self, rng):
        link = {"center_of_mass": 0.8, "inertia": 0.2, "friction": 0.3, "friction_width": 0.5}
        system = SimplePendulum(1.3, 0.7, 0.2, 9.8, self.torque(rng), **link)
        return system, PendulumState(0.9, -1.1)


class TestConstantTorque(SimpleContract):
    pass


class TestCentreOfMassAtTheEnd(SimpleContract):
    def make(self, rng):
        link = {"inertia": 0.2, "friction": 0.3, "friction_width": 0.5}
        return SimplePendulum(1.3, 0.7, 0.2, 9.8, 0.4, **link), PendulumState(0.9, -1.1)


class TestTorqueInEveryStep(SimpleContract):
    def torque(self, rng):
        return rng.standard_normal(self.N_STEPS)


class TestTorqueAsASignal(SimpleContract):
    KNOTS = (1.0, 4.5, 9.0)

    def torque(self, rng):
        return Signal(self.KNOTS, rng.standard_normal(3))

    def rows(self, torque, n_steps):
        k = np.arange(n_steps)
        return np.interp(k, self.KNOTS, torque.real) + 1j * np.interp(k, self.KNOTS, torque.imag)


def test_a_bar_falls_by_its_inertia_and_its_centre_of_mass():
    bar = SimplePendulum(1.2, mass=2.0, gravity=10.0, center_of_mass=0.6, inertia=2.0 * 1.2**2 / 12)
    run = rollout(bar, PendulumState(np.pi / 2), 0.1, 1)
    # m l^2/3 a = -m g l/2: a = -3 g/(2 l) = -12.5
    np.testing.assert_allclose(run.rate, [-1.25], rtol=1e-14)


def test_the_defaults_are_a_point_mass_on_a_rod():
    given = {"length": 1.3, "mass": 0.7, "damping": 0.2, "gravity": 9.8, "torque": 0.4}
    constants = SimplePendulum(**given).constants().values()
    (value,) = simple_pendulum_acceleration((0.9,), (-1.1,), tuple(map(float, constants)), (0.4,))
    exact = -9.8 / 1.3 * np.sin(0.9) + 0.2 / 0.7 * 1.1 + 0.4 / (0.7 * 1.3**2)
    np.testing.assert_allclose(value, exact, rtol=1e-14)


def test_dry_friction_is_its_torque_at_speed_and_viscous_at_rest():
    given = {"gravity": 0.0, "friction": 0.6, "friction_width": 0.01}
    for rate, sign in ((50.0, 1.0), (-50.0, -1.0), (1e-6, 1e-4), (0.0, 0.0)):
        run = rollout(SimplePendulum(2.0, 0.5, **given), PendulumState(0.0, rate), 0.1, 1)
        # f/(m l^2) = 0.3; eps^2/(2 w^2) = 2e-8 is missing at speed, w^2/(2 eps^2) = 5e-9 at rest
        np.testing.assert_allclose(run.rate[0] - rate, -0.03 * sign, rtol=1e-7, atol=1e-15)


BAD = [
    ({"length": 0.0}, "`length` must be positive, got 0"),
    ({"mass": -1.0}, "`mass` must be positive, got -1"),
    ({"damping": -0.1}, "`damping` must not be negative, got -0.1"),
    ({"length": [1.0, 2.0]}, r"`length` must have shape \(\), got \(2,\)"),
    ({"gravity": np.nan}, "`gravity` must be finite"),
    ({"center_of_mass": 0.0}, "`center_of_mass` must be positive, got 0"),
    ({"inertia": -0.1}, "`inertia` must not be negative, got -0.1"),
    ({"friction": -0.1}, "`friction` must not be negative, got -0.1"),
    ({"friction_width": 0.0}, "`friction_width` must be positive, got 0"),
    ({"torque": np.ones((3, 2))}, "`torque` must have shape"),
    ({"torque": [0.0, np.inf]}, "`torque` must be finite"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_a_pendulum_that_makes_no_sense_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        SimplePendulum(**{"length": 1.0, **given})
