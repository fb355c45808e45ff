"""Quaternions: SciPy's rotations, the exponential at zero and beyond a turn, the twins."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.rigid.quaternion import quat_exp_vjp, quat_matrix_vjp, quat_mul_vjp, quat_unit_vjp
from adjsim.rigid.quaternion import (
    SERIES_BELOW,
    quat_exp,
    quat_exp_jvp,
    quat_matrix,
    quat_matrix_jvp,
    quat_mul,
    quat_mul_jvp,
    quat_unit,
    quat_unit_jvp,
    sinc_and_cos,
)
from tests.reference import rigid
from tests.render.elements import check_twins


LENGTHS = {
    "zero": 0.0,
    "tiny": 1e-9,
    "in a step": 0.01,
    "below the series' end": 0.499,
    "above it": 0.501,
    "most of a turn": 2.9,
    "many turns": 40.0,
}


def quaternion(rng):
    q = rng.normal(size=4)
    return tuple(q / np.linalg.norm(q))


def vector(rng, length):
    h = rng.normal(size=3)
    return tuple(length * h / np.linalg.norm(h))


def test_the_product_composes_rotations_as_scipy_does(rng):
    p, q = quaternion(rng), quaternion(rng)
    ours = quat_mul(p, q)
    np.testing.assert_allclose(ours, rigid.product(p, q), rtol=0, atol=1e-15)
    theirs = (Rotation.from_quat(p) * Rotation.from_quat(q)).as_matrix()
    np.testing.assert_allclose(np.transpose(quat_matrix(ours)), theirs, rtol=0, atol=4e-16)


def test_the_columns_of_the_matrix_are_the_turned_axes(rng):
    q = quaternion(rng)
    R = np.transpose(quat_matrix(q))
    np.testing.assert_allclose(R, rigid.matrix(q), rtol=0, atol=4e-16)
    np.testing.assert_allclose(R, Rotation.from_quat(q).as_matrix(), rtol=0, atol=4e-16)


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_the_exponential_is_that_of_sines_and_cosines(rng, length):
    h = vector(rng, length)
    # An angle has the rounding error eps |h|, and so have its sine and cosine.
    atol = 4e-16 * (1.0 + length)
    np.testing.assert_allclose(quat_exp(h), rigid.exponential(h), rtol=0, atol=atol)
    theirs = Rotation.from_rotvec(2 * np.array(h)).as_matrix()
    R = np.transpose(quat_matrix(quat_exp(h)))
    np.testing.assert_allclose(R, theirs, rtol=0, atol=4 * atol)


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_the_exponential_stays_on_the_unit_sphere(rng, length):
    norm = np.linalg.norm(quat_exp(vector(rng, length)))
    assert abs(norm - 1.0) <= 4e-16 * (1.0 + length)


def test_an_angle_that_is_not_finite_gives_nan_and_ends():
    assert np.isnan(sinc_and_cos(np.inf)).any()
    assert np.isnan(sinc_and_cos(np.nan)).all()


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_the_twins_of_the_exponential(rng, length):
    h = vector(rng, length)
    check_twins(rng, quat_exp, quat_exp_jvp, quat_exp_vjp, (h,), step=1e-4)


@pytest.mark.parametrize("length", LENGTHS.values(), ids=LENGTHS)
def test_the_tangent_of_the_exponential_is_the_complex_step(rng, length):
    h, tan_h = vector(rng, length), vector(rng, 1.0)
    if length == 0.0:  # the reference takes a branch on |h|: its own tangent there
        exact = [*tan_h, 0.0]
    else:
        exact = rigid.exponential(np.array(h) + 1e-30j * np.array(tan_h)).imag / 1e-30
    atol = 1e-15 * (1.0 + length)
    np.testing.assert_allclose(quat_exp_jvp(h, tan_h), exact, rtol=0, atol=atol)


def test_the_series_meets_the_closed_form_where_it_ends():
    below, above = np.nextafter(SERIES_BELOW, 0.0), np.nextafter(SERIES_BELOW, 1.0)
    np.testing.assert_allclose(sinc_and_cos(below), sinc_and_cos(above), rtol=0, atol=2e-16)


def test_the_twins_of_the_product(rng):
    check_twins(rng, quat_mul, quat_mul_jvp, quat_mul_vjp, (quaternion(rng), quaternion(rng)))


def test_the_twins_of_the_matrix(rng):
    check_twins(rng, quat_matrix, quat_matrix_jvp, quat_matrix_vjp, (quaternion(rng),))


@pytest.mark.parametrize("length", [1.0, 1.0 + 1e-6, 0.3])
def test_the_twins_of_the_unit_length(rng, length):
    q = tuple(length * np.array(quaternion(rng)))
    np.testing.assert_allclose(quat_unit(q), np.array(q) / length, rtol=0, atol=4e-16)
    check_twins(rng, quat_unit, quat_unit_jvp, quat_unit_vjp, (q,), step=1e-4)


def test_float32_stays_float32(rng):
    h = tuple(np.float32(c) for c in vector(rng, 0.3))
    q = quat_exp(h)
    u = (quat_unit(q), quat_unit_jvp(q, q))
    for numbers in (q, quat_mul(q, q), quat_exp_jvp(h, h), quat_exp_vjp(h, q), *u):
        assert {type(number) for number in numbers} == {float}
    np.testing.assert_allclose(q, rigid.exponential(np.array(h, float)), rtol=0, atol=1e-7)
