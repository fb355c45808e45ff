"""Kernels of a scene are compiled for this machine by `adjsim warm`, by two processes."""

import json
import os
import subprocess
import sys

import pytest
from filelock import FileLock

from adjsim.jit import backend, kernel_pack
from studies.cli import main as cli, warming


class Started:
    """Stands in for a process, and notes how it was started and ended."""

    def __init__(self, command, **options):
        self.command, self.options, self.ended = command, options, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def terminate(self):
        self.ended = True


@pytest.fixture
def started(monkeypatch):
    processes = []

    def start(command, **options):
        processes.append(Started(command, **options))
        return processes[-1]

    monkeypatch.setattr(warming.subprocess, "Popen", start)
    return processes


def test_another_process_compiles_during_a_block_and_ends_with_it(started, monkeypatch):
    monkeypatch.setattr(backend, "PRIVATE", object())
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    with warming.compiling_beside("beam", ["dtype=float64"]):
        assert not started[0].ended
    assert started[0].ended
    assert started[0].command[-2:] == ["beam", "dtype=float64"]


def test_cores_are_counted_where_there_is_no_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert warming._cores() == 3


def test_one_process_warms_at_a_time(monkeypatch, capsys):
    monkeypatch.setattr(warming, "_run", lambda *_: pytest.fail("it runs"))
    with FileLock(backend.CACHE_DIR / "warming.lock"):
        assert warming.warm("beam", []) == 0
    assert "compiles kernels already" in capsys.readouterr().err


@pytest.mark.parametrize("why", ["one core", "no shared cache"])
def test_alone_where_another_process_is_of_no_use(started, monkeypatch, why):
    monkeypatch.setattr(backend, "PRIVATE", None if why == "no shared cache" else object())
    cores = {0} if why == "one core" else {0, 1}
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: cores)
    with warming.compiling_beside("beam", []):
        assert not started


def previewed(monkeypatch, tmp_path, new):
    monkeypatch.setattr(kernel_pack, "new_kernels", new)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("studies.reports.preview.showing.preview", lambda *args, **options: [])
    arguments = ["adjsim", "preview", "beam", "--out", str(tmp_path / "beam.png")]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, None)


def test_a_preview_warms_in_the_background_what_is_not_in_the_cache(
    started, monkeypatch, tmp_path, capsys
):
    previewed(monkeypatch, tmp_path, set())
    assert not started
    previewed(monkeypatch, tmp_path, {"loop"})
    assert started[0].command[-2:] == ["warm", "beam"]
    assert started[0].options["start_new_session"]
    assert "compiled in the background" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.skipif(backend.JIT_DISABLED, reason="asks for kernels")
def test_a_run_after_warming_finds_all_kernels(tmp_path):
    def adjsim(*arguments):
        done = subprocess.run(
            [*warming.COMMAND, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "for this machine" in adjsim("warm", "pendulum")
    adjsim("run", "pendulum", warming.FEW, "--out", "run")
    (processor,) = json.loads((tmp_path / "run" / "result.json").read_text())["kernels"]
    assert "wheel" not in processor


def test_what_is_wrong_with_a_scene_is_said_once(tmp_path):
    done = subprocess.run(
        [*warming.COMMAND, "warm", "no-such-scene"], capture_output=True, text=True, check=False
    )
    assert done.returncode == cli.USER_ERROR
    assert done.stderr.count("adjsim: ") == 1
