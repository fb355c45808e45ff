"""Every public function has an example in its docstring, and it runs."""

import doctest
import inspect
from importlib import import_module

import pytest

import adjoint


PACKAGES = ("adjsim", "adjoint", "render", "adjsim.forces", "adjsim.meshes", "studies.api")
RECORDS = (adjoint.Record, adjoint.ImageRecord)


def functions_of(owner, prefix):
    """Return the public functions of a module or a class, by their full names."""
    names = getattr(owner, "__all__", dir(owner))
    members = {name: getattr(owner, name) for name in names if not name.startswith("_")}
    return {
        f"{prefix}.{name}": member for name, member in members.items() if inspect.isfunction(member)
    }


FUNCTIONS = {}
for package in PACKAGES:
    FUNCTIONS |= functions_of(import_module(package), package)
for record in RECORDS:
    FUNCTIONS |= functions_of(record, f"adjoint.{record.__name__}")


def test_the_functions_are_found():
    assert {"adjsim.rollout", "adjoint.Record.vjp", "render.rasterize"} <= FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(exclude_empty=False).find(FUNCTIONS[name], name, globs={})
    assert test.examples, f"{name} has no example: write one under `Examples` in its docstring."
    report = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)
