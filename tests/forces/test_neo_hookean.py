"""Stable neo-Hookean tetrahedra: closed forms, the reference, the contract, bad input."""

import dataclasses

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.verify.contract import (
    EPS,
    nodal_forces,
    relative,
    vectors,
)
from adjsim.forces.log_neo_hookean import LogNeoHookeanTets
from adjsim.forces.neo_hookean import ELASTIC, NeoHookeanTets, neo_hookean_energy
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from tests.forces.solids import LawFacts, SolidContract
from tests.physics import rebuilt, referenced, values_of
from tests.reference import neo_hookean as reference


CORNER = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])  # B = I, V = 1/6
IDENTITY = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0)  # M = I and 1/(6 V)
MESH = box_tets((2, 2, 2), (0.2, 0.1, 0.1))


def random_tets(rng, **parameters):
    n = len(MESH.tets)
    fields = {
        "mu": 2e4 * rng.uniform(0.8, 1.2, n),
        "lam": 5e4 * rng.uniform(0.8, 1.2, n),
        "actuation": 0.1 * rng.standard_normal(n),
        **parameters,
    }
    return NeoHookeanTets(MESH.tets, MESH.points, **fields)


def random_state(rng):
    shape = MESH.points.shape
    return State(MESH.points + 0.01 * rng.standard_normal(shape), rng.standard_normal(shape))


class TestElasticTets(SolidContract):
    random, energy_of = staticmethod(random_tets), staticmethod(neo_hookean_energy)


class TestViscousTets(TestElasticTets):
    def make(self, rng):
        return random_tets(rng, viscosity=30.0 * rng.uniform(0.5, 1.5, len(MESH.tets)))

    def test_viscosity_takes_energy_from_every_motion(self, case):
        force, x, v = case
        elastic = dataclasses.replace(force, viscosity=None)
        drag = nodal_forces(force, x, v) - nodal_forces(elastic, x, v)
        assert np.vdot(drag, v) < 0.0


class TestScalarTets(TestElasticTets):
    """One modulus for all: its cotangent is a sum over the elements."""

    def make(self, rng):
        return random_tets(rng, mu=2e4, lam=5e4, viscosity=30.0, actuation=0.05)


class TestStableLaw(LawFacts):
    LAW, random, BAD_RATIOS = NeoHookeanTets, staticmethod(random_tets), (0.5, -1.0, 0.7)


def corner_forces(F, mu, lam, a=0.0):
    tet = NeoHookeanTets([[0, 1, 2, 3]], CORNER, mu=mu, lam=lam, actuation=a)
    return nodal_forces(tet, CORNER @ np.transpose(F), np.zeros((4, 3)))


def test_uniaxial_stretch_pulls_with_the_stress_worked_out_by_hand():
    # mu = 2, lam = 4: alpha = 1 + 3/8. F = diag(2, 1, 1): I_C = 6, J = 2, cof F = diag(1, 2, 2).
    # P = 2 (1 - 1/7) F + 4 (2 - 11/8) cof F = diag(24/7 + 5/2, 12/7 + 5, 12/7 + 5).
    P = np.diag([24 / 7 + 5 / 2, 12 / 7 + 5, 12 / 7 + 5])
    f = corner_forces(np.diag([2.0, 1.0, 1.0]), 2.0, 4.0)
    np.testing.assert_allclose(f[1:], -P / 6, rtol=0, atol=20 * EPS)
    np.testing.assert_allclose(f[0], P.sum(axis=1) / 6, rtol=0, atol=20 * EPS)


def test_energy_of_a_stretch_worked_out_by_hand():
    # psi = (6 - 3) + 2 (5/8)^2 - log 7, and V = 1/6.
    x = CORNER * [2.0, 1.0, 1.0]
    got = neo_hookean_energy(vectors(relative(x)), IDENTITY, (2 / 6, 4 / 6, 11 / 8), (0.0,))
    assert got == pytest.approx((3 + 2 * 25 / 64 - np.log(7)) / 6, rel=10 * EPS)


def test_actuation_swells_the_rest_volume():
    # All of P = (s mu (1 - 1/(I_C + 1)) + lam (J - alpha) s^2) I at F = s I; it vanishes at
    # alpha = J + mu/lam 3 s^2/(3 s^2 + 1)/s, with alpha = 1 + 3 mu/(4 lam) + a.
    mu, lam, s = 2.0, 4.0, 1.2
    a = s**3 + mu / lam * 3 * s / (3 * s * s + 1) - 1 - 0.75 * mu / lam
    assert a > 0
    assert np.abs(corner_forces(s * np.eye(3), mu, lam, a)).max() <= 20 * EPS


@pytest.mark.parametrize(("E", "nu"), [(1e5, 0.3), (3e4, 0.49), (2e6, -0.4), (1e5, 0.0)])
def test_small_strains_answer_as_hooke_says(rng, E, nu):
    mu, lam = NeoHookeanTets.moduli(E, nu)
    assert lam > mu / 8
    mu_small, lam_small = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    grad_u = rng.standard_normal((3, 3))
    strain = (grad_u + grad_u.T) / 2
    stress = 2 * mu_small * strain + lam_small * np.trace(strain) * np.eye(3)
    tan_f = ELASTIC.jvp(
        vectors(relative(CORNER)), (), IDENTITY,
        (mu / 6, lam / 6, 1 + 0.75 * mu / lam), (0.0,),
        vectors(relative(CORNER @ grad_u.T)), (), (0.0, 0.0, 0.0), (0.0,),
    )  # fmt: skip
    np.testing.assert_allclose(np.array(tan_f).T, -stress / 6, rtol=0, atol=50 * EPS * max(mu, lam))


@pytest.mark.parametrize("law", [NeoHookeanTets, LogNeoHookeanTets, NeoHookeanTriangles])
def test_young_and_lame_make_the_same_elements(law):
    cells = [[0, 1, 2]] if law is NeoHookeanTriangles else [[0, 1, 2, 3]]
    points = np.concatenate([np.zeros((1, 3)), np.eye(3)])
    E, nu = 3.0, 0.3
    by_young = law.from_young(cells, points, E, nu, viscosity=2.0)
    by_lame = law.from_lame(cells, points, *law.small_strain_lame(E, nu), viscosity=2.0)
    for name in ("mu", "lam", "viscosity"):
        assert getattr(by_young, name) == getattr(by_lame, name)
    assert (by_young.mu, by_young.lam) == law.moduli(E, nu)
    mu = E / (2.0 * (1.0 + nu))
    assert law.small_strain_lame(E, nu)[0] == pytest.approx(mu)
    assert law.from_lame(cells, points, [1.0], [2.0]).mu.shape == (1,)


def test_moduli_agree_with_the_reference():
    np.testing.assert_allclose(
        NeoHookeanTets.moduli(3e4, 0.45), reference.lame(3e4, 0.45), rtol=10 * EPS
    )


def long_double_forces(x, X, mu, lam):
    """V P B^T by F, in extended precision."""
    (E, D), cof = ((y[1:] - y[0]).T.astype(np.longdouble) for y in (x, X)), cofactors
    det = np.vdot(D[:, 0], cof(D)[:, 0])
    B = cof(D).T / det
    F = E @ B
    I_C, J = np.vdot(F, F), np.vdot(F[:, 0], cof(F)[:, 0])
    stretch = J - (1 + 3 * np.longdouble(mu) / (4 * lam))
    H = -det / 6 * (mu * (1 - 1 / (I_C + 1)) * F + lam * stretch * cof(F)) @ B.T
    return np.vstack([-H.sum(axis=1), H.T])


def cofactors(A):
    a, b, c = A.T
    return np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)


@pytest.mark.parametrize(("thinness", "bar"), [(1.0, 1e-14), (100.0, 1e-12), (1000.0, 1e-10)])
def test_thin_elements_keep_their_digits(rng, thinness, bar):
    worst = 0.0
    for _ in range(50):
        turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        turn *= np.sign(np.linalg.det(turn))
        rest = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.2, 0.3, 1 / thinness)]) @ turn.T
        x = rest @ (np.eye(3) + 0.1 * rng.standard_normal((3, 3))).T
        tet = NeoHookeanTets([[0, 1, 2, 3]], rest, mu=2.0, lam=4.0)
        expected = long_double_forces(x, rest, 2.0, 4.0)
        error = np.abs(nodal_forces(tet, x, np.zeros_like(x)) - expected).max()
        worst = max(worst, float(error / np.abs(expected).max()))
    assert worst <= bar


@pytest.mark.parametrize("viscosity", [None, 30.0])
def test_forces_equal_the_reference(rng, viscosity):
    tets, state = random_tets(rng, viscosity=viscosity), random_state(rng)
    expected = reference.forces(
        state.x, state.v, MESH.points, MESH.tets, tets.mu, tets.lam, viscosity or 0.0,
        tets.actuation,
    )  # fmt: skip
    got = nodal_forces(tets, state.x, state.v)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_gradient_equals_complex_steps_through_the_reference(rng):
    each = rng.uniform(0.5, 1.5, (2, len(MESH.tets)))
    tets = random_tets(rng, viscosity=30.0 * each[0], density=1000.0 * each[1])
    model, state, dt = Model(None, {"solid": tets}), random_state(rng), 1e-3
    adj_x, adj_v = rng.standard_normal((2, 1, *state.x.shape))
    gradient = record(model, state, dt, 1).vjp(adj_x, adj_v)
    for path, value in values_of(model, state).items():
        assert np.abs(gradient[path]).max() > 0
        for k in rng.choice(value.size, min(6, value.size), replace=False):
            step = np.zeros(value.shape, complex)
            step.flat[k] = 1e-30j
            x, v = referenced(model, state, dt, 1, {path: value + step})
            slope = (np.vdot(adj_x, x) + np.vdot(adj_v, v)).imag / 1e-30
            error = abs(slope - gradient[path].flat[k])
            assert error <= 1e-12 * np.abs(gradient[path]).max(), (path, k)


def test_an_inverted_or_flattened_element_still_has_a_finite_force_and_adjoint():
    tet = NeoHookeanTets([[0, 1, 2, 3]], CORNER, mu=2.0, lam=4.0)
    for squeeze in (0.0, -1.0):
        model = Model(np.ones(4), {"solid": tet}, gravity=(0, 0, 0))
        run = record(model, State(CORNER * [1.0, 1.0, squeeze]), 0.01, 1)
        f = run.trajectory.v[0] / 0.01
        assert f[3, 2] > 0  # node 3 is pushed out again
        gradient = run.vjp(np.ones((1, 4, 3)), np.ones((1, 4, 3)))
        assert all(np.isfinite(value).all() for value in gradient.values())


def test_a_point_that_all_corners_share_has_no_force():
    tet = NeoHookeanTets([[0, 1, 2, 3]], CORNER, mu=2.0, lam=4.0)
    assert np.abs(nodal_forces(tet, np.zeros((4, 3)), np.zeros((4, 3)))).max() == 0.0


def test_lumped_mass_is_density_times_volume(rng):
    tets = random_tets(rng)
    mass = tets.lumped_mass(1000.0)
    assert mass.sum() == pytest.approx(1000 * 0.2 * 0.1 * 0.1, rel=100 * EPS)
    rho = rng.uniform(500, 1500, len(MESH.tets))
    np.testing.assert_allclose(
        tets.lumped_mass(rho), reference.density_mass(MESH.points, MESH.tets, rho), rtol=100 * EPS
    )


FITS = {"tets": [[0, 1, 2, 3]], "rest_positions": CORNER, "mu": 2.0, "lam": 4.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tets": [[0, 2, 1, 3]]}, r"`tets` .* tetrahedron 0, .* is inverted .* Swap two"),
        ({"tets": [[0, 1, 2, 2]]}, r"`tets` .* is flat .* Remove it"),
        ({"tets": [[0, 1, 2, 4]]}, r"`tets` must index the 4 points, 0 to 3, got \[0, 1, 2, 4\]"),
        ({"tets": [[0.5, 1, 2, 3]]}, r"`tets` must hold integers, got float64"),
        ({"tets": [[0, 1, 2]]}, r"`tets` must have shape \(n_tets, 4\), got \(1, 3\)"),
        ({"rest_positions": np.zeros((4, 2))}, r"`rest_positions` must have shape \(n_nodes, 3\)"),
        ({"rest_positions": CORNER * np.nan}, r"`rest_positions` must be finite, got nan"),
        ({"mu": 0.0}, r"`mu` must be positive, got 0"),
        ({"mu": -1.0}, r"`mu` must be positive, got -1"),
        ({"mu": [[2.0]]}, r"`mu` must have shape \(\) or \(n_tets,\) = \(1,\).*`mu.ravel\(\)`"),
        ({"mu": "soft"}, r"`mu` must be an array of float64"),
        ({"lam": 0.25}, r"`lam` must be greater than mu/8 .* lam = 0.25 with mu = 2 in tet.* 0\."),
        ({"lam": [4.0, 4.0]}, r"`lam` must have shape \(\) or \(n_tets,\) = \(1,\), got \(2,\)"),
        ({"viscosity": -1.0}, r"`viscosity` must not be negative, got -1"),
        ({"viscosity": [1.0, 1.0]}, r"`viscosity` must have shape"),
        ({"actuation": [0.1, 0.2]}, r"`actuation` .* one of \(\), \(1,\), got \(2,\)"),
        ({"actuation": np.zeros((1, 1, 1))}, r"`actuation` must have shape"),
    ],
)  # fmt: skip
def test_bad_input_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        NeoHookeanTets(**{**FITS, **changed})


def test_rest_positions_must_be_those_of_the_model():
    with pytest.raises(ValueError, match=r"`mass` .* each row of `beam.rest_positions`, got"):
        Model(np.ones(5), {"beam": NeoHookeanTets(**FITS)})


def test_density_must_be_positive():
    with pytest.raises(ValueError, match="`density` must be positive, got 0"):
        NeoHookeanTets(**FITS).lumped_mass(0.0)
    with pytest.raises(
        ValueError, match=r"`density` must have shape \(\) or \(n_elements,\) = \(1,\)"
    ):
        NeoHookeanTets(**FITS, density=[1.0, 2.0])


def test_rebuilding_with_the_same_values_changes_nothing(rng):
    tets, state = random_tets(rng), random_state(rng)
    again, _ = rebuilt(Model(tets.lumped_mass(1000.0), {"solid": tets}), state, {})
    np.testing.assert_array_equal(again.forces["solid"].pack_params(), tets.pack_params())
