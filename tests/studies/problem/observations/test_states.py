import numpy as np
import pytest

from studies.problem.observations.points import read_states
from studies.runs.errors import StudyError
from studies.scene import arrays
from studies.scene.declared import States


GOOD = {"times": np.array([0.0, 0.1]), "x": np.arange(12.0).reshape(2, 2, 3)}


def read(tmp_path, arrays):
    np.savez(tmp_path / "a.npz", **arrays)
    return read_states(States(file=str(tmp_path / "a.npz"), body="duck"))


def test_states_are_read(tmp_path):
    data = read(tmp_path, GOOD)
    np.testing.assert_array_equal(data.times, GOOD["times"])
    np.testing.assert_array_equal(data.values, GOOD["x"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((2, 3))}, r"`x` must have shape \(n_times, n_nodes, 3\)"),
        ({"x": np.zeros((3, 2, 3))}, "one for each of its 3 frames, got the shape"),
        ({"x": np.full((2, 2, 3), np.nan)}, "`x` must hold finite"),
        ({"times": np.array([0.1, 0.0])}, "finite numbers that increase"),
        ({"times": np.array(["a", "b"])}, "the type <U1"),
        ({"x": np.array([[None]])}, "arrays of numbers"),
    ],
)
def test_bad_arrays(tmp_path, changes, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, GOOD | changes)


def test_a_missing_array(tmp_path):
    with pytest.raises(StudyError, match="Unknown array `times`"):
        read(tmp_path, {"time": GOOD["times"], "x": GOOD["x"]})


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MOST_BYTES", 100_000)
    bomb = GOOD | {"x": np.zeros((2, 5000, 3))}
    np.savez_compressed(tmp_path / "a.npz", **bomb)
    assert (tmp_path / "a.npz").stat().st_size < 1000
    with pytest.raises(StudyError, match=r"a\.npz have 0\.0 GB; .* float32"):
        read_states(States(file=str(tmp_path / "a.npz"), body="duck"))


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    np.save(tmp_path / "one.npy", GOOD["x"])
    for name, message in (
        ("none.npz", "cannot be read"),
        ("text.npz", "numbers"),
        ("one.npy", "one array"),
    ):
        with pytest.raises(StudyError, match=message):
            read_states(States(file=str(tmp_path / name), body="duck"))
