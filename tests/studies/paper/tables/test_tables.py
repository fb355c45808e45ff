"""Tables 2 and 3 at toy size: every row and column, and what is said where a video cannot tell."""

import pytest

from studies import running
from tests.studies.paper.tables.toy import TABLE2, TABLE3, settings_of
from tests.studies.toys import TOYS


CONTACT = TOYS["rigid-contact"].overrides


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The finished runs of both tables."""
    folders = {}
    for name, overrides in (("table2", TABLE2), ("table3", TABLE3)):
        path = tmp_path_factory.mktemp("tables") / name
        folders[name], job = running.start(name, overrides, path, {})
        job.run(folders[name])
    return folders


@pytest.mark.parametrize(("name", "columns"), [("table2", 5), ("table3", 6)])
def test_every_column_has_every_row_and_keeps_its_bar(name, columns, finished):
    result = finished[name].read_json("result.json")
    assert len(result["columns"]) == columns
    assert len(result["cells"]) == columns * len(result["rows"])
    for cell in result["cells"]:
        assert (cell["ended"], cell["failed"]) == (2, 0)
        if cell["row"] == "video":
            assert cell["met"], cell
        if cell["row"] in {"average", "random"}:
            assert 0.1 * cell["expected"] < cell["mean"] < 5.0 * cell["expected"]
    ended = [one for one in result["records"] if one["estimator"] == "states"]
    found = [one for one in ended if one["loss"] <= 1e-20]  # others are in another optimum
    assert {one["scene"] for one in found} == {one["scene"] for one in ended}
    for one in found:
        assert max(error["mean"] for error in one["errors"].values()) <= 1e-6
    text = finished[name].file("report.html").read_text()
    assert f"{columns} of {columns} bars kept" in text
    assert "3-D supervision" in text
    for column in result["columns"]:
        assert f"published {column['published']['video']:.1e}<" in text


def test_instances_of_a_scene_differ(finished):
    for scene, path in (("ball", "ball.mu"), ("beam", "beam.lam")):
        records = [
            one
            for one in finished["table3"].read_json("result.json")["records"]
            if (one["scene"], one["estimator"]) == (scene, "video")
        ]
        assert len({one["errors"][path]["truth"] for one in records}) == 2


@pytest.mark.usefixtures("unpainted")
def test_where_the_video_cannot_tell_the_report_shows_the_spectrum(tmp_path):
    scene = settings_of("contact", CONTACT, "push.force=[0.0, 0.0, 0.0]", "optimizer.starts=1")
    overrides = ("count=1", scene, 'methods=["video"]')
    folder, job = running.start("table2", overrides, tmp_path / "run", {})
    job.run(folder)
    result = folder.read_json("result.json")
    assert not all(cell["met"] for cell in result["cells"])
    report = folder.file("report.html").read_text().replace("<wbr>", "")
    assert "Instances above a bar" in report
    worst = result["records"][0]["spectrum"]["worst_direction"]
    assert "log body.mass" in worst
    assert f"{worst['log body.mass']:.2f} log body.mass" in report


@pytest.mark.parametrize(
    ("name", "override", "message"),
    [
        (
            "table2",
            settings_of("contact", CONTACT, 'free=["mass"]'),
            "`contact`: `free` must hold floor.stiffness, floor.damping",
        ),
        (
            "table3",
            "ball.settings=[]",
            r"`ball`: `free` must hold ball.mu, ball.lam too.*got mass\.",
        ),
        ("table3", "beam.hidden.mu=[1.0]", r"`beam.hidden.mu` must have shape \(2,\)"),
        ("table3", "beam.start.lam=[0.0, 1.0]", "`beam.start.lam` must be positive"),
        ("table3", 'cloth.settings=["cloth.mu=0.0"]', "`cloth`: `cloth.mu` must be positive"),
        ("table3", 'masses.settings=["free=[]"]', "`masses`: `free` must name at least one"),
    ],
)
def test_a_bad_setting_is_named(name, override, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        running.start(name, [override], tmp_path / "run", {})
    assert not list(tmp_path.iterdir())
