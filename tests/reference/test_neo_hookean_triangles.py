"""The reference triangles against closed forms and complex-step derivatives."""

import numpy as np
from scipy.spatial.transform import Rotation

from tests.reference import neo_hookean_triangles as triangles
from tests.reference.test_neo_hookean import EPS, STEP, complex_gradient


TRIANGLES = np.array([[0, 1, 2], [1, 3, 2]])
REST = np.array([(0.0, 0.0, 0.0), (1.0, 0.1, 0.0), (0.1, 1.2, 0.0), (1.0, 1.1, 0.4)])
MU, LAM = np.array([3.0, 5.0]), np.array([7.0, 2.0])


def test_the_elastic_force_is_minus_the_gradient_of_the_energy(rng):
    x = REST + 0.2 * rng.normal(size=REST.shape)
    a = np.array([0.1, -0.05])
    force = triangles.forces(x, np.zeros_like(x), REST, TRIANGLES, MU, LAM, actuation=a)
    gradient = complex_gradient(
        lambda x: triangles.energy(x, REST, TRIANGLES, MU, LAM, actuation=a), x
    )
    # About 200 operations on numbers of order 10.
    np.testing.assert_allclose(force, -gradient, atol=2000 * EPS)
    assert np.abs(force).max() > 0.1


def test_the_frame_does_not_matter(rng):
    x, v = REST + 0.2 * rng.normal(size=(2, *REST.shape))
    turned = [
        triangles.forces(x, v, REST, TRIANGLES, MU, LAM, viscosity=0.3, turn=turn)
        for turn in (0.0, 0.4, 2.0)
    ]
    np.testing.assert_allclose(turned[1], turned[0], atol=2000 * EPS)
    np.testing.assert_allclose(turned[2], turned[0], atol=2000 * EPS)


def test_a_rotated_and_shifted_rest_shape_feels_no_force(rng):
    x = REST @ Rotation.random(rng=rng).as_matrix().T + rng.normal(size=3)
    force = triangles.forces(x, np.zeros_like(x), REST, TRIANGLES, MU, LAM)
    np.testing.assert_allclose(force, 0.0, atol=200 * EPS)


def test_viscosity_is_blind_to_rigid_motion_and_takes_energy_from_any_other(rng):
    x = REST + 0.1 * rng.normal(size=REST.shape)
    still = triangles.forces(x, np.zeros_like(x), REST, TRIANGLES, MU, LAM)
    rigid = np.cross(rng.normal(size=3), x) + rng.normal(size=3)
    spun = triangles.forces(x, rigid, REST, TRIANGLES, MU, LAM, viscosity=2.0)
    np.testing.assert_allclose(spun, still, atol=2000 * EPS)
    v = rng.normal(size=x.shape)
    damped = triangles.forces(x, v, REST, TRIANGLES, MU, LAM, viscosity=2.0) - still
    assert (damped * v).sum() < -0.1


def test_small_strains_follow_the_small_strain_constants():
    # mu_L = 2/3 mu, lam_L = lam - 4/9 mu.
    mu, lam = 3.0, 7.0
    gradient = np.array([[0.3, 0.5], [0.1, -0.4], [0.6, 0.2]])
    F = np.eye(3, 2) + 1j * STEP * gradient
    P = triangles.pk1_stress(F[None], mu, lam)[0].imag / STEP
    strain = (gradient[:2] + gradient[:2].T) / 2
    hooke = 2 * (2 / 3 * mu) * strain + (lam - 4 / 9 * mu) * np.trace(strain) * np.eye(2)
    np.testing.assert_allclose(P, [*hooke, [0, 0]], atol=200 * 10 * EPS)


def test_lame_gives_the_small_strain_constants_of_plane_stress():
    youngs, poisson = 50.0, 0.3
    mu, lam = triangles.lame(youngs, poisson)
    mu_l, lam_l = 2 / 3 * mu, lam - 4 / 9 * mu
    np.testing.assert_allclose(4 * mu_l * (lam_l + mu_l) / (lam_l + 2 * mu_l), youngs, rtol=8 * EPS)
    np.testing.assert_allclose(lam_l / (lam_l + 2 * mu_l), poisson, rtol=8 * EPS)


def test_a_stretched_triangle_has_the_energy_worked_by_hand():
    rest = np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0)])
    mu, lam, a = 3.0, 4.0, 0.5  # F = diag(2, 1): I_C = 5, J = 2 = alpha
    found = triangles.energy(rest * (2.0, 1.0, 1.0), rest, TRIANGLES[:1], mu, lam, actuation=a)
    np.testing.assert_allclose(found, (3 / 2 * 3 - 3 / 2 * np.log(6)) / 2, rtol=8 * EPS)


def test_masses_add_up_to_density_times_area():
    _, area = triangles.rest_shape(REST, TRIANGLES)
    density = np.array([2.0, 3.0])
    mass = triangles.density_mass(REST, TRIANGLES, density)
    np.testing.assert_allclose(mass.sum(), (density * area).sum(), rtol=8 * EPS)
    np.testing.assert_allclose(mass[0], 2.0 * area[0] / 3, rtol=8 * EPS)
