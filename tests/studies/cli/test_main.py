"""The command line as a user meets it: what it says, and what it leaves behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from adjsim.jit import backend
from studies.cli import main as cli
from studies.runs.folder import ITERATIONS, MANIFEST, RESULT, TRAJECTORY, RunFolder
from tests.studies.fitting.test_running import write_scene


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    return write_scene(tmp_path_factory.mktemp("scene"))


def environment(**more):
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def test_list_imports_no_compiler():
    code = (
        "import sys, studies.cli.main; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    assert done.returncode == 0


def test_a_terminal_of_few_characters_is_enough():
    command = [sys.executable, "-m", "tests.studies.run_adjsim", "list"]
    env = environment(PYTHONIOENCODING="ascii")
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    done.stdout.decode("ascii")


LOADED = """
import os, sys
from studies.cli import main as cli
assert "numpy" not in sys.modules  # as it is loaded, its linear algebra reads this
sys.argv = ["adjsim", "list"]
cli.main.__globals__["_call"] = lambda _: print(os.environ["OPENBLAS_NUM_THREADS"])
cli.main()
"""


def test_the_command_has_one_thread_of_linear_algebra():
    command = [sys.executable, "-c", LOADED]
    env = environment(OPENBLAS_NUM_THREADS="4")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_schema_prints_the_schema_of_scene_files(adjsim):
    assert "world" in json.loads(adjsim.done("schema"))["properties"]


def test_info_says_versions_and_what_is_missing(adjsim):
    out = adjsim.done("info")
    assert "numpy" in out
    assert re.search(r"cuda +\S", out)


def test_a_run_prints_its_result_alone_as_json(adjsim, scene, tmp_path):
    run, few = tmp_path / "run", ("search.max_evaluations=3", "search.coarse=0")
    code, out, err = adjsim("run", scene, *few, "--no-certificate", "--out", run, "--json")
    assert code == 0, err
    assert json.loads(out) == json.loads((run / RESULT).read_text())
    assert str(run) in err
    again = adjsim.done("run", scene, *few, "--out", run, "--resume", "--json")
    assert json.loads(again)["parameters"] == json.loads(out)["parameters"]


def test_an_error_of_memory_says_what_to_make_smaller(adjsim, monkeypatch):
    def short():
        raise MemoryError

    monkeypatch.setattr("studies.cli.info.info_text", short)
    code, _, err = adjsim("info")
    assert code == 1
    assert err.startswith("adjsim: Memory is short. Make the images smaller")
    with pytest.raises(MemoryError):
        adjsim("--traceback", "info")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_says_how_to_resume(scene, tmp_path, number):
    run = tmp_path / "my run"
    command = [sys.executable, "-m", "tests.studies.run_adjsim", "run", str(scene)]
    process = subprocess.Popen(
        [*command, "--no-certificate", "--out", str(run)],
        env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + 120.0
        while not list(run.glob(ITERATIONS.replace(".", "*."))):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=60.0)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert f"Go on with:\n  adjsim run {scene} --out '{run}' --resume" in err
    assert "Traceback" not in err
    assert (run / MANIFEST).exists()


def test_an_interrupt_before_there_is_a_folder_says_so(adjsim, scene, tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("studies.fitting.running.make_fit", interrupt)
    code, _, err = adjsim("run", scene, "--out", tmp_path / "run")
    assert code == 130
    assert err.endswith("\nInterrupted before anything was written.\n")
    assert not (tmp_path / "run").exists()


def test_an_interrupt_of_any_other_command_is_one_line(adjsim, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("studies.cli.info.info_text", interrupt)
    assert adjsim("info") == (130, "", "\nInterrupted.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["identfy"], "Did you mean `identify`"),
        (["missing.toml"], "There is no"),
        (["SCENE", "bodies.cube.E=-1"], "`bodies.cube.E` must"),
        (["SCENE", "bodies.cube.moo=1"], "`bodies.cube`: Unknown key `moo`"),
        (["SCENE", f"bodies.cube.{'moo' * 10**5}=1"], "`bodies.cube`: Unknown key `moomoo"),
        (["SCENE", "bodies.cube.size=" + "[" * 3000], "nested more than 50 deep"),
        (["SCENE", "bodies.cube.E=1\nbodies.cube.nu=0.1"], "must be one line"),
        (["SCENE", "--device", "gpu"], "adjsim: `--device` must be cpu or cuda, got 'gpu'."),
        (["SCENE", "--dtype", "int"], "adjsim: `--dtype` must be float64 or float32, got 'int'."),
        (["SCENE", "--resume"], "add `--out DIR`"),
        (["SCENE", "--seed", "-1"], "`--seed` must be 0 or more and below 2^63, got -1"),
        (["SCENE", "--out", ""], "it must name a folder, got ''"),
        (["SCENE", "--out", "a\nb"], "it must name a folder, got 'a\\nb'"),
        (["SCENE", "--checkpoint", "lots"], "`--checkpoint` must be a size"),
        (["SCENE", "--checkpoint", "1kB"], "`--checkpoint` must have room for two states"),
        (["SCENE", "--checkpoint", f"1{'0' * 400}MB"], "`--checkpoint` must be a size"),
    ],
)
def test_a_users_mistake_is_one_message(adjsim, monkeypatch, tmp_path, scene, arguments, message):
    monkeypatch.chdir(tmp_path)
    err = adjsim.refused("run", *(str(scene) if word == "SCENE" else word for word in arguments))
    assert message in err
    assert len(err) < 2000
    assert not list(tmp_path.iterdir())


def test_a_first_run_says_that_it_compiles(adjsim, monkeypatch, tmp_path):
    monkeypatch.setattr(backend, "JIT_DISABLED", False)
    monkeypatch.setattr(backend, "CACHE_DIR", tmp_path / "kernels")
    for command in ("run", "preview", "check", "scan", "dataset"):
        err = adjsim.refused(command, "missing")
        assert f"compiled on first use, in about a minute, and kept in {tmp_path}" in err
    (tmp_path / "kernels" / "forces").mkdir(parents=True)
    assert "compiled" in adjsim("scan", "missing")[2]
    (tmp_path / "kernels" / "forces" / "spring.nbc").touch()
    assert "compiled" not in adjsim("scan", "missing")[2]


def test_cuda_without_a_gpu_names_the_way_out(adjsim, scene, monkeypatch, tmp_path):
    monkeypatch.setattr("adjsim.jit.devices.cuda_problem", lambda: "no CUDA GPU was found.")
    err = adjsim.refused("run", scene, "--device", "cuda", "--out", tmp_path / "run")
    assert "no CUDA GPU was found" in err
    assert "--device cpu" in err


def test_a_folder_that_is_taken_is_refused_before_anything_is_compiled(
    adjsim, scene, tmp_path, monkeypatch
):
    def make(*args, **kwargs):
        raise AssertionError("That takes minutes.")

    monkeypatch.setattr("studies.fitting.running.make_fit", make)
    (tmp_path / "thesis.tex").touch()
    assert "is not empty. Choose another folder." in adjsim.refused("run", scene, "--out", tmp_path)


def test_report_of_an_empty_folder_is_one_message(adjsim, tmp_path):
    assert "is not a run folder" in adjsim.refused("report", tmp_path)


@pytest.mark.parametrize(
    ("name", "message"), [("a.bmp", "must name a .png file"), ("nodir/x.png", "there is no")]
)
def test_a_screenshot_goes_to_a_png_in_a_folder_that_exists(adjsim, tmp_path, name, message):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_json(MANIFEST, {"verb": "run", "target": "beam", "study": "scene"})
    folder.write_npz(TRAJECTORY, times=np.zeros(1), objects=np.array(["cube"]))
    assert message in adjsim.refused("view", folder.path, "--screenshot", tmp_path / name)


def test_traceback_on_request(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["adjsim", "--traceback", "run", "identfy"])
    with pytest.raises(ValueError, match="Did you mean"):
        cli.main()


@pytest.mark.parametrize("name", ["run", "scan", "preview", "check", "inspect", "report"])
def test_a_slow_command_says_what_it_does_before_it_loads_anything(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["adjsim", name, "no-such-thing"])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == cli.USER_ERROR
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert first.endswith(" ...")
    assert second.startswith("adjsim: ")
