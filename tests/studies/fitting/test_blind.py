"""A blind run: the truth of what is simulated is in the report, not in search or verdict."""

import json

import pytest
import tomlkit

from studies.fitting import judging
from studies.runs.errors import StudyError
from studies.scene.reading import read_scene
from tests.studies.command import adjsim
from tests.studies.fitting.twins import LENGTH, tables
from tests.studies.undrawn import undrawn


SEARCH = {"coarse": 0, "stages": [1.0], "held_back": 0.0}
FREE = {"rod.length": {"start": 0.8, "bounds": [0.3, 3.0]}}


def write_scene(folder):
    path = folder / "rod.toml"
    path.write_text(tomlkit.dumps(tables(free=FREE, truth={"rod.length": LENGTH}, search=SEARCH)))
    return path


def run_of(path, out, *options):
    """Return the result of a run, its manifest, and the evidence of its verdict."""
    seen, judge = [], judging.judge
    with undrawn(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "judge", lambda evidence: seen.append(evidence) or judge(evidence))
        code, _, err = adjsim("run", path, "--no-certificate", "--out", out, *options)
    assert code == 0, err
    return *(
        json.loads((out / name).read_text()) for name in ("result.json", "manifest.json")
    ), *seen


def test_a_blind_verdict_rests_on_nothing_that_footage_does_not_have(tmp_path):
    path = write_scene(tmp_path)
    result, manifest, evidence = run_of(path, tmp_path / "blind", "--blind")
    assert evidence.truth is None
    assert evidence.unexplained_by_truth is None
    assert evidence.intervals.parts["floor"].max() > 0.0
    assert {row["name"].partition("[")[0] for row in result["nuisances"]} >= {
        "cameras.front.translation",
        "cameras.front.rotation",
    }
    (row,) = result["parameters"]
    assert row["truth"] == LENGTH
    assert row["relative_error"] < 0.02
    assert any("Blind" in finding for finding in result["findings"])
    assert manifest["depends_on"]["settings.blind"] is True

    result, manifest, evidence = run_of(path, tmp_path / "twin")
    assert evidence.truth == pytest.approx([LENGTH])
    assert evidence.unexplained_by_truth is not None
    assert evidence.intervals.parts["floor"].max() == 0.0
    assert result["nuisances"] == []
    assert "settings.blind" not in manifest["depends_on"]


def test_a_blind_run_is_resumed_blind(tmp_path):
    path = write_scene(tmp_path)
    run_of(path, tmp_path / "run", "--blind")
    again, manifest, _ = run_of(path, tmp_path / "run", "--resume")
    assert manifest["arguments"]["blind"] is True
    assert any("Blind" in finding for finding in again["findings"])
    run_of(path, tmp_path / "twin")
    with undrawn():
        code, _, err = adjsim("run", path, "--out", tmp_path / "twin", "--resume", "--blind")
    assert code == 2
    assert "`blind` was nothing, is true" in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"observations": {"film": {"video": "clip.mp4"}}, "truth": {}}, "footage"),
        ({"purpose": "control"}, "control"),
    ],
)
def test_a_blind_run_of_what_is_not_simulated_is_refused(tmp_path, more, said):
    (tmp_path / "clip.mp4").touch()
    path = tmp_path / "rod.toml"
    path.write_text(tomlkit.dumps(tables(**more)))
    with pytest.raises(StudyError, match=f"`blind` must be false where.*{said}"):
        read_scene(path, ["blind=true"])
