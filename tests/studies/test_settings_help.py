"""Help shows the settings of what it is asked about."""

import re
import sys

import pytest

from studies import cli, config
from studies.config import STUDY
from studies.errors import StudyError
from studies.optimizers.problem import Method
from studies.registry import RunOptions, find_study
from studies.settings_help import documents, settings_text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "pendulum"], ["[truth]                        # drawn evenly from"]),
        (["run", "--seed", "3", "table1", "count=3"], ["studies/configs/table1.toml", "count = "]),
        (["scan", "figure-4a"], ['over = ["cube.vertex_mass=0.1:5.0:500"]', "[bodies.cube]"]),
        (["scan", "bounce"], ["bundled/bounce.toml"]),
        (["dataset", "rigid-mass"], ["bundled/rigid-mass.toml", '"body.mass" = { between']),
        (["run"], ["`adjsim run STUDY --help` shows the settings"]),
        (["dataset", "nosuch"], ["`adjsim dataset NAME --help` shows the settings"]),
    ],
)
def test_help_ends_with_the_settings_of_what_is_named(monkeypatch, capsys, arguments, told):
    monkeypatch.setattr(sys, "argv", ["adjsim", *arguments, "--help"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    out = capsys.readouterr().out
    assert out.startswith("Usage: ")
    for text in told:
        assert text in out[out.index("--help  ") :]


def test_every_study_shows_its_whole_file():
    for name in STUDY.names:
        assert STUDY.text(name) in settings_text("run", ["--dtype", "float32", name])


def test_the_methods_that_help_names_are_those_there_are():
    refuse = {"shape": {Method.GAUSS_NEWTON}, "texture": {Method.GAUSS_NEWTON}}
    found = {
        name: re.findall(r'"([a-z-]+)"', line)
        for name in STUDY.names
        for line in STUDY.text(name).splitlines()
        if line.startswith("method = ")
    }
    assert len(found) > 15
    for name, methods in found.items():
        assert sorted(methods) == sorted(set(Method) - refuse.get(name, set())), name


@pytest.mark.parametrize("study", ["shape", "texture"])
def test_a_method_that_a_study_refuses_is_not_offered_by_its_error(study):
    values = config.resolve(study, ["optimizer.method=newton"]).values
    with pytest.raises(StudyError, match=r"Unknown method .* Known: (?!.*gauss)"):
        find_study(study).prepare(values, RunOptions())


def test_a_command_shows_no_settings_of_another():
    assert documents("run", "rigid") == []
    assert documents("dataset", "table1") == []
    assert documents("run", "figure-4a") == []
