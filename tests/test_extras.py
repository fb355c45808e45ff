"""The commands that messages and docs tell are those of a clone."""

import re
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
    assert {extra for _, extra in EXTRAS.values()} == extras() - {"dev"}
