"""The table of model errors: its kinds, its scan, its pictures, and that it goes on as it was."""

import json

import numpy as np
import pytest

from studies import config, running
from studies.errors import StudyError
from studies.paper.model_errors.scenes import Kind
from studies.paper.tables import scan, table4_models
from studies.paper.tables.table import Case
from studies.registry import RunOptions
from tests.studies.paper.tables.toy import TABLE4
from tests.studies.undrawn import undrawn


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, and what it said."""
    path = tmp_path_factory.mktemp("table") / "run"
    folder, job = running.start("table4-models", TABLE4, path, {})
    return folder, job.run(folder)


def test_every_kind_has_a_column_and_a_perfect_model_none_of_its_errors(finished):
    folder, text = finished
    result = folder.read_json("result.json")
    cells = {(one["scene"], one["row"]): one for one in result["cells"]}
    assert cells["perfect", "video"]["met"]
    assert cells["perfect", "video"]["mean"] <= 1e-8
    assert cells["perfect", "video"]["published"] == 0.1071
    for kind in ("no-friction", "rigid-as-deformable"):
        assert cells[kind, "video"]["mean"] > 1e-3
        assert cells[kind, "video"]["met"] is None
    assert "no friction" in text
    assert len(folder.file("records.csv").read_text().splitlines()) == 1 + 3 * 2 * 2


def test_the_scan_is_not_above_the_search(finished):
    folder, _ = finished
    records = folder.read_json("result.json")["records"]
    for one in records:
        if one["estimator"] == "scan":
            searched = next(
                other
                for other in records
                if other["estimator"] == "video"
                and (other["scene"], other["instance"]) == (one["scene"], one["instance"])
            )
            # both end within a thousandth of where a rugged loss is lowest
            assert one["loss"] <= searched["loss"] * (1.0 + 1e-3) + 1e-20
            assert one["starts"] == 5


def test_the_report_shows_what_each_kind_does(finished):
    folder, _ = finished
    report = folder.file("report.html").read_text()
    for kind in ("perfect", "no-friction", "rigid-as-deformable"):
        assert folder.has(f"figures/model-{kind}.png")
    assert "The floor of the video is rough, that of the fit is not." in report
    assert "The body of the median error, a cube" in report
    assert [look["name"] for look in json.loads(folder.file("looks.json").read_text())] == [
        "model-no-friction",
        "model-rigid-as-deformable",
        "model-perfect",
    ]


def test_a_stopped_table_goes_on_to_the_same_numbers(finished, tmp_path):
    folder, _ = finished
    short = (*(one for one in TABLE4 if not one.startswith("kinds")), 'kinds=["perfect"]')
    again, job = running.start("table4-models", short, tmp_path / "run", {})
    records = again.file("records/perfect/video/000.json")
    records.write_bytes(folder.file("records/perfect/video/000.json").read_bytes())
    with undrawn():
        job.run(again)
    for name in ("video/000", "video/001", "scan/000", "scan/001"):
        assert again.read_json(f"records/perfect/{name}.json") == folder.read_json(
            f"records/perfect/{name}.json"
        )


def test_the_scan_marks_a_mass_that_diverges():
    settings = config.resolve("table4-models", TABLE4).values
    scene = table4_models.TABLE.scene("perfect")
    settings["perfect"]["settings"] = [*settings["perfect"]["settings"], "bounds.mass=[1e-7, 7.0]"]
    problem = Case(settings, scene, RunOptions(), 0).problem
    _, losses = scan.landscape(problem, 5)
    assert np.isinf(losses[0])
    assert np.isfinite(losses[-1])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("kinds=[]", "`kinds` must name at least one of no-friction"),
        ('kinds=["perfekt"]', "Unknown name in `kinds` `perfekt`. Did you mean `perfect`"),
        ("scan.points=2", "`scan.points` must be"),
        ("scan.max_evaluations=0", "`scan.max_evaluations` must be positive"),
        ('perfect.settings=["bounds.mas=1"]', "`perfect.settings`: "),
        ('perfect.settings=["push.force=[0, 0, 0]"]', "`push.force` must not be 0"),
    ],
)
def test_a_bad_setting_is_named(override, message, tmp_path):
    with pytest.raises((StudyError, ValueError), match=message):
        running.start("table4-models", (*TABLE4, override), tmp_path / "run", {})


def test_every_kind_is_in_the_table_and_those_of_the_paper_are_published():
    assert {scene.name for scene in table4_models.TABLE.scenes} == set(map(str, Kind))
    published = [scene.columns[0].published for scene in table4_models.TABLE.scenes]
    assert [one.get("video") for one in published] == [
        0.1866, 0.2281, 0.3462, 0.4974, 0.1793, 0.1793, 0.1071, None,
    ]  # fmt: skip
