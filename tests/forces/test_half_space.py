"""Contact with a half-space: closed forms, kinks, the reference, the contract, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.verify.contract import EPS, nodal_forces
from adjsim.forces.acted_rows import ActedRows
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from tests.forces.contacts import (
    DISSIPATIVE,
    N_NODES,
    ObstacleContract,
    force_on,
    jacobians,
    law_of_each,
)


FLOOR = {"stiffness": 100.0, "damping": 5.0, "friction_stiffness": 4.0, "friction": 0.5}


def force(x, v, **changed):
    return force_on(HalfSpaceContact(**{**FLOOR, **changed}), x, v)


class TestHalfSpaceContact(ObstacleContract):
    def make(self, rng):
        normal, V = (0.3, 2.0, -0.4), (0.1, 0.2, -0.1)
        return HalfSpaceContact(normal=normal, height=0.1, velocity=V, **law_of_each(rng))


class TestDissipativeContact(TestHalfSpaceContact):
    """The pressure that begins at 0."""

    def make(self, rng):
        law = law_of_each(rng, DISSIPATIVE)
        return HalfSpaceContact(normal=(0.3, 2.0, -0.4), velocity=(0.1, 0.2, -0.1), **law)


class TestScalarContactOfSomeNodes(TestHalfSpaceContact):
    """Scalars for all contacts, and a choice of nodes out of order."""

    def make(self, rng):
        return HalfSpaceContact(
            normal=(0.3, 2.0, -0.4), height=0.1, stiffness=300.0, damping=6.0,
            friction_stiffness=20.0, friction=0.5, radius=0.02,
            contact_nodes=rng.permutation(N_NODES)[:19],
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
    raised = force((9, 0.2, 9), (0, 0, 0), height=0.3)
    np.testing.assert_allclose(raised, [0, 10, 0], rtol=20 * EPS)


def test_only_the_velocity_relative_to_the_plane_counts():
    moved = force((9, -0.1, 9), (4, -4, 4.5), velocity=(1, -2, 0.5))
    np.testing.assert_array_equal(moved, force((9, -0.1, 9), (3, -2, 4)))


def test_a_radius_touches_earlier():
    assert force((0, 0.2, 0), (0, 0, 0)).max() == 0.0
    thick = force((0, 0.2, 0), (0, 0, 0), radius=0.25)
    np.testing.assert_allclose(thick, [0, 5.0, 0], rtol=20 * EPS)


def test_the_gradient_of_the_normal_is_tangential(rng):
    contact = HalfSpaceContact(normal=(0.3, 2.0, -0.4), stiffness=100.0, height=1.0)
    model = Model(np.ones(5), {"floor": contact})
    run = record(model, State(rng.standard_normal((5, 3))), 0.1, 1)
    adj = run.vjp(rng.standard_normal((1, 5, 3)))["floor.normal"]
    assert np.linalg.norm(adj) > 0
    assert abs(adj @ contact.normal) <= 20 * EPS * np.linalg.norm(adj) * 2.1


def test_the_length_of_the_normal_does_not_matter(rng):
    x, v = rng.standard_normal((2, 8, 3))
    short, long = (
        HalfSpaceContact(normal=(s * 0.3, s * 2.0, s * -0.4), damping=2.0).bind(
            ActedRows.of_nodes(8), "it"
        )
        for s in (1.0, 7.0)
    )
    f = nodal_forces(short, x, v)
    np.testing.assert_allclose(nodal_forces(long, x, v), f, rtol=0, atol=50 * EPS * np.abs(f).max())


def test_kink_at_touch_counts_as_apart():
    at_touch = ((1.0, 0.0, 1.0), (0.3, -2.0, 0.1))
    assert np.abs(force(*at_touch)).max() == 0.0
    for jacobian in jacobians(HalfSpaceContact(**FLOOR), *at_touch)[:2]:
        assert np.abs(jacobian).max() == 0.0
    # Just inside, the damping is there at once: a jump, of which there is no gradient.
    assert force((1.0, -1e-12, 1.0), at_touch[1])[1] == pytest.approx(5.0 * 2.0, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"normal": (0, 0, 0)}, "`normal` must not be zero"),
        ({"normal": (0, 1)}, r"`normal` must have shape \(n_steps, 3\), or one of \(3,\), got"),
        ({"height": [[0.0]]}, r"`height` must have shape .*, got \(1, 1\)"),
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
        ({"damping": [0.1, 0.2]}, r"`floor.damping` must have shape \(\) or \(n_contacts,\)"),
    ],
)
def test_what_does_not_fit_the_model_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        Model(np.ones(4), {"floor": HalfSpaceContact(**given)})


def test_a_contact_has_damping_or_dissipation_not_both():
    with pytest.raises(ValueError, match=r"must not both be given.*Leave out the `damping`"):
        HalfSpaceContact(damping=1.0, dissipation=0.1)
    with pytest.raises(ValueError, match=r"`dissipation`.*-0\.1"):
        HalfSpaceContact(dissipation=-0.1)
    assert "damping" not in HalfSpaceContact(dissipation=0.1).parameters()
    assert "dissipation" not in HalfSpaceContact().parameters()
