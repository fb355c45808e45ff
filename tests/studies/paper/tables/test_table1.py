"""The table of the mass of a rigid body: its rows, its files, and that it goes on as it was."""

import csv
import json
import pickle

import numpy as np
import pytest

from studies import config, rigid, running
from studies.errors import FailedSearchError, StudyError
from studies.paper.tables.tasks import SECONDS, Task, all_seconds, run_task
from studies.registry import RunOptions
from studies.runs.folder import RunFolder
from tests.studies.paper.tables.toy import TABLE1
from tests.studies.undrawn import undrawn


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run, and what it said."""
    folder, job = running.start("table1", TABLE1, tmp_path_factory.mktemp("table") / "run", {})
    return folder, job.run(folder)


def test_the_bar_is_kept_and_the_baselines_stand_beside_it(finished):
    folder, text = finished
    result = folder.read_json("result.json")
    cells = {one["row"]: one for one in result["cells"]}
    assert cells["video"]["met"]
    assert cells["video"]["mean"] <= 1e-9
    assert cells["video"]["published"] == 9.01e-5
    assert cells["average"]["expected"] == pytest.approx(0.102, rel=5e-3)
    assert cells["random"]["met"] is None
    for cell in cells.values():
        assert cell["ended"] == 3
        assert cell["median"] <= cell["worst"]
    assert "mass, aim: mean below 1e-07" in text
    assert "gradient certificates: passed" in text
    assert folder.read_json("certificate.json")["mass"]["certificate"]["passed"]


def test_every_instance_of_every_row_is_in_the_csv(finished):
    folder, _ = finished
    rows = list(csv.DictReader(folder.file("records.csv").read_text().splitlines()))
    methods = {row["method"] for row in rows}
    assert len(rows) == 3 * len(methods)
    result = folder.read_json("result.json")
    for cell in result["cells"]:
        own = [
            float(row["body.mass relative error"]) for row in rows if row["method"] == cell["row"]
        ]
        assert np.mean(own) == cell["mean"]
        assert np.median(own) == cell["median"]
    ours = [row for row in rows if row["method"] == "video"]
    assert len({row["body.mass truth"] for row in ours}) == 3
    assert all(float(row["loss"]) < 1e-20 for row in ours)


def test_the_report_shows_published_figures_and_what_was_not_run(finished):
    folder, _ = finished
    text = folder.file("report.html").read_text()
    for said in ("9.0e-05", "1 of 1 bar kept", "ConvLSTM, not run", "Settings of the scene mass"):
        assert said in text
    assert "time.steps" not in text.split("Settings of the scene")[0].split("<h2>Set-up")[0]


def test_the_report_says_how_long_all_tasks_took(finished):
    folder, _ = finished
    lines = folder.file(SECONDS).read_text().splitlines()
    assert len(lines) == 3 * 5
    seconds = sum(json.loads(line)["seconds"] for line in lines)
    text = folder.file("report.html").read_text()
    assert f"<dt>search took</dt><dd>{seconds:.1f} s</dd>" in text
    with folder.file(SECONDS).open("a") as stream:
        stream.write('{"record": "a line that a ki')
    assert all_seconds(folder) == pytest.approx(seconds)


def test_a_task_is_a_function_of_its_arguments(finished):
    folder, _ = finished
    settings = config.resolve("table1", TABLE1).values
    task = Task("table1", "mass", "video", 1)
    given = pickle.loads(pickle.dumps((run_task, task, settings, RunOptions())))
    record = given[0](*given[1:])
    assert json.loads(json.dumps(record)) == folder.read_json(task.record_name)


def test_a_run_that_was_stopped_ends_with_the_same_numbers(finished, tmp_path, monkeypatch):
    whole, _ = finished
    folder, job = running.start("table1", TABLE1, tmp_path / "run", {})
    write, left = RunFolder.write_json, [4]

    def stop(self, name, value):
        if name.startswith("records/"):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
        write(self, name, value)

    monkeypatch.setattr(RunFolder, "write_json", stop)
    with pytest.raises(KeyboardInterrupt):
        job.run(folder)
    monkeypatch.undo()
    kept = sorted(path.stat().st_mtime_ns for path in folder.path.rglob("records/**/*.json"))
    assert len(kept) == 3
    folder, job = running.resume("table1", TABLE1, tmp_path / "run", {})
    with undrawn():
        job.run(folder)
    again = sorted(path.stat().st_mtime_ns for path in folder.path.rglob("records/**/*.json"))
    assert again[:3] == kept
    for name in ("result.json", "records.csv"):
        assert folder.file(name).read_bytes() == whole.file(name).read_bytes()


def test_an_instance_that_fails_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    make = rigid.make_fit

    def made(settings, options, instance):
        if instance == 1:
            raise FailedSearchError("The loss is not finite at the start.")
        return make(settings, options, instance)

    monkeypatch.setattr(rigid, "make_fit", made)
    folder, job = running.start(
        "table1", (*TABLE1, 'methods=["average", "video"]'), tmp_path / "run", {}
    )
    text = job.run(folder)
    assert text.count("1 failed") == 2
    cells = folder.read_json("result.json")["cells"]
    assert [(one["ended"], one["failed"]) for one in cells] == [(2, 1), (2, 1)]
    assert "FAILED" in folder.file("records.csv").read_text()
    report = folder.file("report.html").read_text()
    assert "The loss is not finite at the start." in report
    assert "1 of 3 failed" in report


def test_an_error_of_the_program_ends_the_run(tmp_path, monkeypatch):
    make = rigid.make_fit

    def made(settings, options, instance):
        if instance:
            raise StudyError("`camera` sees nothing of the motion.")
        return make(settings, options, instance)

    monkeypatch.setattr(rigid, "make_fit", made)
    folder, job = running.start("table1", (*TABLE1, 'methods=["average"]'), tmp_path / "run", {})
    with pytest.raises(StudyError, match="Instance 1 of `mass`: `camera` sees nothing"):
        job.run(folder)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("count=0",), "`count` must be positive"),
        (("methods=[]",), "`methods` must name at least one of video"),
        (('methods=["vido"]',), "Did you mean `video`"),
        (('mass.settings=["tim.dt=1.0"]',), "`mass.settings`: Unknown key `tim.dt`"),
        (('mass.settings=["time.dt=-1.0"]',), "`mass`: `time.dt` must be positive"),
        (('mass.settings=["hidden.mass=[0.0, 1.0]"]',), "`mass`: `hidden.mass` must be positive"),
    ],
)
def test_a_bad_setting_is_named(overrides, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        running.start("table1", overrides, tmp_path / "run", {})
    assert not list(tmp_path.iterdir())
