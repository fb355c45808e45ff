import numpy as np

from studies.problem.clusters import row_clusters


def test_pictures_are_cut_in_strips_and_films_in_frames():
    ids, aligned = row_clusters(120, 30)
    assert aligned
    assert ids.tolist() == np.repeat(np.arange(30), 4).tolist()
    ids, aligned = row_clusters(120, 1)
    assert not aligned
    assert len(set(ids)) == 16
