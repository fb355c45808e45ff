"""The tangent matrix of pairs that change: that of products, whichever pairs were found."""

import numpy as np
import pytest

from adjsim.field import Field
from adjsim.model import State
from adjsim.rollout import rollout
from tests.pairs.scenes import DT, nets


@pytest.fixture(scope="module")
def touching():
    """Nets while they touch."""
    model, state = nets()
    run = rollout(model, state, DT, 80)
    return State(run.x[-1], run.v[-1])


def test_a_matrix_is_that_of_products(touching, rng):
    model, _ = nets()
    field = Field(model)
    tangent = rng.standard_normal(touching.x.shape)
    product = field.matrix_at(field.row(touching), 0.3, 0.7, 0) @ tangent.ravel()
    pushed = field.push(touching, {"state.x": 0.3 * tangent, "state.v": 0.7 * tangent})
    scale = np.abs(pushed).max()
    np.testing.assert_allclose(product, pushed.ravel(), rtol=0, atol=1e-14 * scale)
    lasting = field.lasting_matrix_at(field.row(touching), 0.3, 0.7, 0) @ tangent.ravel()
    assert np.abs(lasting - product).max() > 0.1 * scale  # they touch


@pytest.mark.parametrize("skin", [1e-3, 0.1])
def test_its_entries_do_not_depend_on_the_skin(touching, skin):
    (usual, other) = (Field(nets(skin=s)[0]).stiffness(touching) for s in (None, skin))
    np.testing.assert_array_equal(usual.indptr, other.indptr)
    np.testing.assert_array_equal(usual.indices, other.indices)
    np.testing.assert_array_equal(usual.data, other.data)


def test_pairs_that_do_not_touch_have_no_entry(touching):
    model, _ = nets()
    apart = State(touching.x + np.where(np.arange(len(touching.x)) < 25, 0.0, 0.05)[:, None])
    field = Field(model)
    K = field.stiffness(apart)
    assert K.nnz == field.lasting_matrix_at(field.row(apart), -1.0, 0.0, 0).count_nonzero()
