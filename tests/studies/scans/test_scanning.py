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

from studies import config, running
from studies.errors import StudyError
from studies.scans import scanning, spec, survey
from studies.scans.dataset import make_dataset
from studies.scans.points import POINTS, write_points
from studies.scans.spec import Asked
from tests.studies.scans.toy import BEAM, CUBE, grid_of, run
from tests.studies.toys import TOYS
from tests.studies.undrawn import undrawn


FILES = {
    "study.toml", "scan.json", "manifest.json", "points.jsonl", "scan.nc", "result.json",
    "report.html", "report.json", "figures",
}  # fmt: skip
OVER = ("mass=0.5:2.5:5",)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished scan of the toy cube."""
    return run(tmp_path_factory.mktemp("scans") / "toy", "pushed-cube", CUBE, *OVER)


def test_a_scan_leaves_a_data_set_with_named_coordinates(finished):
    folder, told = finished
    assert {path.name for path in folder.path.iterdir()} == FILES
    assert "lowest at mass = 1 kg (loss" in told
    assert "kg, at the lowest point; " in told
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert np.array_equal(data["mass"], [0.5, 1.0, 1.5, 2.0, 2.5])
        assert data["mass"].attrs["units"] == "kg"
        assert data.loss.dims == ("mass",)
        assert data.loss.sel(mass=1.0) < 1e-20
        assert float(data.truth.sel(parameter="mass")) == 1.0
        assert (data.gradient.sel(parameter="mass", mass=[1.5, 2.0]) > 0.0).all()
        assert (data.reason == "").all()
        assert (data.relative < 1e-4).all()
        assert np.allclose(data.frame_loss.mean("frame"), data.loss, rtol=1e-13, atol=0.0)


def test_what_is_seen_is_compared_with_the_next_point(finished):
    with xr.open_dataset(finished[0].file("scan.nc")) as data:
        assert data.visibility_event.dims == ("mass", "along")
        n_faces = data.faces.values
        assert len(set(n_faces)) > 1  # other numbers of faces are other faces
        events = data.visibility_event.sel(along="mass").values
        assert events[:-1][np.diff(n_faces) != 0.0].all()
        assert not events[-1]  # there is no next point


def test_events_stand_between_a_point_and_the_next_along_each_axis():
    grid = grid_of("pushed-cube", CUBE, "mass=1:2:2", "time.frames=1:3:3")
    faces, touches = [["a", "a", "b"], ["a", "c", None]], [["s", "s", "s"], ["t", "s", "s"]]
    records = [
        {"index": [i, j], "loss": 1.0, "gradient": [1.0], "frame_loss": [1.0], "reason": None,
         "face_set": faces[i][j], "touch_set": touches[i][j]}
        for i in range(2) for j in range(3)
    ]  # fmt: skip
    data = make_dataset(grid, records)
    seen = data.visibility_event
    assert seen.dims == ("mass", "time.frames", "along")
    assert seen.sel(along="mass").values.tolist() == [[False, True, False], [False] * 3]
    assert seen.sel(along="time.frames").values.tolist() == [
        [False, True, False],
        [True, False, False],  # of the last nothing is known
    ]
    touched = data.touch_event
    assert touched.sel(along="mass").values.tolist() == [[True, False, False], [False] * 3]
    assert touched.sel(along="time.frames").values.tolist() == [[False] * 3, [True, False, False]]
    assert "contact_event" not in data


def test_every_point_is_a_line_written_whole(finished):
    folder, _ = finished
    lines = folder.file(POINTS).read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["index"] for one in records] == [[k] for k in range(5)]


@pytest.mark.usefixtures("unpainted")
def test_a_scan_that_was_stopped_ends_with_the_same_files(finished, tmp_path, monkeypatch, adjsim):
    whole, _ = finished
    out = tmp_path / "stopped"
    written = []

    def stop(path, records):
        if written:
            write_points(path, records[:1])
            with path.open("a") as stream:
                stream.write('{"index": [3], "rea')  # cut short, as by a kill
            raise KeyboardInterrupt
        written.extend(records)
        return write_points(path, records)

    monkeypatch.setattr(scanning, "write_points", stop)
    monkeypatch.setattr(survey, "worlds_at_once", lambda terrain: 2)
    arguments = ("scan", "pushed-cube", *CUBE, "--over", *OVER, "--out", out)
    code, _, err = adjsim(*arguments)
    assert code == 130
    assert f"adjsim scan pushed-cube --out {out} --resume" in err
    assert not (out / "scan.nc").exists()
    code, _, err = adjsim("report", out)
    assert code == 2
    assert "has not ended. Go on with it: `adjsim scan pushed-cube" in err
    monkeypatch.undo()
    monkeypatch.setattr("sys.argv", ["adjsim"])
    budget = {"checkpoint": "500B"}  # no part of what must agree: it changes no number
    folder, job = scanning.resume(Asked("pushed-cube", options=budget), out)
    assert job.grid.first.problem.schedule.startswith("500B for 6 states: ")
    job.run(folder)
    for name in (POINTS, "scan.nc"):
        assert folder.file(name).read_bytes() == whole.file(name).read_bytes(), name
    manifest = folder.read_json("manifest.json")
    assert len(manifest["resumed"]) == 1
    assert manifest["checkpoint"] == "500B"


def test_a_scan_that_has_ended_may_be_resumed_and_reported_again(finished, adjsim):
    folder, _ = finished
    before = folder.file("scan.nc").read_bytes()
    again, job = scanning.resume(Asked("pushed-cube", CUBE, OVER), folder.path)
    with undrawn():
        job.run(again)
    assert folder.file("scan.nc").read_bytes() == before
    code, out, _ = adjsim("report", folder.path)
    assert code == 0
    assert out.splitlines()[-1] == str(folder.file("report.html"))
    code, _, err = adjsim("view", folder.path)
    assert code == 2
    assert "holds a scan, not one motion" in err


def test_a_scan_is_not_resumed_as_another(finished, tmp_path):
    folder, _ = finished
    changed = {
        r"`over` = \['mass=0.5:2.5:5'\]": Asked("pushed-cube", CUBE, ("mass=0.5:2.5:6",)),
        "holds the scan `pushed-cube`, not `beam`": Asked("beam", (), ("beam.mu=1e5:2e5:2",)),
        "`at` = 'truth', not 'start'": Asked("pushed-cube", CUBE, OVER, at="start"),
        "`trust` = True, not False": Asked("pushed-cube", CUBE, OVER, trust=False),
        "`time.frames` = 3, not 2": Asked("pushed-cube", (*CUBE, "time.frames=2")),
        "`options` = .*'seed': 0.*not .*'seed': 4": Asked("pushed-cube", options={"seed": 4}),
    }
    for message, asked in changed.items():
        with pytest.raises(StudyError, match=message):
            scanning.resume(asked, folder.path)
    with pytest.raises(StudyError, match="`--resume` needs the scan's folder"):
        scanning.resume(Asked("pushed-cube"), None)
    with pytest.raises(StudyError, match=r"`--out` .* holds another run. Run with `--resume`"):
        scanning.start(Asked("pushed-cube", CUBE, OVER), folder.path)
    for left in ("scan.json", "manifest.json"):  # of a start that was killed
        (tmp_path / "new").mkdir(exist_ok=True)
        (tmp_path / "new" / left).write_text("{")
    started, _ = scanning.resume(Asked("pushed-cube", CUBE, OVER), tmp_path / "new")
    assert started.read_json("scan.json")["over"] == list(OVER)


def test_a_scan_is_no_run_to_go_on_with(finished):
    with pytest.raises(StudyError, match=r"holds a scan. Go on with it by `adjsim scan`"):
        running.resume("pushed-cube", (), finished[0].path, {})


def test_a_run_is_no_scan_to_go_on_with(tmp_path):
    path = tmp_path / "run"
    running.start("pushed-cube", CUBE, path, {})
    again = re.escape(f"by `adjsim run pushed-cube --out {path} --resume`")
    with pytest.raises(StudyError, match=f"holds a run, not a scan. Go on with it {again}"):
        scanning.resume(Asked("pushed-cube", CUBE, OVER), path)


@pytest.mark.slow
@pytest.mark.usefixtures("unpainted")
def test_a_scan_that_was_killed_ends_with_the_same_files(tmp_path):
    over = "mass=0.5:2.5:60"
    whole, _ = run(tmp_path / "whole", "pushed-cube", CUBE, over)
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
    folder, job = scanning.resume(Asked("pushed-cube"), out)
    job.run(folder)
    for name in (POINTS, "scan.nc"):
        assert folder.file(name).read_bytes() == whole.file(name).read_bytes(), name


def test_points_of_another_grid_are_refused(finished, tmp_path):
    folder, job = scanning.start(Asked("pushed-cube", CUBE, OVER), tmp_path / "other")
    folder.write_text(POINTS, '{"index": [5], "reason": "x"}\n')
    with pytest.raises(StudyError, match="holds the points of another grid"):
        job.run(folder)
    folder.write_text(POINTS, '{"place": 4}\n')
    with pytest.raises(StudyError, match="is not a list of points"):
        job.run(folder)


def test_a_setting_is_an_axis_and_what_fails_is_marked(tmp_path):
    # Of 6 steps at most 6 frames can be filmed.
    folder, told = run(tmp_path / "scan", "pushed-cube", CUBE, "mass=1.5:2:2", "time.frames=2:10:3")
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert data.loss.dims == ("mass", "time.frames")
        assert np.isfinite(data.loss.sel({"time.frames": [2, 6]})).all()
        assert np.isnan(data.loss.sel({"time.frames": 10})).all()
        reasons = data.reason.sel({"time.frames": 10}).values
        assert all("`time.steps` must be at least `time.frames`" in one for one in reasons)
        # 6 frames of 6 steps and 2 of them have other losses.
        assert (np.diff(data.loss.values[:, :2], axis=1) != 0.0).all()
    assert "time.frames = 10: no point has a loss" in told
    assert (
        "2 of 6 points have no loss; that at mass = 1.5 kg, time.frames = 10: `time.steps` must be"
    ) in told
    assert "(so all of the 2)" in told
    page = folder.file("report.html").read_text()
    assert "Points without a loss" in page


def test_diverging_points_are_marked_and_two_axes_drawn(tmp_path):
    folder, told = run(
        tmp_path / "scan", "beam", BEAM, "beam.mu=1e5:1e9:3:log", "beam.lam=2e5:3e5:3"
    )
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert np.isfinite(data.loss[0]).all()
        wild = data.reason[2].values.ravel()
        assert all("stable only for" in one or "finite numbers" in one for one in wild)
    assert re.search(
        r"have no loss; that at beam\.mu = .* Pa, beam\.lam = .* \(so \d of the \d\)", told
    )
    assert {path.name for path in folder.file("figures").iterdir()} == {
        "loss_1.png", "trust_beam_mu.png", "trust_beam_lam.png",
    }  # fmt: skip


def test_a_scan_over_a_setting_alone_and_one_of_three_axes(tmp_path):
    folder, _ = run(tmp_path / "one", "pushed-cube", CUBE, "time.frames=2:6:3", at="start")
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert data.loss.dims == ("time.frames",)
        assert "axis" not in data.coords
        assert (data.gradient.sel(parameter="mass") != 0.0).all()
    overrides = ("time.frames=2", "time.steps=40", *TOYS["pendulum"].overrides[1:4])
    axes = ("length=0.9:1.1:2", "gravity=9:10:2", "damping=0.1:0.2:2")
    with undrawn():
        folder, _ = run(tmp_path / "three", "pendulum", overrides, *axes, trust=False)
    assert "A grid of this many axes is not drawn" in folder.file("report.html").read_text()


def test_a_single_loss_is_drawn(tmp_path):
    folder, _ = run(tmp_path / "scan", "pushed-cube", CUBE, "mass=1.5:2:2", "time.frames=2:10:2")
    assert folder.file("report.html").exists()
    folder, _ = run(tmp_path / "one", "pushed-cube", CUBE, "mass=1.5:1.5:1")
    assert folder.file("figures/loss.png").exists()
    line = ("beam.mu=2e5:2e5:1", "beam.lam=1e5:6e5:2")  # a grid that has no area
    folder, _ = run(tmp_path / "line", "beam", BEAM, *line)
    drawn = {path.name for path in folder.file("figures").iterdir()}
    assert drawn == {"loss.png", "log_loss.png", "trust.png"}


def test_the_report_is_one_file(finished):
    page = finished[0].file("report.html").read_text()
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    for heading in ("Loss", "How far the gradient can be trusted", "Set-up"):
        assert f"<h2>{heading}</h2>" in page
    assert "the lowest point is at the truth" in page


def test_bundled_scans_are_sound():
    assert set(spec.bundled()) >= {"figure-4a"}
    for name in spec.bundled():
        scan = spec.resolve(Asked(name))
        assert scan.axes
        again = spec.Scan.from_json(json.loads(json.dumps(scan.to_json())), scan.settings)
        assert again.to_json() == scan.to_json()


def test_a_scan_file_compares_frames_and_a_black_box(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'study = "pushed-cube"\nover = ["mass=0.5:2:4"]\n[settings]\ntime.frames = 3\n'
        "time.steps = 6\ntime.dt = 0.1\nimage.height = 16\nimage.width = 16\n"
        '[subsets]\n"all" = [1, 2, 3]\n"last" = [3]\n[black_box]\nsamples = 3\nsigma = 0.05\n'
    )
    folder, _ = run(tmp_path / "scan", str(path), ())
    found = folder.read_json("result.json")
    assert set(found["subsets"]) == {"all", "last"}
    assert found["subsets"]["last"]["lowest"] == {"mass": 1.0}
    assert (folder.path / "figures" / "frames.png").exists()
    with xr.open_dataset(folder.file("scan.nc")) as data:
        assert np.isfinite(data.black_box).all()
    assert "A black box instead" in folder.file("report.html").read_text()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked("baem", (), OVER), "Unknown study or scan `baem`. Did you mean `beam`"),
        (Asked("nosuch"), "Unknown study or scan `nosuch`.(?!.*table1)"),
        (Asked("figure-4z"), "Unknown study or scan `figure-4z`. Did you mean `figure-4"),
        (Asked("beam"), "A scan needs at least one axis: add `--over"),
        (Asked("beam", ("beam.um=1",), OVER), "Did you mean `beam.mu`"),
        (
            Asked("beam", (), ("beam.mu=1:2:3",), at="turth"),
            "place in `--at` `turth`. Did you mean",
        ),
    ],
)
def test_what_cannot_be_asked_is_told(asked, message):
    with pytest.raises(ValueError, match=message):
        spec.resolve(asked)


def test_scenes_cannot_be_scanned_yet(tmp_path):
    own = tmp_path / "scene.toml"
    own.write_text('[bodies.cube]\nkind = "soft"\nmesh = "box"\n')
    for scene in (own, "identify"):
        with pytest.raises(StudyError, match=f"not possible yet, .* `adjsim run {scene}` shows"):
            spec.resolve(Asked(str(scene), (), OVER))


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("mas=1:2:3", r"Did you mean `mass`\? `--over` takes a parameter of the problem \(mass\)"),
        ("time.frame=1:2:2", "Did you mean `time.frames`"),
        ("time.frames=1:3:5", "`time.frames` is a whole number"),
    ],
)
def test_an_unknown_axis_is_told_with_the_nearest_one(over, message):
    with pytest.raises(StudyError, match=message):
        grid_of("pushed-cube", CUBE, over)


def test_a_grid_without_a_possible_point_is_refused_before_anything_is_written(tmp_path):
    # One that crosses the limit is scanned, and says where it fails and why.
    with pytest.raises(StudyError, match=r"`--over mass=-2.0:-1.0:3`: no point .* positive"):
        scanning.start(Asked("pushed-cube", CUBE, ("mass=-2:-1:3",)), tmp_path / "scan")
    assert not (tmp_path / "scan").exists()
    _, told = run(tmp_path / "scan", "pushed-cube", CUBE, "mass=-1:2:3", trust=False)
    assert re.search(r"1 of 3 points has no loss; that at mass = -1 kg: .* must be positive", told)


def test_studies_without_one_problem_are_refused():
    with pytest.raises(StudyError, match="not `appearance`. Scan one that does, e.g. `beam`"):
        grid_of("appearance", (), "tets=1:2:2")  # it has instances, of more than one problem
    with pytest.raises(StudyError, match="Scan one of its instances: `instances=1`"):
        grid_of("rigid-mass", ("instances=2",), "body.mass=1:2:2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('over = ["mass=1:2:2"]', "must name its `study`"),
        ('study = "beam"\nover = "mass=1:2:2"', "`over` must be a list"),
        ('study = "beam"\nover = []\nsubset = {}', "Did you mean `subsets`"),
        ('study = "beam"\nover = []\n[subsets]\n"a" = [0]', "must list frames, counted from 1"),
        ('study = "beam"\nover = []\n[black_box]\nsamples = 3', "must have `samples` and `sigma`"),
        ('study = "beam"\nover = [', "is not valid TOML"),
    ],
)
def test_mistakes_in_a_scan_file_are_told(tmp_path, text, message):
    path = tmp_path / "scan.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        spec.resolve(Asked(str(path)))


def test_a_subset_of_frames_that_are_not_there_is_told(tmp_path):
    path = tmp_path / "scan.toml"
    path.write_text('study = "pushed-cube"\nover = ["mass=1:2:2"]\n[subsets]\n"a" = [21]')
    with pytest.raises(StudyError, match=r"`subsets.a` must name frames from 1 to 3"):
        grid_of(str(path), CUBE)


def test_a_study_file_is_scanned_too(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(config.resolve("pushed-cube", CUBE).to_toml())
    assert spec.resolve(Asked(str(path), (), OVER)).settings.values["time"]["frames"] == 3
