"""Control compared on toy sizes: equal budgets, raw curves, and a run that goes on."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from adjsim.system import RolloutError
from studies import running
from studies.control import gear, results
from studies.errors import FailedSearchError, StudyError
from studies.optimizers.evaluations import read_log
from studies.optimizers.problem import NotFiniteError
from tests.studies.control.toys import TOYS
from tests.studies.runs.items import Elsewhere
from tests.studies.stopping import stop_after
from tests.studies.undrawn import undrawn


KINDS = ["picture", "states", "random"]
TOY = (*TOYS["control-fem"], "time.steps=240", "optimizer.max_evaluations=4")


def begun(path, *overrides, study="control-fem"):
    return running.start(study, (*TOY, *overrides), path, {})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of two instances, and what it said."""
    folder, job = begun(tmp_path_factory.mktemp("control") / "run", "instances=2")
    return folder, job.run(folder)


def test_all_kinds_begin_alike_and_have_the_same_budget(finished):
    folder, text = finished
    result = folder.read_json("result.json")
    assert result["kinds"] == KINDS
    for record in result["records"]:
        picture, states, random = (record["searches"][kind] for kind in KINDS)
        assert picture["distance"][0] == states["distance"][0]
        assert picture["cover"][0] == states["cover"][0]
        assert [one["spent"][-1] for one in (picture, states, random)] == [4, 4, 4]
        assert random["distance"][0] != picture["distance"][0]
    assert "over 2 instances" in text
    assert "gradient certificate: passed" in text


def test_the_table_is_that_of_the_logs(finished):
    folder, _ = finished
    rows = {row["kind"]: row for row in folder.read_json("result.json")["table"]}
    for kind in KINDS:
        logs = [read_log(folder.file(f"instances/{k:03d}/{kind}/iterations.jsonl")) for k in (0, 1)]
        best = [min(log, key=lambda one: one.loss).values for log in logs]
        away = [one["distance"] for one in best]
        assert rows[kind]["distance"]["mean"] == pytest.approx(np.mean(away), rel=1e-12)
        assert rows[kind]["distance"]["worst"] == max(away)
        assert rows[kind]["cover"]["worst"] == min(one["cover"] for one in best)
    lines = folder.file("curves.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 3 * 4
    assert len(folder.file("instances.csv").read_text().splitlines()) == 1 + 2 * 3


def test_the_report_shows_curves_ends_and_videos(finished):
    folder, _ = finished
    text = folder.file("report.html").read_text()
    for said in (
        "How near they end",
        "Convergence",
        "Last pictures",
        "gradSim published 0.57, a mean square",
    ):
        assert said in text
    assert text.count("<video") == 3
    assert text.count("Gradient certificate of") == 1
    records = folder.read_json("result.json")["records"]
    took = sum(one["seconds"] for record in records for one in record["searches"].values())
    assert f"<th>search took</th><td>{took:.1f} s</td>" in text
    assert "<th>evaluations taken</th><td>picture 4, states 4, random 4</td>" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    for name in ("curves", "ends", "taylor_start_picture", "taylor_optimum_picture"):
        assert folder.has(f"figures/{name}.png")


def test_a_stopped_run_goes_on_to_the_same_numbers(finished, tmp_path, monkeypatch):
    folder, job = begun(tmp_path / "stopped", "instances=2")
    stop_after(14, job, folder, monkeypatch)  # within the second instance
    assert folder.has("instances/000/result.json")
    again, job = running.resume("control-fem", (), tmp_path / "stopped", {})
    with undrawn():
        job.run(again)
    for name in ("curves.csv", "instances.csv"):
        lines = [file.file(name).read_text().splitlines() for file in (again, finished[0])]
        assert lines[0] == lines[1]


def test_instances_that_are_spread_have_the_same_numbers(finished, tmp_path):
    overrides = (*TOY, "instances=2")
    folder, job = running.start("control-fem", overrides, tmp_path / "run", {}, spread=Elsewhere())
    with undrawn():
        job.run(folder)
    for name in ("curves.csv", "instances.csv"):
        assert folder.file(name).read_bytes() == finished[0].file(name).read_bytes()
    for name in ("iterations.jsonl", "policies.npz"):
        own, other = (sorted(one.path.rglob(name)) for one in (folder, finished[0]))
        assert len(own) == len(other) > 0


def failing(monkeypatch, errors):
    """Let the making of an instance fail; return a list of those that were made."""
    make, tried = gear.make_case, []

    def made(*given, instance, **more):
        tried.append(instance)
        if instance in errors:
            raise errors[instance]
        return make(*given, instance=instance, **more)

    monkeypatch.setattr(gear, "make_case", made)
    return tried


def test_an_instance_that_fails_is_told_apart_and_the_others_go_on(tmp_path, monkeypatch):
    errors = {
        0: RolloutError("The goal left the finite numbers in step 7."),
        1: FailedSearchError("picture: no rollout stayed finite."),
    }
    tried = failing(monkeypatch, errors)
    few = ("instances=3", "optimizer.max_evaluations=2")
    folder, job = begun(tmp_path / "run", *few)
    with undrawn():
        text = job.run(folder)
    assert "over 1 instance:" in text
    assert "2 of 3 instances failed, and are not in these:" in text
    result = folder.read_json("result.json")
    assert [one["instance"] for one in result["records"]] == [2] == [result["shown"]]
    assert {one["instance"]: one["reason"] for one in result["failed"]} == {
        k: str(error) for k, error in errors.items()
    }
    lines = folder.file("instances.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["0", "1", "2", "2", "2"]
    assert lines[1].endswith("step 7.")
    report = folder.file("report.html").read_text()
    assert "2 of 3 instances failed" in report
    assert "picture: no rollout stayed finite." in report

    tried.clear()
    folder, job = running.resume("control-fem", (*TOY, *few), tmp_path / "run", {})
    with undrawn():
        job.run(folder)
    assert set(tried) == {0, 2}  # where settings are checked, and the one shown
    assert folder.read_json("result.json") == result


def test_if_all_instances_fail_the_first_reason_is_told(tmp_path, monkeypatch):
    failing(monkeypatch, {k: NotFiniteError(f"reason {k}") for k in range(2)})
    folder, job = begun(tmp_path / "run", "instances=2")
    with pytest.raises(StudyError, match="All 2 instances failed, the first: reason 0"):
        job.run(folder)


def test_a_mistake_is_no_failed_instance(tmp_path, monkeypatch):
    failing(monkeypatch, {1: StudyError("Settings clash.")})
    folder, job = begun(tmp_path / "run", "instances=2", "optimizer.max_evaluations=1")
    with pytest.raises(StudyError, match=r"Instance 1: Settings clash\."):
        job.run(folder)
    assert not folder.has("instances/001/result.json")


def test_a_single_instance_that_fails_ends_in_its_error(tmp_path, monkeypatch):
    folder, job = begun(tmp_path / "run", "supervision=states")
    failing(monkeypatch, {0: NotFiniteError("It blew up.")})
    with pytest.raises(NotFiniteError, match="It blew up"):
        job.run(folder)
    assert not folder.has("instances/000/result.json")


@pytest.mark.parametrize("kind", ["states", "random"])
def test_a_single_instance_can_be_supervised_otherwise(kind, tmp_path):
    folder, job = begun(tmp_path / "run", f"supervision={kind}", "optimizer.max_evaluations=2")
    text = job.run(folder)
    assert folder.read_json("result.json")["kinds"] == [kind]
    certified = json.loads(folder.file("certificate.json").read_text())
    assert list(certified["kinds"]) == ([] if kind == "random" else [kind])
    assert ("gradient certificate" in text) == (kind != "random")
    assert folder.has(f"{kind}.mp4")


def curve(distances, losses):
    return {
        "chosen": int(np.argmin(losses)),
        "seconds": 2.0,
        "evaluation": 0.5,
        "spent": [1, 2, 3],
        "losses": losses,
        "distance": distances,
        "cover": [0.1, 0.2, 0.3],
    }


def test_the_first_evaluation_with_its_compilation_is_not_typical():
    history = [SimpleNamespace(spent=k + 1, seconds=7.0 + 0.25 * k) for k in range(4)]
    assert results.typical_seconds(history) == 0.25


def test_one_instance_has_one_number_and_several_have_three():
    cell = {"mean": 1.5, "median": 1.25, "worst": 2.0, "worst_instance": 1}
    row = {"kind": "picture", "distance": cell, "seconds": 0.5}
    (head, one), (_, two) = (results.told({"instances": n, "table": [row]}) for n in (1, 2))
    assert head.startswith("distance of the centre of mass, and cover of the picture (IoU), of")
    assert one == "  picture: distance 1.5 m; 0.5 s an evaluation"
    assert "mean 1.5 m, median 1.25 m, worst 2 m (instance 1)" in two


def test_a_search_returns_its_lowest_loss_not_its_nearest_end():
    records = [
        {"instance": 0, "searches": {"picture": curve([3.0, 1.0, 2.0], [3.0, 2.0, 1.0])}},
        {"instance": 1, "searches": {"picture": curve([3.0, 4.0, 5.0], [3.0, 1.0, 2.0])}},
    ]
    (row,) = results.summed_up(records)
    away = row["distance"]
    assert (away["mean"], away["worst"], away["worst_instance"]) == (3.0, 4.0, 1)
    assert (away["last"], away["nearest"]) == (3.5, 2.0)
    assert row["cover"]["worst"] == 0.2
    assert results.worst(records, "picture") == 1


def test_an_evaluation_that_blew_up_is_an_empty_line():
    search = curve([3.0, None, 2.0], [3.0, np.inf, 1.0]) | {"losses": [3.0, None, 1.0]}
    lines = results.curves_csv([{"instance": 0, "searches": {"random": search}}]).splitlines()
    assert lines[2] == "0,random,2,,,0.2"
