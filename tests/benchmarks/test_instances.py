"""Random instances of bundled scenes: the rows of what a run left."""

from benchmarks.instances import COUNTS, rows_of
from studies.runs.folder import INSTANCES, RESULT, RunFolder
from studies.scene.files import bundled_scenes


def test_all_scenes_are_bundled_ones():
    assert set(COUNTS) <= set(bundled_scenes())


def test_rows_say_how_many_instances_ended(tmp_path):
    folder = RunFolder(tmp_path)
    row = {"name": "ball.mass", "median": 1.23e-15, "worst": 4e-3, "published": 9e-5}
    errors = {10: 1e-15, 30: 4e-3}
    ended = [
        {"evaluations": n, "errors": {"ball.mass": {"mean": error}}} for n, error in errors.items()
    ]
    table = {"records": ended, "failed": [{"reason": "diverged"}], "parameters": [row]}
    folder.write_json(INSTANCES, table)
    cells = ("thrown", "2 (1 failed)", "`ball.mass`", "1e-15", "0.004", "1", "20", "9.0e-05")
    assert rows_of("thrown", folder) == [cells]


def test_a_single_run_has_the_error_of_its_answer(tmp_path):
    folder = RunFolder(tmp_path)
    answer = {"name": "beam.E", "relative_error": 2.4e-6}
    folder.write_json(RESULT, {"evaluations": 36, "parameters": [answer]})
    assert rows_of("hung", folder) == [("hung", "1", "`beam.E`", "2e-06", "", "", "36", "")]
