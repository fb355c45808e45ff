import fcntl
import gc
import subprocess
import sys
from contextlib import contextmanager
from multiprocessing import get_context
from weakref import ref

import pytest

from studies import claims
from studies.claims import claim
from studies.errors import StudyError
from studies.run_folder import MANIFEST, STUDY, RunFolder


HOLD = """
import sys, time
from pathlib import Path
from weakref import ref
from studies.claims import claim
held = claim(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@contextmanager
def held_elsewhere(path):
    """Have another process claim a folder; it is killed where the block ends."""
    command = [sys.executable, "-c", HOLD, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield
        finally:
            process.kill()


def test_what_another_process_writes_to_cannot_be_claimed_until_that_is_killed(tmp_path):
    with held_elsewhere(tmp_path):
        for _ in range(2):
            with pytest.raises(StudyError, match=r"is being written by another command"):
                claim(tmp_path)
    claim(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_process_may_claim_again_what_it_holds_and_others_when_it_is_released(tmp_path):
    held = claim(tmp_path)
    assert claim(tmp_path / ".." / tmp_path.name) is held
    held.release()
    held.release()
    with held_elsewhere(tmp_path), pytest.raises(StudyError):
        claim(tmp_path)


def test_a_claim_ends_with_what_holds_it(tmp_path):
    folders = [RunFolder.create(tmp_path / str(k)) for k in range(3)]
    paths, held = [folder.path for folder in folders], [ref(folder.claim) for folder in folders]
    assert all(one() is not None for one in held)
    del folders
    gc.collect()
    assert all(one() is None for one in held)
    for path in paths:
        with held_elsewhere(path):
            pass


def test_a_folder_that_is_made_anew_is_claimed_anew(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    old = claim(path)
    path.rmdir()
    path.mkdir()
    again = claim(path)
    assert again is not old
    with pytest.raises(AssertionError), held_elsewhere(path):  # it ends without a word
        pass
    again.release()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_holds_nothing_and_lets_nothing_go(tmp_path):
    held = claim(tmp_path)
    context = get_context("fork")
    ready, done = context.Event(), context.Event()

    def wait():
        ready.set()
        done.wait(60)

    child = context.Process(target=wait)
    child.start()
    assert ready.wait(60)
    with pytest.raises(AssertionError), held_elsewhere(tmp_path):
        pass
    held.release()
    with held_elsewhere(tmp_path):  # while the child lives
        assert child.is_alive()
    done.set()
    child.join()


def test_a_run_that_is_at_work_is_neither_gone_on_with_nor_begun_again(tmp_path):
    with held_elsewhere(tmp_path):
        with pytest.raises(StudyError, match="another command"):
            RunFolder.create(tmp_path)
        (tmp_path / MANIFEST).write_text("{}")
        with pytest.raises(StudyError, match="another command"):
            RunFolder.clear_unbegun(tmp_path, "run")
        assert (tmp_path / MANIFEST).exists()
        (tmp_path / STUDY).write_text("")
        assert RunFolder.open(tmp_path).has(MANIFEST)  # to read is allowed
        with pytest.raises(StudyError, match="another command"):
            RunFolder.reopen(tmp_path)
    assert RunFolder.reopen(tmp_path).has(MANIFEST)


def test_where_there_are_no_locks_every_claim_is_granted(tmp_path, monkeypatch):
    with held_elsewhere(tmp_path):
        monkeypatch.setattr(claims, "fcntl", None)
        claim(tmp_path).release()
        monkeypatch.undo()

        def unsupported(place, how):
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(fcntl, "flock", unsupported)
        claim(tmp_path).release()
        monkeypatch.undo()
        with pytest.raises(StudyError):
            claim(tmp_path)
