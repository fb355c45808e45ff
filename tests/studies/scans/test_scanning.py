"""A scan from the command line to its files: written as it goes, resumed to the same bits."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr
from pydantic import TypeAdapter

from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.scans import scanning, spec, survey
from studies.scans.dataset import POINTS, make_dataset
from studies.scans.scanning import write_points
from tests.studies.scans.toy import BEAM, CUBE, MASS, PENDULUM, asked, grid_of, run, written
from tests.studies.undrawn import undrawn


FILES = {
    "study.toml", "scan.json", "manifest.json", "points.jsonl", "scan.nc", "result.json",
    "report.html", "report.json", "figures", ".lock",
}  # fmt: skip
OVER = (f"{MASS}=0.5:2.5:5",)
FRAMES = "observations.film.simulate.frames"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished scan of the toy cube."""
    return run(tmp_path_factory.mktemp("scans") / "toy", "pushed-cube", CUBE, *OVER)


def test_a_scan_leaves_a_data_set_with_named_coordinates(finished):
    folder, summary = finished
    assert {path.name for path in folder.path.iterdir()} == FILES
    assert f"kg; the lowest computed point is {MASS} = 1 kg (loss" in summary
    assert "kg, at the lowest point; " in summary
    assert "The curve through losses and slopes has its minimum at" in summary
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert np.array_equal(data[MASS], [0.5, 1.0, 1.5, 2.0, 2.5])
        assert data[MASS].attrs["units"] == "kg"
        assert data.loss.dims == (MASS,)
        assert data.loss.sel({MASS: 1.0}) < 1e-20
        assert float(data.truth.sel(parameter=MASS)) == 1.0
        assert (data.gradient.sel({"parameter": MASS, MASS: [1.5, 2.0]}) > 0.0).all()
        assert (data.reason == "").all()
        assert (data.relative < 1e-4).all()
        assert np.allclose(data.frame_loss.mean("frame"), data.loss, rtol=1e-13, atol=0.0)


def test_five_points_with_slopes_show_the_minimum_between_them(tmp_path):
    """The truth is 200 000 Pa; the lowest of the five points is 175 000 Pa."""
    folder, _ = run(tmp_path / "beam", "beam", (), "beam.mu=1e5:4e5:5", trust=False)
    (entry,) = folder.read_json("result.json")["slices"]
    assert entry["lowest"] == {"beam.mu": 175000.0}
    assert entry["minimum"]["beam.mu"] == pytest.approx(2e5, rel=0.015)


def test_what_is_seen_is_compared_with_the_next_point(finished):
    with xr.open_dataset(finished[0].file("scan.nc")) as data:
        assert data.visibility_event.dims == (MASS, "along")
        n_faces = data.faces.values
        assert len(set(n_faces)) > 1  # other numbers of faces are other faces
        events = data.visibility_event.sel(along=MASS).values
        assert events[:-1][np.diff(n_faces) != 0.0].all()
        assert not events[-1]  # there is no next point


def test_events_stand_between_a_point_and_the_next_along_each_axis():
    grid = grid_of("pushed-cube", CUBE, f"{MASS}=1:2:2", f"{FRAMES}=1:3:3")
    faces, touches = [["a", "a", "b"], ["a", "c", None]], [["s", "s", "s"], ["t", "s", "s"]]
    records = [
        {"index": [i, j], "loss": 1.0, "gradient": [1.0], "frame_loss": [1.0], "reason": None,
         "face_set": faces[i][j], "touch_set": touches[i][j]}
        for i in range(2) for j in range(3)
    ]  # fmt: skip
    data = make_dataset(grid, records)
    events = data.visibility_event
    assert events.dims == (MASS, FRAMES, "along")
    assert events.sel(along=MASS).values.tolist() == [[False, True, False], [False] * 3]
    assert events.sel(along=FRAMES).values.tolist() == [
        [False, True, False],
        [True, False, False],  # of the last nothing is known
    ]
    touched = data.touch_event
    assert touched.sel(along=MASS).values.tolist() == [[True, False, False], [False] * 3]
    assert touched.sel(along=FRAMES).values.tolist() == [[False] * 3, [True, False, False]]
    assert "contact_event" not in data


def test_every_point_is_a_line_written_whole(finished):
    folder, _ = finished
    lines = folder.file(POINTS).read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["index"] for record in records] == [[k] for k in range(5)]


@pytest.mark.usefixtures("unpainted")
def test_a_scan_that_was_stopped_ends_with_the_same_files(finished, tmp_path, monkeypatch, adjsim):
    undisturbed, _ = finished
    out = tmp_path / "stopped"
    written = []

    def stop(path, records):
        if written:
            write_points(path, records[:1])
            with path.open("a") as stream:
                stream.write('{"index": [3], "rea')  # cut short, as by a kill
            raise KeyboardInterrupt
        written.extend(records)
        write_points(path, records)

    monkeypatch.setattr(scanning, "write_points", stop)
    monkeypatch.setattr(survey, "worlds_at_once", lambda motion, keeps: 2)
    code, _, err = adjsim(*("scan", "pushed-cube", *CUBE, "--over", *OVER, "--out", out))
    assert code == 130
    assert f"adjsim scan pushed-cube --out {out} --resume" in err
    assert not (out / "scan.nc").exists()
    assert "has not ended. Go on with it: `adjsim scan pushed-cube" in adjsim.refused("report", out)
    monkeypatch.undo()
    monkeypatch.setattr("sys.argv", ["adjsim"])
    budget = {"checkpoint": "500B"}  # no part of what must agree: it changes no number
    folder, job = scanning.start(asked("pushed-cube", **budget), out, resume=True)
    assert job.grid.first.problem.schedule.startswith("500B for ")
    job.run(folder)
    for name in (POINTS, "scan.nc"):
        assert folder.file(name).read_bytes() == undisturbed.file(name).read_bytes(), name
    manifest = folder.read_json("manifest.json")
    assert len(manifest["resumed"]) == 1
    assert manifest["checkpoint"] == "500B"


def test_a_scan_that_has_ended_may_be_resumed_and_reported_again(finished, adjsim):
    folder, _ = finished
    before = folder.file("scan.nc").read_bytes()
    again, job = scanning.start(asked("pushed-cube", CUBE, OVER), folder.path, resume=True)
    with undrawn():
        job.run(again)
    assert folder.file("scan.nc").read_bytes() == before
    assert adjsim.done("report", folder.path).splitlines()[-1] == str(folder.file("report.html"))
    assert "holds a scan, not one motion" in adjsim.refused("view", folder.path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (asked("pushed-cube", CUBE, (f"{MASS}=0.5:2.5:6",)), "`over` was .*:5.* is .*:6"),
        (asked("pushed-cube", CUBE, OVER, at="start"), "`at` was truth, is start"),
        (asked("pushed-cube", CUBE, OVER, trust=False), "`trust` was true, is false"),
        (
            asked("pushed-cube", (*CUBE, f"{FRAMES}=2")),
            "`scene.observations.film.simulate.frames` was 3, is 2",
        ),
        (asked("pushed-cube", seed=4), "`--seed` was 0, is 4"),
    ],
)
def test_a_scan_is_not_resumed_as_another(finished, settings, message):
    with pytest.raises(StudyError, match=message):
        scanning.start(settings, finished[0].path, resume=True)


@pytest.mark.usefixtures("unpainted")
def test_a_scan_that_was_killed_ends_with_the_same_files(tmp_path):
    over = f"{MASS}=0.5:2.5:60"
    undisturbed, _ = run(tmp_path / "whole", "pushed-cube", CUBE, over)
    out = tmp_path / "killed"
    killed = subprocess.run(
        [sys.executable, "-m", "tests.studies.run_killed", "20", "scan", "pushed-cube", *CUBE,
         "--over", over, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert (out / POINTS).read_bytes().count(b"\n") == 20
    assert not (out / "report.html").exists()
    folder, job = scanning.start(asked("pushed-cube"), out, resume=True)
    job.run(folder)
    for name in (POINTS, "scan.nc"):
        assert folder.file(name).read_bytes() == undisturbed.file(name).read_bytes(), name


def test_points_of_another_grid_are_refused(tmp_path):
    folder, job = scanning.start(asked("pushed-cube", CUBE, OVER), tmp_path / "other")
    write_points(folder.file(POINTS), [{"index": [5], "reason": "x"}])
    with pytest.raises(StudyError, match="holds the points of another grid"):
        job.run(folder)
    folder.write_text(POINTS, '{"place": 4}\n')
    with pytest.raises(StudyError, match="is damaged"):
        job.run(folder)


def test_a_number_of_the_scene_file_is_an_axis_and_what_fails_is_marked(tmp_path):
    for axis in ("cameras.front.eye[1]=1:4:2", "instances=1:3:3"):
        with pytest.raises(StudyError, match="Unknown axis"):
            grid_of("pushed-cube", CUBE, f"{MASS}=1.5:2:2", axis)
    over = (f"{MASS}=1.5:2:2", f"{FRAMES}=0:4:3")
    folder, summary = run(tmp_path / "scan", "pushed-cube", CUBE, *over)
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert data.loss.dims == (MASS, FRAMES)
        assert np.isfinite(data.loss.sel({FRAMES: [2, 4]})).all()
        assert np.isnan(data.loss.sel({FRAMES: 0})).all()
        reasons = data.reason.sel({FRAMES: 0}).values
        assert all(f"`{FRAMES}` must be a whole number" in reason for reason in reasons)
        # 2 and 4 frames of one motion have other losses
        assert (np.diff(data.loss.values[:, 1:], axis=1) != 0.0).all()
    assert f"{FRAMES} = 0: no point has a loss" in summary
    assert f"2 of 6 points have no loss; that at {MASS} = 1.5 kg, {FRAMES} = 0: `obs" in summary
    assert "Points without a loss" in folder.file("report.html").read_text()


def test_diverging_points_are_marked_and_two_axes_drawn(tmp_path):
    path = written(tmp_path, BEAM)
    over = ("beam.mu=1e5:1e9:3:log", "beam.lam=2e5:3e5:3")
    folder, summary = run(tmp_path / "scan", path, (), *over)
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert np.isfinite(data.loss[0]).all()
        assert all("finite numbers" in reason for reason in data.reason[2].values.ravel())
    assert re.search(r"have no loss; that at beam\.mu = .* Pa, beam\.lam = .* Pa", summary)
    assert {path.name for path in folder.file("figures").iterdir()} == {
        "loss_1.svg", "trust_beam_mu.svg", "trust_beam_lam.svg",
    }  # fmt: skip


def test_a_scan_over_a_setting_alone_and_one_of_three_axes(tmp_path):
    folder, _ = run(tmp_path / "one", "pushed-cube", CUBE, f"{FRAMES}=2:6:3", at="start")
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert data.loss.dims == (FRAMES,)
        assert data[FRAMES].values.tolist() == [2, 4, 6]
        assert "axis" not in data.coords
        assert (data.gradient.sel(parameter=MASS) != 0.0).all()
    axes = ("pendulum.length=0.9:1.1:2", "world.gravity=9:10:2", "pendulum.damping=0.1:0.2:2")
    with undrawn():
        path = written(tmp_path / "scene", PENDULUM)
        folder, _ = run(tmp_path / "three", path, (), *axes, trust=False)
    assert "A grid of this many axes is not drawn" in folder.file("report.html").read_text()


def test_a_single_loss_is_drawn(tmp_path):
    folder, _ = run(tmp_path / "one", "pushed-cube", CUBE, f"{MASS}=1.5:1.5:1")
    assert folder.file("figures/loss.svg").exists()
    line = ("beam.mu=2e5:2e5:1", "beam.lam=1e5:6e5:2")  # a grid that has no area
    folder, _ = run(tmp_path / "line", written(tmp_path / "scene", BEAM), (), *line)
    names = {path.name for path in folder.file("figures").iterdir()}
    assert names == {"loss.svg", "trust.svg"}


def test_a_scan_is_held_at_the_answer_of_a_run(tmp_path):
    path, answer = written(tmp_path / "scene", BEAM), tmp_path / "run"
    answer.mkdir()
    folder = RunFolder(answer)
    folder.write_json("manifest.json", {"verb": "run"})
    folder.write_npz("parameters.npz", names=np.array(["beam.mu"]), estimate=np.array([2.5e5]))
    made = grid_of(path, (), "beam.lam=2e5:3e5:2", at=str(answer))
    assert np.allclose(made.first.base, [2.5e5, 2e5])
    with pytest.raises(StudyError, match="`--at` must be truth or start, or the folder of a run"):
        grid_of(path, (), "beam.lam=2e5:3e5:2", at="turth")
    with pytest.raises(StudyError, match="is the run of another scene"):
        grid_of("pushed-cube", CUBE, *OVER, at=str(answer))


def test_a_film_of_ones_own_has_no_truth(tmp_path):
    assert spec.resolve(asked("identify", (), ("beam.E=1e5:4e5:3",))).at == "start"
    with pytest.raises(StudyError, match="`--at truth` needs observations that are simulated"):
        spec.resolve(asked("identify", (), ("beam.E=1e5:4e5:3",), at="truth"))


def test_the_report_is_one_file(finished):
    page = finished[0].file("report.html").read_text()
    assert not re.findall(r'src="(?!data:)', page)
    for heading in ("Loss", "How far the gradient can be trusted", "Set-up"):
        assert f"<h2>{heading}</h2>" in page
    assert "The lowest point is at the truth" in page


@pytest.mark.parametrize("name", spec.bundled())
def test_bundled_scans_are_sound(name):
    scan = spec.resolve(asked(name))
    assert scan.axes
    record = json.loads(json.dumps(scan.to_json()))
    assert TypeAdapter(spec.Scan).validate_python({**record, "scene": scan.scene}) == scan


SUBSETS = '[subsets]\n"all" = [1, 2, 3]\n"last" = [3]\n'


def test_a_scan_file_compares_frames_and_a_black_box(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        f'scene = "pushed-cube"\nover = ["{MASS}=0.5:2:4"]\noverrides = {json.dumps(CUBE)}\n'
        f"{SUBSETS}[black_box]\nsamples = 3\nsigma = 0.05\n"
    )
    folder, _ = run(tmp_path / "scan", str(path), ())
    assert (folder.path / "figures" / "frames.svg").exists()
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert np.isfinite(data.black_box).all()
    assert "A black box instead" in folder.file("report.html").read_text()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (asked("pushed-cub", (), OVER), "Unknown scene or scan `pushed-cub`. Did you mean `pushed"),
        (asked("figure-4z"), "Unknown scene or scan `figure-4z`. Did you mean `figure-4"),
        (asked("pushed-cube"), "A scan needs at least one axis: add `--over"),
        (asked("pushed-cube", ("bodies.cube.scal=1",), OVER), "Did you mean `scale`"),
    ],
)
def test_what_cannot_be_asked_is_told(settings, message):
    with pytest.raises(ValueError, match=message):
        spec.resolve(settings)


def test_a_grid_without_a_possible_point_is_refused_before_anything_is_written(tmp_path):
    # One that crosses the limit is scanned, and says where it fails and why.
    with pytest.raises(StudyError, match=r"`--over .*=-2.0:-1.0:3`: no point .* above 0"):
        scanning.start(asked("pushed-cube", CUBE, (f"{MASS}=-2:-1:3",)), tmp_path / "scan")
    assert not (tmp_path / "scan").exists()
    _, summary = run(tmp_path / "scan", "pushed-cube", CUBE, f"{MASS}=-1:2:3", trust=False)
    assert re.search(r"1 of 3 points has no loss; that at .* = -1 kg: .* must be above 0", summary)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('scene = "pushed-cub"', "Unknown scene `pushed-cub`. Did you mean `pushed-cube`"),
        ('scene = "pushed-cube"\nover = "mass=1:2:2"', "`over` must be a list"),
        ('scene = "pushed-cube"\nsubset = {}', "Did you mean `subsets`"),
        ('scene = "pushed-cube"\n[subsets]\n"a" = [0]', "`subsets.a` must be"),
        ('scene = "pushed-cube"\n[black_box]\nsamples = 3', "`black_box.sigma` is missing"),
        ('scene = "pushed-cube"\nover = [', "is not valid TOML"),
    ],
)
def test_mistakes_in_a_scan_file_are_told(tmp_path, text, message):
    path = tmp_path / "scan.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        spec.resolve(asked(str(path)))


def test_a_subset_of_frames_that_are_not_there_is_told(tmp_path):
    path = tmp_path / "scan.toml"
    path.write_text(f'scene = "pushed-cube"\nover = ["{MASS}=1:2:2"]\n[subsets]\n"a" = [21]')
    with pytest.raises(StudyError, match=r"`subsets.a` must name frames from 1 to 3"):
        grid_of(str(path), CUBE)
