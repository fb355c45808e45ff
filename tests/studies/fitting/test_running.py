"""Runs of scenes from the command line: what they leave, and how they go on after a kill."""

import json
import os
import shutil
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import tomlkit
import xarray

from studies.reports.view import drawing_problem, make_plotter
from studies.runs.folder import RunFolder
from studies.runs.media import read_image, write_png
from tests.studies.command import adjsim
from tests.studies.problem import scenes
from tests.studies.undrawn import undrawn


TRUTH, START = 2e4, 6e4  # E [Pa]
LEFT = {
    "study.toml", "manifest.json", "iterations.jsonl", "coarse.npz", "parameters.npz", "films.json",
    "trajectory.npz", "result.json", "certificate.json", "report.html", "report.json", "figures",
    "films", "frames-film.npz", "coarse.json",
}  # fmt: skip


def write_scene(folder):
    """Write a film and the scene whose E is to be found; return the path of the latter."""
    scenes.write_film(folder)
    path = folder / "cube.toml"
    free = {"cube.E": {"start": START, "bounds": [1e3, 1e6]}}
    path.write_text(tomlkit.dumps(scenes.tables(free=free)))
    return path


def read(run, name="result.json"):
    return json.loads((run / name).read_text())


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return write_scene(tmp_path_factory.mktemp("scene"))


@pytest.fixture(scope="module")
def finished(scene, tmp_path_factory):
    """A finished run, and what it printed."""
    run = tmp_path_factory.mktemp("runs") / "cube"
    out = adjsim.done("run", scene, "--out", run)
    return run, out


@pytest.fixture(scope="module")
def plain(scene, tmp_path_factory):
    """A finished run without certificate and figures."""
    run = tmp_path_factory.mktemp("runs") / "plain"
    with undrawn():
        code, out, err = adjsim("run", scene, "--no-certificate", "--out", run)
    assert code == 0, err
    return run, out


def test_the_answer_is_found_from_three_times_the_truth(finished):
    (row,) = read(finished[0])["parameters"]
    assert row["name"] == "cube.E"
    assert row["start"] == pytest.approx(START)
    assert row["estimate"] == pytest.approx(TRUTH, rel=0.02)
    low, high = row["interval"]
    assert low < TRUTH < high


def test_the_verdict_comes_first(finished):
    run, out = finished
    _, first, *_ = (line for line in out.splitlines() if not line.startswith("fitting cameras"))
    assert first.startswith("verdict: found. ")
    result = read(run)
    assert result["verdict"]["kind"] == "found"
    assert result["verdict"]["reason"] in first
    report = (run / "report.html").read_text()
    body = report[report.index("<body") :].replace("<wbr>", "")
    begun = result["verdict"]["reason"].partition("`")[0]  # keys of a scene file are set as code
    assert body.index(begun) < body.index("The answer")
    assert "<small>found</small>" in body  # below the number


def test_a_run_leaves_a_whole_folder(finished):
    run, out = finished
    assert {file.name for file in run.iterdir()} >= LEFT
    result = read(run)
    assert {row["name"].rpartition(".")[0] for row in result["nuisances"]} == {"cameras.front"}
    (basin,) = result["basins"]
    assert basin["values"]["cube.E"] == pytest.approx(TRUTH, rel=0.02)
    assert read(run, "certificate.json")["passed"]
    assert "gradient certificate: passed" in out
    manifest = read(run, "manifest.json")
    assert (manifest["study"], manifest["name"]) == ("scene", "cube")
    inputs = [key for key in manifest["depends_on"] if key.startswith("inputs.")]
    assert inputs == ["inputs.observations.film.video"]


@pytest.mark.parametrize("name", ["result.json", "manifest.json", "films.json", "coarse.json"])
def test_a_folder_of_an_older_version_is_reported_or_refused_in_one_sentence(plain, tmp_path, name):
    run = shutil.copytree(plain[0], tmp_path / "run")
    folder, refused = RunFolder(run), 0
    stored = folder.read_json(name)
    for key in stored:
        folder.write_json(name, {other: stored[other] for other in stored if other != key})
        with undrawn():
            code, _, err = adjsim("report", run)
        assert code in {0, 2}, err
        if code:
            refused += 1
            assert len(err.splitlines()) == 1, err
            assert "version" in err or "is damaged" in err
            assert f"still there: {run / 'report.html'}" in err or "is damaged" in err
    assert refused > 0


def test_without_certificate_none_is_made(plain):
    run, out = plain
    assert read(run, "certificate.json")["points"] == {}
    assert "gradient certificate: not made (--no-certificate)" in out
    assert not any("taylor" in file.name for file in (run / "figures").iterdir())


def test_the_options_reach_the_run(scene, plain, tmp_path):
    run = tmp_path / "run"
    options = ("--seed", 3, "--checkpoint", "200kB", "--no-certificate")
    with undrawn():
        code, _, err = adjsim("run", scene, *options, "--out", run)
    assert code == 0, err
    manifest = read(run, "manifest.json")
    kept = [manifest[key] for key in ("seed", "dtype", "checkpoint", "certificate")]
    assert kept == [3, "float64", "200kB", False]
    assert read(run) == read(plain[0])  # neither changes a number of this search


@pytest.mark.parametrize("lines", [pytest.param(4, marks=pytest.mark.nightly), 27])
def test_a_killed_run_goes_on_to_the_same_bits(scene, plain, tmp_path, lines):
    run = tmp_path / "run"
    command = ["run", str(scene), "--no-certificate", "--out", str(run)]
    killed = subprocess.run(
        [sys.executable, "-m", "tests.studies.run_killed", str(lines), *command],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert killed.returncode == -9
    assert not (run / "result.json").exists()
    with undrawn():
        code, _, err = adjsim(*command, "--resume")
    assert code == 0, err
    assert read(run) == read(plain[0])
    assert len(read(run, "manifest.json")["resumed"]) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["bodies.cube.nu=0.4"], "`bodies.cube.nu` was 0.3, is 0.4"),
        (["--seed", "5"], "`--seed` was 0, is 5"),
        (["--dtype", "float32"], "`--dtype` was float64, is float32"),
    ],
)
def test_a_run_resumes_only_as_it_was_started(scene, finished, given, message):
    assert message in adjsim.refused("run", scene, *given, "--out", finished[0], "--resume")


def test_a_changed_film_is_named(scene, finished, tmp_path):
    film = scene.parent / "film" / "003.png"
    kept = tmp_path / "kept.png"
    shutil.copy(film, kept)
    picture = read_image(film)
    picture[0, 0] = 255
    write_png(film, picture)
    code, _, err = adjsim("run", scene, "--out", finished[0], "--resume")
    shutil.copy(kept, film)
    assert code == 2
    assert "the file of `observations.film.video` has changed" in err
    assert "choose another folder" in err


def flipped(data):
    k = len(data) // 2
    return data[:k] + bytes([data[k] ^ 4]) + data[k + 1 :]


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "of another type": lambda data: b"[1, 2, 3]\n",
    "random": lambda data: np.random.default_rng(0).bytes(len(data) // 2 + 1) + b"\n",
    "flipped": flipped,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["result.json", "certificate.json", "manifest.json", "study.toml"])
def test_the_report_of_a_damaged_run_is_one_message_or_as_before(plain, tmp_path, name, damage):
    run = shutil.copytree(plain[0], tmp_path / "run")
    (run / name).write_bytes(DAMAGE[damage]((run / name).read_bytes()))
    code, _, err = adjsim("report", run)
    assert code in (0, 2)
    if code:
        assert err.startswith("adjsim: ")
        assert str(run / name) in err
        assert "is damaged" in err
    else:  # nothing was hit
        assert (run / name).read_bytes() == (plain[0] / name).read_bytes()


FILES = ["coarse.npz", "iterations.jsonl", "manifest.json", "result.json", "study.toml"]
SAMPLE = set(zip(FILES, DAMAGE, strict=True))  # every file and every damage once


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param(*each, marks=() if each in SAMPLE else pytest.mark.nightly)
        for each in product(FILES, DAMAGE)
    ],
)
def test_a_damaged_run_is_healed_or_refused(scene, plain, tmp_path, name, damage):
    run = shutil.copytree(plain[0], tmp_path / "run")
    (run / name).write_bytes(DAMAGE[damage]((run / name).read_bytes()))
    with undrawn():
        code, _, err = adjsim("run", scene, "--out", run, "--resume")
    assert code in (0, 2)
    if code:
        assert str(run / name) in err.splitlines()[-1]
        assert "is damaged" in err
    else:
        for output in ("result.json", "study.toml"):
            assert (run / output).read_bytes() == (plain[0] / output).read_bytes()


def test_report_index_and_view_take_the_run_of_a_scene(finished, tmp_path):
    run = shutil.copytree(finished[0], tmp_path / "cube")
    (run / "report.html").unlink()
    assert adjsim("report", run)[:2] == (0, f"{(run / 'report.html').resolve()}\n")
    assert (run / "report.html").read_text() == (finished[0] / "report.html").read_text()
    other = shutil.copytree(run, tmp_path / "other")
    code, _, err = adjsim("report", run, other, "--out", tmp_path / "index.html")
    assert code == 0, err
    assert (tmp_path / "index.html").read_text().count("± ") >= 2
    if drawing_problem(on_screen=False):
        return
    adjsim.done("view", run, "--screenshot", tmp_path / "view.png")
    assert read_image(tmp_path / "view.png").std() > 0.01


def test_the_view_shows_what_moves_not_the_floor(finished):
    if drawing_problem(on_screen=False):
        return
    arrays = RunFolder.open(finished[0]).read_npz("trajectory.npz")
    floor = 5.0 * np.array([[-1.0, 0.0, -1.0], [-1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    more = {
        "vertices.floor": np.tile(floor, (len(arrays["times"]), 1, 1)),
        "faces.floor": [[0, 1, 2]],
    }
    names = np.array([*arrays["objects"], "floor"])
    distances = []
    for trajectory in (arrays, {**arrays, **more, "objects": names}):
        plotter, _ = make_plotter(trajectory, off_screen=True)
        distances.append(plotter.camera.distance)
        plotter.close()
    assert distances[0] == pytest.approx(distances[1])


def test_a_second_film_is_predicted_then_fitted(tmp_path):
    scenes.write_film(tmp_path)
    tables = scenes.tables(free={"cube.E": {"start": START, "bounds": [1e3, 1e6]}})
    tables["cameras"]["other"] = {**tables["cameras"]["front"], "eye": [0.3, 0.305, 0.9]}
    film = tables["observations"]["film"]
    tables["observations"] = {
        "film": {**film, "camera": "front"},
        "again": {**film, "camera": "other", "validate": True},
    }
    path, run = tmp_path / "cube.toml", tmp_path / "run"
    path.write_text(tomlkit.dumps(tables))
    code, out, err = adjsim("run", path, "--no-certificate", "--out", run)
    assert code == 0, err
    result = read(run)
    assert result["verdict"]["kind"] == "found"
    assert result["validation"]["again"] < 0.02
    assert "all observations, evaluation 1/" in err
    assert (run / "frames-again.npz").is_file()
    moved = {row["name"]: row for row in result["nuisances"]}
    eyes = [moved[f"cameras.{name}.translation[1]"] for name in ("front", "other")]
    assert abs(eyes[0]["estimate"] - eyes[1]["estimate"]) < 1e-3  # of 5 mm: it is the same camera
    (row,) = result["parameters"]
    assert row["estimate"] == pytest.approx(TRUTH, rel=0.01)
    assert out.count("fitting cameras and looks to the first frame") == 1


@pytest.mark.parametrize("at", ["start", "answer"])
def test_a_run_can_be_inspected(plain, tmp_path, at):
    run = shutil.copytree(plain[0], tmp_path / "run")
    out = adjsim.done("inspect", run, "--at", at)
    assert out.startswith("From the last frame back to the start the adjoint, the derivative of")
    name = "inspect" if at == "start" else "inspect-answer"
    assert out.endswith(f"{run / name}.nc\n{run / name}.html\n")
    page = (run / f"{name}.html").read_text()
    assert "Pixels of film" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    with xarray.open_dataset(run / f"{name}.nc", engine="h5netcdf") as data:
        assert data["contribution.cube.mu"].sum("step").any()
        assert data["share.cube.mu"].sum() > 0.0


def test_what_cannot_be_inspected_is_said(plain, tmp_path):
    run = shutil.copytree(plain[0], tmp_path / "run")
    assert "is not a run folder: it has no manifest.json" in adjsim.refused("inspect", tmp_path)
    (run / "parameters.npz").unlink()
    err = adjsim.refused("inspect", run, "--at", "end")
    assert "`--at` must be start or answer, got 'end'" in err
    err = adjsim.refused("inspect", run, "--at", "answer")
    assert "has no parameters.npz yet. Finish it with `adjsim run" in err
    (run / "instances").mkdir()
    assert "must hold one search" in adjsim.refused("inspect", run)
    for name, what in (("scan.json", "scan"), ("dataset.json", "data set")):
        (run / name).write_text("{}")
        assert f"which holds a {what}" in adjsim.refused("inspect", run)
