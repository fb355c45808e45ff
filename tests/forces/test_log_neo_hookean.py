"""Neo-Hookean tetrahedra with a logarithmic volume law: closed forms, the contract, bad input."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.verify.contract import (
    EPS,
    nodal_forces,
    relative,
    vectors,
)
from adjsim.equilibrium import equilibrium
from adjsim.forces import neo_hookean
from adjsim.forces.log_neo_hookean import (
    ELASTIC,
    LogNeoHookeanTets,
    log_neo_hookean_energy,
)
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from adjsim.steps.implicit import ImplicitEuler
from adjsim.system import RolloutError
from tests.forces.solids import LawFacts, SolidContract


CORNER = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])  # B = I, V = 1/6
IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0)  # M = I and 1/(6 V)
MESH = box_tets((2, 2, 2), (0.2, 0.1, 0.1))


def random_tets(rng, **parameters):
    n = len(MESH.tets)
    fields = {
        "mu": 2e4 * rng.uniform(0.8, 1.2, n),
        "lam": np.where(np.arange(n) == 1, -8e3, 5e4 * rng.uniform(0.8, 1.2, n)),
        "actuation": 0.1 * rng.standard_normal(n),
        **parameters,
    }
    return LogNeoHookeanTets(MESH.tets, MESH.points, **fields)


class TestElasticTets(SolidContract):
    random, energy_of = staticmethod(random_tets), staticmethod(log_neo_hookean_energy)


class TestViscousTets(TestElasticTets):
    def make(self, rng):
        return random_tets(rng, viscosity=30.0 * rng.uniform(0.5, 1.5, len(MESH.tets)))


class TestScalarTets(TestElasticTets):
    """One modulus for all: its cotangent is a sum over the elements."""

    def make(self, rng):
        return random_tets(rng, mu=2e4, lam=5e4, viscosity=30.0, actuation=0.05)


class TestLogLaw(LawFacts):
    LAW, random, BAD_RATIOS, LEAST = LogNeoHookeanTets, staticmethod(random_tets), (0.5,), 0.2


def corner_forces(F, mu, lam, a=0.0, law=LogNeoHookeanTets):
    tet = law([[0, 1, 2, 3]], CORNER, mu=mu, lam=lam, actuation=a)
    return nodal_forces(tet, CORNER @ np.transpose(F), np.zeros((4, 3)))


def test_uniaxial_stretch_pulls_with_the_stress_worked_out_by_hand():
    # mu = 2, lam = 4, F = diag(2, 1, 1): log J = log 2, F^-T = diag(1/2, 1, 1), and
    # P = 2 F + (4 log 2 - 2) F^-T = diag(4 + 2 log 2 - 1, 4 log 2, 4 log 2).
    log2 = np.log(2.0)
    P = np.diag([3 + 2 * log2, 4 * log2, 4 * log2])
    f = corner_forces(np.diag([2.0, 1.0, 1.0]), 2.0, 4.0)
    np.testing.assert_allclose(f[1:], -P / 6, rtol=0, atol=20 * EPS)
    np.testing.assert_allclose(f[0], P.sum(axis=1) / 6, rtol=0, atol=20 * EPS)


def test_energy_of_a_stretch_worked_out_by_hand():
    # psi = (6 - 3) - 2 log 2 + 2 (log 2)^2 - (4 + 5/3) a log 2, and V = 1/6.
    edges, log2, a = vectors(relative(CORNER * [2.0, 1.0, 1.0])), np.log(2.0), 0.3
    got = log_neo_hookean_energy(edges, IDENTITY, (2 / 6, 4 / 6, 2 / 6), (a,))
    psi = 3 - 2 * log2 + 2 * log2**2 - (4 + 5 / 3) * a * log2
    assert got == pytest.approx(psi / 6, rel=10 * EPS)


def test_forces_equal_those_of_the_stress_in_plain_numpy(rng):
    F = np.eye(3) + 0.3 * rng.standard_normal((3, 3))
    mu, lam, a = 2.0, 3.0, 0.2
    J, inverse_t = np.linalg.det(F), np.linalg.inv(F).T
    assert J > 0
    P = mu * F + (lam * np.log(J) - mu - (lam + 5 / 6 * mu) * a) * inverse_t
    np.testing.assert_allclose(corner_forces(F, mu, lam, a)[1:].T, -P / 6, rtol=0, atol=50 * EPS)


@pytest.mark.parametrize("nu", [0.4, 0.0, -0.4])
def test_actuation_swells_whatever_the_poisson_ratio(nu):
    # P = (mu s + (3 lam log s - mu - (lam + 5/6 mu) a)/s) I at F = s I, which vanishes at this a.
    (mu, lam), s = LogNeoHookeanTets.moduli(3.0, nu), 1.2
    a = (mu * (s * s - 1) + 3 * lam * np.log(s)) / (lam + 5 / 6 * mu)
    assert a > 0
    assert np.abs(corner_forces(s * np.eye(3), mu, lam, a)).max() <= 20 * EPS


@pytest.mark.parametrize(("E", "nu"), [(1e5, 0.3), (3e4, 0.49), (2e6, -0.4), (1e5, 0.0)])
def test_small_strains_answer_as_hooke_says(rng, E, nu):
    mu, lam = LogNeoHookeanTets.moduli(E, nu)
    assert (mu, lam) == pytest.approx((E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))))
    grad_u = rng.standard_normal((3, 3))
    strain = (grad_u + grad_u.T) / 2
    stress = 2 * mu * strain + lam * np.trace(strain) * np.eye(3)
    tan_f = ELASTIC.jvp(
        vectors(relative(CORNER)), (), IDENTITY, (mu / 6, lam / 6, mu / 6), (0.0,),
        vectors(relative(CORNER @ grad_u.T)), (), (0.0, 0.0, 0.0), (0.0,),
    )  # fmt: skip
    np.testing.assert_allclose(np.array(tan_f).T, -stress / 6, rtol=0, atol=50 * EPS * max(mu, lam))


def test_it_is_the_stable_law_at_small_strains_and_actuations(rng):
    E, nu, small = 1e5, 0.3, 1e-5
    F, a = np.eye(3) + small * rng.standard_normal((3, 3)), 0.5 * small
    log = corner_forces(F, *LogNeoHookeanTets.moduli(E, nu), a)
    stable = corner_forces(
        F, *neo_hookean.NeoHookeanTets.moduli(E, nu), a, law=neo_hookean.NeoHookeanTets
    )
    # Both laws' stresses differ in the second order of the strains, times some moduli.
    np.testing.assert_allclose(log, stable, rtol=0, atol=20 * small * np.abs(log).max())


def test_both_laws_estimate_the_same_stable_step():
    bodies = [
        law.from_young(MESH.tets, MESH.points, 1e5, 0.3)
        for law in (LogNeoHookeanTets, neo_hookean.NeoHookeanTets)
    ]
    log_bound, bound = (body.stiffness_bound() for body in bodies)
    np.testing.assert_allclose(log_bound, bound, rtol=10 * EPS)


def test_a_squeezed_element_pushes_back_without_bound():
    forces = [corner_forces(np.diag([1.0, 1.0, s]), 2.0, 4.0)[3, 2] for s in (0.5, 0.1, 0.01)]
    assert 0 < forces[0] < forces[1] < forces[2]
    assert forces[2] > 100 * forces[0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("squeeze", [0.0, -0.5])
def test_an_element_turned_inside_out_is_named_or_stops_the_rollout(squeeze, dtype):
    gel = LogNeoHookeanTets([[0, 1, 2, 3]], CORNER, mu=2.0, lam=4.0)
    model = Model(np.ones(4), {"gel": gel}, pinned=np.ones(4, bool))
    x = CORNER * [1.0, 1.0, squeeze]
    named = rf"tetrahedron 0 of `gel`, nodes \[0, 1, 2, 3\], .* \(J = {squeeze:.3g}\)"
    with pytest.raises(ValueError, match=rf"`state.x` must leave every element its shape.*{named}"):
        rollout(model, State(x), 1.0, 1, dtype=dtype)
    with pytest.raises(RolloutError, match=rf"in step 1 .*{named}"):
        rollout(model, State(CORNER, x - CORNER), 1.0, 2, dtype=dtype)


def test_it_falls_by_implicit_steps_and_rests():
    mu, lam = LogNeoHookeanTets.moduli(2e4, 0.3)
    gel = LogNeoHookeanTets(MESH.tets, MESH.points, mu, lam, density=1000.0)
    held = MESH.points[:, 0] <= MESH.points[:, 0].min()
    model = Model(None, {"gel": gel}, pinned=held)
    end = rollout(model, State(MESH.points), 0.02, 200, step=ImplicitEuler(), frames=(200,))
    rest = equilibrium(model, State(MESH.points))
    moved = np.abs(rest.state.x - MESH.points).max()
    assert moved > 0.005
    np.testing.assert_allclose(end.x[0], rest.state.x, rtol=0, atol=1e-3 * moved)


def test_checkpoints_change_no_bit_of_a_gradient(rng):
    model, n = Model(None, {"gel": random_tets(rng, viscosity=30.0, density=1000.0)}), 40
    state = State(MESH.points + 0.002 * rng.standard_normal(MESH.points.shape))
    adj = rng.standard_normal((1, *MESH.points.shape))
    stored, kept = (
        record(model, state, 1e-4, n, frames=(n,), checkpoint=checkpoint).vjp(adj)
        for checkpoint in (None, "20kB")
    )
    for path, value in stored.items():
        np.testing.assert_array_equal(kept[path], value, err_msg=path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tets": [[0, 2, 1, 3]]}, r"`tets` .* tetrahedron 0, .* is inverted .* Swap two"),
        ({"mu": 0.0}, r"`mu` must be positive, got 0"),
        ({"lam": -1.5}, r"`lam` must be greater than -2/3 mu .* lam = -1.5 with mu = 2 in tet"),
        ({"viscosity": -1.0}, r"`viscosity` must not be negative, got -1"),
    ],
)
def test_bad_input_is_named(changed, message):
    fits = {"tets": [[0, 1, 2, 3]], "rest_positions": CORNER, "mu": 2.0, "lam": 4.0}
    with pytest.raises(ValueError, match=message):
        LogNeoHookeanTets(**{**fits, **changed})
