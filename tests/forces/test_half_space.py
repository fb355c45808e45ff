"""Contact with a half-space: closed forms, kinks, the reference, the contract, bad input."""

import numpy as np
import pytest

from adjoint.forces.half_space import HALF_SPACE_TWIN
from adjoint.rollout import record
from adjsim.forces.half_space import HALF_SPACE, HalfSpaceContact
from adjsim.model import Model, State
from tests.forces.contract import EPS, ForceContract, nodal_forces
from tests.physics import referenced, values_of


N_NODES = 20
# k_e = 100, k_d = 5, k_f = 4, mu = 0.5, r = 0, n = e_y, h = 0
ROW = (100.0, 5.0, 4.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0)
R = 4


def force(x, v, row=ROW):
    return np.array(HALF_SPACE.force((tuple(x),), (tuple(v),), (), row, ())[0])


def jacobians(x, v, row=ROW):
    """The Jacobian (3, 15) with respect to x, v and the row, from the tangent and the adjoint."""
    at = ((tuple(x),), (tuple(v),), (), row, ())
    columns = [
        HALF_SPACE_TWIN.jvp(*at, (tuple(t[:3]),), (tuple(t[3:6]),), tuple(t[6:]), ())[0]
        for t in np.eye(15)
    ]
    rows = [HALF_SPACE_TWIN.vjp(*at, (tuple(c),)) for c in np.eye(3)]
    adjoint = [[*adj_x[0], *adj_v[0], *adj_row] for adj_x, adj_v, adj_row, _ in rows]
    return np.array(columns).T, np.array(adjoint)


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


def test_depth_and_velocity_give_the_force_of_the_law():
    # c = 0.1 and u_n = -2: p = 10 + 10 = 20. |u_t| = 5: k_f |u_t| = 20 > mu p = 10, so it slips.
    np.testing.assert_allclose(force((9, -0.1, 9), (3, -2, 4)), [-6.0, 20.0, -8.0], rtol=10 * EPS)
    raised = (*ROW[:-1], 0.3)
    np.testing.assert_allclose(force((9, 0.2, 9), (0, 0, 0), raised), [0, 10, 0], rtol=20 * EPS)


def test_a_radius_touches_earlier():
    thick = (*ROW[:R], 0.25, *ROW[R + 1 :])
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


def test_kink_at_touch_counts_as_apart():
    at_touch = ((1.0, 0.0, 1.0), (0.3, -2.0, 0.1))
    assert np.abs(force(*at_touch)).max() == 0.0
    for jacobian in jacobians(*at_touch):
        assert np.abs(jacobian).max() == 0.0
    # Just inside, the damping is there at once: a jump, of which there is no gradient.
    inside = force((1.0, -1e-12, 1.0), at_touch[1])
    assert inside[1] == pytest.approx(5.0 * 2.0, rel=1e-9)


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
