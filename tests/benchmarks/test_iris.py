"""The benchmark of IRIS: its folders, its windows, its table, and one simulated film of it."""

import json
import shutil

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from benchmarks.iris import films
from benchmarks.iris.__main__ import report
from benchmarks.iris.fitting import (
    after_release,
    between_strikes,
    filled,
    inside,
    merged,
    until_struck,
)
from benchmarks.iris.folder import Film, find_films, read_measured, read_templates
from benchmarks.iris.table import FAILED, PUBLISHED, published, summary, table
from studies.runs.errors import StudyError


CLASSES = {
    "dropping_ball", "falling_ball", "sliding_cone", "pendulum", "rotation", "hitting_cones",
    "two_moving_pendulums", "two_moving_pendulum_one_static",
}  # fmt: skip
FALLING = next(case for case in films.SETTINGS if case.name == "Falling_ball/mid")


def command(*words):
    app = typer.Typer()
    app.command()(report)
    return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "1000"})


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_every_class_has_a_template_and_a_simulated_film():
    assert set(read_templates()) == CLASSES
    assert {case.name.partition("/")[0].lower() for case in films.SETTINGS} == CLASSES
    assert {key.partition("/")[0] for key in PUBLISHED["errors"]} == CLASSES - {
        "sliding_cone", "hitting_cones"
    }  # fmt: skip


def test_films_are_found_by_class_and_setting(tmp_path):
    names = "Pendulum/pendulum_45/01.MP4", "Pendulum/pendulum_45/01_mask.mp4", "Other/a/01.mp4"
    touch(tmp_path, *names, "iris_pendulum.gif", "other.gif")
    measured = {"Pendulum": {"pendulum_45": {"rope_length": {"mean": 0.5}, "note": "by hand"}}}
    (tmp_path / "parameters.json").write_text(json.dumps(measured))
    loose, setting = find_films(tmp_path, read_templates())
    assert (loose.name, loose.setting) == ("pendulum/iris_pendulum", "")
    assert (setting.name, setting.measured) == ("pendulum/pendulum_45/01", {"rope_length": 0.5})


def test_a_folder_that_is_none_of_iris_is_refused(tmp_path):
    templates = read_templates()
    with pytest.raises(StudyError, match="there is no folder"):
        find_films(tmp_path / "no", templates)
    with pytest.raises(StudyError, match=r"has no films CLASS/SETTING/TAKE\.mp4"):
        find_films(tmp_path, templates)
    touch(tmp_path, "Rotation/slow/01.mp4")
    with pytest.raises(StudyError, match=r"parameters\.json is missing"):
        find_films(tmp_path, templates)
    (tmp_path / "parameters.json").write_text('{"rotation": 3}')
    with pytest.raises(StudyError, match=r"must have \{class"):
        read_measured(tmp_path / "parameters.json")


def test_templates_that_lack_something_are_refused(tmp_path):
    with pytest.raises(StudyError, match=r"has no files \*\.toml"):
        read_templates(tmp_path)
    (tmp_path / "a.toml").write_text("[bodies]\n")
    with pytest.raises(StudyError, match=r"lacks `iris\.classes`"):
        read_templates(tmp_path)


def test_a_template_is_filled_in():
    template = {"a": ["$width", "$-width", "b"], "c": {"d": "$height"}, "e": 3}
    numbers = {"width": 4, "height": 2.5}
    assert filled(template, numbers) == {"a": [4, -4, "b"], "c": {"d": 2.5}, "e": 3}
    with pytest.raises(StudyError, match=r"`\$depth`"):
        filled("$depth", numbers)
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}}) == {
        "a": {"b": 1, "c": 4},
        "d": 3,
    }


def test_windows_begin_with_the_motion_and_end_with_a_blow():
    still, moving = np.zeros(10), 3.0 * np.arange(1, 21) ** 2
    track = np.stack([np.full(30, 50.0), np.concatenate([still, moving])], axis=1)
    (window,) = after_release({"ball": track}).values()
    assert window == (12, 30)  # the first step is 3 of 1200 pixels, less than 2 %
    columns = np.concatenate([4.0 * np.arange(20), 76.0 + 1.0 * np.arange(1, 11)])
    (window,) = until_struck({"ball": np.stack([columns, columns], axis=1)}).values()
    assert window == (0, 19)
    # 3 (k - 9)^2 is 30 pixels from both edges for k - 9 from 3.2 to 17.97
    assert inside(track, range(30), 30.0, (100, 1000)) == (13, 27)


def test_flights_of_two_balls_are_those_between_strikes():
    """Strikes of the closed-form motion are at 8 and 38 for the ball that hung still."""
    times = np.arange(75) / 30
    dark, light = (surface[0].mean(axis=1) for surface, _ in films.struck((-45.0, 0.0))(times))
    tracks = {"light": 200 * light[:, :2] * [1, -1], "dark": 200 * dark[:, :2] * [1, -1]}
    windows = between_strikes(tracks)
    apart = np.linalg.norm(light - dark, axis=1)
    for name, (first, end) in windows.items():
        assert 10 < end - first < 25
        assert apart[end] < 0.1  # the next strike
        assert np.ptp(tracks[name][first:end, 0]) > 45
        assert (np.diff(np.abs(tracks[name][first:end, 0]))[:5] > 0).all()  # past the lowest point
    with pytest.raises(StudyError, match="do not strike each other twice"):
        between_strikes({"a": tracks["light"][:12], "b": tracks["dark"][:12]})


def answer(value, verdict="found", *, truth=0.5):
    return {"rope_length": {
        "value": value, "low": value - 0.1, "high": value + 0.1, "verdict": verdict, "truth": truth
    }}  # fmt: skip


def test_the_table_has_the_median_take_and_counts_verdicts(tmp_path):
    takes = [answer(0.52), answer(0.9, "not determined"), answer(0.51), {
        "rope_length": {"verdict": FAILED, "truth": 0.5}
    }]  # fmt: skip
    film = Film(tmp_path / "01.mp4", "pendulum", "pendulum_45", {"rope_length": 0.5})
    fitted = [(film, {"numbers": numbers}) for numbers in takes]
    _, row = table(fitted)
    assert row[:5] == ["pendulum", "pendulum_45", "rope_length [m]", "0.5", "4"]
    assert row[5:8] == ["0.52 (0.42 to 0.62)", "0.02", "2 of 3"]
    assert row[8:] == ["2 found, 1 not determined, 1 failed", "0.34 / 0.84 / 1.2"]
    assert summary(fitted) == {
        "found": "2 of 4", "median": "4.0 %", "wrong": "none", "covered": "2 of 3"
    }  # fmt: skip
    wrong = [(film, {"numbers": answer(0.7)})]
    assert summary(wrong)["wrong"] == "1"


def test_published_errors_of_a_film_without_a_setting_are_a_range():
    assert published("pendulum", "", "rope_length").startswith("0.34 to 0.6 / ")
    assert published("hitting_cones", "fast", "speed") == ""


def test_a_simulated_film_is_fitted_kept_and_beside_one_that_fails(tmp_path):
    folder, out = tmp_path / "set", tmp_path / "out"
    films.make(folder, [FALLING])
    shutil.copytree(folder / "Falling_ball", folder / "Rotation")
    (folder / "Rotation" / "mid" / "01.mp4").write_bytes(b"no film")
    done = command(folder, "--out", out, "--data", tmp_path)
    assert done.exit_code == 0, done.output
    assert "rotation/mid/01: failed: " in done.output
    (head, falling, *_) = json.loads((tmp_path / "iris.json").read_text())["values"]["table"]
    row = dict(zip(head, falling, strict=True))
    assert row["verdict"] == "found"
    assert row["truth in interval"] == "1 of 1"
    assert float(row["error"]) < 0.03 * 9.8
    again = command(folder, "--out", out)
    assert "falling_ball/mid/01: found, as before" in again.output
    assert "rotation/mid/01: failed: " in again.output
