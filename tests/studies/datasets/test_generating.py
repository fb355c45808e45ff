"""A data set from the command line to its files; stopped, killed and resumed to the same bytes."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from studies import running
from studies.datasets import generating
from studies.datasets.spec import Asked
from studies.errors import StudyError
from studies.registry import STUDIES
from studies.scans import scanning
from studies.scene.files import bundled_scenes
from tests.studies.datasets.toy import TOY, made


FILES = {
    "study.toml", "dataset.json", "manifest.json", "index.json", "shard-00000.h5",
    "shard-00001.h5", "result.json", "report.html", "report.json",
    "contact-sheet.png", "preview.mp4", "figures",
}  # fmt: skip
SAME = ("index.json", "shard-00000.h5", "shard-00001.h5", "contact-sheet.png")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A whole toy data set."""
    return made(folder=tmp_path_factory.mktemp("datasets") / "toy")


@pytest.mark.usefixtures("unpainted")
def test_the_command_leaves_a_whole_folder(adjsim, finished, tmp_path):
    out = tmp_path / "new"
    code, told, err = adjsim("dataset", "rigid", *TOY, "--count", 6, "--out", out)
    assert code == 0
    assert {path.name for path in out.iterdir()} == FILES
    assert "scenes: 6: 5 train, 1 test" in told
    assert "diverged: 0 scenes" in told
    assert "scene 6/6" in err
    for name in SAME:
        assert (out / name).read_bytes() == finished.file(name).read_bytes(), name
    code, told, _ = adjsim("dataset", "--verify", out)
    assert code == 0
    assert "2 of 2 shards are whole" in told


def test_the_report_is_one_self_contained_file(finished, adjsim):
    text = finished.file("report.html").read_text()
    assert "data:video/mp4;base64," in text
    assert text.count("data:image/png;base64,") == 2
    assert "parameters/friction_stiffness" in text
    assert not re.search(r'(src|href)="(?!data:)', text)
    code, told, _ = adjsim("report", finished.path)
    assert code == 0
    assert told.splitlines()[-1] == str(finished.file("report.html"))


@pytest.mark.usefixtures("unpainted")
def test_one_that_was_stopped_ends_with_the_same_bytes(finished, tmp_path, monkeypatch, adjsim):
    out, make, left = tmp_path / "stopped", generating.make_scenes, [2]

    def stop(*args):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return make(*args)

    monkeypatch.setattr(generating, "make_scenes", stop)
    monkeypatch.setattr(generating, "AT_ONCE", 3)
    code, _, err = adjsim("dataset", "rigid", *TOY, "--count", 6, "--out", out)
    assert code == 130
    assert f"adjsim dataset rigid --out {out} --resume" in err
    code, told, _ = adjsim("dataset", "--verify", out)
    assert code == 1
    assert "4 of 6 scenes are made: go on with `--resume`" in told
    code, _, err = adjsim("report", out)
    assert code == 2
    assert "is not whole. Go on with it: `adjsim dataset rigid" in err
    monkeypatch.undo()
    code, told, _ = adjsim("dataset", "rigid", "--out", out, "--resume")
    assert code == 0
    assert "4 scenes are in shards already" in told
    for name in SAME:
        assert (out / name).read_bytes() == finished.file(name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.usefixtures("unpainted")
def test_one_that_was_killed_ends_with_the_same_bytes(finished, tmp_path, adjsim):
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "tests.studies.run_adjsim", "dataset", "rigid", *TOY]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = subprocess.Popen(
        [*command, "--count", "6", "--out", str(out)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 300.0
    while not (out / "index.json").exists() and started.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    started.send_signal(signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL  # it had not ended by itself
    assert (out / "study.toml").exists()
    code, _, _ = adjsim("dataset", "rigid", "--out", out, "--resume")
    assert code == 0
    assert not list(out.glob(".part-*"))
    for name in SAME:
        assert (out / name).read_bytes() == finished.file(name).read_bytes(), name


def test_a_data_set_is_not_resumed_as_another(finished, tmp_path):
    changed = {
        "`--count` = 6, not 7": Asked("rigid", (), 7),
        "`--seed` = 0, not 4": Asked("rigid", options={"seed": 4}),
        "`image.height` = 12, not 24": Asked("rigid", ("image.height=24",)),
    }
    for message, asked in changed.items():
        with pytest.raises(StudyError, match=message):
            generating.resume(asked, finished.path)
    with pytest.raises(StudyError, match="`--resume` needs the data set's folder"):
        generating.resume(Asked("rigid"), None)
    with pytest.raises(StudyError, match=r"`--out` .* holds another run"):
        generating.start(Asked("rigid", TOY), finished.path)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "dataset.json").write_text("{")  # of a start that was killed
    begun, _ = generating.resume(Asked("rigid", TOY, 6), tmp_path / "new")
    assert begun.has("dataset.json")
    assert not begun.has("index.json")


def test_a_data_set_is_neither_run_nor_scan(finished, adjsim, tmp_path):
    with pytest.raises(StudyError, match=r"holds a data set\. Go on with it by `adjsim dataset`"):
        running.resume("beam", (), finished.path, {})
    with pytest.raises(
        StudyError,
        match=r"holds a data set, not a scan\. Go on with it by `adjsim dataset .* --resume`",
    ):
        scanning.resume(scanning.Asked("beam"), finished.path)
    code, _, err = adjsim("view", finished.path)
    assert code == 2
    assert "holds a data set, not one motion" in err
    code, _, err = adjsim("dataset", "--verify", tmp_path)
    assert code == 2
    assert "is not a run folder" in err


def test_a_run_is_no_data_set(tmp_path):
    for name, text in (("study.toml", 'study = "beam"\n'), ("manifest.json", "{}")):
        (tmp_path / name).write_text(text)
    with pytest.raises(StudyError, match="holds no data set"):
        generating.verify(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name a data set: rigid"),
        (["rigit"], "Did you mean `rigid`"),
        (["rigid", "--count", "0"], "`--count` must be a whole number of at least 1"),
        (["rigid", "--seed", "-1"], "`--seed` must be 0 or more, got -1"),
        (["rigid", "body.radios=2.0"], "Did you mean `body.radius`"),
        (["rigid", "count=3"], "It is an option: `--count`"),
        (["mine.toml"], "There is no dataset file mine.toml"),
        (["rigid", "--resume"], "add `--out DIR`"),
    ],
)
def test_a_users_mistake_is_one_message(adjsim, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = adjsim("dataset", *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_a_file_of_ones_own_is_a_data_set(tmp_path, adjsim):
    path = tmp_path / "mine.toml"
    path.write_text('dataset = "rigid"\n[body]\nshapes = ["torus"]\n[time]\nframes = 1\n')
    code, told, err = adjsim(
        "dataset", path, "time.steps=4", "time.most_steps=4", "image.height=8", "image.width=8",
        "--count", 1, "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 0, err
    assert "scenes: 1: 1 train, 0 test" in told


def test_the_list_names_studies_scans_and_data_sets(adjsim):
    code, told, _ = adjsim("list")
    assert code == 0
    names = [line.split()[0] for line in told.splitlines() if line.startswith("  ")]
    scenes = list(bundled_scenes())
    assert names[: len(scenes) + len(STUDIES)] == [*scenes, *STUDIES]
    assert {"figure-4a", "figure-11b", "rigid"} <= set(names)
