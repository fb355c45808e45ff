"""Published mistakes: our checks pass without them, and see them where the page says so."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest

from tests.sharing import TIMEOUT, found_once
from tests.verify.published_mistakes import MISTAKES, ROOT


def run(folder):
    """Make all mistakes, in a process whose functions do what their code says."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.verify.published_mistakes", "--json"],
        capture_output=True, text=True, env=env, timeout=TIMEOUT, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """By mistake, the numbers of its checks without and with it."""
    find = partial(run, tmp_path_factory.mktemp("mistakes"))
    return found_once(tmp_path_factory, "mistakes", find)


each = pytest.mark.parametrize("k", range(len(MISTAKES)), ids=[m.project for m in MISTAKES])


@each
def test_without_the_mistake_every_check_passes(numbers, k):
    right, _ = numbers[k]
    off = {look.name: r for look, r in zip(MISTAKES[k].looks, right, strict=True) if r > look.bar}
    assert off == {}


@each
def test_checks_see_the_mistake_where_the_page_says_so(numbers, k):
    _, wrong = numbers[k]
    seen = {look.name: w > look.bar for look, w in zip(MISTAKES[k].looks, wrong, strict=True)}
    assert seen == {look.name: look.sees for look in MISTAKES[k].looks}
    assert {*seen.values()} == {True, False}
