"""Controls compared on toy sizes: equal budgets, raw curves, and a run that goes on."""

import numpy as np
import pytest

from studies.fitting import comparison
from studies.fitting.comparison import Comparison
from studies.fitting.running import start_scene
from studies.runs.evaluations import read_log
from studies.runs.folder import RunFolder
from studies.runs.options import RunOptions
from studies.scene.files import BUNDLED
from tests.studies.control.toys import TOYS, toy


KINDS = ["picture", "states", "random"]
FEW = ("instances=2", "search.max_evaluations=4")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of two instances, and what it said."""
    path = tmp_path_factory.mktemp("control") / "run"
    overrides = (*TOYS["control-walker"], *FEW)
    given = {"certificate": False}
    folder, job = start_scene(BUNDLED / "control-walker.toml", overrides, path, given)
    return folder, job.run(folder)


def test_all_kinds_begin_alike_and_have_the_same_budget(finished):
    folder, text = finished
    compared = folder.read_json("comparison.json")
    assert compared["kinds"] == KINDS
    for record in compared["records"]:
        picture, states, random = (record["searches"][kind] for kind in KINDS)
        assert picture["distance"][0] == states["distance"][0]
        assert picture["cover"][0] == states["cover"][0]
        assert [one["spent"][-1] for one in (picture, states, random)] == [4, 4, 4]
        assert random["distance"][0] != picture["distance"][0]
    first, second = (one["searches"]["picture"]["losses"] for one in compared["records"])
    assert first[0] != second[0]
    assert "over 2 instances" in text


def test_the_table_is_that_of_the_logs(finished):
    folder, _ = finished
    rows = {row["kind"]: row for row in folder.read_json("comparison.json")["table"]}
    for kind in KINDS:
        logs = [read_log(folder.file(f"instances/{k:03d}/{kind}/iterations.jsonl")) for k in (0, 1)]
        best = [min(log, key=lambda one: one.loss).values for log in logs]
        away = [one["distance"] for one in best]
        assert rows[kind]["distance"]["mean"] == pytest.approx(np.mean(away), rel=1e-12)
        assert rows[kind]["distance"]["worst"] == max(away)
        assert rows[kind]["cover"]["worst"] == min(one["cover"] for one in best)
    assert len(folder.file("curves.csv").read_text().splitlines()) == 1 + 2 * 3 * 4
    assert len(folder.file("instances.csv").read_text().splitlines()) == 1 + 2 * 3


def test_the_page_compares_and_shows_the_worst(finished):
    folder, _ = finished
    text = folder.file("report.html").read_text()
    worst = folder.read_json("comparison.json")["shown"]
    assert "2 random instances, each by picture, states, random" in text
    assert f"ends worst by picture, number {worst}" in text
    for name in ("control-curves", "control-ends"):
        assert folder.has(f"figures/{name}.svg")
    result = folder.read_json("result.json")
    assert result["logs"] == [[f"instances/{worst:03d}/picture/iterations.jsonl"]]


def test_a_stopped_comparison_goes_on_to_the_same_numbers(finished, tmp_path):
    whole = finished[0]
    again = RunFolder(tmp_path)
    job = Comparison(toy("control-walker", *FEW), RunOptions(certificate=False), "walker")
    name = "instances/001/states/iterations.jsonl"
    lines = whole.file(name).read_text().splitlines(keepends=True)
    again.write_text(name, "".join(lines[:2]))  # as a kill leaves it
    with comparison.EvaluationProgress(4) as progress:
        found = job.record(again, progress, 1)
    for kind, one in whole.read_json("comparison.json")["records"][1]["searches"].items():
        assert found["searches"][kind]["losses"] == one["losses"]
        assert found["searches"][kind]["distance"] == one["distance"]


def test_the_supervision_of_the_file_comes_first():
    job = Comparison(toy("control-jellyfish", *FEW), RunOptions(), "jellyfish")
    assert job.kinds == ["states", "picture", "random"]
