"""The command line as a user meets it: what it says, and what it leaves behind."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from adjsim import backend
from studies import cli
from studies.errors import StudyError
from studies.media import read_image
from studies.optimizers.evaluations import read_log
from studies.run_folder import ITERATIONS, RunFolder
from studies.view import drawing_problem, make_plotter, view_run
from tests.studies.toy_beam import OVERRIDES


FILES = {
    "study.toml", "manifest.json", "iterations.jsonl", "parameters.npz", "trajectory.npz",
    "frames.npz", "target.mp4", "fitted.mp4", "result.json", "certificate.json", "report.html",
    "report.json", "figures",
}  # fmt: skip


@pytest.fixture
def adjsim(monkeypatch, capsys):
    """Call the command in this process; return exit code, stdout and stderr."""

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["adjsim", *map(str, args)])
        code = 0
        try:
            cli.main()
        except SystemExit as exit_:
            code = exit_.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of the toy beam."""
    path = tmp_path_factory.mktemp("runs") / "toy"
    command = [sys.executable, "-m", "tests.studies.run_adjsim", "run", "beam", *OVERRIDES]
    done = subprocess.run(
        [*command, "--out", str(path)],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return path, done.stdout


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_list_imports_no_compiler():
    code = "import sys, studies.cli; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    assert done.returncode == 0


def test_info_tells_versions_and_what_is_missing(adjsim):
    code, out, _ = adjsim("info")
    assert code == 0
    assert "numpy" in out
    assert re.search(r"cuda +\S", out)


HUGE = ("image.height=1000000", "image.width=1000000")  # TiB, which no machine gives


def test_where_memory_is_short_it_is_said_what_to_make_smaller(adjsim, tmp_path):
    code, _, err = adjsim("run", "beam", *OVERRIDES, *HUGE, "--out", tmp_path / "run")
    assert code == 1
    line = err.splitlines()[-1]
    assert line.startswith("adjsim: Memory is short: `size` must leave the images room")
    assert "1000000 x 1000000 pixels" in line
    assert "`image.height`" in line
    assert "Traceback" not in err


def test_an_error_of_memory_that_says_nothing_is_told_too(adjsim, monkeypatch):
    def short():
        raise MemoryError

    monkeypatch.setattr("studies.info.info_text", short)
    code, _, err = adjsim("info")
    assert code == 1
    assert err.startswith("adjsim: Memory is short. Make the images smaller")
    with pytest.raises(MemoryError):
        adjsim("--traceback", "info")


def test_a_run_leaves_a_whole_folder_and_finds_the_truth(finished):
    path, out = finished
    assert {file.name for file in path.iterdir()} == FILES
    result = json.loads((path / "result.json").read_text())
    assert result["status"] == "CONVERGED"
    assert result["evaluations"] <= 40
    assert max(row["relative_error"] for row in result["parameters"]) <= 1e-6
    assert json.loads((path / "certificate.json").read_text())["passed"]
    assert "certificate: passed" in out


def test_the_report_is_one_self_contained_file(finished):
    text = (finished[0] / "report.html").read_text()
    assert "beam.mu" in text
    assert "data:video/mp4;base64," in text
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert "$" not in text.replace("$ ", "")


def test_report_rebuilds_what_was_deleted(finished, adjsim):
    report = finished[0] / "report.html"
    report.unlink()
    code, out, _ = adjsim("report", finished[0])
    assert code == 0
    assert report.exists()
    assert out.strip() == str(report.resolve())


def test_view_draws_the_motion_into_a_file_or_says_what_is_missing(finished, tmp_path):
    picture = tmp_path / "view.png"
    if drawing_problem(on_screen=False):
        with pytest.raises(StudyError, match=r"needs an OpenGL library.*apt install"):
            view_run(RunFolder.open(finished[0]), picture)
    else:
        view_run(RunFolder.open(finished[0]), picture)
        seen = read_image(picture)[..., :3]
        assert (seen < 0.5).any()
        assert (seen[:, -20:] == 1.0).all()  # nothing is cut off where the picture ends


def test_view_without_a_display_asks_for_a_screenshot(finished, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(StudyError, match=r"no display.*--screenshot"):
        view_run(RunFolder.open(finished[0]))


def test_the_parameters_are_stored_with_their_history(finished):
    with np.load(finished[0] / "parameters.npz", allow_pickle=False) as arrays:
        assert arrays["names"].tolist() == ["beam.mu", "beam.lam"]
        assert arrays["history"].shape == (len(arrays["evaluations"]), 2)
        np.testing.assert_allclose(arrays["history"][0], [6e5, 1.2e5], rtol=1e-12)


def test_a_run_killed_in_the_middle_resumes_to_the_same_numbers(finished, tmp_path):
    path = tmp_path / "killed"
    command = ["run", "beam", *OVERRIDES, "--out", str(path)]
    budget = ["--checkpoint", "20kB"]  # no part of what must agree: it changes no number
    killed = subprocess.run(
        [sys.executable, "-m", "tests.studies.run_killed", "5", *command],
        env=environment(),
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert (path / ITERATIONS).read_bytes().count(b"\n") == 5
    assert not (path / "result.json").exists()
    done = subprocess.run(
        [sys.executable, "-m", "tests.studies.run_adjsim", *command, "--resume", *budget],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^5 evaluations are read from the log", done.stdout, re.MULTILINE)
    whole, resumed = (read_log(run / ITERATIONS) for run in (finished[0], path))
    assert len(whole) == len(resumed)
    for a, b in zip(whole, resumed, strict=True):
        assert a.kind == b.kind
        assert a.loss == b.loss
        assert np.array_equal(a.theta, b.theta)
    for name in ("parameters.npz", "trajectory.npz", "frames.npz"):
        with np.load(finished[0] / name) as left, np.load(path / name) as right:
            assert all(np.array_equal(left[key], right[key]) for key in left.files)
    manifest = json.loads((path / "manifest.json").read_text())
    assert len(manifest["resumed"]) == 1
    assert manifest["checkpoint"] == "20kB"
    certified = json.loads((path / "certificate.json").read_text())
    assert certified["schedule"].startswith("20kB for 120 states: ")


def test_an_interrupt_says_how_to_resume(adjsim, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("studies.search.local.minimize", interrupt)
    path = tmp_path / "my run"
    code, _, err = adjsim("run", "beam", *OVERRIDES, "--out", path)
    assert code == 130
    assert f"--out '{path}' --resume" in err
    assert (path / "manifest.json").exists()


@pytest.mark.parametrize("command", [["run", "beam"], ["scan", "figure-4a"], ["dataset", "rigid-mass"]])
def test_an_interrupt_before_there_is_a_folder_says_so(adjsim, tmp_path, monkeypatch, command):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "create", interrupt)
    monkeypatch.setattr("studies.scans.scanning._make_job", lambda *args: None)
    monkeypatch.setattr("studies.registry.Study.prepare", lambda *args: None)
    code, _, err = adjsim(*command, "--out", tmp_path / "run")
    assert code == 130
    assert err.endswith("\nInterrupted before anything was written.\n")
    assert not (tmp_path / "run").exists()


def test_an_interrupt_of_any_other_command_is_one_line(adjsim, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("studies.info.info_text", interrupt)
    code, out, err = adjsim("info")
    assert (code, out, err) == (130, "", "\nInterrupted.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["beam", "beam.mu=-1"], "`beam.mu` must be positive, got -1"),
        (["beam", "beam.moo=1"], "Did you mean `beam.mu`"),
        (["beem"], "Did you mean `beam`"),
        (["identfy"], "Unknown scene or study `identfy`. Did you mean `identify`"),
        (["missing.toml"], "There is no study file missing.toml"),
        (["beam", "beam.cells=[1, 1]"], "`beam.cells` must have shape (3,), got (2,)"),
        (["beam", "beam.size=[1.0]"], "`beam.size` must have shape (3,), got (1,)"),
        (["beam", "motion.gravity=[0.0]"], "`motion.gravity` must have shape (3,), got (1,)"),
        (["beam", "beam.lam=1e4"], "`beam.lam` must be greater than beam.mu/8"),
        (["beam", "start.mu=3e6"], "`start.lam` must be greater than start.mu/8"),
        (["beam", "start.mu=9e5", "bounds.mu=[1e5, 5e5]"], "must lie inside its bounds"),
        (["beam", "bounds.mu=[1e5]"], "`bounds.mu` must have shape"),
        (["beam", "time.steps=3"], "`time.steps` must be at least `time.frames`"),
        (["beam", "time.dt=0.0"], "`time.dt` must be positive"),
        (["beam", "noise.level=-0.1"], "`noise.level` must not be negative"),
        (["beam", "optimizer.method=newton"], "Did you mean `gauss-newton`"),
        (["beam", "optimizer.max_evaluations=0"], "`optimizer.max_evaluations` must be positive"),
        (["beam", "optimizer.momentum=1.0"], r"`optimizer.momentum` must be in [0, 1)"),
        (["beam", "loss.kind=msee"], "Did you mean `mse`"),
        (["beam", "image.height=0"], "`image.height` must be positive"),
        (["beam", *OVERRIDES, "time.dt=0.1"], "Try `time.dt` below"),
        (["beam", "bounds.mu=[5.0, 1.0]"], "`bounds.mu` must be [low, high] with low < high"),
        (["beam", "--device", "gpu"], "adjsim: `--device` must be cpu or cuda, got 'gpu'."),
        (["beam", "--dtype", "int"], "adjsim: `--dtype` must be float64 or float32, got 'int'."),
        (["beam", "--resume"], "add `--out DIR`"),
        (["beam", "--seed", "-1"], "`--seed` must be 0 or more, got -1"),
    ],
)
def test_a_users_mistake_is_one_message(adjsim, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = adjsim("run", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_a_first_run_says_that_it_compiles(adjsim, monkeypatch, tmp_path):
    monkeypatch.setattr(backend, "JIT_DISABLED", False)
    monkeypatch.setattr(backend, "CACHE_DIR", tmp_path / "kernels")
    for command in (["run", "beam", "beam.mu=-1"], ["scan", "beam"], ["dataset", "rigid-mass", "x=1"]):
        code, _, err = adjsim(*command)
        assert code == 2
        assert f"compiled on first use, which takes minutes, and kept in {tmp_path}" in err
    (tmp_path / "kernels" / "forces").mkdir(parents=True)
    assert "compiled" in adjsim("scan", "beam")[2]
    (tmp_path / "kernels" / "forces" / "spring.nbc").touch()
    assert "compiled" not in adjsim("scan", "beam")[2]


def test_cuda_without_a_gpu_names_the_way_out(adjsim, monkeypatch, tmp_path):
    monkeypatch.setattr("studies.running.cuda_problem", lambda: "no CUDA GPU was found.")
    code, _, err = adjsim("run", "beam", "--device", "cuda", "--out", tmp_path / "run")
    assert code == 2
    assert "no CUDA GPU was found" in err
    assert "--device cpu" in err


@pytest.mark.parametrize("command", ["run", "scan"])
@pytest.mark.parametrize(
    ("budget", "message"),
    [("lots", "`--checkpoint` must be a size"), ("1kB", "`--checkpoint` must have room for two")],
)
def test_a_budget_that_cannot_be_kept_is_one_message(adjsim, tmp_path, command, budget, message):
    over = ["--over", "beam.mu=1e5:2e5:2"] if command == "scan" else []
    path = tmp_path / "run"
    code, _, err = adjsim(command, "beam", *over, "--checkpoint", budget, "--out", path)
    assert code == 2
    assert message in err
    assert "--checkpoint 500MB" in err
    assert not path.exists()


def test_a_folder_with_a_run_is_not_overwritten(finished, adjsim):
    code, _, err = adjsim("run", "beam", "--out", finished[0])
    assert code == 2
    assert "--resume" in err


def test_a_folder_that_is_taken_is_refused_before_anything_is_compiled(
    adjsim, tmp_path, monkeypatch
):
    def prepare(*args):
        raise AssertionError("That takes minutes.")

    monkeypatch.setattr("studies.registry.Study.prepare", prepare)
    monkeypatch.setattr("studies.scans.scanning._make_job", prepare)
    (tmp_path / "thesis.tex").touch()
    for command in (["run", "beam"], ["scan", "figure-4a"]):
        code, _, err = adjsim(*command, "--out", tmp_path)
        assert code == 2
        assert "is not empty. Choose another folder." in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["beam", "beam.mu=3e5"], "was run with `beam.mu` = 200000.0, not 300000.0"),
        (["beam", "--seed", "5"], "was run with `--seed` = 0, not 5"),
        (["bounce"], "holds a run of `beam`, not of `bounce`"),
    ],
)
def test_a_run_resumes_only_as_it_was_started(finished, adjsim, arguments, message):
    code, _, err = adjsim("run", *arguments, "--out", finished[0], "--resume")
    assert code == 2
    assert message in err


@pytest.mark.usefixtures("unpainted")
def test_a_fit_that_is_cut_short_is_not_finished(adjsim, tmp_path):
    path = tmp_path / "run"
    cut = ("optimizer.max_evaluations=1", "--no-certificate")
    code, out, _ = adjsim("run", "beam", *OVERRIDES, *cut, "--out", path)
    assert code == 0
    assert "\nverdict: search not finished. The search ended (max evaluations) with a step" in out
    assert "95 % interval with model error" in out
    text = (path / "report.html").read_text()
    assert '<span class="chip bad">search not finished</span>' in text
    assert json.loads((path / "result.json").read_text())["verdict"]["reason"] in text
    assert all("not made (--no-certificate)" in where for where in (text, out))


def test_report_of_an_empty_folder_is_one_message(adjsim, tmp_path):
    code, _, err = adjsim("report", tmp_path)
    assert code == 2
    assert "is not a run folder" in err


def test_a_screenshot_must_be_a_png(finished, adjsim):
    code, _, err = adjsim("view", finished[0], "--screenshot", "a.bmp")
    assert code == 2
    assert "must name a .png file" in err


def test_a_screenshot_goes_to_a_folder_that_exists(finished, adjsim, tmp_path):
    code, _, err = adjsim("view", finished[0], "--screenshot", tmp_path / "nodir" / "x.png")
    assert code == 2
    assert f"there is no {tmp_path / 'nodir'}" in err


def test_the_view_stands_upright(finished):
    if drawing_problem(on_screen=False):
        pytest.skip("VTK cannot draw here")
    arrays = RunFolder.open(finished[0]).read_npz("trajectory.npz")
    plotter, _ = make_plotter(arrays, off_screen=True)
    assert plotter.camera.up == (0.0, 1.0, 0.0)
    plotter.close()


def test_traceback_on_request(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["adjsim", "--traceback", "run", "beem"])
    with pytest.raises(ValueError, match="Did you mean"):
        cli.main()
