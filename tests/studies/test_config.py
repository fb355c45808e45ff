"""Study files are data: keys and types are checked, and the resolved file says it all."""

import math
import tomllib

import pytest

from studies import config
from studies.errors import StudyError


def test_a_built_in_study_resolves_to_its_file():
    settings = config.resolve("beam")
    assert settings.kind == "beam"
    assert settings.values["beam"]["mu"] > 0.0
    assert settings.explicit == {}


def test_overrides_take_the_type_of_the_value_there():
    settings = config.resolve(
        "beam",
        ["beam.mu=250000", "camera.eye=[0, 1, 3.5]", "loss.kind=pyramid", "noise.eight_bit=true"],
    )
    assert settings.values["beam"]["mu"] == 250000.0
    assert isinstance(settings.values["beam"]["mu"], float)
    assert settings.values["camera"]["eye"] == [0.0, 1.0, 3.5]
    assert all(isinstance(x, float) for x in settings.values["camera"]["eye"])
    assert settings.values["loss"]["kind"] == "pyramid"
    assert settings.explicit["noise.eight_bit"] is True


def test_the_resolved_file_resolves_to_itself_and_keeps_the_comments(tmp_path):
    settings = config.resolve("beam", ["beam.mu=123456.789", "time.frames=5"])
    path = tmp_path / "study.toml"
    path.write_text(settings.to_toml())
    assert config.resolve(str(path)).values == settings.values
    assert "# neo-Hookean mu [Pa], > 0" in path.read_text()
    assert tomllib.loads(path.read_text())["study"] == "beam"


def test_a_study_file_changes_only_what_it_names(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('study = "beam"\n[beam]\nmu = 1e5\n')
    settings = config.resolve(str(path), ["beam.lam=2e5"])
    assert settings.explicit == {"beam.mu": 1e5, "beam.lam": 2e5}
    assert settings.values["time"] == config.builtin("beam")["time"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("beam.mo=1", r"Unknown key `beam.mo`. Did you mean `beam.mu`"),
        ("beem.mu=1", r"Unknown key `beem.mu`. Did you mean `beam.mu`"),
        ("beam=1", r"Unknown key `beam`.* Every key is documented in .*configs/beam\.toml"),
        ("mu=1", r"Unknown key `mu`. Did you mean `beam.mu` or `start.mu` or `bounds.mu`\?"),
        ("seed=1", r"Unknown key `seed`\. It is an option: `--seed`"),
        ("count=2", r"Unknown key `count`\. Every key is documented in"),
        ("instances=3", r"Unknown key `instances`\. Every key is documented in"),
        ("max_evals=3", r"`max_evals`\. Did you mean `optimizer.max_evaluations`\?"),
        ("mesh=a.stl", r"Unknown key `mesh`\. Every key is documented in"),
        ("noise.levels=1", r"`noise.level`\? Keys of `noise`: noise.level, noise.eight_bit, "),
        (
            "beam.mu",
            r"must read key=value, got 'beam\.mu'\. E\.g\. beam\.mu=200000\.0\. Every key is",
        ),
        ("zero", r"must read key=value, got 'zero'\. E\.g\. beam\.mu=200000\.0\."),
        ("beam.mu=soft", r"`beam.mu` must be a number, got 'soft'"),
        ("beam.mu=true", r"`beam.mu` must be a number, got True"),
        ("time.steps=1.5", r"`time.steps` must be a whole number, got 1.5"),
        ("beam.mu=inf", r"`beam.mu` must be finite, got inf"),
        ("camera.eye=[0, nan, 1]", r"`camera.eye` must be finite, got nan"),
        ("bounds.mu=[nan, 1e6]", r"`bounds.mu` must be finite, got nan"),
        ("beam.cells=12", r"`beam.cells` must be a list in brackets, each a whole number"),
        ("camera.eye=[0, 'a', 1]", r"`camera.eye` must be a number, got 'a'"),
        ("noise.eight_bit=1", r"`noise.eight_bit` must be true or false"),
    ],
)
def test_a_wrong_override_is_explained(override, message):
    with pytest.raises(StudyError, match=message):
        config.resolve("beam", [override])


def test_an_unknown_study_names_the_nearest():
    with pytest.raises(StudyError, match="Did you mean `beam`"):
        config.resolve("beem")


def test_a_missing_study_file_is_named():
    with pytest.raises(StudyError, match=r"no study file nowhere.toml"):
        config.resolve("nowhere.toml")


def test_a_bound_may_be_infinite():
    assert config.resolve("beam", ["bounds.mu=[1e4, inf]"]).values["bounds"]["mu"][1] == math.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[beam]\nmu = 1e5\n", "must name its kind"),
        ("study = \n", "not valid TOML"),
        ('study = "beam"\n[beam]\nmoo = 1.0\n', r"Unknown key `beam.moo`"),
        ('study = "bean"\n', "Did you mean `beam`"),
    ],
)
def test_a_wrong_study_file_is_explained(text, message, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=message):
        config.resolve(str(path))
