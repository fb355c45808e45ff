"""A study from end to end in float32: what it finds, where it stops, and who certifies it."""

from studies import running
from tests.studies.toy_beam import OVERRIDES


def test_a_run_finds_the_truth_and_ends_where_rounding_begins(tmp_path):
    folder, job = running.start("beam", OVERRIDES, tmp_path / "run", {"dtype": "float32"})
    job.run(folder)
    result = folder.read_json("result.json")
    assert result["status"] == "CONVERGED"
    # Rounding of the states by some 120 steps and of the pixels; float64 gets below 1e-12.
    errors = [row["relative_error"] for row in result["parameters"]]
    assert 1e-9 < max(errors) < 1e-5
    certified = folder.read_json("certificate.json")
    assert certified["passed"]
    assert certified["dtype"] == "float64"  # differences of float32 tell no derivative
    assert folder.has("report.html")
