"""Files with the right checksum that no command of ours writes are named, with the way out."""

import pytest

from studies.datasets.shards import INDEX, read_index
from studies.runs.errors import StudyError
from studies.runs.evaluations import read_log
from studies.runs.files import append_record
from studies.runs.folder import ITERATIONS, MANIFEST, RunFolder
from studies.runs.starting import recalled
from studies.scans.dataset import POINTS
from studies.scans.scanning import read_points


SHORT = {"kind": "gradient", "spent": 1, "cost": 1, "loss": 0.0, "values": {}}


def read_one(path):
    return read_points(path, [(0,)])


@pytest.fixture
def folder(tmp_path):
    with RunFolder.create(tmp_path / "run") as made:
        made.write_json(MANIFEST, {"verb": "run", "target": "beam"})
        yield made


@pytest.mark.parametrize(
    ("name", "read", "record", "why"),
    [
        (ITERATIONS, read_log, {}, "`kind`: field required"),
        (ITERATIONS, read_log, {**SHORT, "theta": "x"}, "`theta`: input should be a valid array"),
        (POINTS, read_one, {}, "`index`: field required"),
        (POINTS, read_one, {"index": [0], "reason": 3}, "`reason`: input should be a valid string"),
    ],
)
def test_a_line_of_another_program_is_named(folder, name, read, record, why):
    path = folder.file(name)
    append_record(path, record)
    with pytest.raises(StudyError, match=rf"Line 1 of .*{name} .*\({why}\)\. Delete the file"):
        read(path)


@pytest.mark.parametrize(
    ("shards", "why"),
    [
        (3, "`shards`: input should be a valid array"),
        ([3], r"`shards\.0`: input should be an object"),
        ([{"file": 3}], r"`shards\.0\.file`: input should be a valid string"),
    ],
)
def test_an_index_of_another_program_is_named(folder, shards, why):
    folder.write_json(INDEX, {"shards": shards})
    with pytest.raises(StudyError, match=rf"{INDEX} is damaged.*\({why}\)\. Delete it"):
        read_index(folder)


def test_a_manifest_of_another_program_is_named(folder):
    with pytest.raises(StudyError, match=r"manifest.json is damaged.*\(`study`: field required\)"):
        recalled(folder.path, {}, resume=True)
