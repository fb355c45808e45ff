"""A kernel is found on disk if all that it is made of is as it was, and only then."""

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

import adjoint
import adjsim
import render
from adjsim.forces.contact_law import make_contact_force
from adjsim.jit import kernel_cache
from adjsim.jit.backend import JIT_DISABLED, Kernel, cpu_kernel
from adjsim.jit.kernel_keys import kernel_key


ROOT = Path(__file__).resolve().parents[2]
HELPER = """
from adjsim.jit.backend import device_fn

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
from adjsim.algebra.vec3 import scale
from adjsim.jit.backend import device_fn, lit

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
    return kernel_key(loaded("own", force).force)[0]


def test_the_key_does_not_depend_on_the_process_or_on_comments():
    key = key_of()
    assert len(key) == 16
    assert key_of(force="# a comment\n\n" + FORCE) == key
    assert (
        key_of(force=FORCE.replace("def inner(a):", 'def inner(a):\n            """Say."""')) == key
    )


def test_a_text_that_a_function_reads_is_hashed_though_it_is_its_docstring_too():
    texts = ["def f():\n    'a'\n    return 'b'", "def f():\n    'a'\n    return 'a'"]
    texts += [text.replace("'a'", "'c'") for text in texts]
    keys = [kernel_key(loaded("own", text).f)[0] for text in texts]
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


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
    assert key_of(force=FORCE.replace(before, after)) not in (key_of(), None)


def test_the_key_changes_with_what_another_file_says():
    keys = {key_of(), key_of("2.5"), key_of(helper=HELPER.replace("3.0", "3.5"))}
    assert len(keys - {None}) == 3


def test_the_key_changes_with_options_and_settings(monkeypatch):
    key_of()
    force = sys.modules["own"].force
    assert kernel_key(force, 2, 0) != kernel_key(force, 2, 1)
    keys = [kernel_key(force)[0]]
    for name, value in (("BOUNDSCHECK", 1), ("OPT", 0), ("SLP_VECTORIZE", 1)):
        with monkeypatch.context() as changed:
            changed.setattr(numba.core.config, name, value)
            keys.append(kernel_key(force)[0])
    assert len(set(keys)) == 4
    with monkeypatch.context() as changed:
        changed.setattr(numba.core.config, "NUMBA_NUM_THREADS", 77)
        assert kernel_key(force)[0] == keys[0]


def test_what_is_read_but_not_known_leaves_no_key():
    assert key_of(force=FORCE.replace("LIMITS[1]", "Thing.size")) is None
    assert "Thing" in kernel_key(sys.modules["own"].force)[1]


THING = object()


def read_thing(x):
    x[0] = THING


@pytest.mark.skipif(JIT_DISABLED, reason="asks for kernels")
def test_a_kernel_without_a_key_is_compiled_with_a_warning(monkeypatch, caplog):
    monkeypatch.setattr(kernel_cache, "_warned", [])
    kernel = cpu_kernel(read_thing)
    with caplog.at_level("WARNING"), pytest.raises(TypingError):
        kernel(np.ones(1))
    assert "read_thing is compiled in every run: " in caplog.text
    assert "reads <object object at " in caplog.text
    assert kernel.dispatcher.stats.cache_path is None


def test_a_global_that_changes_after_compilation_leaves_no_key():
    key_of()
    module = sys.modules["own"]
    assert kernel_key(module.force)[0]
    module.FACTOR = 7.0
    assert kernel_key(module.force)[0] is None


def test_functions_of_the_package_around_others_have_their_key():
    gap = "from adjsim.jit.backend import device_fn\n@device_fn\ndef gap(x, v): return x"
    gaps = [loaded("own", gap + y).gap for y in ("", ", v", ", v")]
    keys = [kernel_key(make_contact_force(gap))[0] for gap in gaps]
    assert keys[0]
    assert keys[1] == keys[2] not in (keys[0], None)


@pytest.mark.skipif(JIT_DISABLED, reason="asks for kernels")
def test_all_loops_of_modules_have_keys_and_no_two_the_same():
    modules = [
        importlib.import_module(name)
        for package in (adjsim, adjoint, render)
        for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not name.startswith("adjoint.bridges.")  # their libraries may not be there
    ]
    loops = {each for module in modules for each in vars(module).values() if type(each) is Kernel}
    assert len(loops) > 20
    keys = {kernel_key(loop.py_func) for loop in loops}
    assert len(keys) == len(loops)
    assert {unknown for _, unknown in keys} == {""}


TOY = """
from typing import Any, NamedTuple
import json
import sys
import numba
import numpy as np
from adjsim.jit.backend import cpu_kernel, device_fn, shared_fn, specialise
from adjsim.jit.calls import function_table, make_call
GLOBAL, PAIR = 2.0, (1.0, 3.0)
class Fields(NamedTuple):
    a: Any
    b: Any
@device_fn
def direct(x): return x + 1.0
@device_fn
def deep(x): return x * 1.5
@shared_fn
def middle(x): return deep(x) + 0.5
def make(factor):
    @device_fn
    def closed(x): return factor * x
    return closed
@device_fn
def bound(x): return x - 4.0
@device_fn
def tabled(x): return x - 6.0
closed = make(3.0)
def call_direct(x): x[0] = direct(x[0])
def call_deep(x): x[0] = middle(x[0])
def call_closed(x): x[0] = closed(x[0])
def call_global(x): x[0] = GLOBAL * x[0]
def call_pair(x): x[0] = PAIR[1] * x[0]
def call_any(x): x[0] = ANY(x[0])
def call_fields(x): x.a[0] = 5.0 * x.b[0]
def entry(x): x[0] = tabled(x[0])
signature = numba.void(numba.float64[::1])
call = make_call([signature])
def call_table(table, x): call(table, 0, (x,))
loops = [call_direct, call_deep, call_closed, call_global, call_pair]
loops.append(specialise(call_any, "call_bound", ANY=bound))
loops = {loop.__name__: cpu_kernel(loop) for loop in (*loops, call_fields, call_table)}
entry = cpu_kernel(entry, [signature])
report = {}
for name, loop in loops.items():
    x = np.array([7.0, 11.0])
    pair = {"a": x[:1], "b": x[1:]}
    table = function_table([entry])
    loop(*{"call_fields": (Fields(**pair),), "call_table": (table, x)}.get(name, (x,)))
    report[name] = x[0], len(loop.dispatcher.stats.cache_misses)
report["entry"] = 0.0, len(entry.stats.cache_misses)
json.dump(report, sys.stdout)
"""
NUMBERS = {
    "call_direct": 8.0, "call_deep": 11.0, "call_closed": 21.0, "call_global": 14.0,
    "call_pair": 21.0, "call_bound": 3.0, "call_fields": 55.0, "call_table": 1.0, "entry": 0.0,
}  # fmt: skip


class Toy:
    """Runs a module in a process of its own, always with the same cache."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, text, where="toy.py"):
        """Return the numbers of all kernels, and the names of those that were compiled."""
        path = self.folder / where
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        env = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(self.folder / "cache")}
        done = subprocess.run(
            [sys.executable, path], env=env, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        report = json.loads(done.stdout).items()
        return {k: x for k, (x, _) in report}, {k for k, (_, compiled) in report if compiled}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    if JIT_DISABLED:
        pytest.skip("asks for kernels")
    made = Toy(tmp_path_factory.mktemp("toy"))
    assert made.run(TOY) == (NUMBERS, set(NUMBERS))
    return made


def test_the_same_in_another_process_folder_and_place_is_found(toy):
    words = TOY.replace("def call_pair(x):", 'def call_pair(x):\n    """Say."""\n   ')
    assert toy.run("# word\n\n" + words, "other/its.py") == (NUMBERS, set())


@pytest.mark.parametrize(
    "changes",  # what is written instead, and the numbers of what is compiled again
    [
        [
            ("x + 1.0", "x + 1.25", {"call_direct": 8.25}),
            ("make(3.0)", "make(3.5)", {"call_closed": 24.5}),
            ("(1.0, 3.0)", "(1.0, 3.5)", {"call_pair": 24.5}),
            ("    a: Any\n    b: Any", "    b: Any\n    a: Any", {"call_fields": 55.0}),
        ],
        [
            ("x * 1.5", "x * 1.75", {"call_deep": 12.75}),
            ("GLOBAL, PAIR = 2.0", "GLOBAL, PAIR = 2.5", {"call_global": 17.5}),
            ("x - 4.0", "x - 4.5", {"call_bound": 2.5}),
            ("x - 6.0", "x - 6.5", {"entry": 0.0}),
        ],
        [("ANY=bound", "ANY=direct", {"call_bound": 8.0})],
    ],
)
def test_what_calls_a_changed_function_is_compiled_and_no_more(toy, changes):
    text, numbers = TOY, {}
    for before, after, changed in changes:
        assert TOY.count(before) == 1
        text, numbers = text.replace(before, after), numbers | changed
    expected = NUMBERS | numbers | ({"call_table": 0.5} if "entry" in numbers else {})
    assert toy.run(text) == (expected, set(numbers))


NAMESAKES = """
import sys
import numpy as np
from adjsim.jit.backend import cpu_kernel, shared_fn, specialise
FACTOR = 1.0
def scaled(x): return FACTOR * x
def loop(x): x[0] = SCALED(x[0])
for factor in sys.argv[1:]:
    shared = shared_fn(specialise(scaled, "scaled", FACTOR=float(factor)))
    kernel, x = cpu_kernel(specialise(loop, "loop", SCALED=shared)), np.ones(1)
    kernel(x)
    print(x[0], len(kernel.dispatcher.stats.cache_hits))
"""


@pytest.mark.skipif(JIT_DISABLED, reason="asks for kernels")
def test_kernels_of_two_processes_that_call_functions_of_one_name_are_told_apart(tmp_path):
    def run(*factors):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", NAMESAKES, *factors]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    assert run("2") == "2.0 0\n"
    assert run("3") == "3.0 0\n"
    assert run("2", "3") == "2.0 1\n3.0 1\n"


SPRINGS = """
import gc
import numpy as np
from numba.core.registry import CPUDispatcher
from adjoint.rollout import record
from adjsim.forces.springs import Springs
from adjsim.model import Model, State
x = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
model = Model(np.ones(2), {"it": Springs([(0, 1)], 1.5 * np.ones(1), 2.0, 0.1)})
run = record(model, State(x), 0.01, 3, threads=1)
run.vjp(np.ones_like(run.trajectory.x))
made = [each for each in gc.get_objects() if isinstance(each, CPUDispatcher)]
made = [each for each in made if each.stats.cache_path and each.stats.cache_misses]
print(run.trajectory.x[-1, 0, 0], *sorted(each.py_func.__name__[:-17] for each in made))
"""


@pytest.mark.skipif(JIT_DISABLED, reason="asks for kernels")
def test_a_changed_force_compiles_its_tiles_and_a_changed_word_nothing(tmp_path):
    for package in ("adjsim", "adjoint", "render"):
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=leave)
    source = tmp_path / "adjsim" / "forces" / "springs.py"
    text = source.read_text()

    def run(path):
        env = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", SPRINGS]  # from its folder
        done = subprocess.run(
            command, cwd=path, env=env, capture_output=True, text=True, check=True
        )
        total, *compiled = done.stdout.split()
        return float(total), compiled

    total, _ = run(ROOT)
    source.write_text("# A word.\n" + text.replace("Return the force f_j", "Give the force f_j"))
    assert run(tmp_path) == (total, [])
    number = 1.0 + time.time_ns() % 10**9 * 1e-12  # what no earlier run left in the cache
    source.write_text(text.replace("scale(lit(1, l) / l, r)", f"scale(lit({number}, l) / l, r)"))
    changed, compiled = run(tmp_path)
    assert changed != total
    assert compiled == ["force_tiles_spring_float64"]


def test_a_global_that_shares_its_name_with_an_attribute_is_no_part_of_a_kernel():
    names = {"order": object()}
    exec("def first(grid):\n    return grid.order[0]\n", names)
    assert kernel_key(names["first"])[0] is not None
    exec("def first(grid):\n    return order\n", names)
    assert "which has no hash" in kernel_key(names["first"])[1]
