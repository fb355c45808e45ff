"""Scans over processes of this machine, some of which are killed: the same files to the bit."""

import os
import signal
import subprocess
import sys
import time

import pytest

from studies.scans import scanning
from studies.scans.dataset import POINTS
from studies.scans.survey import Survey
from tests.studies.runs.items import Killing
from tests.studies.scans.lasting import SOON
from tests.studies.scans.toy import CUBE, MASS, asked, grid_of, run
from tests.studies.undrawn import undrawn


OVER = (f"{MASS}=0.5:2.5:{2 * SOON}",)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The scan, made here; `test_scanning` looks at its figures, and at those of all others."""
    with undrawn():
        return run(tmp_path_factory.mktemp("scans") / "whole", "pushed-cube", CUBE, *OVER)[0]


FRAMES = "observations.film.simulate.frames=1:3:2"


def same(folder, other):
    """Whether two scans have the same bits."""
    for name in (POINTS, "scan.nc"):
        assert folder.file(name).read_bytes() == other.file(name).read_bytes(), name


@pytest.mark.usefixtures("unpainted")
def test_a_scan_whose_worker_is_killed_has_the_same_bits(whole, tmp_path):
    pool = Killing(tmp_path / "killed")
    folder, job = scanning.start(asked("pushed-cube", CUBE, OVER), tmp_path / "scan", pool)
    job.run(folder)
    same(folder, whole)


def test_pieces_share_their_settings_and_are_many_enough_for_all_workers():
    survey = Survey(grid_of("pushed-cube", CUBE, f"{MASS}=1:2:20", FRAMES).scan)
    order = survey.grid.order()
    assert [len(piece) for piece in survey.pieces(order)] == [16, 4, 16, 4]
    assert {len(piece) for piece in survey.pieces(order, workers=2)} == {5}
    assert [len(piece) for piece in survey.pieces(order[30:33], workers=8)] == [1, 1, 1]
    assert [i for piece in survey.pieces(order, workers=3) for i in piece] == order


def started(out):
    """Start the command, which cannot end, with two workers; wait until a point is written."""
    command = [
        sys.executable, "-m", "tests.studies.scans.run_lasting", "scan", "pushed-cube", *CUBE,
    ]  # fmt: skip
    process = subprocess.Popen(
        [*command, "--over", *OVER, "--out", str(out), "--scheduler", "local:2"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120.0
    try:
        while not ((out / POINTS).exists() and (out / POINTS).stat().st_size):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.005)
    except BaseException:  # also where the tests are stopped: it does not end by itself
        process.kill()
        raise
    return process


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("by", ["kill", "Ctrl-C"])
def test_a_client_that_ends_early_keeps_what_came(by, whole, tmp_path):
    out = tmp_path / "stopped"
    process = started(out)
    try:
        if by == "kill":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to workers too
        errors = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    if by == "Ctrl-C":
        assert process.returncode == 130
        assert f"--out {out} --resume --scheduler local:2" in errors
        assert "Traceback" not in errors
    assert not (out / "report.html").exists()
    assert (out / POINTS).read_bytes().count(b"\n") <= SOON
    folder, job = scanning.start(asked("pushed-cube"), out, resume=True)
    job.run(folder)
    same(folder, whole)
