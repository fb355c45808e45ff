"""The commands that messages and docs tell are those of a clone."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from adjsim.extras import how_to_install
from studies.cli.info import EXTRAS


ROOT = Path(__file__).resolve().parent.parent


def extras():
    """Names of the extras of the project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return set(project["optional-dependencies"])


@pytest.mark.parametrize("extra", ["mesh", "cuda"])
def test_an_extra_is_installed_in_the_clone(extra):
    assert how_to_install(extra) == f"pip install -e '.[{extra}]' in your clone of adjsim"
    assert extra in {name for _, name in EXTRAS.values()}


def test_every_command_that_is_told_names_an_extra_there_is():
    paths = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    paths += [
        p
        for folder in ("adjsim", "render", "studies", "baselines")
        for p in (ROOT / folder).rglob("*.py")
    ]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert "pip install 'adjsim" not in text, path
        for named in re.findall(r"pip install -e '\.\[([a-z,]+)\]'", text):
            assert set(named.split(",")) <= extras(), path


def test_info_tells_every_extra_but_the_developers_own():
    assert {extra for _, extra in EXTRAS.values()} == extras() - {"all", "dev"}


ALONE = """
import sys
from adjsim.extras import EXTRA_OF
sys.modules |= dict.fromkeys(EXTRA_OF)  # as if they were not installed
import numpy as np
from adjoint import record, record_images
from adjsim import Model, State
from adjsim.forces import NeoHookeanTets
from adjsim.meshes import box_tets, read_mesh, shape
from render import Camera, DirectionalLight, Mesh, Scene, SoftRasterizer
mesh = box_tets(cells=(1, 1, 1), size=(1.0, 1.0, 1.0))
block = NeoHookeanTets.from_young(mesh.tets, mesh.points, youngs_modulus=1e4, poisson_ratio=0.3)
model = Model(mass=block.lumped_mass(1000.0), forces={"block": block})
run = record(model, State(mesh.points), dt=1e-4, n_steps=2)
assert np.abs(run.vjp(2.0 * run.trajectory.x)["gravity"]).max() > 0.0
inspected = run.inspect(2.0 * run.trajectory.x)
ball = shape("sphere", radius=1.0)
scene = Scene({"ball": Mesh(ball.faces)}, {"sun": DirectionalLight((1.0, 2.0, 1.5))})
camera = Camera(eye=(0.0, 0.5, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
drawn = record_images(scene, camera, SoftRasterizer(sigma=1e-4), {"ball": ball.points}, (8, 8))
assert np.abs(drawn.vjp(drawn.images)["ball.vertices"]).max() > 0.0
api = lambda: __import__("studies.api")
declared = lambda: __import__("studies.scene.declared")
for use in (lambda: read_mesh(sys.argv[1]), inspected.dataset, api, declared):
    try:
        use()
    except ImportError as error:
        print(error)
from studies.cli.entry import main
sys.argv[1:] = ["info"]
main()
sys.argv[1:] = ["list"]
main()
"""


def test_gradients_need_no_extra_and_what_needs_one_names_it():
    done = subprocess.run(
        [sys.executable, "-c", ALONE, ROOT / "README.md"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    mesh, scans, api, declared, *info = done.stdout.splitlines()
    assert "optional" in info
    assert "pyvista, which is missing: pip install -e '.[mesh]'" in mesh
    assert "xarray, which is missing: pip install -e '.[scans]'" in scans
    assert "tomlkit, which is missing: pip install -e '.[scenes]'" in api
    assert "pydantic, which is missing: pip install -e '.[scenes]'" in declared
    assert done.stderr.startswith("adjsim: This needs the package ")
    assert "pip install -e '.[scenes]'" in done.stderr
    assert "Traceback" not in done.stderr
