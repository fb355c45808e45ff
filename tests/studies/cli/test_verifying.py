"""`adjsim verify` as a user meets it: the table, JSON, and the exit status."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from adjoint.verify.coverage import Coverage, check_system, verify
from studies.cli import verifying
from tests.studies.command import Command


command = Command("verify")


def test_a_system_is_checked_and_told_as_a_table():
    printed = command.done("loss/mse")
    cells = check_system("loss/mse").cells
    lines = [line for line in printed.splitlines() if line.startswith("loss/mse")]
    assert len(lines) == len(cells)
    assert all(line.rstrip().endswith("pass") for line in lines)
    assert f"{len(cells)} checked, 0 failed" in printed


def test_the_same_as_json():
    printed = command.done("loss/mse", "--json")
    report = json.loads(printed)
    assert report["passed"] is True
    (cell,) = check_system("loss/mse").cells
    (mine,) = report["cells"]
    assert {**mine, "seconds": 0.0} == {**cell.to_dict(), "seconds": 0.0}


def test_what_fails_or_is_missing_is_named_and_ends_with_1(monkeypatch):
    (cell,) = check_system("loss/mse").cells
    bad = replace(cell, slope=1.0, reason="Taylor: slope 1.000 below 1.9")
    for coverage, line in (
        (Coverage((bad,), ()), "FAIL: Taylor: slope 1.000 below 1.9"),
        (Coverage((cell,), ("Springs.damping",)), "not covered: Springs.damping"),
    ):
        monkeypatch.setattr(verifying, "verify", lambda *_, coverage=coverage, **__: coverage)
        code, printed, _ = command()
        assert code == 1
        assert line in printed
        code, printed, _ = command("--json")
        assert code == 1
        assert json.loads(printed)["passed"] is False


def test_an_unknown_system_is_named():
    assert "Did you mean `loss/mse`" in command.refused("los/mse")


def test_one_system_starts_no_process(monkeypatch):
    monkeypatch.setattr("adjoint.verify.coverage.ProcessPoolExecutor", None)
    assert verify("loss/mse", processes=2).passed


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(("stop", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_stops_the_command_ends_its_processes_without_tracebacks(stop, code):
    # As from a terminal: what a shell runs in the background would not feel Ctrl-C.
    command = "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command += "os.cpu_count = lambda: 2; from studies.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "verify", "tets"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "checking tets ...\n"
        for _ in range(100):  # until the workers are there
            time.sleep(0.1)
            if len(_group(process.pid)) >= 3:
                break
        if stop == signal.SIGINT:  # a terminal sends it to all
            os.killpg(process.pid, stop)
        else:
            process.send_signal(stop)
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == code
        assert printed.strip().splitlines()[-1] == "Interrupted."
        assert "Traceback" not in printed
        for _ in range(100):
            if not _group(process.pid):
                break
            time.sleep(0.1)
        assert not _group(process.pid)
    finally:
        process.kill()


def _group(leader):
    """Return the processes of a group that run, its leader among them."""
    running = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has just ended
            continue
        if int(group) == leader and state != "Z":
            running.append(stat)
    return running
