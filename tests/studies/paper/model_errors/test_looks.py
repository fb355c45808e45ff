"""What a wrong model does, as the report tells and draws it."""

from types import SimpleNamespace

import numpy as np
import pytest

from studies.paper.model_errors import looks
from studies.parameters import Parameters, positive_block


@pytest.mark.parametrize(
    ("mass", "told"),
    [
        (0.7, " (the lower bound of the search)"),
        (3.0, ""),
        (7.0, " (the upper bound of the search)"),
    ],
)
def test_a_mass_at_a_bound_is_told_as_one(mass, told):
    parameters = Parameters([positive_block("body.mass", 4.0, {"body.mass": (0.7, 7.0)})])
    case = SimpleNamespace(problem=SimpleNamespace(parameters=parameters))
    assert looks._bound(case, np.clip(np.log([mass]), parameters.lower, parameters.upper)) == told
