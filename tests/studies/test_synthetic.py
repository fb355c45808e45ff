"""All synthetic studies alike: they find the truth, resume to the bit, and name mistakes."""

import json
import re

import numpy as np
import pytest

from studies import certificate_report, figures, instances, running
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
    assert re.search(r"\d+ x \d+ pixels \(height x width\)", text)
    assert "faces swap" in text
    end = "optimum" if result["status"] == "CONVERGED" else "end of the search"
    assert f"<b>at the {end}</b>" in text


def test_the_report_shows_light_on_a_ball(finished):
    folder = finished(TOYS["light"])
    text = folder.file("report.html").read_text()
    assert "A white ball under the light" in text
    assert "What the start feels" not in text  # silhouettes say nothing of light
    assert (folder.path / "figures" / "ball.png").stat().st_size > 5_000


def test_the_report_says_what_the_start_of_a_camera_feels(finished):
    folder = finished(TOYS["camera"])
    result = folder.read_json("result.json")
    assert [row["reason"] for row in result["diagnosis"]] == ["its gradient is not zero"] * 2
    assert result["diagnosis"][0]["softness"] == pytest.approx(1.5)
    assert result["softness"] == pytest.approx([1.5, 0.5])
    text = folder.file("report.html").read_text()
    assert "Which faces feel the loss at the start" in text
    assert "What the start feels" in text
    assert "The search had 2 stages, with grey dashed lines between them: 1/2: edges 1.5" in text


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


def test_the_figure_of_instances_names_what_is_drawn(monkeypatch):
    rows = [{"name": "mass", "median": 1e-8, "bar": 1e-7, "published": None}]
    records = [{"errors": {"mass": {"mean": 1e-8}}}]
    labels = []

    def png(figure):
        labels.append([text.get_text() for text in figure.axes[0].get_legend().get_texts()])
        return b""

    monkeypatch.setattr(figures, "png", png)
    figures.instances({"parameters": rows, "records": records})
    figures.instances({"parameters": [{**rows[0], "published": 1e-4}], "records": records})
    figures.instances({"parameters": [{**rows[0], "bar": None}], "records": records})
    assert labels[0] == ["instance", "median", "bar"]
    assert labels[1] == ["instance", "median", "bar", "published"]
    assert labels[2] == ["instance", "median"]


@pytest.mark.parametrize("count", [2, 3, 40])
def test_the_ticks_of_a_spectrum_are_whole_numbers(monkeypatch, count):
    ticks = []
    monkeypatch.setattr(figures, "png", lambda figure: ticks.extend(figure.axes[0].get_xticks()))
    figures.spectrum(np.logspace(0, -3, count))
    assert all(float(tick).is_integer() for tick in ticks)
    assert count == 40 or ticks == list(range(1, count + 1))
