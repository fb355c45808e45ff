"""A run folder is written whole or not at all, and nothing leads out of it."""

import errno
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from studies.runs.errors import StudyError
from studies.runs.files import append_record, read_records
from studies.runs.folder import MANIFEST, RunFolder, new_folder


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run")


def test_json_and_arrays_come_back(folder):
    folder.write_json("a.json", {"x": 0.1})
    folder.write_npz("b.npz", x=np.arange(3.0), names=np.array(["mu", "lam"]))
    assert folder.read_json("a.json") == {"x": 0.1}
    arrays = folder.read_npz("b.npz")
    assert arrays["x"].tolist() == [0.0, 1.0, 2.0]
    assert arrays["names"].tolist() == ["mu", "lam"]


def test_a_failed_write_leaves_the_old_file_and_no_part(folder):
    folder.write_text("a.txt", "old")

    def fail():
        with folder.replacing("a.txt") as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert folder.file("a.txt").read_text() == "old"
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "a.txt"]


def test_objects_are_no_data(folder):
    with pytest.raises(TypeError, match="no objects"):
        folder.write_npz("b.npz", x=np.array([object()]))


def test_a_number_that_is_not_finite_is_no_json(folder):
    with pytest.raises(ValueError, match="not JSON compliant"):
        folder.write_json("a.json", {"x": float("nan")})


def test_a_name_cannot_lead_out_of_the_folder(folder):
    with pytest.raises(StudyError, match="leads out"):
        folder.write_text("../a.txt", "x")


def test_a_folder_with_a_run_asks_for_resume(folder):
    folder.write_json(MANIFEST, {})
    with pytest.raises(StudyError, match=r"holds another run.*--resume"):
        RunFolder.create(folder.path)


@pytest.mark.parametrize("name", ["thesis.tex", ".part-notes"])
def test_a_folder_with_other_files_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(StudyError, match=r"is not empty. Choose another"):
        RunFolder.create(tmp_path)


def test_a_file_is_no_folder_for_a_run(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StudyError, match=r"thesis.tex is a file. Name a folder, new or empty"):
        RunFolder.create(tmp_path / "thesis.tex")
    with pytest.raises(StudyError, match=r"thesis.tex/run cannot be made: Not a directory"):
        RunFolder.create(tmp_path / "thesis.tex" / "run")


def test_what_is_no_run_folder_is_told_why(tmp_path):
    (tmp_path / "thesis.tex").touch()
    for name, why in (
        ("", "it has no manifest.json"),
        ("thesis.tex", "it is a file"),
        ("thesys", "there is nothing of that name"),
    ):
        with pytest.raises(StudyError, match=f"is not a run folder: {why}. Name one that"):
            RunFolder.open(tmp_path / name)


def test_a_folder_without_a_run_cannot_be_opened(tmp_path):
    with pytest.raises(StudyError, match="not a run folder"):
        RunFolder.open(tmp_path)


def test_a_missing_file_says_how_to_finish_the_run(folder):
    with pytest.raises(StudyError, match="Finish it with `adjsim run SCENE --out"):
        folder.read_json("result.json")
    folder.write_json(MANIFEST, {"verb": "scan", "target": "figure-4a"})
    with pytest.raises(StudyError, match="Finish it with `adjsim scan figure-4a --out"):
        folder.read_json("result.json")


def test_what_goes_on_with_a_run_can_be_pasted(tmp_path):
    folder = RunFolder.create(tmp_path / "my runs" / "it's one")
    command, *rest = shlex.split(folder.how_to_go_on())
    assert (command, rest) == ("adjsim", ["run", "SCENE", "--out", str(folder.path), "--resume"])


def test_parts_of_a_killed_run_are_cleared_and_nothing_else(folder):
    folder.file("figures/.part-1-a.png").touch()
    for name in ("scan.json", ".hidden", ".part-notes"):
        folder.file(name).write_text("mine")
    folder.clear_parts()
    left = sorted(path.name for path in folder.path.rglob("*"))
    assert left == [".hidden", ".lock", ".part-notes", "figures", "scan.json"]


def read_records_of(data):
    return [{"x": 0.1, "k": k, "y": list(range(30))} for k in range(data.count(b"\n"))]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"[1, 2, 3]\n",
        lambda data: b'"text"\n',
        lambda data: b"[" * 100_000 + b"\n",
        lambda data: data.replace(b"0.1", b"0.2"),
        lambda data: data[:99] + bytes([data[99] ^ 1]) + data[100:],
        lambda data: np.random.default_rng(0).bytes(300) + b"\n",
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.npz", "a.jsonl"])
def test_a_damaged_file_is_named_with_the_way_out(folder, name, damage):
    folder.write_json(MANIFEST, {"verb": "run", "target": "beam"})
    folder.write_json("a.json", {"x": 0.1, "y": list(range(30))})
    folder.write_npz("a.npz", x=np.linspace(0.0, 0.1, 300))
    for k in range(3):
        append_record(folder.file("a.jsonl"), {"x": 0.1, "k": k, "y": list(range(30))})
    path = folder.file(name)
    before = path.read_bytes()
    path.write_bytes(damage(before))
    if path.read_bytes() == before:  # what is packed has no such text
        return
    read = {"a.json": folder.read_json, "a.npz": folder.read_npz}
    if name == "a.jsonl" and before.startswith(path.read_bytes()):  # complete lines are kept
        assert read_records(path) == read_records_of(before)[: path.read_bytes().count(b"\n")]
        return
    with pytest.raises(StudyError, match=r"is damaged.*--resume") as error:
        read[name](name) if name in read else read_records(path)
    assert str(path) in str(error.value)


def test_a_damaged_manifest_asks_for_another_folder(folder):
    folder.write_text(MANIFEST, "{}")
    with pytest.raises(StudyError, match=r"manifest.json is damaged.*Start again in another"):
        folder.how_to_go_on()


def test_a_line_that_is_cut_short_is_dropped_and_the_next_follows(tmp_path):
    log = tmp_path / "log.jsonl"
    assert read_records(log) == []
    append_record(log, {"k": 0})
    append_record(log, {})
    with log.open("a") as stream:
        stream.write('{"k": 1')
    assert read_records(log) == [{"k": 0}, {}]
    assert log.read_text().endswith('{"k": 1')  # only who writes may cut
    assert read_records(log, cut=True) == [{"k": 0}, {}]
    append_record(log, {"k": 2})
    assert read_records(log) == [{"k": 0}, {}, {"k": 2}]


@pytest.mark.parametrize("taken", [0, 30])
def test_a_full_disk_is_one_message_and_leaves_what_was_there(folder, monkeypatch, taken):
    log = folder.file("log.jsonl")
    append_record(log, {"k": 0})
    folder.write_text("a.txt", "old")
    real, left = os.write, [taken]

    def full(descriptor, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        head, left[0] = data[: left[0]], 0
        return real(descriptor, head)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StudyError, match=r"log.jsonl cannot be written: No space left.*resume"):
            append_record(log, {"k": 1, "text": "some more than thirty characters"})
    assert read_records(log) == [{"k": 0}]

    def no_room():
        with folder.replacing("a.txt") as temporary:
            temporary.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StudyError, match=r"a.txt cannot be written: No space left.*Make room"):
        no_room()
    assert folder.file("a.txt").read_text() == "old"
    assert not list(folder.path.glob(".part*"))


HOLD = """
import sys, time
from pathlib import Path
from studies.runs.folder import RunFolder
folder = RunFolder(Path(sys.argv[1]))
folder.lock()
print("held", flush=True)
time.sleep(600)
"""


def test_of_two_commands_that_write_to_one_folder_the_second_is_refused(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            for _ in range(2):
                with pytest.raises(StudyError, match="is being written by another command"):
                    RunFolder.create(tmp_path)
            RunFolder(tmp_path).write_json(MANIFEST, {})
            assert RunFolder.open(tmp_path).read_json(MANIFEST) == {}  # to read is allowed
            with pytest.raises(StudyError, match="is being written by another command"):
                RunFolder.reopen(tmp_path)
        finally:
            process.kill()
    folder = RunFolder.reopen(tmp_path)
    assert RunFolder.reopen(tmp_path).path == folder.path  # a process may lock it again


def test_default_folders_are_numbered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new_folder("beam").as_posix() == "runs/beam-001"
    (tmp_path / "runs" / "beam-002").touch()
    assert new_folder("beam").as_posix() == "runs/beam-003"
    assert RunFolder.create(new_folder("beam")).path == tmp_path / "runs" / "beam-004"


def test_commands_that_start_together_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(new_folder, ["beam"] * 40))
    assert len(set(made)) == 40


def test_a_default_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").touch()
    with pytest.raises(StudyError, match=r"runs/beam-001 cannot be made: Not a directory"):
        new_folder("beam")


FULL = """
import resource
import sys

import numpy as np
import xarray

from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder

data = xarray.Dataset({"loss": ("x", np.random.default_rng(0).random(5000))})
resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))  # as on a full disk
try:
    RunFolder(sys.argv[1]).write_dataset("scan.nc", data)
except StudyError as error:
    print(error)
"""


def test_a_data_set_that_does_not_fit_on_the_disk_is_an_error_and_no_crash(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "scan.nc cannot be written: File too large. Make room on that drive" in done.stdout
    assert list(tmp_path.iterdir()) == []
