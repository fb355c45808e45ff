import fcntl
import subprocess
import sys
from contextlib import contextmanager

import pytest

from studies import claims
from studies.claims import claim, release
from studies.errors import StudyError
from studies.run_folder import MANIFEST, STUDY, RunFolder


HOLD = """
import sys, time
from pathlib import Path
from studies.claims import claim
claim(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@contextmanager
def held_elsewhere(path):
    """Have another process claim a folder; it is killed where the block ends."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()


@pytest.fixture
def folder(tmp_path):
    """A folder that nobody has claimed, released in the end."""
    yield tmp_path
    release(tmp_path)


def test_what_another_process_writes_to_cannot_be_claimed_until_that_is_killed(folder):
    with held_elsewhere(folder):
        for _ in range(2):
            with pytest.raises(
                StudyError, match=r"is being written by another command. Wait until"
            ):
                claim(folder)
    claim(folder)
    assert not list(folder.iterdir())


def test_a_process_may_claim_again_what_it_holds_and_others_when_it_is_released(folder):
    claim(folder)
    claim(folder / ".." / folder.name)
    release(folder)
    release(folder)
    with held_elsewhere(folder), pytest.raises(StudyError):
        claim(folder)


def test_a_run_that_is_at_work_is_neither_gone_on_with_nor_begun_again(folder):
    with held_elsewhere(folder):
        with pytest.raises(StudyError, match="another command"):
            RunFolder.create(folder)
        (folder / MANIFEST).write_text("{}")
        with pytest.raises(StudyError, match="another command"):
            RunFolder.clear_unbegun(folder, "run")
        assert (folder / MANIFEST).exists()
        (folder / STUDY).write_text("")
        assert RunFolder.open(folder).has(MANIFEST)  # to read is allowed
        with pytest.raises(StudyError, match="another command"):
            RunFolder.reopen(folder)
    assert RunFolder.reopen(folder).has(MANIFEST)


def test_where_there_are_no_locks_every_claim_is_granted(folder, monkeypatch):
    with held_elsewhere(folder):
        monkeypatch.setattr(claims, "fcntl", None)
        claim(folder)
        monkeypatch.undo()

        def unsupported(place, how):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(fcntl, "flock", unsupported)
        claim(folder)
        monkeypatch.undo()
        with pytest.raises(StudyError):
            claim(folder)
