"""The cache of kernels: private, pruned, and compiled again where a file in it is damaged."""

import errno
import logging
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from numba.core import caching
from numba.core.errors import TypingError

from adjsim.engine.jit import backend, kernel_cache, numba_private
from adjsim.engine.jit.backend import cpu_kernel
from adjsim.engine.jit.numba_private import CheckedFile


ROOT = Path(kernel_cache.__file__).resolve().parents[3]


def test_the_cache_is_somewhere_one_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    assert kernel_cache.cache_base() == tmp_path / "named"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert kernel_cache.cache_base() == tmp_path / "home" / "adjsim"
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    assert kernel_cache.cache_base().name.startswith("adjsim-")


def make_folder(base, name, days):
    """A folder of a cache, last used so many days ago."""
    folder = base / name
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "loop.nbi").write_text("compiled")
    then = time.time() - days * 86400
    for path in (folder / "part", folder):
        os.utime(path, (then, then))
    return folder


def test_only_folders_of_kernels_that_nobody_used_for_a_month_are_removed(tmp_path):
    used = make_folder(tmp_path, "kernels-1", 90)
    kept = [make_folder(tmp_path, "kernels-2", 29), make_folder(tmp_path, "meshes", 90)]
    compiled_into = make_folder(tmp_path, "kernels-3", 90)
    os.utime(compiled_into / "part")
    old = make_folder(tmp_path, "kernels-4", 31)
    kernel_cache.prune(tmp_path, used)
    assert not old.exists()
    assert all((folder / "part" / "loop.nbi").exists() for folder in [used, compiled_into, *kept])
    # The one in use counts as used from now on.
    kernel_cache.prune(tmp_path, tmp_path / "kernels-5")
    assert used.exists()


def test_processes_may_prune_at_the_same_time(tmp_path):
    old = [make_folder(tmp_path, f"kernels-{k}", 40) for k in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: kernel_cache.prune(tmp_path, tmp_path / "kernels-new"), range(16)))
    assert not any(folder.exists() for folder in old)


def test_a_cache_that_is_not_there_is_not_pruned(tmp_path):
    kernel_cache.prune(tmp_path / "nothing", tmp_path / "nothing" / "kernels-1")
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
        assert [one.stat().st_mode & 0o777 for one in (named, named.parent)] == [0o700] * 2
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
    """A file of the cache with two entries."""
    monkeypatch.setattr(kernel_cache, "_warned", [])
    made = CheckedFile(str(tmp_path), "kernel", "stamp")
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
@pytest.mark.parametrize("suffix", ["nbi", "1.nbc"])
def test_a_damaged_file_is_dropped_with_one_warning_and_written_again(
    file, tmp_path, caplog, damage, suffix
):
    assert file.load("a") == {"code": "a" * 1000}
    path = tmp_path / f"kernel.{suffix}"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert file.load("a") is None
        assert file.load("a") is None
    assert len(caplog.records) == 1
    assert "has damaged files, such as" in caplog.text
    for key in "ab":
        file.save(key, {"code": key})
    assert [file.load(key) for key in "ab"] == [{"code": "a"}, {"code": "b"}]


def test_a_full_disk_costs_a_warning(file, tmp_path, monkeypatch, caplog):
    def full(self, name, data):
        raise OSError(errno.ENOSPC, "No space left on device", name)

    monkeypatch.setattr(CheckedFile, "_save_data", full)
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


def test_a_file_that_numba_alone_wrote_is_written_again_and_one_of_ours_it_can_read(tmp_path):
    plain = caching_file(tmp_path)
    plain.save("a", 1)
    ours = CheckedFile(str(tmp_path), "kernel", "stamp")
    assert ours.load("a") is None
    ours.save("a", 2)
    assert ours.load("a") == plain.load("a") == 2


def caching_file(path):
    (base,) = CheckedFile.__bases__
    return base(str(path), "kernel", "stamp")


def test_kernels_go_through_checked_files():
    assert caching.IndexDataCacheFile is CheckedFile
    assert pickle.loads(CheckedFile("", "k", "s")._dump([1])) == [1]


def doubled(x):
    for i in range(x.size):
        x[i] *= 2.0


@pytest.mark.skipif(backend.JIT_DISABLED, reason="asks the compiler")
def test_a_kernel_that_another_process_compiles_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(backend.config, "CACHE_DIR", str(tmp_path))
    first, second = (cpu_kernel(doubled) for _ in range(2))
    first(np.ones(2))
    index = Path(second._cache._cache_file._index_path)
    hidden = index.rename(index.with_suffix(".hidden"))
    with ThreadPoolExecutor(1) as pool:
        with FileLock(f"{index}.lock"):
            call = pool.submit(second, np.ones(2))
            with pytest.raises(TimeoutError):
                call.result(timeout=0.5)
            hidden.rename(index)
        call.result(timeout=60.0)
    assert sum(second.stats.cache_hits.values()) == 1
    assert not second.stats.cache_misses
    with FileLock(f"{index}.lock", timeout=0):
        pass  # nobody holds it any more


def without_a_type(x):
    x[0] = x.nothing


@pytest.mark.skipif(backend.JIT_DISABLED, reason="asks the compiler")
def test_a_kernel_that_cannot_be_compiled_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(backend.config, "CACHE_DIR", str(tmp_path))
    kernel = cpu_kernel(without_a_type)
    with pytest.raises(TypingError):
        kernel(np.ones(2))
    with FileLock(f"{kernel._cache._cache_file._index_path}.lock", timeout=0):
        pass


@pytest.mark.skipif(backend.JIT_DISABLED, reason="asks the compiler")
@pytest.mark.parametrize("why", ["it takes too long", "there are no locks"])
def test_without_a_lock_kernels_are_compiled_all_the_same(tmp_path, monkeypatch, why):
    monkeypatch.setattr(backend.config, "CACHE_DIR", str(tmp_path))
    kernel, x = cpu_kernel(doubled), np.ones(2)
    index = Path(kernel._cache._cache_file._index_path)
    index.parent.mkdir(parents=True, exist_ok=True)
    held = FileLock(f"{index}.lock")
    if why == "it takes too long":
        monkeypatch.setattr(numba_private, "LONGEST_WAIT", 0.1)
        held.acquire()
    else:
        Path(held.lock_file).mkdir()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(kernel, x).result(timeout=60.0)
    assert (x == 2.0).all()
    assert index.exists()


COMPILED = """
import numpy as np
from adjsim.engine.algebra import vec3
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
    for path in [*tmp_path.rglob("*.nbi"), *tmp_path.rglob("*.nbc")]:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    again, warned = run()
    assert again == first
    (line,) = warned
    assert line.endswith(": they are compiled again")
    assert run() == (first, [])
