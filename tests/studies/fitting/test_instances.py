"""Random instances of a scene: resumed to the same bits, and with those that fail."""

import csv
import json

from studies.fitting import instances
from studies.fitting.instances import Instances, covered
from studies.fitting.running import start_scene
from studies.runs.folder import RunFolder
from studies.runs.options import RunOptions
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene, scene_from_dict
from tests.studies.control.toys import TOYS
from tests.studies.fitting.twins import tables


TRUTH = {"rod.length": {"between": [0.95, 1.05]}}
FREE = {"rod.length": {"start": {"between": [0.8, 0.9]}, "bounds": [0.3, 3.0]}}
OPTIONS = RunOptions(certificate=False)


def job(**more):
    file = scene_from_dict(tables(truth=TRUTH, free=FREE, instances=3, **more))
    return Instances(file, OPTIONS, "pendula")


def numbers(folder):
    return [(folder / f"instances/{k:03d}/result.json").read_text() for k in range(3)]


def records(path):
    """Run the instances, but for the report of the worst."""
    pendula = job()
    folder = RunFolder(path)
    with instances.EvaluationProgress(10) as progress:
        return [pendula.record(folder, progress, k) for k in range(3)]


def test_instances_resume_with_the_same_bits(tmp_path):
    undisturbed = records(tmp_path / "a")
    assert [record["instance"] for record in undisturbed] == [0, 1, 2]
    assert max(record["errors"]["rod.length"]["mean"] for record in undisturbed) < 1e-13
    assert len({record["errors"]["rod.length"]["truth"] for record in undisturbed}) == 3
    records(tmp_path / "b")
    expected = numbers(tmp_path / "a")
    assert numbers(tmp_path / "b") == expected
    folder = tmp_path / "b/instances/001"
    log = (folder / "iterations.jsonl").read_text().splitlines(keepends=True)
    (folder / "result.json").unlink()
    (folder / "iterations.jsonl").write_text("".join(log[:2]))  # as a kill leaves it
    records(tmp_path / "b")
    assert numbers(tmp_path / "b") == expected
    scene = read_scene(folder / "study.toml")
    assert scene.truth["rod.length"] == undisturbed[1]["errors"]["rod.length"]["truth"]


def test_the_worst_is_reported_and_a_failed_one_told(tmp_path, monkeypatch):
    search = instances.SceneFit.solve

    def solve(fit, folder, progress):
        if folder.path.name == "001":
            raise instances.FAILURES[-1]("it fell off")
        return search(fit, folder, progress)

    monkeypatch.setattr(instances.SceneFit, "solve", solve)
    folder = RunFolder(tmp_path)
    folder.write_json("manifest.json", {"study": "scene", "name": "pendula", "started": ""})
    monkeypatch.setattr("studies.reports.scene_run.write_report", lambda _folder: "report.html")
    summary = job().run(folder)
    assert "1 of 3 instances failed" in summary
    assert "it fell off" in summary
    assert "rod.length: median" in summary
    rows = list(csv.DictReader((tmp_path / "instances.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["CONVERGED", "FAILED", "CONVERGED"]
    result = json.loads((tmp_path / "result.json").read_text())
    worst = json.loads((tmp_path / "instances.json").read_text())["worst"]
    assert result["logs"][0][0].startswith(f"instances/{worst:03d}/")


def test_instances_of_a_control_say_how_near_they_end(tmp_path):
    few = ("instances=2", "search.max_evaluations=3", "goal.cover=0.1")
    path, settings = BUNDLED / "control-walker.toml", (*TOYS["control-walker"], *few)
    folder, instances_job = start_scene(path, settings, tmp_path / "run", {"certificate": False})
    text = instances_job.run(folder)
    assert "measures over 2 instances:" in text
    assert "the goal is reached in 2 of 2 instances" in text
    table = folder.read_json("instances.json")
    ends = [record["errors"] for record in table["records"]]
    assert ends[0] != ends[1]
    rows = {row["name"]: row for row in table["parameters"]}
    for name, worst in (("cover", min), ("distance [m]", max), ("gain [m]", min)):
        assert rows[name]["worst"] == worst(end[name]["mean"] for end in ends)
    assert table["worst"] == rows["distance [m]"]["worst_instance"]
    assert folder.read_json("result.json")["control"]["distance"] == rows["distance [m]"]["worst"]
    assert "2 of 2 searches reach the goal" in folder.file("report.html").read_text()


def test_intervals_that_hold_the_truth_are_counted():
    rows = [{"errors": {"rod.length": {"mean": 0.1, "covered": held}}} for held in (True, False)]
    assert covered(rows) == [
        "  the 95 % interval of rod.length for noise held the truth in 1 of 2 instances"
    ]
