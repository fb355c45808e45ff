import numpy as np
import pytest

from studies.doubts import doubts, ending, offset
from studies.optimizers.problem import Status


def result(status="CONVERGED", start=1.0, end=1e-3):
    return {"status": status, "loss_at_start": start, "loss": end}


def test_a_good_fit_is_not_doubted():
    assert doubts(result()) == []


@pytest.mark.parametrize("status", ["MAX_EVALUATIONS", "STALLED"])
def test_a_search_that_did_not_converge_is_doubted(status):
    (line,) = doubts(result(status))
    assert line == "The search did not converge: the values are where it stopped."
    (line,) = doubts({**result(status), "parameters": [{"interval": [1.0, 2.0]}]})
    assert line.endswith("where it stopped, and the intervals may miss the optimum.")


def test_a_search_that_stalls_at_rounding_is_not():
    assert doubts(result("STALLED", 1.0, 1e-30)) == []


def test_a_loss_that_hardly_fell_is_doubted():
    (line,) = doubts(result(end=0.6))
    assert "The loss fell only from 1 to 0.6" in line
    assert doubts(result(end=0.4)) == []


def test_a_point_beyond_its_own_stable_step_is_doubted():
    (line,) = doubts(result() | {"steps": {"dt": 6.5e-5, "stable_dt": 3.97e-5}})
    assert "a step is 6.5e-05 s, and for these values the estimated stable one is 3.97e-05" in line
    assert doubts(result() | {"steps": {"dt": 4.1e-5, "stable_dt": 4e-5}}) == []
    assert doubts(result() | {"steps": None}) == []


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


def seen(rng, body, behind, noise):
    """Offset of a fit with a body on the left, these colours too bright, and noise."""
    targets = rng.random((3, 8, 10, 3))
    images = np.zeros((3, 8, 10, 4))
    images[:, :, :5, 3] = 1.0
    images[..., :3] = targets + np.where(images[..., 3:] > 0.5, body, behind)
    images[..., :3] += noise * rng.standard_normal(targets.shape)
    return offset(images, targets)


@pytest.mark.parametrize(("body", "behind"), [((0.1, 0.0, -0.05), 0.0), (0.0, (0.2, 0.2, 0.2))])
def test_a_look_that_is_off_is_named_and_more_evaluations_are_not(rng, body, behind):
    found = seen(rng, body, behind, 0.02)
    np.testing.assert_allclose(found["body"], np.broadcast_to(body, 3), atol=0.01)
    np.testing.assert_allclose(found["background"], np.broadcast_to(behind, 3), atol=0.01)
    (line,) = doubts(result() | {"offset": found})
    assert "of what is left is a constant: the fit differs in RGB by (" in line
    assert "light, colours or background do not fit the images" in line
    spent = ending(Status.MAX_EVALUATIONS, found)
    assert spent == "The evaluations are spent before the tolerance is reached."
    assert ending(Status.CONVERGED, found) == Status.CONVERGED.value


def test_noise_and_motion_and_a_perfect_fit_are_no_matter_of_the_look(rng):
    noisy = seen(rng, 0.0, 0.0, 0.1)
    faint = seen(rng, 1e-4, 1e-4, 0.0)  # all of it constant, and nobody sees it
    exact = seen(rng, 0.0, 0.0, 0.0)
    assert exact == {"body": [0.0] * 3, "background": [0.0] * 3, "share": 0.0}
    for found in (noisy, faint, exact):
        assert doubts(result() | {"offset": found}) == []
        assert ending(Status.MAX_EVALUATIONS, found) == Status.MAX_EVALUATIONS.value
