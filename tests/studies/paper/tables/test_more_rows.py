"""Rows that another program adds to a table: in the folder, in the report, in no mean of others."""

import csv

import pytest

from studies import config, running
from studies.errors import StudyError
from studies.paper.tables.more_rows import Row, guess_record, with_rows, write_row
from studies.paper.tables.table import Case
from studies.paper.tables.tasks import find_table
from studies.registry import RunOptions
from studies.run_folder import RunFolder
from tests.studies.paper.tables.toy import TABLE1


ROW = Row("convlstm", "ConvLSTM", "Guesses & was trained for 3 s.")
SOME = (*TABLE1, 'methods=["average", "random"]')


@pytest.fixture
def folder(tmp_path):
    """A finished run of two rows."""
    folder, job = running.start("table1", SOME, tmp_path / "run", {})
    job.run(folder)
    return folder


def records(mass=0.25):
    values = config.resolve("table1", SOME).values
    scene = find_table("table1").scenes[0]
    cases = [Case(values, scene, RunOptions(), k) for k in range(3)]
    return [guess_record(case, ROW.name, {"body.mass": mass}) for case in cases]


def test_a_guess_has_the_error_of_what_was_guessed():
    for one in records():
        error = one["errors"]["body.mass"]
        assert error["estimate"] == pytest.approx(0.25, rel=1e-14)
        assert error["mean"] == pytest.approx(abs(0.25 - error["truth"]) / error["truth"])
        assert one["status"] == "GUESSED"


def test_a_row_that_was_added_is_shown_beside_what_is_published(folder, adjsim):
    before = folder.file("result.json").read_bytes()
    text = write_row(folder, ROW, records())
    code, _, err = adjsim("report", folder.path)
    assert code == 0, err
    report = folder.file("report.html").read_text()
    for said in ("ConvLSTM", "Guesses &amp; was trained for 3 s.", "9.4e-03", "guessed"):
        assert said in report
    assert "ConvLSTM, not run" not in report
    assert folder.file("result.json").read_bytes() == before
    own, table = (
        list(csv.DictReader(lines.splitlines()))
        for lines in (text, folder.file("records.csv").read_text())
    )
    assert len(own) == 3
    assert set(own[0]) == set(table[0])
    assert folder.file("rows/convlstm.csv").read_text() == text


def test_the_middle_of_the_range_has_the_errors_of_the_row_average(folder):
    write_row(folder, ROW, records())
    result = with_rows(folder, folder.read_json("result.json"))
    cells = {one["row"]: one for one in result["cells"]}
    assert cells["convlstm"]["mean"] == pytest.approx(cells["average"]["mean"], rel=1e-12)
    assert cells["convlstm"]["published"] == 0.0094
    assert cells["convlstm"]["expected"] is None
    assert [row["name"] for row in result["rows"]] == ["average", "random", "convlstm"]


def test_a_row_is_written_over_but_none_of_the_tables_own(folder):
    write_row(folder, ROW, records(0.2))
    write_row(folder, ROW, records(0.3))
    result = with_rows(folder, folder.read_json("result.json"))
    guessed = [one for one in result["records"] if one["estimator"] == "convlstm"]
    assert [one["errors"]["body.mass"]["estimate"] for one in guessed] == pytest.approx([0.3] * 3)
    with pytest.raises(StudyError, match="has a row `random` of its own"):
        write_row(folder, Row("random", "Random", ""), records())


def test_a_file_that_is_no_row_is_named(folder):
    folder.write_json("rows/other.json", {"name": "other", "label": "Other"})
    with pytest.raises(StudyError, match=r"other.json must hold name, .* got no about, records"):
        with_rows(folder, folder.read_json("result.json"))


def test_a_table_without_more_rows_is_as_it_was(folder):
    result = folder.read_json("result.json")
    assert with_rows(RunFolder.open(folder.path), result) == result


def test_a_row_that_knows_one_scene_of_many_has_no_cell_in_the_others(folder):
    result = folder.read_json("result.json")
    other = {**result["columns"][0], "scene": "other"}
    write_row(folder, ROW, records())
    cells = with_rows(folder, {**result, "columns": [*result["columns"], other]})["cells"]
    assert cells[-1]["scene"] == "other"
    assert cells[-1]["mean"] is None
    assert cells[-1]["failed"] == 0
