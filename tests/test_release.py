"""What a release says of itself: one version, links that work, the same dependencies."""

import importlib.util
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import adjsim
from adjsim import extras
from adjsim.jit import kernel_pack
from benchmarks.kernel_pack import write_pack


ROOT = Path(__file__).resolve().parent.parent
URL = "https://example.org/adjsim"


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture
def hooks(monkeypatch):
    """The functions of the build hooks, where hatchling need not be installed."""
    for place, name in (("metadata", "Metadata"), ("builders.hooks", "Build")):
        interface = SimpleNamespace(**{f"{name}HookInterface": object})
        monkeypatch.setitem(sys.modules, f"hatchling.{place}.plugin.interface", interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_has_the_same_version():
    version = adjsim.__version__
    assert re.search(r"^version: (.+)$", text("CITATION.cff"), re.M)[1] == version
    assert json.loads(text(".zenodo.json"))["version"] == version
    assert re.search(r'^  version: "(.+)"$', text("conda/recipe.yaml"), re.M)[1] == version
    assert re.search(r"^## ([\d.]+)", text("CHANGELOG.md"), re.M)[1] == version


def test_a_tag_must_be_the_version():
    done = subprocess.run(
        [ROOT / ".ci" / "release", "v99.0.0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"the tag is v99.0.0, but adjsim/__init__.py has the version {adjsim.__version__}" in (
        done.stderr
    )


def test_the_recipe_has_the_dependencies_of_the_package():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    # conda-forge has no pytetwild
    from_mesh = [name for name in extras["mesh"] if name.startswith("pyvista")]
    packages = project["dependencies"] + extras["scenes"] + extras["scans"] + from_mesh
    needed = {re.sub(r"([<>])", r" \1", package, count=1) for package in packages}
    needed.add(f"python {project['requires-python']}")
    run = text("conda/recipe.yaml").split("  run:\n")[1].split("\ntests:")[0]
    installed = {line.strip(" -").replace("-base", "") for line in run.splitlines()}

    def alike(requirements):
        return {
            (requirement.split()[0], *sorted(requirement.split()[1].split(",")))
            for requirement in requirements
            if requirement
        }

    assert alike(installed) == alike(needed)


def test_links_of_the_description_are_absolute(hooks):
    page = hooks.described(text("README.md"), URL, "1.2.3")
    assert f"]({URL}/raw/v1.2.3/docs/_static/scene_fit.png)" in page
    assert f"]({URL}/blob/v1.2.3/docs/own_video.md)" in page
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert all(link.startswith(("https://", "#")) for link in links)
    for link in links:
        if link.startswith(URL):
            path = link.removeprefix(URL).split("/", 3)[3].partition("#")[0]
            assert (ROOT / path).exists(), path


def test_without_an_address_the_description_has_no_dead_links(hooks):
    page = hooks.described("![a](b.png) [c](d.md) [e](#f) [g](https://h)", "", "1.2.3")
    assert page == " c [e](#f) [g](https://h)"


@pytest.fixture
def build(hooks, monkeypatch, tmp_path):
    """Returns what the build hook says of a wheel with a pack of kernels, of a kind of Python."""

    def build(python, version="standard"):
        monkeypatch.setattr(sysconfig, "get_config_var", lambda name: python)
        write_pack(tmp_path / "kernels.zip", [])
        monkeypatch.setenv("ADJSIM_KERNELS", str(tmp_path / "kernels.zip"))
        data = {"force_include": {}}
        hooks.CustomBuildHook().initialize(version, data)
        return data

    return build


def test_a_wheel_with_kernels_is_for_one_python_and_platform(build, tmp_path):
    data = build("cpython-312-x86_64-linux-gnu")
    assert data["tag"] == "cp312-cp312-manylinux_2_17_x86_64"
    assert not data["pure_python"]
    (place,) = data["force_include"].values()
    assert ROOT / place == kernel_pack.PACK
    assert build("cpython-312-x86_64-linux-gnu", "editable") == {"force_include": {}}
    with pytest.raises(ValueError, match="is of cpython-313t-x86_64-linux-gnu: no wheel is for"):
        build("cpython-313t-x86_64-linux-gnu")


def test_packages_are_typed():
    for package in ("adjsim", "render", "adjoint", "studies"):
        assert (ROOT / package / "py.typed").is_file()


def test_a_release_names_its_own_extras(monkeypatch, tmp_path):
    monkeypatch.setattr(extras, "CLONE", tmp_path / "pyproject.toml")
    assert extras.how_to_install("mesh") == "pip install 'adjointsim[mesh]'"
