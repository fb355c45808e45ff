"""All synthetic studies alike: they find the truth, resume to the bit, and name mistakes."""

import json

import numpy as np
import pytest

from studies import running
from studies.optimizers import evaluations
from tests.studies.toys import TOYS


studies = pytest.mark.parametrize("toy", TOYS.values(), ids=list(TOYS))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Run a toy once and keep its folder."""
    folders = {}

    def run(toy):
        if toy.study not in folders:
            path = tmp_path_factory.mktemp("toys") / toy.study
            folders[toy.study], job = running.start(toy.study, toy.overrides, path, {})
            job.run(folders[toy.study])
        return folders[toy.study]

    return run


@studies
def test_the_truth_is_found_and_certified(toy, finished):
    folder = finished(toy)
    result = folder.read_json("result.json")
    rows = result["parameters"]
    errors = {path: [r for r in rows if r["name"].split("[")[0] == path] for path in toy.errors}
    assert all(errors.values())
    for path, bar in toy.errors.items():
        assert np.mean([row["relative_error"] for row in errors[path]]) <= bar, path
    assert folder.read_json("certificate.json")["passed"]
    assert (folder.path / "report.html").stat().st_size > 10_000


@studies
def test_the_start_is_not_the_truth(toy, finished):
    with np.load(finished(toy).file("parameters.npz")) as arrays:
        assert np.abs(arrays["history"][0] - arrays["truth"]).max() > 0.0
    frames = finished(toy).read_npz("frames.npz")
    assert np.abs(frames["start"] - frames["target"]).max() > 0.01


@pytest.mark.parametrize(
    ("study", "free"),
    [
        ("ball-material", ["material"]),
        ("ball-material", ["mass"]),
        ("ball-material", ["mass", "material"]),
        ("rigid-contact", ["friction", "mass"]),
        ("pendulum", ["length"]),
        ("double-pendulum", ["gravity"]),
    ],
)
def test_what_is_not_free_is_known(study, free, tmp_path):
    given = [one for one in TOYS[study].overrides if not one.startswith("free=")]
    _, fit = running.start(study, [*given, f"free={json.dumps(free)}"], tmp_path / "run", {})
    theta = [
        block.transform.theta(np.stack([fit.truth.values[path] for path in block.paths])).ravel()
        for block in fit.problem.parameters.blocks
    ]
    assert fit.problem.loss_at(np.concatenate(theta)) <= 1e-26
    assert fit.problem.loss_at(fit.problem.parameters.start) > 1e-9


@studies
def test_a_run_that_was_stopped_ends_with_the_same_numbers(toy, finished, tmp_path, monkeypatch):
    folder, job = running.start(toy.study, toy.overrides, tmp_path / "run", {})
    append, left = evaluations.append_line, [4]

    def stop_after_a_few(path, line):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        append(path, line)

    monkeypatch.setattr(evaluations, "append_line", stop_after_a_few)
    with pytest.raises(KeyboardInterrupt):
        job.run(folder)
    monkeypatch.undo()
    folder, job = running.resume(toy.study, toy.overrides, tmp_path / "run", {})
    job.run(folder)
    for name in ("parameters.npz", "trajectory.npz", "frames.npz"):
        ours, whole = folder.read_npz(name), finished(toy).read_npz(name)
        assert set(ours) == set(whole)
        assert all(np.array_equal(ours[key], whole[key]) for key in whole)


@pytest.mark.parametrize(
    ("study", "overrides", "message"),
    [(toy.study, *mistake) for toy in TOYS.values() for mistake in toy.mistakes],
)
def test_a_bad_setting_is_named(study, overrides, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        running.start(study, (*TOYS[study].overrides, *overrides), tmp_path / "run", {})
    assert not list(tmp_path.iterdir())


def test_instances_go_on_one_by_one_and_show_the_worst(tmp_path, monkeypatch):
    toy = TOYS["bounce"]
    overrides = (*toy.overrides, "instances=3")
    whole, job = running.start("bounce", overrides, tmp_path / "whole", {})
    text = job.run(whole)
    assert "relative errors over 3 instances" in text
    table = whole.read_json("instances.json")
    assert [row["name"] for row in table["parameters"]] == ["speed", "gravity"]
    assert all(row["median"] <= row["worst"] <= 1e-6 for row in table["parameters"])
    truths = {one["errors"]["speed"]["truth"] for one in table["records"]}
    assert len(truths) == 3
    lines = whole.file("instances.csv").read_text().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("instance,status,loss,evaluations,starts,condition,speed relative")
    assert "3 random instances" in whole.file("report.html").read_text()

    cut, job = running.start("bounce", overrides, tmp_path / "cut", {})
    write = type(cut).write_json

    def stop_at_the_second(self, name, value):
        if name == "instances/001/result.json":
            raise KeyboardInterrupt
        write(self, name, value)

    monkeypatch.setattr(type(cut), "write_json", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        job.run(cut)
    monkeypatch.undo()
    assert cut.has("instances/000/result.json")
    assert not cut.has("instances/001/result.json")
    cut, job = running.resume("bounce", overrides, tmp_path / "cut", {})
    job.run(cut)
    assert json.dumps(cut.read_json("instances.json")) == json.dumps(table)
