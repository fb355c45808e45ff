"""A run folder is written whole or not at all, and nothing leads out of it."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from studies import running
from studies.errors import StudyError
from studies.run_folder import MANIFEST, SCAN, SPEC, STUDY, RunFolder, new_folder


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
        with folder.replacing("a.txt") as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert folder.file("a.txt").read_text() == "old"
    assert [path.name for path in folder.path.iterdir()] == ["a.txt"]


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


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
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
        ("", "it has no manifest.json or no study.toml"),
        ("thesis.tex", "it is a file"),
        ("thesys", "there is nothing of that name"),
    ):
        with pytest.raises(StudyError, match=f"is not a run folder: {why}. Name one that"):
            RunFolder.open(tmp_path / name)


@pytest.fixture
def no_job(monkeypatch):
    """A study that prepares nothing: only its folder is looked at."""
    idle = SimpleNamespace(module="studies.bounce", prepare=lambda values, options: None)
    monkeypatch.setattr(running, "find_study", lambda kind: idle)


@pytest.mark.parametrize(
    "left", [(), (MANIFEST,), (".part-12-manifest.json",), (MANIFEST, SCAN), (MANIFEST, SPEC)]
)
@pytest.mark.usefixtures("no_job")
def test_a_run_killed_before_it_began_is_begun_again(tmp_path, left):
    for name in left:
        (tmp_path / name).write_text("{")
    folder, _ = running.resume("bounce", (), tmp_path, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, STUDY]
    assert folder.read_json(MANIFEST)["resumed"] == []
    folder, _ = running.resume("bounce", (), tmp_path, {})
    assert len(folder.read_json(MANIFEST)["resumed"]) == 1


@pytest.mark.usefixtures("no_job")
def test_a_killed_start_leaves_no_study_without_its_manifest(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "manifest", lambda *_: pytest.fail("killed"))
    with pytest.raises(pytest.fail.Exception):
        running.start("bounce", (), tmp_path, {})
    assert not list(tmp_path.iterdir())


def test_where_nothing_is_to_resume_it_is_said(tmp_path, capsys):
    assert RunFolder.clear_unbegun(tmp_path / "new", "scan")
    assert "/new holds no scan to resume: a new one begins\n" in capsys.readouterr().out
    (tmp_path / "thesis.tex").touch()
    assert not RunFolder.clear_unbegun(tmp_path, "scan")
    assert not RunFolder.clear_unbegun(tmp_path / "thesis.tex", "scan")
    assert capsys.readouterr().out == ""
    with pytest.raises(StudyError, match=r"thesis.tex is not a run folder.*`adjsim scan`"):
        RunFolder.open(tmp_path / "thesis.tex")


@pytest.mark.parametrize("name", ["thesis.tex", STUDY])
def test_a_folder_of_other_files_is_not_taken_for_a_killed_run(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(StudyError, match="not a run folder"):
        running.resume("bounce", (), tmp_path, {})
    assert (tmp_path / name).read_text() == "mine"


def test_a_folder_without_a_run_cannot_be_opened(tmp_path):
    with pytest.raises(StudyError, match="not a run folder"):
        RunFolder.open(tmp_path)


def test_a_missing_file_says_how_to_finish_the_run(folder):
    with pytest.raises(StudyError, match="Finish it with `adjsim run STUDY --out"):
        folder.read_json("result.json")
    folder.write_json("manifest.json", {"study": "beam"})
    with pytest.raises(StudyError, match="Finish it with `adjsim run beam --out"):
        folder.read_json("result.json")
    folder.write_json(SCAN, {"scan": "figure-4a"})
    with pytest.raises(StudyError, match="Finish it with `adjsim scan figure-4a --out"):
        folder.read_json("result.json")


def test_what_goes_on_with_a_run_can_be_pasted(tmp_path):
    folder = RunFolder.create(tmp_path / "my runs" / "it's one")
    command, *rest = shlex.split(folder.how_to_go_on())
    assert (command, rest) == ("adjsim", ["run", "STUDY", "--out", str(folder.path), "--resume"])


def test_broken_json_is_named(folder):
    folder.write_text("a.json", "{")
    with pytest.raises(StudyError, match="not valid JSON"):
        folder.read_json("a.json")


def test_parts_of_a_killed_run_are_cleared(folder):
    folder.file("figures/.part-1-a.png").touch()
    folder.clear_parts()
    assert not list(folder.path.rglob(".part*"))


def test_a_start_that_was_killed_is_cleared_with_its_folders(tmp_path):
    (tmp_path / ".part-12-figures" / "deep").mkdir(parents=True)
    (tmp_path / MANIFEST).touch()
    assert RunFolder.clear_unbegun(tmp_path, "run")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_named_as_a_manifest_is_left_alone(tmp_path):
    (tmp_path / MANIFEST).mkdir()
    assert not RunFolder.clear_unbegun(tmp_path, "run")
    assert (tmp_path / MANIFEST).is_dir()


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
