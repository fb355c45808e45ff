"""Packages whose public names are loaded on first use."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest


ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("adjsim.forces", "adjsim.meshes", "adjsim.rigid", "render", "adjoint")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_exported_to_type_checkers_too_and_is_no_module(package):
    module = import_module(package)
    names = dir(module)
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert names == sorted(alias.asname for node in block.body for alias in node.names)
    for name in names:
        assert type(getattr(module, name)).__name__ != "module", name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_a_mixed_scene_needs_five_import_lines():
    lines = """
from adjsim import Model, State
from adjsim.forces import HalfSpaceContact, Hinges, NeoHookeanTets, NeoHookeanTriangles
from adjsim.meshes import box_tets, mesh_hinges, shape, sheet
from adjsim.rigid import BodyState, RigidBodies
from render import Camera, DirectionalLight, Mesh, Scene, SoftRasterizer, rasterize
"""
    done = subprocess.run([sys.executable, "-c", lines], cwd=ROOT, check=False)
    assert done.returncode == 0
