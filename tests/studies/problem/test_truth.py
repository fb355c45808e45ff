"""What a twin experiment hides, and errors against it."""

import numpy as np

from studies.problem.truth import Truth


def test_errors_are_relative_to_the_truth_or_to_a_scale():
    truth = Truth({"mass": 2.0, "speed": [0.0, 3.0]}, {"speed": 5.0})
    errors = truth.errors(("mass", "speed"), np.array([2.5, 1.0, 3.0]))
    np.testing.assert_allclose(errors, [0.25, 0.2, 0.0], rtol=1e-15)


def test_the_error_of_a_value_that_is_zero_is_the_error_itself():
    # A run that is done must not fail to write its result.
    truth = Truth({"speed": 0.0, "spin": [0.0, 4.0]})
    errors = truth.errors(("speed", "spin"), np.array([-0.01, 0.0, 5.0]))
    np.testing.assert_allclose(errors, [0.01, 0.0, 0.25], rtol=1e-15)
