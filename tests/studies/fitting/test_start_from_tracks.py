"""What a fit to the places of bodies hands to the search."""

from types import SimpleNamespace

import numpy as np
import pytest

from studies.fitting import start_from_tracks as module
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search


@pytest.mark.parametrize(("coarse", "expected"), [(None, [1.0, 20.0]), (0, [10.0, 20.0])])
def test_an_unknown_number_begins_where_it_was_declared_if_a_coarse_set_varies_it(
    tmp_path, monkeypatch, coarse, expected
):
    ended = SimpleNamespace(theta=np.array([10.0, 20.0]), loss=0.0)
    search = SimpleNamespace(best=ended, basins=[ended], evaluations=7)
    tracks = SimpleNamespace(observers=(), with_stable_steps=lambda _theta: None)
    started = []
    replaced = {
        "_tracks": lambda *_: tracks,
        "start_of_flights": lambda _tracks: None,
        "robust_search": lambda *_, **__: search,
        "relative_errors": lambda *_: np.array([0.9, 0.1]),
        "_started_at": lambda prepared, theta, _progress: started.append(theta) or prepared,
    }
    for name, function in replaced.items():
        monkeypatch.setattr(module, name, function)
    parameters = SimpleNamespace(start=np.array([1.0, 2.0]), first_answers=(0, 1))
    prepared = SimpleNamespace(everything=SimpleNamespace(parameters=parameters))
    begun = module.start_from_tracks(
        prepared, Search(coarse=coarse), RunFolder.create(tmp_path / "run"),
        EvaluationProgress(9), seed=0, n_fitted=3,
    )  # fmt: skip
    np.testing.assert_array_equal(started, [expected])
    assert begun.axes == (0,)
    assert begun.evaluations == 7
