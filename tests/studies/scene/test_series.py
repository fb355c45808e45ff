import numpy as np
import pytest

from studies.runs.errors import StudyError
from studies.scene.series import read_series


def read(tmp_path, text, n_values=(1,)):
    path = tmp_path / "a.csv"
    path.write_text(text, errors="surrogateescape")
    return read_series("bodies.a.actuation", str(path), n_values)


def test_columns_are_read_by_name(tmp_path):
    times, values = read(tmp_path, "a,time\n1.5, 0\n2.5, 0.1\n\n")
    np.testing.assert_array_equal(times, [0.0, 0.1])
    np.testing.assert_array_equal(values, [1.5, 2.5])
    times, _ = read(tmp_path, '\n"time", "a"\r\n"0", 1\r\n\r\n"0.1",2\r\n')
    np.testing.assert_array_equal(times, [0.0, 0.1])
    _, values = read(tmp_path, "time,a,b\n0,1,2\n", (1, 2))
    np.testing.assert_array_equal(values, [[1.0, 2.0]])
    for named, expected in (({"b": "N"}, [3.0]), ({"b": "N", "a": "m"}, [[3.0, 2.0]])):
        path = str(tmp_path / "a.csv")
        (tmp_path / "a.csv").write_text("c,a,time,b\n1,2,0,3\n")
        np.testing.assert_array_equal(read_series("a", path, {1, 2}, named)[1], expected)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("Time (s),Displacement (mm),Force (N)", None),
        ("TIME,displacement[mm],Force", None),
        (
            "Time [ms],displacement,force",
            r"`Time \[ms\]`, which must be in s: convert it, or rename",
        ),
        (
            "time,displacement (cm),force",
            r'must be in mm: write `units = "cm"`, or rename it to `d',
        ),
        (
            "time,displacement (in),force",
            "must be in mm: convert it, or rename it to `displacement`",
        ),
    ],
)
def test_a_machine_may_name_its_columns_with_units(tmp_path, header, message):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n0,1,2\n1,3,4\n")
    if message is None:
        times, values = read_series("grips.a.path", str(path), {1}, {"displacement": "mm"})
        np.testing.assert_array_equal((times, values), [[0.0, 1.0], [1.0, 3.0]])
        return
    with pytest.raises(StudyError, match=message):
        read_series("grips.a.path", str(path), {1}, {"displacement": "mm"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a column `time`, got the columns none"),
        ("t,a\n0,1", "`time`, got the columns t, a.* Rename the one that is meant to `time`"),
        ("time;a\n0,5;1", "Separate columns by commas, and write decimals with points"),
        ("time,a,b\n0,1,2", r"must have 1 column beside `time`, got 2"),
        ("\ntime,a\n\n0,1\n0,x", "line 5 of .* a number in the column `a`, got 'x'"),
        ("time,a\n0,1\n1,\n", "line 3 of .* a number in the column `a`, got an empty cell"),
        ("time,a\n0,1_0", "must hold numbers: could not convert"),
        ("time,a\n0,nan", "2 finite numbers in every row"),
        ("time,a", "2 finite numbers in every row"),
        ("time,a\n1,0\n1,0", "must increase"),
        (f"time,a\n0,{'1' * 200_000}", "2 finite numbers in every row"),
        (f"time,{'a' * 200_000}\n0,1", r"a\.csv cannot be read as a CSV file: field larger"),
        ("time,a\n0", r"line 2 of .*a\.csv must have 2 numbers, .* time, a, got 1"),
        ("time,a\n0,1\n2", "line 3 of .* must have 2 numbers, .* got 1"),
        ("time,\udce9\n0,1", r"a\.csv cannot be read as a CSV file: 'utf-8'"),
    ],
)
def test_damaged_series_are_told(tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(StudyError, match=r"none\.csv cannot be read as a CSV file: .* No such"):
        read_series("bodies.a.actuation", str(tmp_path / "none.csv"), {1})
