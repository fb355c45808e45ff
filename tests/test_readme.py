"""What the README shows is what there is."""

import re
import textwrap
import tomllib
from pathlib import Path

import numpy as np

from studies.registry import STUDIES


ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs():
    start = README.index("    from adjoint.rollout import record")
    end = README.index("## Measured")
    names = {}
    exec(compile(textwrap.dedent(README[start:end]), "README.md", "exec"), names)
    gradient = names["gradient"]
    assert np.isfinite(gradient["beam.mu"])
    # A softer beam sags farther.
    assert gradient["beam.mu"] < 0.0
    assert gradient["state.x"].shape == names["mesh"].points.shape


def test_the_files_that_are_named_exist():
    named = set(re.findall(r"`([\w./-]+\.(?:py|toml|md))`", README))
    assert len(named) > 5
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_extras_and_studies_that_are_named_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {
        name for group in re.findall(r"'\.\[([\w,]+)\]'", README) for name in group.split(",")
    }
    assert extras
    assert extras <= set(project["optional-dependencies"])
    assert set(re.findall(r"adjsim run ([\w-]+)", README)) - {"STUDY"} <= set(STUDIES)


def test_continuous_integration_runs_the_test_command():
    run = (ROOT / ".ci" / "run").read_text()
    for part in ("-e '.[mesh,test]'", "-m pytest -n auto --dist worksteal"):
        assert part in README
        assert part in run
