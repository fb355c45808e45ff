"""Contact with a half-space: closed forms, kinks, the reference, the contract, bad input."""

import numpy as np
import pytest

from adjoint.forces.half_space import half_space_jvp, half_space_vjp
from adjoint.rollout import record
from adjsim.forces.half_space import HalfSpaceContact, half_space_force
from adjsim.model import Model, State
from tests.forces.contract import EPS, ForceContract, nodal_forces
from tests.physics import referenced, values_of


N_NODES = 20
UP = (0.0, 1.0, 0.0)
# h = 0, r = 0, k_e = 100, k_d = 5, k_f = 4, mu = 0.5
ROW = (*UP, 0.0, 0.0, 100.0, 5.0, 4.0, 0.5)
NO_TANGENT = (0.0,) * 9


def force(x, v, row=ROW):
    return np.array(half_space_force((tuple(x),), (tuple(v),), (), row, ())[0])


def tangent(x, v, *, along_x=(0.0,) * 3, along_v=(0.0,) * 3, along_row=NO_TANGENT, row=ROW):
    return np.array(
        half_space_jvp(
            (tuple(x),), (tuple(v),), (), row, (), (tuple(along_x),), (tuple(along_v),), along_row,
            (),
        )[0]
    )  # fmt: skip


def adjoint_rows(x, v, row=ROW):
    """The Jacobian (3, 15) with respect to x, v and the row, from the adjoint."""
    rows = [half_space_vjp((tuple(x),), (tuple(v),), (), row, (), (tuple(c),)) for c in np.eye(3)]
    return np.array([[*adj_x[0], *adj_v[0], *adj_row] for adj_x, adj_v, adj_row, _ in rows])


def tangent_columns(x, v, row=ROW):
    """The same Jacobian from the tangent."""
    columns = [
        tangent(x, v, along_x=t[:3], along_v=t[3:6], along_row=tuple(t[6:]), row=row)
        for t in np.eye(15)
    ]
    return np.array(columns).T


class TestHalfSpaceContact(ForceContract):
    """Twenty nodes: some apart, and all four of stick or slip, approaching or leaving."""

    def make(self, rng):
        each = rng.uniform(0.8, 1.2, (5, N_NODES))
        return HalfSpaceContact(
            normal=(0.3, 2.0, -0.4),
            height=0.1,
            stiffness=300.0 * each[0],
            damping=6.0 * each[1],
            friction_stiffness=20.0 * each[2],
            friction=0.5 * each[3],
            radius=0.02 * each[4],
        )

    def state(self, rng, force):
        x = rng.uniform(-0.3, 0.3, (N_NODES, 3))
        v = rng.uniform(-1.0, 1.0, (N_NODES, 3))
        v[::2] *= 0.3  # slow enough to stick
        return State(x, v)

    def test_the_state_has_every_regime_in_it(self, case):
        contact, x, v = case
        n = contact.normal / np.linalg.norm(contact.normal)
        c = contact.height + contact.radius - x @ n
        u_n = v @ n
        p = contact.stiffness * c + contact.damping * np.maximum(0, -u_n)
        slip = np.linalg.norm(v - u_n[:, None] * n, axis=1)
        sticks = contact.friction_stiffness * slip <= contact.friction * p
        touching = c > 0
        pairs = zip(sticks[touching], u_n[touching] > 0, strict=True)
        assert {(bool(stick), bool(leaves)) for stick, leaves in pairs} == {
            (stick, leaves) for stick in (True, False) for leaves in (True, False)
        }
        assert 0 < touching.sum() < N_NODES


class TestScalarContactOfSomeNodes(TestHalfSpaceContact):
    """Scalars for all contacts, and a choice of nodes out of order."""

    def make(self, rng):
        return HalfSpaceContact(
            normal=(0.3, 2.0, -0.4), height=0.1, stiffness=300.0, damping=6.0,
            friction_stiffness=20.0, friction=0.5, radius=0.02,
            contact_nodes=rng.permutation(N_NODES)[:17],
        )  # fmt: skip

    def test_the_state_has_every_regime_in_it(self, case):
        contact, x, v = case
        others = np.setdiff1d(np.arange(N_NODES), contact.contact_nodes)
        f = nodal_forces(contact, x, v)
        assert np.abs(f).max() > 0
        assert np.abs(f[others]).max() == 0


def test_pressure_and_friction_worked_out_by_hand():
    # c = 0.1 and u_n = -2: p = 10 + 10 = 20. |u_t| = 5: k_f |u_t| = 20 > mu p = 10, so it slips.
    np.testing.assert_allclose(force((9, -0.1, 9), (3, -2, 4)), [-6.0, 20.0, -8.0], rtol=10 * EPS)
    # |u_t| = 0.5: k_f |u_t| = 2 < 10, so it sticks: -k_f u_t.
    np.testing.assert_allclose(
        force((9, -0.1, 9), (0.3, -2, 0.4)), [-1.2, 20.0, -1.6], rtol=10 * EPS
    )
    # Leaving at u_n = +2 there is no damping: p = 10, and slip is bounded by mu p = 5.
    np.testing.assert_allclose(force((9, -0.1, 9), (3, 2, 4)), [-3.0, 10.0, -4.0], rtol=10 * EPS)


def test_a_radius_touches_earlier():
    thick = (*ROW[:4], 0.25, *ROW[5:])
    assert force((0, 0.2, 0), (0, 0, 0)).max() == 0.0
    np.testing.assert_allclose(force((0, 0.2, 0), (0, 0, 0), thick), [0, 5.0, 0], rtol=20 * EPS)


def test_forces_equal_the_reference(rng):
    given = {"normal": (0.3, 2.0, -0.4), "height": 0.1, "stiffness": 300.0, "damping": 6.0,
             "friction_stiffness": 20.0, "friction": 0.5, "radius": 0.02}  # fmt: skip
    model = Model(rng.uniform(0.5, 2, 40), {"floor": HalfSpaceContact(**given)})
    x, v = rng.uniform(-0.3, 0.3, (40, 3)), rng.uniform(-1, 1, (40, 3))
    state, dt = State(x, v), 0.01
    ends = referenced(model, state, dt, 1)
    run = record(model, state, dt, 1)
    np.testing.assert_allclose(run.trajectory.v, ends[1], rtol=0, atol=1e-12)
    adj_x, adj_v = rng.standard_normal((2, 1, 40, 3))
    gradient = run.vjp(adj_x, adj_v)
    for path, value in values_of(model, state).items():
        for k in range(min(value.size, 9)):
            step = np.zeros(value.shape, complex)
            step.flat[k] = 1e-30j
            end_x, end_v = referenced(model, state, dt, 1, {path: value + step})
            slope = (np.vdot(adj_x, end_x) + np.vdot(adj_v, end_v)).imag / 1e-30
            error = abs(slope - gradient[path].flat[k])
            assert error <= 1e-12 * np.abs(gradient[path]).max(), (path, k)


def test_the_gradient_of_the_normal_is_tangential(rng):
    contact = HalfSpaceContact(normal=(0.3, 2.0, -0.4), stiffness=100.0, height=1.0)
    model = Model(np.ones(5), {"floor": contact})
    run = record(model, State(rng.standard_normal((5, 3))), 0.1, 1)
    adj = run.vjp(rng.standard_normal((1, 5, 3)))["floor.normal"]
    assert np.linalg.norm(adj) > 0
    assert abs(adj @ contact.normal) <= 20 * EPS * np.linalg.norm(adj) * 2.1


def test_the_length_of_the_normal_does_not_matter(rng):
    x, v = rng.standard_normal((2, 8, 3))
    one, two = (
        HalfSpaceContact(normal=(s * 0.3, s * 2.0, s * -0.4), damping=2.0).bind(8, "it")
        for s in (1.0, 7.0)
    )
    f = nodal_forces(one, x, v)
    np.testing.assert_allclose(nodal_forces(two, x, v), f, rtol=0, atol=50 * EPS * np.abs(f).max())


# The kinks: each test shows which one-sided derivative is taken.


def test_kink_at_touch_counts_as_apart():
    at_touch = ((1.0, 0.0, 1.0), (0.3, -2.0, 0.1))
    assert np.abs(force(*at_touch)).max() == 0.0
    assert np.abs(tangent_columns(*at_touch)).max() == 0.0
    assert np.abs(adjoint_rows(*at_touch)).max() == 0.0
    # Just inside, the damping is there at once: a jump, of which there is no gradient.
    inside = force((1.0, -1e-12, 1.0), at_touch[1])
    assert inside[1] == pytest.approx(5.0 * 2.0, rel=1e-9)


def test_kink_of_damping_at_rest_takes_the_slope_of_leaving():
    x, v = (0.0, -0.1, 0.0), (0.0, 0.0, 0.0)
    h = 1e-6
    leaving = (force(x, (0, h, 0)) - force(x, v)) / h
    approaching = (force(x, (0, -h, 0)) - force(x, v)) / -h
    assert leaving[1] == 0.0
    assert approaching[1] == pytest.approx(-5.0, rel=1e-6)
    assert tangent(x, v, along_v=(0, 1, 0))[1] == 0.0
    assert adjoint_rows(x, v)[1, 4] == 0.0


def test_between_stick_and_slip_the_slope_is_that_of_stick():
    # p = 16, mu p = 8 and k_f |u_t| = 4 x 2 are equal to the bit.
    x, v, h = (0.0, -0.16, 0.0), (2.0, 0.0, 0.0), 1e-6
    assert force(x, v)[0] == -8.0
    inward = (force(x, (2.0 - h, 0, 0)) - force(x, v))[0] / -h
    outward = (force(x, (2.0 + h, 0, 0)) - force(x, v))[0] / h
    assert inward == pytest.approx(-4.0, rel=1e-6)
    assert outward == pytest.approx(0.0, abs=1e-6)
    assert tangent(x, v, along_v=(1, 0, 0))[0] == -4.0
    assert adjoint_rows(x, v)[0, 3] == -4.0
    d_friction = (0.0,) * 8 + (1.0,)
    assert tangent(x, v, along_row=d_friction)[0] == 0.0


def test_without_slip_speed_friction_is_stick_and_nothing_is_divided_by_zero():
    x, v = (0.0, -0.1, 0.0), (0.0, -1.0, 0.0)
    np.testing.assert_array_equal(tangent(x, v, along_v=(1, 0, 0)), [-4.0, 0.0, 0.0])
    assert np.isfinite(adjoint_rows(x, v)).all()


@pytest.mark.parametrize("v", [(0.0, -1.0, 0.0), (0.7, -1.0, 0.0)])
def test_without_friction_the_friction_stiffness_does_nothing(v):
    # f = -min(0, k_f |u_t|) u_t/|u_t| is zero for every u_t, and so is its derivative,
    # also for a node that falls straight down.
    x, smooth = (0.0, -0.1, 0.0), (*ROW[:8], 0.0)
    np.testing.assert_array_equal(force(x, v, smooth)[[0, 2]], 0.0)
    for jacobian in (tangent_columns(x, v, smooth), adjoint_rows(x, v, smooth)):
        np.testing.assert_array_equal(jacobian[0, [3, 4, 5]], 0.0)
        assert np.isfinite(jacobian).all()


def test_neither_friction_nor_its_stiffness_acts_alone():
    # min(mu p, k_f |u_t|) with one of them 0 is 0 for every value of the other.
    x, v, bare = (0.0, -0.1, 0.0), (0.7, -1.0, 0.4), (*ROW[:7], 0.0, 0.0)
    for k in (7, 8):
        alone = np.array(bare)
        alone[k] = 2.0
        np.testing.assert_array_equal(force(x, v, tuple(alone)), force(x, v, bare))
        assert not tangent_columns(x, v, bare)[:, 6 + k].any()
        assert not adjoint_rows(x, v, bare)[:, 6 + k].any()


@pytest.mark.parametrize(
    ("x", "v"),
    [
        ((0.2, -0.1, 0.3), (3.0, -2.0, 4.0)),
        ((0.2, -0.1, 0.3), (0.3, -2.0, 0.4)),
        ((0.2, -0.1, 0.3), (3.0, 2.0, 4.0)),
        ((0.2, 0.1, 0.3), (3.0, 2.0, 4.0)),
    ],
)
def test_tangent_and_adjoint_are_transposes_in_every_regime(x, v):
    J = tangent_columns(x, v)
    np.testing.assert_allclose(
        adjoint_rows(x, v), J, rtol=0, atol=20 * EPS * max(1, np.abs(J).max())
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"normal": (0, 0, 0)}, "`normal` must not be zero"),
        ({"normal": (0, 1)}, r"`normal` must have shape \(3\), got \(2,\)"),
        ({"height": [0.0]}, r"`height` must have shape \(\), got \(1,\)"),
        ({"stiffness": -1.0}, "`stiffness` must not be negative, got -1"),
        ({"damping": -2.0}, "`damping` must not be negative, got -2"),
        ({"friction_stiffness": -3.0}, "`friction_stiffness` must not be negative, got -3"),
        ({"friction": -0.1}, "`friction` must not be negative, got -0.1"),
        ({"friction": 0.3}, "`friction_stiffness` must be positive .* got 0 with friction = 0.3"),
        ({"radius": -0.1}, "`radius` must not be negative, got -0.1"),
        ({"stiffness": np.inf}, "`stiffness` must be finite, got inf"),
        ({"contact_nodes": [[0]]}, "`contact_nodes` must have shape"),
        ({"contact_nodes": [1, 0, 1]}, "`contact_nodes` must name each node once, got node 1 2 t"),
        ({"contact_nodes": [0.5]}, "`contact_nodes` must hold integers, got float64"),
    ],
)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        HalfSpaceContact(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"contact_nodes": [0, 4]}, r"`floor.contact_nodes` must index the 4 points, .* at row 1"),
        ({"contact_nodes": [-1]}, r"`floor.contact_nodes` must index the 4 points, 0 to 3"),
        ({"contact_nodes": np.zeros(0, int)}, "`floor.contact_nodes` must not be empty"),
        ({"damping": [0.1, 0.2]}, r"`floor.damping` must have shape \(\) or \(n_contacts,\)"),
    ],
)
def test_what_does_not_fit_the_model_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        Model(np.ones(4), {"floor": HalfSpaceContact(**given)})
