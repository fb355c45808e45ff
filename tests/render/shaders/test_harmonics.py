import numpy as np
import pytest

from adjoint.render.shaders.harmonics import (
    harmonic_shade_jvp,
    harmonic_shade_vjp,
    harmonics_jvp,
    harmonics_vjp,
)
from render.scene import DirectionalLight, Mesh, Scene, SphericalHarmonics
from render.shaders.harmonics import harmonic_shade, harmonics
from tests.render.elements import check_element


NORMAL = (0.48, -0.6, 0.64)


def test_the_harmonics_are_orthonormal_on_the_sphere():
    # Gauss-Legendre in z and equal steps in azimuth integrate products of degree 4 exactly;
    # the decimals of the coefficients are good to 1e-7.
    z, weight = np.polynomial.legendre.leggauss(4)
    angle = 2 * np.pi * np.arange(8) / 8
    total = np.zeros((9, 9))
    for height, w in zip(z, weight, strict=True):
        for a in angle:
            r = np.sqrt(1 - height * height)
            Y = np.array(harmonics((r * np.cos(a), r * np.sin(a), height)))
            total += w * 2 * np.pi / 8 * np.outer(Y, Y)
    np.testing.assert_allclose(total, np.eye(9), rtol=0, atol=3e-7)


def test_their_order_is_that_of_the_equation():
    x, y, z = NORMAL
    signs = np.sign([1, y, z, x, x * y, y * z, x * z, 3 * z * z - 1, x * x - y * y])
    np.testing.assert_array_equal(np.sign(harmonics(NORMAL)), signs)
    np.testing.assert_allclose(harmonics((0.0, 1.0, 0.0))[1], 0.4886025, rtol=0)
    np.testing.assert_allclose(harmonics((0.0, 0.0, 1.0))[7], 2 * 0.3153916, rtol=1e-15)


def test_the_first_coefficient_is_light_from_everywhere():
    c = np.zeros((9, 3))
    c[0] = (1.0, 2.0, 3.0)
    expected = 0.2820948 * c[0]
    np.testing.assert_allclose(harmonic_shade(NORMAL, c), expected, rtol=1e-15)


def test_the_twins_of_the_harmonics_are_their_derivatives(rng):
    check_element(
        rng,
        harmonics,
        lambda a, t: harmonics_jvp(a[0], t[0]),
        lambda a, c: harmonics_vjp(a[0], c),
        (NORMAL,),
    )


def test_the_twins_of_the_shade_are_its_derivatives(rng):
    def vjp(a, adj):
        adj_c = np.zeros((9, 3))
        adj_n = harmonic_shade_vjp(a[0], np.array(a[1]), adj, adj_c)
        return adj_n, tuple(map(tuple, adj_c))

    check_element(
        rng,
        lambda n, c: harmonic_shade(n, np.array(c)),
        lambda a, t: harmonic_shade_jvp(a[0], np.array(a[1]), t[0], np.array(t[1]))[1],
        vjp,
        (NORMAL, tuple(map(tuple, rng.normal(size=(9, 3))))),
    )


def test_harmonics_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"`coefficients` must have shape \(9, 3\), got \(9,\)"):
        SphericalHarmonics(np.ones(9))
    sky, sun = SphericalHarmonics(np.ones((9, 3))), DirectionalLight((0, 1, 0))
    with pytest.raises(
        ValueError, match=r"`lights` must hold spherical harmonics alone, .* sky, s"
    ):
        Scene({"t": Mesh([[0, 1, 2]])}, {"sky": sky, "sun": sun})
