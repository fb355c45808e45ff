"""The law of contact: forces worked by hand, Jacobians in every regime, its kinks."""

import numpy as np
import pytest

from adjoint.forces.contact_law import contact_law_vjp
from adjoint.verify.contract import EPS
from adjsim.forces.contact_law import contact_law, contact_law_jvp


UP = (0.0, 1.0, 0.0)
LAW = (100.0, 5.0, 0.0, 0.0, 0.0, 4.0, 0.5)  # k_e, k_d, d, k, gamma, k_f, mu
DISSIPATIVE = (100.0, 0.0, 0.4, 0.0, 0.0, 4.0, 0.5)
CUBIC = (0.0, 0.0, 0.0, 1e4, 4e-3, 4.0, 0.5)
N_ARGS = 3 + 1 + 3 + 7
N, C, U, K_E = slice(0, 3), 3, slice(4, 7), 7  # columns of Jacobians
D, CUBIC_K, GAMMA, K_F, MU = 9, 10, 11, 12, 13


def force(u, c=0.1, law=LAW, n=UP):
    return np.array(contact_law(n, c, tuple(u), tuple(law)))


def tangent_columns(u, c=0.1, law=LAW, n=UP):
    """The Jacobian (3, 14) with respect to n, c, u and the scalars, from the tangent."""
    columns = [
        contact_law_jvp(n, c, tuple(u), law, tuple(t[N]), t[C], tuple(t[U]), tuple(t[K_E:]))
        for t in np.eye(N_ARGS)
    ]
    return np.array(columns).T


def adjoint_rows(u, c=0.1, law=LAW, n=UP):
    """The same Jacobian from the adjoint."""
    rows = [contact_law_vjp(n, c, tuple(u), law, tuple(adj)) for adj in np.eye(3)]
    return np.array([[*adj_n, adj_c, *adj_u, *adj_law] for adj_n, adj_c, adj_u, adj_law in rows])


def test_pressure_and_friction_worked_out_by_hand():
    # c = 0.1 and u_n = -2: p = 10 + 10 = 20. |u_t| = 5: k_f |u_t| = 20 > mu p = 10, so it slips.
    np.testing.assert_allclose(force((3, -2, 4)), [-6.0, 20.0, -8.0], rtol=10 * EPS)
    # |u_t| = 0.5: k_f |u_t| = 2 < 10, so it sticks: -k_f u_t.
    np.testing.assert_allclose(force((0.3, -2, 0.4)), [-1.2, 20.0, -1.6], rtol=10 * EPS)
    # Leaving at u_n = +2 there is no damping: p = 10, and slip is bounded by mu p = 5.
    np.testing.assert_allclose(force((3, 2, 4)), [-3.0, 10.0, -4.0], rtol=10 * EPS)


def test_dissipation_raises_the_pressure_of_approach_and_lowers_that_of_leaving():
    # c = 0.1, u_n = -2: p = 10 (1 + 0.8) = 18, and slip is bounded by 9.
    np.testing.assert_allclose(force((3, -2, 4), law=DISSIPATIVE), [-5.4, 18, -7.2], rtol=10 * EPS)
    # u_n = 2: p = 10 (1 - 0.8) = 2, bounded by 1. At u_n = 3 nothing pulls: p = 0.
    np.testing.assert_allclose(force((3, 2, 4), law=DISSIPATIVE), [-0.6, 2, -0.8], rtol=20 * EPS)
    np.testing.assert_array_equal(force((3, 3, 4), law=DISSIPATIVE), 0.0)


def test_with_dissipation_the_force_begins_at_zero():
    u = (3.0, -2.0, 4.0)
    assert np.abs(force(u, 1e-9, DISSIPATIVE)).max() <= 1e-9 * 100.0 * 1.8
    assert np.abs(force(u, 1e-9)).max() > 9.0


def test_the_cubic_law_worked_out_by_hand():
    # c^2 = 0.01, gamma u_n = -0.0075, so w = -3/4: p = 10 (1 + 3/5) = 16, and slip is bounded by 8.
    u = 0.0075 / CUBIC[4]
    np.testing.assert_allclose(force((3, -u, 4), law=CUBIC), [-4.8, 16, -6.4], rtol=10 * EPS)
    # w = 3/4: p = 10 (1 - 3/5) = 4. It never pulls, and begins as c^3.
    np.testing.assert_allclose(force((3, u, 4), law=CUBIC), [-1.2, 4, -1.6], rtol=20 * EPS)
    assert 0.0 < force((3, 100.0, 4), law=CUBIC)[1] < 0.01
    assert np.abs(force((3.0, -2.0, 4.0), 1e-4, CUBIC)).max() <= 2.0 * 1e4 * 1e-12


def test_the_cubic_law_never_pulls_and_always_takes_energy(rng):
    for c, u_n in zip(rng.uniform(1e-3, 0.2, 200), rng.uniform(-3.0, 3.0, 200), strict=True):
        p = force((0.0, u_n, 0.0), c, CUBIC)[1]
        assert p > 0.0
        assert (p - CUBIC[3] * c**3) * u_n < 0.0  # the power of what is not elastic


def test_the_force_turns_with_the_normal_and_the_velocity(rng):
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    n, u = np.array(UP), np.array([3.0, -2.0, 4.0])
    turned = force(Q @ u, n=tuple(Q @ n))
    np.testing.assert_allclose(turned, Q @ force(u), rtol=0, atol=100 * EPS * 20)


REGIMES = {
    "slip, approaching": (3.0, -2.0, 4.0),
    "stick, approaching": (0.3, -2.0, 0.4),
    "slip, leaving": (3.0, 2.0, 4.0),
    "stick, leaving": (0.3, 2.0, 0.4),
}


@pytest.mark.parametrize("law", [LAW, DISSIPATIVE, CUBIC], ids=["damping", "dissipation", "cubic"])
@pytest.mark.parametrize("u", REGIMES.values(), ids=REGIMES)
def test_the_jacobian_in_every_regime_matches_differences(u, law):
    point = np.array([*UP, 0.1, *u, *law])

    def f(z):
        return np.array(contact_law(tuple(z[N]), z[C], tuple(z[U]), tuple(z[K_E:])))

    steps = np.where(point == 0.0, 1e-6, np.minimum(1e-6, 1e-5 * np.abs(point)))
    differences = np.array(
        [(f(point + step) - f(point - step)) / (2 * step.sum()) for step in np.diag(steps)]
    ).T
    J = tangent_columns(u, law=law)
    assert np.abs(J).max() > 1.0
    for column in (GAMMA, CUBIC_K) if law is CUBIC else (D,):
        assert J[:, column].any()
    # h^2 of truncation and eps |f|/h of rounding.
    np.testing.assert_allclose(differences, J, rtol=0, atol=1e-9 * np.abs(J).max())
    np.testing.assert_allclose(adjoint_rows(u, law=law), J, rtol=0, atol=20 * EPS * np.abs(J).max())


# The kinks: each test shows which one-sided derivative is taken. That c = 0 counts as apart
# is shown with every shape.


def test_kink_of_damping_at_rest_takes_the_slope_of_leaving():
    at_rest, h = (0.0, 0.0, 0.0), 1e-6
    leaving = (force((0, h, 0)) - force(at_rest)) / h
    approaching = (force((0, -h, 0)) - force(at_rest)) / -h
    assert leaving[1] == 0.0
    assert approaching[1] == pytest.approx(-5.0, rel=1e-6)
    for jacobian in (tangent_columns(at_rest), adjoint_rows(at_rest)):
        assert jacobian[1, U][1] == 0.0


def test_kink_at_the_end_of_the_pressure_takes_the_slope_of_no_pressure():
    apart, h = (0.0, 2.5, 0.0), 1e-6  # d u_n = 1
    faster = (force((0, 2.5 + h, 0), law=DISSIPATIVE) - force(apart, law=DISSIPATIVE)) / h
    slower = (force((0, 2.5 - h, 0), law=DISSIPATIVE) - force(apart, law=DISSIPATIVE)) / -h
    assert faster[1] == 0.0
    assert slower[1] == pytest.approx(-4.0, rel=1e-6)  # -k_e c d
    for jacobian in (tangent_columns(apart, law=DISSIPATIVE), adjoint_rows(apart, law=DISSIPATIVE)):
        assert not jacobian[:, [*range(3, 7), D]].any()


def test_where_the_square_of_a_depth_is_nothing_the_cubic_law_is_finite():
    tiny = 1e-170
    for u in ((0.0, 0.0, 0.0), (0.0, 1.0, 0.0)):
        for values in (force(u, tiny, CUBIC), tangent_columns(u, tiny, CUBIC)):
            assert np.isfinite(values).all()
        assert np.isfinite(adjoint_rows(u, tiny, CUBIC)).all()


def test_between_stick_and_slip_the_slope_is_that_of_stick():
    # p = 16, mu p = 8 and k_f |u_t| = 4 x 2 are equal to the bit.
    c, u, h = 0.16, (2.0, 0.0, 0.0), 1e-6
    assert force(u, c)[0] == -8.0
    inward = (force((2.0 - h, 0, 0), c) - force(u, c))[0] / -h
    outward = (force((2.0 + h, 0, 0), c) - force(u, c))[0] / h
    assert inward == pytest.approx(-4.0, rel=1e-6)
    assert outward == pytest.approx(0.0, abs=1e-6)
    for jacobian in (tangent_columns(u, c), adjoint_rows(u, c)):
        assert jacobian[0, U][0] == -4.0
        assert jacobian[0, MU] == 0.0


def test_without_slip_speed_friction_is_stick_and_nothing_is_divided_by_zero():
    falling = (0.0, -1.0, 0.0)
    for jacobian in (tangent_columns(falling), adjoint_rows(falling)):
        assert np.isfinite(jacobian).all()
        np.testing.assert_array_equal(jacobian[:, U][:, 0], [-4.0, 0.0, 0.0])


@pytest.mark.parametrize("u", [(0.0, -1.0, 0.0), (0.7, -1.0, 0.0)])
def test_without_friction_the_friction_stiffness_does_nothing(u):
    # f = -min(0, k_f |u_t|) u_t/|u_t| is zero for every u_t, and so is its derivative,
    # also for a node that falls straight down.
    smooth = (*LAW[:6], 0.0)
    np.testing.assert_array_equal(force(u, law=smooth)[[0, 2]], 0.0)
    for jacobian in (tangent_columns(u, law=smooth), adjoint_rows(u, law=smooth)):
        np.testing.assert_array_equal(jacobian[0, U], 0.0)
        assert np.isfinite(jacobian).all()


def test_neither_friction_nor_its_stiffness_acts_alone():
    # min(mu p, k_f |u_t|) with one of them 0 is 0 for every value of the other.
    u, bare = (0.7, -1.0, 0.4), (*LAW[:5], 0.0, 0.0)
    for k, column in ((5, K_F), (6, MU)):
        alone = np.array(bare)
        alone[k] = 2.0
        np.testing.assert_array_equal(force(u, law=alone), force(u, law=bare))
        assert not tangent_columns(u, law=bare)[:, column].any()
        assert not adjoint_rows(u, law=bare)[:, column].any()
