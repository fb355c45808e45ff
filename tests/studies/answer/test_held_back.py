"""What a fit leaves of the motion, and of frames that it did not use."""

import numpy as np
import pytest

from studies.answer.held_back import explained


STILL = np.array([0.0, 1.0, 4.0, 9.0, 16.0, 20.0])


def test_wrong_appearance_is_subtracted_and_wrong_motion_is_not():
    look = explained(np.full(6, 3.0), STILL)
    assert look is not None
    assert (look.unexplained, look.first, look.growth) == (0.0, 0.3, 1.0)
    wrong = explained(3.0 + 0.5 * STILL, STILL)
    assert wrong is not None
    assert wrong.unexplained == pytest.approx(0.5)
    assert wrong.growth == pytest.approx(4.0)
    still = explained(STILL, STILL)  # a fit in which nothing moves
    assert still is not None
    assert (still.unexplained, still.growth) == (1.0, None)


def test_each_frame_has_the_look_of_what_is_observed_then():
    """A still picture at the start, beside a film, is no look of the film's later frames."""
    wrong = np.array([6.0, *(1.0 + 0.5 * STILL[1:])])
    explanation = explained(wrong, STILL, appearance=np.array([6.0, 1.0, 1.0, 1.0, 1.0, 1.0]))
    assert explanation is not None
    assert explanation.unexplained == pytest.approx(0.5)


def test_frames_that_were_held_back_are_judged_by_the_fit_of_the_others():
    explanation = explained(np.array([0.0, 0, 0, 0, 5.0, 5.0]), STILL, n_fitted=4)
    assert explanation is not None
    assert explanation.predicted_unexplained == pytest.approx(5.0 / STILL[1:].mean())
    assert explanation.held_back == 2


def test_without_motion_nothing_is_said():
    assert explained(np.ones(1), np.zeros(1)) is None
    assert explained(np.ones(4), np.zeros(4)) is None
