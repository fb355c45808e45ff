"""The cache of kernels: private, pruned, and compiled again where a file in it is damaged."""

import errno
import logging
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from numba.core.errors import TypingError

from adjsim.jit import backend, kernel_cache, numba_private
from adjsim.jit.backend import cpu_kernel
from adjsim.jit.numba_private import CheckedFiles


ROOT = Path(kernel_cache.__file__).resolve().parents[2]


def test_the_cache_is_somewhere_one_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    assert kernel_cache.cache_base() == tmp_path / "named"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert kernel_cache.cache_base() == tmp_path / "home" / "adjsim"
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert kernel_cache.cache_base().name.startswith("adjsim-")


DAY = 86400.0


def make_files(base, key, *, used, written):
    """The files of a kernel that was used and written so many days ago."""
    folder = base / "part"
    folder.mkdir(exist_ok=True)
    names = [f"kernel.make.locals.loop_{key}-1.py311.{end}" for end in ("7.nbc", "nbi", "nbi.lock")]
    for name in names:
        (folder / name).write_text("compiled")
        os.utime(folder / name, (time.time() - written * DAY,) * 2)
    if used is not None:
        kernel_cache.mark(folder, key)
        os.utime(folder / f"{key}.used", (time.time() - used * DAY,) * 2)
    return {folder / name for name in names}


def test_only_files_of_kernels_that_nobody_used_for_a_month_are_removed(tmp_path):
    old = make_files(tmp_path, "0" * 16, used=31, written=90)
    old |= make_files(tmp_path, "1" * 16, used=None, written=31)
    kept = make_files(tmp_path, "2" * 16, used=29, written=90)
    kept |= make_files(tmp_path, "3" * 16, used=None, written=29)
    (tmp_path / "kernel.py").touch()
    os.utime(tmp_path / "kernel.py", (0, 0))
    kernel_cache.prune(tmp_path)
    left = {path for path in (tmp_path / "part").iterdir() if path.suffix != ".used"}
    assert left == kept
    assert (tmp_path / "kernel.py").exists()
    assert not (tmp_path / "part" / f"{'0' * 16}.used").exists()


def test_files_are_looked_at_once_a_day(tmp_path):
    make_files(tmp_path, "0" * 16, used=None, written=90)
    for days, left in ((0.9, 3), (1.1, 0)):
        (tmp_path / "pruned").touch()
        os.utime(tmp_path / "pruned", (time.time() - days * DAY,) * 2)
        kernel_cache.prune(tmp_path)
        assert len(list((tmp_path / "part").iterdir())) == left


def test_processes_may_prune_at_the_same_time(tmp_path):
    for k in range(40):
        make_files(tmp_path, f"{k:016}", used=None, written=40)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: kernel_cache.prune(tmp_path), range(16)))
    (tmp_path / "pruned").unlink()
    kernel_cache.prune(tmp_path)
    assert not list((tmp_path / "part").iterdir())


def test_a_cache_that_is_not_there_is_not_pruned(tmp_path):
    kernel_cache.prune(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_last_resort_is_ours_alone(tmp_path):
    path = tmp_path / "adjsim-7"
    assert kernel_cache.private_folder(path) == path
    assert path.stat().st_mode & 0o777 == 0o700
    assert kernel_cache.private_folder(path) == path
    path.chmod(0o777)  # anyone can have put code into it
    assert kernel_cache.private_folder(path).name.startswith("adjsim-7-")


def test_a_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    path = tmp_path / "adjsim-7"
    path.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    ours = kernel_cache.private_folder(path)
    assert ours != path
    assert ours.parent == tmp_path
    assert ours.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_is_not_used(tmp_path, kind):
    path = tmp_path / "adjsim-7"
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_text("not a folder")
    assert kernel_cache.private_folder(path) not in (path, tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("problem", ["owner", "rights"])
def test_a_named_folder_that_others_can_write_to_is_not_used(
    tmp_path, monkeypatch, caplog, problem
):
    named = tmp_path / "named"
    named.mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(named))
    uid = named.stat().st_uid
    if problem == "rights":
        named.chmod(0o777)
    else:
        uid += 1
        monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr(kernel_cache, "_warned", [])
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert kernel_cache.cache_base().name.startswith(f"adjsim-{uid}")
    assert f"warning: others own {named} or can write to it" in caplog.text


def test_folders_are_made_for_this_user_alone(tmp_path, monkeypatch):
    named = tmp_path / "a" / "b"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(named))
    before = os.umask(0)
    try:
        assert kernel_cache.cache_base() == named
        assert [folder.stat().st_mode & 0o777 for folder in (named, named.parent)] == [0o700] * 2
    finally:
        os.umask(before)


def test_without_a_home_the_cache_is_in_the_folder_of_last_resort(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def no_home(*args, **options):
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(kernel_cache, "user_cache_path", no_home)
    assert kernel_cache.cache_base().name.startswith("adjsim-")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def file(tmp_path, monkeypatch):
    """The files of a kernel with two entries."""
    monkeypatch.setattr(kernel_cache, "_warned", [])
    made = CheckedFiles(str(tmp_path), "kernel", None)
    for key in "ab":
        made.save(key, {"code": key * 1000})
    return made


def flipped(data):
    return data[:-50] + bytes([data[-50] ^ 1]) + data[-49:]


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-3],
    "garbage": lambda data: b"x" * len(data),
    "flipped": flipped,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_dropped_with_one_warning_and_written_again(file, caplog, damage):
    assert file.load("a") == {"code": "a" * 1000}
    path = Path(file._path("a"))
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert file.load("a") is None
        assert file.load("a") is None
    assert len(caplog.records) == 1
    assert "has damaged files, such as" in caplog.text
    assert file.load("b") == {"code": "b" * 1000}
    file.save("a", {"code": "a"})
    assert file.load("a") == {"code": "a"}


def test_a_file_in_the_place_of_another_is_not_read(file, tmp_path, caplog):
    """Of the same kernel for other types, and of another kernel for the same."""
    other = CheckedFiles(str(tmp_path), "other", None)
    for path in (file._path("b"), other._path("a")):
        shutil.copy(file._path("a"), path)
    with caplog.at_level(logging.WARNING):
        assert file.load("b") is other.load("a") is None
    assert file.load("a") == {"code": "a" * 1000}
    assert not Path(file._path("b")).exists()
    assert "has damaged files, such as" in caplog.text


def test_a_full_disk_costs_a_warning(file, tmp_path, monkeypatch, caplog):
    def full(self, name):
        raise OSError(errno.ENOSPC, "No space left on device", name)

    monkeypatch.setattr(CheckedFiles, "_open_for_write", full)
    with caplog.at_level(logging.WARNING):
        file.save("c", 1)
        file.save("d", 1)
    assert len(caplog.records) == 1
    assert "not kept for the next run: [Errno 28] No space left" in caplog.text
    assert file.load("c") is None


def test_without_space_for_a_folder_the_cache_is_in_the_folder_of_last_resort(
    tmp_path, monkeypatch, caplog
):
    def full(path):
        if not path.is_relative_to(tmp_path / "temporary"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        made(path)

    made = kernel_cache.make_private
    monkeypatch.setattr(kernel_cache, "make_private", full)
    monkeypatch.setattr(kernel_cache, "_warned", [])
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    folder = kernel_cache.private_folder(tmp_path / "absent" / "kernels-1")
    assert folder.is_dir()
    assert folder.is_relative_to(tmp_path / "temporary")
    assert "not kept where they were before" in caplog.text


def lock_of(kernel):
    """The file that a process locks to compile a kernel."""
    return f"{kernel.dispatcher._cache._cache_file._index_path}.lock"


def doubled(x):
    for i in range(x.size):
        x[i] *= 2.0


@pytest.mark.skipif(backend.JIT_DISABLED, reason="asks the compiler")
def test_a_kernel_that_another_process_compiles_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(backend.config, "CACHE_DIR", str(tmp_path))
    first, second = (cpu_kernel(doubled) for _ in range(2))
    first(np.ones(2))
    (code,) = tmp_path.rglob("*.nbc")
    hidden = code.rename(code.with_suffix(".hidden"))
    with ThreadPoolExecutor(1) as pool:
        with FileLock(lock_of(second)):
            call = pool.submit(second, np.ones(2))
            with pytest.raises(TimeoutError):
                call.result(timeout=0.5)
            hidden.rename(code)
        call.result(timeout=60.0)
    stats = second.dispatcher.stats
    assert sum(stats.cache_hits.values()) == 1
    assert not stats.cache_misses
    with FileLock(lock_of(second), timeout=0):
        pass  # nobody holds it any more


def without_a_type(x):
    x[0] = x.nothing


@pytest.mark.skipif(backend.JIT_DISABLED, reason="asks the compiler")
def test_a_kernel_that_cannot_be_compiled_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(backend.config, "CACHE_DIR", str(tmp_path))
    kernel = cpu_kernel(without_a_type)
    with pytest.raises(TypingError):
        kernel(np.ones(2))
    with FileLock(lock_of(kernel), timeout=0):
        pass


@pytest.mark.skipif(backend.JIT_DISABLED, reason="asks the compiler")
@pytest.mark.parametrize("why", ["it takes too long", "there are no locks"])
def test_without_a_lock_kernels_are_compiled_all_the_same(tmp_path, monkeypatch, why):
    monkeypatch.setattr(backend.config, "CACHE_DIR", str(tmp_path))
    kernel, x = cpu_kernel(doubled), np.ones(2)
    held = FileLock(lock_of(kernel))
    Path(held.lock_file).parent.mkdir(parents=True, exist_ok=True)
    if why == "it takes too long":
        monkeypatch.setattr(numba_private, "LONGEST_WAIT", 0.1)
        held.acquire()
    else:
        Path(held.lock_file).mkdir()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(kernel, x).result(timeout=60.0)
    assert (x == 2.0).all()
    assert list(tmp_path.rglob("*.nbc"))


COMPILED = """
import numpy as np
from adjsim.algebra import vec3
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rollout import rollout
model, state = Model(np.ones(2), {}), State(np.zeros((2, 3)))
print(rollout(model, state, 0.1, 2, threads=1).x.sum())
"""


@pytest.mark.parametrize(
    "damage",
    ["flipped", *(pytest.param(d, marks=pytest.mark.nightly) for d in ("empty", "garbage"))],
)
def test_a_command_with_a_damaged_cache_compiles_again(tmp_path, damage):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def run():
        command = [sys.executable, "-c", COMPILED]
        done = subprocess.run(command, env=env, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr.splitlines()

    first, quiet = run()
    assert quiet == []
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    again, warned = run()
    assert again == first
    (line,) = warned
    assert line.endswith(": they are compiled again")
    assert run() == (first, [])
