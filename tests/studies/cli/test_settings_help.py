"""Help shows the settings of what it is asked about."""

import sys

import pytest

from studies.cli import main as cli
from studies.cli.settings_help import documents, settings_text
from studies.scene.files import BUNDLED, bundled_scenes


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["run", "pendulum"], ["[truth]                        # drawn evenly from"]),
        (["run", "--seed", "3", "rigid-mass", "instances=3"], ["bundled/rigid-mass.toml"]),
        (["scan", "figure-4a"], ['over = ["cube.vertex_mass=0.1:5.0:500"]', "[bodies.cube]"]),
        (["scan", "bounce"], ["bundled/bounce.toml"]),
        (["dataset", "rigid-mass"], ["bundled/rigid-mass.toml", '"body.mass" = { between']),
        (["run"], ["`adjsim run NAME --help` shows the settings"]),
        (["dataset", "nosuch"], ["`adjsim dataset NAME --help` shows the settings"]),
    ],
)
def test_help_ends_with_the_settings_of_what_is_named(monkeypatch, capsys, arguments, texts):
    monkeypatch.setattr(sys, "argv", ["adjsim", *arguments, "--help"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    out = capsys.readouterr().out
    assert out.startswith("Usage: ")
    for text in texts:
        assert text in out[out.index("--help  ") :]


def test_every_scene_shows_its_whole_file():
    for name in bundled_scenes():
        text = (BUNDLED / f"{name}.toml").read_text("utf-8")
        assert text in settings_text("run", ["--dtype", "float32", name])


def test_a_command_shows_no_settings_of_another():
    assert documents("run", "rigid") == []
    assert documents("run", "figure-4a") == []
