import numpy as np
import pytest

from adjsim.meshes.chains import chain


def test_points_are_evenly_spaced_and_joined_to_their_neighbours():
    points, edges = chain(4, (1.0, 0.0, 0.0), (1.0, 3.0, 0.0))
    assert points.tolist() == [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [1.0, 3.0, 0.0]]
    assert edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert edges.dtype == np.int64


def test_the_ends_are_hit_exactly():
    points, _ = chain(8, (0.1, 0.2, 0.3), (0.7, 0.7, 0.7))
    assert points[[0, -1]].tolist() == [[0.1, 0.2, 0.3], [0.7, 0.7, 0.7]]


@pytest.mark.parametrize("n_points", [1, 2.0, -3])
def test_a_chain_has_two_points_at_least(n_points):
    with pytest.raises(ValueError, match="`n_points` must be a whole number of at least 2"):
        chain(n_points)


def test_a_chain_without_length_is_refused():
    with pytest.raises(ValueError, match=r"`start` and `end` must differ, got \[1.0, 2.0, 3.0\]"):
        chain(3, (1.0, 2.0, 3.0), (1.0, 2.0, 3.0))
