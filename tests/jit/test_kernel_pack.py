"""Kernels of a wheel are used where they fit, and compiled here where they do not."""

import json
import logging
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from adjsim.jit import backend, kernel_cache, kernel_pack
from adjsim.jit.backend import cpu_kernel
from adjsim.jit.kernel_keys import versions
from benchmarks.kernel_pack import write_pack


pytestmark = pytest.mark.skipif(backend.JIT_DISABLED, reason="asks for kernels")


def doubled(x):
    for i in range(x.size):
        x[i] *= 2.0


def halved(x):
    for i in range(x.size):
        x[i] *= 0.5


def packed(function):
    """The file of a kernel, compiled for this processor, under the name that a pack has it by."""
    kernel = cpu_kernel(function)
    kernel(np.ones(3))
    cache, (sig,) = kernel.dispatcher._cache, kernel.dispatcher.signatures
    compiled = kernel.dispatcher.overloads[sig]
    texts, (triple, *_) = cache._index_key(sig, compiled.codegen)
    key = texts, (triple, kernel_pack.CPU, "")
    cache._cache_file.save(key, cache._impl.reduce(compiled))
    return Path(cache._cache_file._path(key))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend.config, "CACHE_DIR", str(tmp_path_factory.mktemp("made")))
        return [packed(each) for each in (doubled, halved)]


@pytest.fixture
def run(tmp_path, monkeypatch, caplog):
    """Runs `doubled` with a pack and an empty cache; says whether it was compiled, and how."""
    everywhere = ",".join(f"+{name}" for name in kernel_pack.FEATURES.split())
    monkeypatch.setattr(kernel_pack, "get_host_cpu_features", lambda: everywhere)
    monkeypatch.setattr(kernel_pack, "PACK", tmp_path / "kernels.zip")
    monkeypatch.setattr(kernel_pack, "processors_used", set())
    monkeypatch.setattr(kernel_cache, "_warned", [])
    kernel_pack.open_pack.cache_clear()

    def run():
        monkeypatch.setattr(backend.config, "CACHE_DIR", str(tmp_path / "empty"))
        kernel, x = cpu_kernel(doubled), np.ones(3)
        with caplog.at_level(logging.WARNING):
            kernel(x)
            kernel(x.astype(np.float32))  # of types that no pack has
        assert (x == 2.0).all()
        return len(kernel.dispatcher.stats.cache_misses) == 2, caplog.messages

    yield run
    kernel_pack.open_pack.cache_clear()


def test_a_kernel_of_the_pack_is_not_compiled(files, run, tmp_path):
    write_pack(kernel_pack.PACK, files)
    assert run() == (False, [])
    assert f"{kernel_pack.CPU} (of the wheel)" in kernel_pack.processors_used
    assert len(kernel_pack.processors_used) == 2  # and this one


def test_kernels_of_this_machine_are_used_first(files, run, tmp_path):
    write_pack(kernel_pack.PACK, files)
    shutil.copytree(files[0].parents[1], tmp_path / "empty")
    kernel_pack.processors_used.clear()
    assert run() == (False, [])
    assert f"{kernel_pack.CPU} (of the wheel)" not in kernel_pack.processors_used


def swap(contents, first, second):
    contents[first], contents[second] = contents[second], contents[first]


def change_code(contents, first, second):
    contents[first] = flip(contents[first])


def change_numba(contents, *names):
    contents[kernel_pack.VERSIONS] = json.dumps({**versions(), "numba": "0.1"}).encode()


def lose_versions(contents, *names):
    del contents[kernel_pack.VERSIONS]


def cut(data):
    return data[:-300]


def flip(data):
    return data[:2000] + bytes([data[2000] ^ 1]) + data[2001:]  # in the first kernel


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swap, "are damaged (kernel.doubled_"),
        (change_code, "are damaged (kernel.doubled_"),
        (change_numba, f"were compiled by numba 0.1, and here is {versions()['numba']}"),
        (lose_versions, "are damaged (\"There is no item named 'versions.json'"),
    ],
)
def test_a_pack_with_other_contents_is_not_used(files, run, change, message):
    write_pack(kernel_pack.PACK, files)
    with zipfile.ZipFile(kernel_pack.PACK) as pack:
        contents = {name: pack.read(name) for name in pack.namelist()}
    change(contents, *sorted(set(contents) - {kernel_pack.VERSIONS}))
    with zipfile.ZipFile(kernel_pack.PACK, "w") as pack:
        for name, data in contents.items():
            pack.writestr(name, data)
    compiled, (warning,) = run()
    assert compiled
    assert message in warning
    assert warning.endswith(": they are compiled here")


@pytest.mark.parametrize(
    ("damage", "message"),
    [(cut, "are damaged (File is not a zip file)"), (flip, "are damaged (kernel.doubled_")],
)
def test_a_damaged_archive_is_not_used(files, run, damage, message):
    write_pack(kernel_pack.PACK, files)
    kernel_pack.PACK.write_bytes(damage(kernel_pack.PACK.read_bytes()))
    compiled, (warning,) = run()
    assert compiled
    assert message in warning


def test_a_processor_without_an_instruction_runs_no_kernel_of_the_pack(files, run, monkeypatch):
    write_pack(kernel_pack.PACK, files)
    lacking = kernel_pack.get_host_cpu_features().replace("+avx2", "-avx2")
    monkeypatch.setattr(kernel_pack, "get_host_cpu_features", lambda: lacking)
    compiled, (warning,) = run()
    assert compiled
    assert "need instructions that this processor lacks (avx2)" in warning


def test_where_another_processor_is_named_kernels_are_compiled_for_it(files, run, monkeypatch):
    write_pack(kernel_pack.PACK, files)
    monkeypatch.setattr(kernel_pack.config, "CPU_NAME", "x86-64-v2")
    compiled, (warning,) = run()
    assert compiled
    assert "NUMBA_CPU_NAME" in warning


def test_without_a_pack_nothing_is_said(run):
    assert run() == (True, [])
