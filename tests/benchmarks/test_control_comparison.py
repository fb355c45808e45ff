"""Controls by a picture, by states and at random, on toy sizes: equal starts, budgets and draws."""

import json

import numpy as np
import pytest

from benchmarks.control_comparison import BETWEEN, KINDS, compare
from studies.runs.evaluations import read_log
from tests.studies.control.toys import TOYS


def logs(path, scene, data=None):
    """Run a comparison of two instances; return the logs by kind."""
    compare(scene, [*TOYS[scene], "search.max_evaluations=4"], count=2, out=path, data=data)
    return {
        kind: [read_log(path / f"{scene}/{k:03d}-{kind}/iterations.jsonl") for k in (0, 1)]
        for kind in KINDS
    }


def test_all_kinds_begin_alike_and_the_table_is_of_their_best_evaluations(tmp_path):
    searches = logs(tmp_path, "control-walker", tmp_path)
    picture, states = searches["picture"], searches["states"]
    assert picture[0][0].values == states[0][0].values
    assert picture[0][0].loss != picture[1][0].loss
    assert all(log[-1].spent == 4 for both in searches.values() for log in both)
    drawn = searches["random"][0][-1].theta
    assert np.std(drawn) == pytest.approx(1.0, rel=0.2)
    head, *rows = json.loads((tmp_path / "control-walker.json").read_text())["values"]["table"]
    assert head[0] == "`control-walker`"
    for row, (kind, both) in zip(rows, searches.items(), strict=True):
        best = [min(log, key=lambda evaluation: evaluation.loss).values for log in both]
        distances = [values["distance"] for values in best]
        assert row[0] == kind
        assert row[1] == f"{np.mean(distances):.2g} m"
        assert row[3] == f"{max(distances):.2g} m"
        assert row[4] == f"{np.median([values['cover'] for values in best]):.2f}"


def test_a_comparison_that_is_stopped_goes_on_with_the_same_draws(tmp_path):
    whole = logs(tmp_path / "a", "control-cloth")["random"]
    path = tmp_path / "b/control-cloth/001-random/iterations.jsonl"
    path.parent.mkdir(parents=True)
    lines = (tmp_path / "a/control-cloth/001-random/iterations.jsonl").read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in lines[:2]))  # as a kill leaves it
    again = logs(tmp_path / "b", "control-cloth")["random"]
    low, high = BETWEEN["cloth.velocity"]
    for before, after in zip(whole, again, strict=True):
        thetas = np.array([evaluation.theta for evaluation in before])
        np.testing.assert_array_equal(thetas, [evaluation.theta for evaluation in after])
        assert [evaluation.loss for evaluation in before] == [
            evaluation.loss for evaluation in after
        ]
        assert len(np.unique(thetas, axis=0)) == 4
        assert ((low <= thetas) & (thetas <= high)).all()
