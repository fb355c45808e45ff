from types import SimpleNamespace

import numpy as np

from studies.problem.clusters import clusters_of_rows


def at_rest(*counts):
    """Return the part of a problem of so many pictures that is looked at."""
    parameters = SimpleNamespace(size=2)
    return SimpleNamespace(residual_counts=lambda: counts, is_still=True, parameters=parameters)


def test_rows_are_clustered_by_picture_and_few_pictures_in_strips():
    ids = clusters_of_rows(at_rest(*[4] * 30))
    assert np.array_equal(np.bincount(ids[:-2]), np.full(30, 4))
    assert (ids[-2:] == -1).all()
    ids = clusters_of_rows(at_rest(120))
    assert len(np.unique(ids[:-2])) == 16
    assert (np.diff(ids[:-2]) >= 0).all()
