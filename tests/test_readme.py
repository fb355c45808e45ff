"""What the README shows is what there is."""

import re
import textwrap
import tomllib
from pathlib import Path

import numpy as np

from studies.scene.files import bundled_scenes


ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")


def run_example(number, page=README, following="## Measured"):
    """Run an indented block under "In Python" as it stands, alone; return its names."""
    section = page[page.index("## In Python") : page.index(following)]
    block = re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.MULTILINE)[number]
    names = {}
    exec(compile(textwrap.dedent(block), "README.md", "exec"), names)
    return names


def test_the_example_of_a_rollout_runs():
    names = run_example(0)
    gradient = names["gradient"]
    assert np.isfinite(gradient["beam.mu"])
    # A softer beam sags farther.
    assert gradient["beam.mu"] < 0.0
    assert gradient["state.x"].shape == names["mesh"].points.shape


def test_the_example_of_a_picture_runs():
    names = run_example(1)
    gradient, ball = names["gradient"], names["ball"]
    assert names["drawn"].images.shape == (128, 128, 4)
    # Outwards is where the larger ball is; a lamp that both have from the same side may stay.
    assert (gradient["ball.vertices"] * ball.points).sum() < 0.0
    assert gradient["sun.direction"].shape == gradient["camera.eye"].shape == (3,)


def test_the_example_of_an_inspection_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "inspect.md").read_text(encoding="utf-8")
    inspection = run_example(0, page, "## What the numbers mean")["found"]
    assert inspection.gradient["floor.friction"] < 0.0  # it would get farther with less
    assert {path.name for path in tmp_path.iterdir()} == {"inspect.html", "inspect.nc"}


def test_the_files_that_are_named_exist():
    named = set(re.findall(r"`([\w./-]+\.(?:py|toml|md))`", README + MEASURED + ARCHITECTURE))
    named |= set(re.findall(r"\]\(([\w./-]+/[\w./-]+)\)", README))
    assert len(named) > 5
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_extras_and_scenes_that_are_named_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name for group in re.findall(r"'\.\[([\w,]+)\]'", README) for name in group.split(",")
    }
    assert extras
    assert extras <= set(project["optional-dependencies"])
    named = set(re.findall(r"adjsim (?:run|preview) ([\w-]+)(?![\w.-])", README + MEASURED))
    assert named - {"SCENE"} <= set(bundled_scenes())


def test_continuous_integration_runs_the_test_command():
    run = (ROOT / ".ci" / "run").read_text()
    for fragment in ("-e '.[test]'", "-m pytest -n auto --dist worksteal"):
        assert fragment in README
        assert fragment in run
