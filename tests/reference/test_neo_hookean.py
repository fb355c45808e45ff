"""The reference tetrahedra against closed forms and complex-step derivatives."""

import numpy as np
from scipy.spatial.transform import Rotation

from tests.reference import neo_hookean


EPS = np.finfo(np.float64).eps
TETS = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
REST = np.array(
    [(0.0, 0.0, 0.0), (1.0, 0.1, 0.0), (0.1, 1.2, 0.0), (0.0, 0.1, 0.9), (1.0, 1.1, 1.0)]
)
MU, LAM = np.array([3.0, 5.0]), np.array([7.0, 2.0])
STEP = 1e-30


def complex_gradient(function, x):
    """Derivative of `function` by every entry of x, exact to rounding."""
    out = np.empty(np.shape(x))
    for index in np.ndindex(*np.shape(x)):
        moved = np.array(x, complex)
        moved[index] += 1j * STEP
        out[index] = function(moved).imag / STEP
    return out


def test_the_test_mesh_is_not_inverted():
    _, V = neo_hookean.rest_shape(REST, TETS)
    assert (V > 0.05).all()


def test_the_elastic_force_is_minus_the_gradient_of_the_energy(rng):
    x = REST + 0.2 * rng.normal(size=REST.shape)
    a = np.array([0.1, -0.05])
    force = neo_hookean.forces(x, np.zeros_like(x), REST, TETS, MU, LAM, actuation=a)
    gradient = complex_gradient(
        lambda x: neo_hookean.energy(x, REST, TETS, MU, LAM, actuation=a), x
    )
    # About 200 operations on numbers of order 10.
    np.testing.assert_allclose(force, -gradient, atol=2000 * EPS)
    assert np.abs(force).max() > 0.1


def test_a_rotated_and_shifted_rest_shape_feels_no_force(rng):
    x = REST @ Rotation.random(rng=rng).as_matrix().T + rng.normal(size=3)
    force = neo_hookean.forces(x, np.zeros_like(x), REST, TETS, MU, LAM)
    np.testing.assert_allclose(force, 0.0, atol=200 * EPS)


def test_forces_and_torques_of_a_deformed_mesh_sum_to_zero(rng):
    x = REST + 0.2 * rng.normal(size=REST.shape)
    v = rng.normal(size=REST.shape)
    force = neo_hookean.forces(x, v, REST, TETS, MU, LAM, viscosity=0.3)
    np.testing.assert_allclose(force.sum(axis=0), 0.0, atol=200 * EPS)
    np.testing.assert_allclose(np.cross(x, force).sum(axis=0), 0.0, atol=2000 * EPS)


def test_viscosity_is_blind_to_rigid_motion_and_takes_energy_from_any_other(rng):
    x = REST + 0.1 * rng.normal(size=REST.shape)
    still = neo_hookean.forces(x, np.zeros_like(x), REST, TETS, MU, LAM)
    rigid = np.cross(rng.normal(size=3), x) + rng.normal(size=3)
    spun = neo_hookean.forces(x, rigid, REST, TETS, MU, LAM, viscosity=2.0)
    np.testing.assert_allclose(spun, still, atol=2000 * EPS)
    v = rng.normal(size=x.shape)
    damped = neo_hookean.forces(x, v, REST, TETS, MU, LAM, viscosity=2.0) - still
    assert (damped * v).sum() < -0.1


def test_small_strains_follow_hooke_with_the_converted_constants():
    youngs, poisson = 50.0, 0.3
    mu_l = youngs / (2 * (1 + poisson))
    lam_l = youngs * poisson / ((1 + poisson) * (1 - 2 * poisson))
    mu, lam = neo_hookean.lame(youngs, poisson)
    gradient = np.array([[0.3, 0.5, -0.2], [0.1, -0.4, 0.7], [0.6, 0.2, 0.9]])
    F = np.eye(3) + 1j * STEP * gradient
    P = neo_hookean.pk1_stress(F[None], mu, lam)[0].imag / STEP
    strain = (gradient + gradient.T) / 2
    np.testing.assert_allclose(
        P, 2 * mu_l * strain + lam_l * np.trace(strain) * np.eye(3), atol=200 * 50 * EPS
    )


def test_a_stretched_tetrahedron_has_the_energy_worked_by_hand():
    rest = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    x = rest * (2.0, 1.0, 1.0)  # F = diag(2, 1, 1): I_C = 6, J = 2, V = 1/6
    mu, lam, a = 4.0, 6.0, 0.5  # alpha = 1 + 2/3 - 1/6 + 1/2 = 2
    expected = (4 / 2 * 3 + 0 - 4 / 2 * np.log(7)) / 6
    found = neo_hookean.energy(x, rest, TETS[:1], mu, lam, actuation=a)
    np.testing.assert_allclose(found, expected, rtol=8 * EPS)


def test_positive_actuation_pushes_the_nodes_apart():
    force = neo_hookean.forces(REST, 0 * REST, REST, TETS, MU, LAM, actuation=0.1)
    assert ((REST - REST.mean(axis=0)) * force).sum() > 0


def test_masses_add_up_to_density_times_volume():
    _, V = neo_hookean.rest_shape(REST, TETS)
    density = np.array([2.0, 3.0])
    mass = neo_hookean.density_mass(REST, TETS, density)
    np.testing.assert_allclose(mass.sum(), (density * V).sum(), rtol=8 * EPS)
    np.testing.assert_allclose(mass[0], 2.0 * V[0] / 4, rtol=8 * EPS)
