"""All synthetic studies alike: they find the truth, resume to the bit, and name mistakes."""

import json
import re

import numpy as np
import pytest

from studies import instances, running
from studies.registry import STUDIES
from tests.studies.stopping import stop_after
from tests.studies.toys import TOYS
from tests.studies.undrawn import undrawn


@pytest.fixture(scope="module", params=TOYS.values(), ids=list(TOYS))
def toy(request):
    """A study in its tiny version; for the whole module, so that tests of one run follow it."""
    return request.param


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


def arrays_of(toy):
    """Return the arrays that a run leaves, the images last."""
    if STUDIES[toy.study].moves:
        return "parameters.npz", "trajectory.npz", "frames.npz"
    return "parameters.npz", "pictures.npz"


def test_the_truth_is_found_and_certified(toy, finished):
    folder = finished(toy)
    result = folder.read_json("result.json")
    rows = result["parameters"]
    errors = {path: [r for r in rows if r["name"].split("[")[0] == path] for path in toy.errors}
    assert all(errors.values())
    for path, bar in toy.errors.items():
        assert np.mean([row["relative_error"] for row in errors[path]]) <= bar, path
    assert folder.read_json("certificate.json")["passed"]
    text = folder.file("report.html").read_text()
    assert len(text) > 10_000
    assert re.search(r"\d+ x \d+ pixels", text)
    assert "faces swap" in text
    end = "optimum" if result["status"] == "CONVERGED" else "end of the search"
    assert f"at the {end}" in text


def test_the_start_is_not_the_truth(toy, finished):
    with np.load(finished(toy).file("parameters.npz")) as arrays:
        assert np.abs(arrays["history"][0] - arrays["truth"]).max() > 0.0
    frames = finished(toy).read_npz(arrays_of(toy)[-1])
    channels = frames["target"].shape[-1]  # a video without coverage has three
    assert np.abs(frames["start"][..., :channels] - frames["target"]).max() > 0.01


@pytest.mark.parametrize(
    ("study", "free"),
    [
        ("ball-material", ["material"]),
        ("ball-material", ["mass"]),
        ("ball-material", ["mass", "material"]),
        ("rigid-contact", ["friction", "mass"]),
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


def test_a_run_that_was_stopped_ends_with_the_same_numbers(toy, finished, tmp_path, monkeypatch):
    folder, job = running.start(toy.study, toy.overrides, tmp_path / "run", {})
    stop_after(4, job, folder, monkeypatch)
    folder, job = running.resume(toy.study, toy.overrides, tmp_path / "run", {})
    with undrawn():
        job.run(folder)
    for name in arrays_of(toy):
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


def test_the_terminal_says_what_errors_are_held_against():
    row = {"name": "mass", "median": 1e-8, "worst": 2e-8, "worst_instance": 1}
    table = {"errors_are": "relative error", "count": 2, "records": [{}, {}], "failed": []}
    held = {**row, "bar": 1e-7, "published": 9e-5}
    assert instances.told({**table, "parameters": [held]}) == [
        "relative errors over 2 instances:",
        "  mass: median 1.0e-08  worst 2.0e-08 (instance 1)  aim: below 1e-07  published 9.0e-05",
    ]
    free = {**row, "bar": None, "published": None}
    assert instances.told({**table, "parameters": [free]})[1].endswith("(instance 1)")
