"""Kernels of functions outside the package are found on disk, and never when something changed."""

import os
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from adjoint.forces.contact_law import make_zeros
from adjsim.engine.jit.own_functions import own_key
from adjsim.forces.contact_law import make_contact_force
from adjsim.forces.half_space import half_space_gap
from adjsim.forces.springs import spring_force


ROOT = Path(__file__).resolve().parents[3]
HELPER = """
from adjsim.engine.jit.backend import device_fn

FACTOR = 3.0

@device_fn
def twice(k):
    return {factor} * k
"""
FORCE = """
import math
import numpy as np
import numba
import helper
from helper import FACTOR
from adjsim.engine.algebra.vec3 import scale
from adjsim.engine.jit.backend import device_fn, lit

TABLE, LIMITS = np.array([1.0, 2.0]), (0.5, 1.5)
class Thing: size = 1

def make(power):
    @device_fn
    def force(x, v, consts, params, series):
        def inner(a):
            return a * 2.0
        l = math.sqrt(lit(FACTOR, x[0][0])) + TABLE[0] + LIMITS[1] + inner(x[0][1])
        return (scale(-helper.twice(params[0]) * l**power, x[0]),)
    return force

force = make(2)
"""


def loaded(name, text):
    """A module made of a text."""
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


def key_of(factor="2.0", helper=HELPER, force=FORCE):
    loaded("helper", helper.format(factor=factor))
    return own_key(loaded("own", force).force)


def test_functions_of_the_package_alone_need_no_key():
    assert own_key(spring_force) == own_key(make_contact_force(half_space_gap)) == ""
    assert own_key(make_zeros(3)) == ""


def test_the_key_does_not_depend_on_the_process_or_on_comments():
    key = key_of()
    assert len(key) == 16
    assert key_of(force="# a comment\n\n" + FORCE) == key


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a * 2.0", "a * 2.5"),
        ("make(2)", "make(3)"),
        ("[1.0, 2.0]", "[1.0, 2.5]"),
        ("(0.5, 1.5)", "(0.5, 1.25)"),
        ("math.sqrt", "math.exp"),
        ("@device_fn\n    def", "@numba.njit(fastmath=True)\n    def"),
        ("x[0][1]", "x[0][2]"),
    ],
)
def test_the_key_changes_with_what_the_function_says(before, after):
    assert FORCE.count(before) == 1
    changed = key_of(force=FORCE.replace(before, after))
    assert changed not in (key_of(), None)


def test_the_key_changes_with_what_another_file_says():
    keys = {
        key_of(),
        key_of("2.5"),
        key_of(helper=HELPER.replace("3.0", "3.5")),
    }
    assert len(keys - {None}) == 3


def test_the_key_changes_with_the_kind():
    key_of()
    force = sys.modules["own"].force
    assert own_key(force, 2, 0) != own_key(force, 2, 1)


def test_what_is_read_but_not_known_leaves_no_key():
    assert key_of(force=FORCE.replace("LIMITS[1]", "Thing.size")) is None
    assert key_of(helper=HELPER.replace("@device_fn\n", "")) is None


def test_a_global_that_changes_after_compilation_leaves_no_key():
    key_of()
    own = sys.modules["own"]
    assert own_key(own.force)
    own.FACTOR = 7.0
    assert own_key(own.force) is None


def test_functions_of_the_package_around_others_have_a_key():
    gap = "from adjsim.engine.jit.backend import device_fn\n@device_fn\ndef gap(x, v): return x"
    keys = [own_key(make_contact_force(loaded("own", gap + y).gap)) for y in ("", ", v", ", v")]
    assert keys[0]
    assert keys[1] == keys[2] not in (keys[0], None)


RUN = """
import numpy as np
from numba.core.event import install_recorder
from dataclasses import dataclass
from typing import Any, ClassVar
import own
from adjsim import Model, State, rollout
from adjsim.forces.element import ElementKind, Force

@dataclass(frozen=True, eq=False)
class Own(Force):
    k: Any
    PARAMETERS = ()
    KIND = ElementKind("own", own.force, 1, 0, 1, 0, uses_velocity=False)
    def pack_params(self): return np.full((len(self.nodes), 1), self.k)

with install_recorder("numba:compile") as compiled:
    x = rollout(Model(np.ones(2), {"it": Own(1.0)}), State(np.ones((2, 3))), 0.01, 3).x
print(len(compiled.buffer), x.sum())
"""


def test_a_second_process_compiles_nothing_and_a_changed_helper_is_noticed(tmp_path):
    def run(factor):
        (tmp_path / "helper.py").write_text(HELPER.format(factor=factor))
        (tmp_path / "own.py").write_text(FORCE)
        (tmp_path / "run.py").write_text(RUN)
        path = os.pathsep.join([str(ROOT), str(tmp_path)])
        env = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, tmp_path / "run.py"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        count, total = done.stdout.split()
        return int(count), float(total)

    new = repr(2.0 + time.time_ns() % 10**9 * 1e-12)  # what no earlier run left in the cache
    first, again, changed, back = run(new), run(new), run(new + "1"), run(new)
    assert first[0] > 0
    assert again == back == (0, first[1])
    assert changed[0] > 0
    assert changed[1] != first[1]
