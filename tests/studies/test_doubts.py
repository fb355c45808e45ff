import pytest

from studies.doubts import doubts


def result(status="CONVERGED", start=1.0, end=1e-3):
    return {"status": status, "loss_at_start": start, "loss": end}


def test_a_good_fit_is_not_doubted():
    assert doubts(result()) == []


@pytest.mark.parametrize("status", ["MAX_EVALUATIONS", "STALLED"])
def test_a_search_that_did_not_converge_is_doubted(status):
    (line,) = doubts(result(status))
    assert "did not converge" in line


def test_a_search_that_stalls_at_rounding_is_not():
    assert doubts(result("STALLED", 1.0, 1e-30)) == []


def test_a_loss_that_hardly_fell_is_doubted():
    (line,) = doubts(result(end=0.6))
    assert "The loss fell only from 1 to 0.6" in line
    assert doubts(result(end=0.4)) == []


def test_a_run_of_an_earlier_version_has_a_report_too():
    assert doubts({"status": "CONVERGED", "loss": 0.1}) == []


def test_a_direction_that_leaves_no_trace_is_doubted():
    spread = {
        "reason": "a direction of theta leaves no trace in the images",
        "singular_values": [0.2, 3e-17],
        "worst_direction": {"log damping": 0.707, "log mass": 0.707},
    }
    (line,) = doubts(result() | {"uncertainty": spread})
    assert "along 0.71 log damping, 0.71 log mass nothing in them changes" in line
    assert doubts(result() | {"uncertainty": spread | {"reason": ""}}) == []
    many = spread | {"reason": "more than 256 parameters", "singular_values": []}
    assert doubts(result() | {"uncertainty": many}) == []
