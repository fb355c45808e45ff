"""Masses are added until a matrix is positive definite, and taken away again."""

import numpy as np
import scipy.sparse

from adjsim.descent import LEAST_SHIFT, Descent, positive_factors


def matrix(*diagonal):
    return scipy.sparse.diags_array(np.array(diagonal), format="csc")


def test_only_what_is_positive_definite_has_factors():
    assert positive_factors(matrix(1.0, 2.0)) is not None
    for bad in ((1.0, -2.0), (1.0, 0.0), (1.0, 1e-14), (1.0, np.nan)):
        assert positive_factors(matrix(*bad)) is None
    rotated = scipy.sparse.csc_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert positive_factors(rotated) is None


def test_masses_are_added_until_a_step_leads_down():
    descent = Descent(np.array([1.0, 2.0]))
    factor = descent.factors(matrix(3.0, -2.0))
    assert 1.0 < descent.shift < 10.0
    np.testing.assert_allclose(
        factor.solve(np.ones(2)), 1.0 / (np.array([3.0, -2.0]) + descent.shift * descent.mass)
    )
    before = descent.shift
    descent.took(0.0)
    assert descent.shift == 10.0 * before
    descent.took(0.5)
    assert descent.shift == 10.0 * before
    while descent.shift > LEAST_SHIFT * descent.first:
        descent.took(1.0)
    descent.took(1.0)
    assert descent.shift == 0.0
    assert descent.factors(matrix(np.nan, 1.0)) is None
